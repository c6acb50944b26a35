"""The choice of the smoothing width, by a criterion on held-out samples.

A larger sigma smooths the density (bias), a smaller one leaves the score noisy (variance). Both show in the held-out
score-matching loss J(sigma) = < |s_sigma|^2 / 2 + div s_sigma >, taken over *clean* held-out samples, which is
< |s_sigma - s|^2 > / 2 up to a constant (Hyvarinen). The largest sigma whose J is within one standard error of the
smallest J is used: of equally good scores, the smoothest. The smoothest of all is the Gaussian score.

The score is steep in directions in which the data hardly vary, such as the short waves of a smooth field, and J would
speak of nothing else. There C s takes the place of s, with C the covariance in the frame of the noise: it is -x for a
Gaussian density, so that every direction counts by its variance.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import Precision

from ..._core import progress
from ..._core.types import Matrix, Samples
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
_FIRST = 0.1
_SAMPLES, _NUMBERS = 20_000, 1 << 17  # of held-out samples, in many variables and in few
_NOTHING = 1e-4
_NARROW = 0.5  # variance of a direction in the frame of the noise, which makes that of all others one


def choose_noise_level(
    learn: Callable[[float], Score], held_out: Samples, *, key: jax.Array, least: float = 0.0
) -> tuple[float, NoiseLevelChoice]:
    """Go down the candidates, to `least`, while the held-out loss falls; return the chosen one and the evidence.

    The way begins in the middle. Wider ones are tried only where none of the narrower is better than that: most series
    need none of them. The first one compiles the programs; then as many are learned side by side as there are cores,
    and what lies beyond the end of the way is dropped: the choice does not depend on the number of cores.
    """
    test, losses = _draw(held_out, key), {}
    units, candidates = _units(test), [sigma for sigma in CANDIDATES if sigma >= least]
    middle = candidates.index(_FIRST)

    def rate(sigma: float) -> np.ndarray:
        return score_matching_loss(learn(sigma), test, key, units)

    def go(way: list[float]) -> None:
        tried: list[np.ndarray] = []
        while len(tried) < len(way) and not _rises(tried):
            some = way[len(tried) :][: count_threads() if losses and one_cpu() else 1]
            for sigma, loss in zip(some, on_all_cores(rate, some)):
                if not _rises(tried):
                    tried.append(loss)
                    losses[sigma] = loss
            tick(len(some), f"sigma {some[-1]:g}")

    def choose() -> tuple[float, NoiseLevelChoice]:
        tried = sorted(losses, reverse=True)
        return choose_largest_of_the_best(tried, [losses[sigma] for sigma in tried])

    with progress.task("Choosing the smoothing width", len(candidates)) as tick:
        go(candidates[middle:])
        if choose()[0] == _FIRST:
            go(candidates[:middle][::-1])
        tick(len(candidates) - len(losses))
    return choose()


def _rises(losses: list[np.ndarray]) -> bool:
    """Tell whether the loss has risen twice in a row."""
    means = [loss.mean() for loss in losses[-3:]]
    return len(means) == 3 and means[2] > means[1] > means[0]


def choose_largest_of_the_best(tried: Sequence[float], losses: list[np.ndarray]) -> tuple[float, NoiseLevelChoice]:
    """Return the first width whose loss, by sample, is on average within one standard error of the smallest."""
    chosen, above, errors = simplest_of_best(np.array(losses))
    return tried[chosen], NoiseLevelChoice(tuple(tried), tuple(above.tolist()), tuple(errors.tolist()))


def gaussian_if_as_good(
    score: Score,
    noise_level: float,
    train: Samples,
    held_out: Samples,
    space: StateSpace,
    *,
    key: jax.Array,
    with_velocities: bool = False,
) -> tuple[Score, float, GainOverGaussian]:
    """Return the learned score, or the Gaussian one unless the former is better by two standard errors.

    A short series cannot tell a density from a Gaussian one, and what a network then learns is noise. Both are compared
    on samples that neither has seen. The Gaussian score that is returned knows all samples: it has nothing to choose.
    Its width is 0; that of a field keeps the width, which hides the short waves that are too weak to be seen. A network
    that knows velocities too is given up only where the Gaussian score is better.
    """
    test = _draw(held_out, key)
    width = noise_level if space.channels else 0.0

    def gaussian(samples: Samples) -> Score:
        return Score.linear(np.linalg.inv(space.symmetry.project(covariance_matrix(samples, width or _NOTHING))))

    units = _units(test)
    gain = np.subtract(*(score_matching_loss(one, test, key, units) for one in (gaussian(train), score)))
    mean, error = float(gain.mean()), _error_of_mean(gain)
    enough = -2 * error if with_velocities else 2 * error
    found = GainOverGaussian(noise_level, mean, error, gaussian_used=not mean > enough)
    return (gaussian(joined([train, held_out])), width, found) if found.gaussian_used else (score, noise_level, found)


def _units(samples: jax.Array) -> Matrix:
    """Return the covariance of samples in the frame of the noise, with variances of one but in narrow directions."""
    values, vectors = np.linalg.eigh(covariance_matrix(np.asarray(samples)))
    return vectors * np.where(values < _NARROW, values, 1.0) @ vectors.T


def _error_of_mean(values: np.ndarray) -> float:
    """Return the standard error of the mean of values in order of time: neighbours count as far as they are alike."""
    apart = float(integral_times([(values - values.mean())[:, None]], 1.0)[0])
    return float(values.std() * np.sqrt(2 * apart / len(values)))


def _draw(samples: Samples, key: jax.Array) -> jax.Array:
    """At most a bounded number of the samples, in their order."""
    most = max(_SAMPLES, _NUMBERS // samples.shape[1])
    if len(samples) > most:
        rows = jax.random.choice(key, len(samples), (most,), replace=False)
        samples = samples[np.sort(np.asarray(rows))]
    return jnp.asarray(samples, jnp.float32)


def score_matching_loss(score: Score, samples, key, units: Matrix | None = None) -> np.ndarray:
    """|s|^2 / 2 + div s at each sample, or |C s|^2 / 2 + div C^2 s in `units` C."""
    matrix = jnp.asarray(np.eye(samples.shape[1]) if units is None else units, jnp.float32)
    return np.asarray(_loss_by_sample(score, pad_rows(np.asarray(samples)), matrix, key), float)[: len(samples)]


@soon_compiled
def _loss_by_sample(score: Score, samples, units, key):
    """|C s|^2 / 2 + div C^2 s at each sample; the divergence is exact up to 8 dimensions, then by random directions."""
    dimension = samples.shape[1]
    if dimension <= 8:
        directions = jnp.eye(dimension)
    else:
        directions = jax.random.rademacher(key, (8, dimension)).astype(jnp.float32) * jnp.sqrt(1 / 8)

    in_units = partial(jnp.matmul, units, precision=Precision.HIGHEST)

    def one(x):
        value, push = jax.linearize(lambda x: in_units(score(x)), x)
        divergence = jnp.sum(jax.vmap(lambda v: in_units(v) @ push(v))(directions))
        return 0.5 * value @ value + divergence

    return jax.vmap(one)(samples)
