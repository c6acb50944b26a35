"""Stein's identity: the check of a score, and its repair."""

from collections.abc import Callable

import jax
import numpy as np

from ..._core.types import Matrix, Samples
from ...data.lazy import rows_at_once
from ...execution.compilation import with_room
from ..space import Tests, solve_for_stein

_BLOCK = 1 << 20


def perturbed(samples: Samples, spread: float | Matrix, *, key: jax.Array) -> Samples:
    """Return y = x + sigma z, or x + spread z: samples of p_sigma."""
    return samples + noise_like(samples, spread, key=key) if np.any(spread) else samples


def noise_like(samples: Samples, spread: float | Matrix, *, key: jax.Array) -> Samples:
    """Return sigma z, or spread z, for each of the samples."""
    if not np.any(spread):
        return np.zeros_like(samples)
    # Numbers are drawn in order, so that more of them than are needed leave the first ones as they are.
    drawn = jax.random.normal(key, (with_room(len(samples)), *samples.shape[1:]))
    noise = np.asarray(drawn, samples.dtype)[: len(samples)]
    return noise * spread if np.ndim(spread) == 0 else noise @ np.asarray(spread, samples.dtype).T


def stein_matrix(
    score: Callable[[Samples], Samples],
    samples: Samples,
    spread: float | Matrix,
    *,
    key: jax.Array,
    tests: Tests | None = None,
) -> Matrix:
    """V = < s(y) y^T > over y ~ p_sigma, for standardised samples (paper, Sec. III); -I for a perfect score.

    Every sample is perturbed by z and by -z: most of s is -z / sigma where sigma exceeds the spread of the data, and
    its product with x then cancels instead of averaging out slowly. Where some variables are angles, `tests` gives the
    functions that take the place of y, < s_i g_j > = -delta_ij < g_j' >.
    """
    total, slope = np.zeros((samples.shape[1],) * 2), np.zeros(samples.shape[1])
    block = rows_at_once(samples, _BLOCK)
    for i in range(0, len(samples), block):
        part, now = samples[i : i + block], jax.random.fold_in(key, i) if i else key
        noise = noise_like(part, spread, key=now)
        for y in (part + noise, part - noise):
            values, slopes = (y.astype(float), 1.0) if tests is None else tests(y)
            total += score(y).T.astype(float) @ values
            slope += np.sum(slopes, axis=0)
    total /= 2 * len(samples)
    return total if tests is None else solve_for_stein(total, slope / (2 * len(samples)))


def stein_error(stein: Matrix) -> float:
    """|V + I|_F / sqrt(D)."""
    return float(np.linalg.norm(stein + np.eye(len(stein))) / np.sqrt(len(stein)))


def calibration_matrix(stein: Matrix) -> Matrix:
    """-V^-1: the score multiplied by it satisfies Stein's identity."""
    return -np.linalg.inv(stein)
