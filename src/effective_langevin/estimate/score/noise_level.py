"""The choice of the smoothing width, by a criterion on held-out samples.

A larger sigma smooths the density (bias), a smaller one leaves the score noisy (variance). Both show in the held-out
score-matching loss J(sigma) = < |s_sigma|^2 / 2 + div s_sigma >, taken over *clean* held-out samples, which is
< |s_sigma - s|^2 > / 2 up to a constant (Hyvarinen). The largest sigma whose J is within one standard error of the
smallest J is used: of equally good scores, the smoothest. The smoothest of all is the Gaussian score.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..._core import progress
from ..._core.types import Samples
from ...data.lazy import joined
from ...execution.batches import count_threads, on_all_cores, one_cpu
from ...execution.compilation import pad_rows, soon_compiled
from ...statistics.integral_time import integral_times
from ...statistics.resampling import simplest_of_best
from ..space import StateSpace
from .evidence import GainOverGaussian, NoiseLevelChoice
from .preconditioning import covariance_matrix
from .score import Score

CANDIDATES = (0.4, 0.2, 0.1, 0.05, 0.025, 0.0125)
_SAMPLES = 20000
_NOTHING = 1e-4


def choose_noise_level(
    learn: Callable[[float], Score], held_out: Samples, *, key: jax.Array
) -> tuple[float, NoiseLevelChoice]:
    """Go down the candidates while the held-out loss falls; return the chosen one and the evidence.

    The first one compiles the programs; then as many are learned side by side as there are cores, and what lies beyond
    the end of the way is dropped: the choice does not depend on the number of cores.
    """
    test, losses = _draw(held_out, key), []

    def rate(sigma: float) -> np.ndarray:
        return score_matching_loss(learn(sigma), test, key)

    with progress.task("Choosing the smoothing width", len(CANDIDATES)) as tick:
        while len(losses) < len(CANDIDATES) and not _rises(losses):
            some = CANDIDATES[len(losses) :][: count_threads() if losses and one_cpu() else 1]
            for loss in on_all_cores(rate, some):
                losses += [] if _rises(losses) else [loss]
            tick(len(some), f"sigma {some[-1]:g}")
        tick(len(CANDIDATES) - len(losses))
    return choose_largest_of_the_best(CANDIDATES[: len(losses)], losses)


def _rises(losses: list[np.ndarray]) -> bool:
    """Tell whether the loss has risen twice in a row."""
    means = [loss.mean() for loss in losses[-3:]]
    return len(means) == 3 and means[2] > means[1] > means[0]


def choose_largest_of_the_best(tried: Sequence[float], losses: list[np.ndarray]) -> tuple[float, NoiseLevelChoice]:
    """Return the first width whose loss, by sample, is on average within one standard error of the smallest."""
    chosen, above, errors = simplest_of_best(np.array(losses))
    return tried[chosen], NoiseLevelChoice(tuple(tried), tuple(above.tolist()), tuple(errors.tolist()))


def gaussian_if_as_good(
    score: Score, noise_level: float, train: Samples, held_out: Samples, space: StateSpace, *, key: jax.Array
) -> tuple[Score, float, GainOverGaussian]:
    """Return the learned score, or the Gaussian one, at width 0, unless the former is better by two standard errors.

    A short series cannot tell a density from a Gaussian one, and what a network then learns is noise. Both are compared
    on samples that neither has seen. The Gaussian score that is returned knows all samples: it has nothing to choose.
    """
    test = _draw(held_out, key)

    def gaussian(samples: Samples) -> Score:
        return Score.linear(np.linalg.inv(space.symmetry.project(covariance_matrix(samples, _NOTHING))))

    gain = np.subtract(*(score_matching_loss(one, test, key) for one in (gaussian(train), score)))
    mean, error = float(gain.mean()), _error_of_mean(gain)
    found = GainOverGaussian(noise_level, mean, error, gaussian_used=not mean > 2 * error)
    return (gaussian(joined([train, held_out])), 0.0, found) if found.gaussian_used else (score, noise_level, found)


def _error_of_mean(values: np.ndarray) -> float:
    """Return the standard error of the mean of values in order of time: neighbours count as far as they are alike."""
    apart = float(integral_times([(values - values.mean())[:, None]], 1.0)[0])
    return float(values.std() * np.sqrt(2 * apart / len(values)))


def _draw(samples: Samples, key: jax.Array) -> jax.Array:
    """At most a bounded number of the samples, in their order."""
    if len(samples) > _SAMPLES:
        rows = jax.random.choice(key, len(samples), (_SAMPLES,), replace=False)
        samples = samples[np.sort(np.asarray(rows))]
    return jnp.asarray(samples, jnp.float32)


def score_matching_loss(score: Score, samples, key) -> np.ndarray:
    """|s|^2 / 2 + div s at each sample."""
    return np.asarray(_loss_by_sample(score, pad_rows(np.asarray(samples)), key), float)[: len(samples)]


@soon_compiled
def _loss_by_sample(score: Score, samples, key):
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
