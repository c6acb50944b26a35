"""Stein's identity: the check of a score, and its repair."""

from collections.abc import Callable

import jax
import numpy as np

from ..._core.types import Matrix, Samples

_BLOCK = 1 << 20


def perturbed(samples: Samples, spread: float | Matrix, *, key: jax.Array) -> Samples:
    """y = x + sigma z, or x + spread z: samples of p_sigma."""
    if not np.any(spread):
        return samples
    noise = np.asarray(jax.random.normal(key, samples.shape), samples.dtype)
    return samples + (noise * spread if np.ndim(spread) == 0 else noise @ np.asarray(spread, samples.dtype).T)


def stein_matrix(
    score: Callable[[Samples], Samples], samples: Samples, spread: float | Matrix, *, key: jax.Array
) -> Matrix:
    """V = < s(y) y^T > over y ~ p_sigma, for standardised samples (paper, Sec. III); -I for a perfect score.

    Every sample is perturbed by z and by -z: most of s is -z / sigma where sigma exceeds the spread of the data, and
    its product with x then cancels instead of averaging out slowly.
    """
    total = np.zeros((samples.shape[1],) * 2)
    for i in range(0, len(samples), _BLOCK):
        part, now = samples[i : i + _BLOCK], jax.random.fold_in(key, i) if i else key
        noise = perturbed(np.zeros_like(part), spread, key=now)
        for y in (part + noise, part - noise):
            total += score(y).T.astype(float) @ y.astype(float)
    return total / (2 * len(samples))


def stein_error(stein: Matrix) -> float:
    """|V + I|_F / sqrt(D)."""
    return float(np.linalg.norm(stein + np.eye(len(stein))) / np.sqrt(len(stein)))


def calibration_matrix(stein: Matrix) -> Matrix:
    """-V^-1: the score multiplied by it satisfies Stein's identity."""
    return -np.linalg.inv(stein)
