"""The choice of the noise level, by a criterion on held-out samples.

A larger sigma smooths the density (bias), a smaller one leaves the score noisy (variance). Both show in the held-out
score-matching loss J(sigma) = < |s_sigma|^2 / 2 + div s_sigma >, taken over *clean* held-out samples, which is
< |s_sigma - s|^2 > / 2 up to a constant (Hyvarinen). The largest sigma whose J is within one standard error of the
smallest J is used: of equally good scores, the smoothest.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core import progress
from ..._core.types import Samples
from .base import Score

CANDIDATES = (0.4, 0.2, 0.1, 0.05, 0.025, 0.0125)
_SAMPLES = 20000


def choose_noise_level(
    learn: Callable[[float], Score], held_out: Samples, *, key: jax.Array
) -> tuple[float, dict[str, Any]]:
    """Go down the candidates while the held-out loss falls; return the level and the evidence."""
    rows = jax.random.choice(key, len(held_out), (min(_SAMPLES, len(held_out)),), replace=False)
    test = held_out[np.sort(np.asarray(rows))]
    tried: list[float] = []
    losses: list[np.ndarray] = []
    with progress.task("Choosing the noise level", len(CANDIDATES)) as tick:
        for sigma in CANDIDATES:
            losses.append(np.asarray(score_matching_loss(learn(sigma), jnp.asarray(test, jnp.float32), key), float))
            tried.append(sigma)
            means = [loss.mean() for loss in losses]
            tick(1, f"sigma {sigma:g}")
            if len(means) > 2 and means[-1] > means[-2] > means[-3]:
                break
        tick(len(CANDIDATES) - len(tried))
    best = int(np.argmin(means))
    errors = [float(np.std(loss - losses[best]) / np.sqrt(len(loss))) for loss in losses]
    chosen = next(i for i, mean in enumerate(means) if mean - means[best] <= errors[i])
    return tried[chosen], {
        "noise_level_choice": {
            "noise_level": tried,
            "held_out_loss": [float(m - means[best]) for m in means],
            "standard_error": errors,
        }
    }


@eqx.filter_jit
def score_matching_loss(score: Score, samples, key):
    """|s|^2 / 2 + div s at each sample; the divergence is exact up to 8 dimensions, then by random directions."""
    dimension = samples.shape[1]
    if dimension <= 8:
        directions = jnp.eye(dimension)
    else:
        directions = jax.random.rademacher(key, (8, dimension)).astype(jnp.float32) * jnp.sqrt(1 / 8)

    def one(x):
        value, push = jax.linearize(score, x)
        divergence = jnp.sum(jax.vmap(lambda v: v @ push(v))(directions))
        return 0.5 * value @ value + divergence

    return jax.vmap(one)(samples)
