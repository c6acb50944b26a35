"""Statistics of fields on a periodic grid, whose points are all alike: pooled over the points, or by Fourier mode.

A state is `channels` fields, one after the other, of `points` values each. With the unitary transform

    u_k = sum_j x_j exp(-2 pi i j k / points) / sqrt(points)

the covariance < u_k(t + tau) u_k(t)* > is mode k of the circulant mean of C(tau), and the mean over the points of
< x_j(t + tau) x_j(t) > is its mean over all modes, in which every mode but the first and the last counts twice.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .._core.types import LagMatrices, Matrix, Samples
from ..estimate.symmetry import Translations

OFFSETS = (1, 2, 3)
PAIR_BINS = 50
_ROWS = 1 << 14

ModeCurves = Float[np.ndarray, "lag channel mode"]


def multiplicity(points: int) -> Float[np.ndarray, " mode"]:
    """How often each mode 0 ... points // 2 counts among the points: the inner ones stand for k and -k."""
    counts = np.full(points // 2 + 1, 2.0)
    counts[0] = 1
    counts[-1] = 1 if points % 2 == 0 else 2
    return counts


def modes_of(matrices: Matrix | LagMatrices, channels: int = 1) -> Float[np.ndarray, "... channel mode"]:
    """Real part of each Fourier mode of the circulant mean of (..., var, var) matrices, field by field."""
    blocks = Translations(channels).blocks(np.asarray(matrices, float))
    return np.moveaxis(np.real(np.diagonal(blocks, axis1=-2, axis2=-1)), -1, -2)


def point_acf(covariances: ModeCurves, points: int) -> Float[np.ndarray, "lag channel"]:
    """Autocorrelation of a field at a point, pooled over the points, from the covariances of its modes."""
    pooled = covariances @ multiplicity(points)
    return pooled / pooled[0]


def mode_acf(covariances: ModeCurves) -> ModeCurves:
    """Normalised autocorrelation of each mode; a mode without variance has none (not a number)."""
    variance = covariances[0]
    empty = variance <= 1e-9 * variance.max()
    return covariances / np.where(empty, np.nan, variance)


def leading_modes(variance: Float[np.ndarray, " mode"], points: int, share: float = 0.95, most: int = 6) -> list[int]:
    """The fewest modes, in order, that together hold `share` of the variance; at most `most` of them."""
    held = variance * multiplicity(points)
    order = np.argsort(held)[::-1]
    needed = int(np.searchsorted(np.cumsum(held[order]), share * held.sum())) + 1
    return sorted(order[: min(needed, most)].tolist())


def variance_shares(variance: Float[np.ndarray, " mode"], points: int) -> Float[np.ndarray, " mode"]:
    """Fraction of the variance of the field in each mode."""
    held = variance * multiplicity(points)
    return held / held.sum()


def histograms(samples: Samples, low: np.ndarray, high: np.ndarray, bins: int) -> Float[np.ndarray, "var bin"]:
    """Counts of each variable in equal bins between its `low` and `high`."""
    size = samples.shape[1]
    shift = (bins + 1) * np.arange(size)
    counts = np.zeros(size * (bins + 1), int)
    for start in range(0, len(samples), _ROWS):
        cell = _cells(samples[start : start + _ROWS], low, high, bins) + shift
        counts += np.bincount(cell.ravel(), minlength=len(counts))
    return counts.reshape(size, bins + 1)[:, :bins].astype(float)


def pair_counts(
    samples: Samples, low: float, high: float, offsets: Sequence[int] = OFFSETS, bins: int = PAIR_BINS
) -> Float[np.ndarray, "offset bin bin"]:
    """Joint counts of one field at a point (rows) and `offset` points further on, pooled over all points."""
    counts = np.zeros((len(offsets), (bins + 1) ** 2), int)
    for start in range(0, len(samples), _ROWS):
        cell = _cells(samples[start : start + _ROWS], low, high, bins)
        for total, offset in zip(counts, offsets):
            both = (bins + 1) * cell + np.roll(cell, -offset, axis=1)
            total += np.bincount(both.ravel(), minlength=counts.shape[1])
    return counts.reshape(-1, bins + 1, bins + 1)[:, :bins, :bins].astype(float)


def _cells(samples: Samples, low, high, bins: int) -> np.ndarray:
    """The bin of each value; `bins` for values outside."""
    place = (samples - low) * (bins / (np.asarray(high) - low))
    inside = (place >= 0) & (place < bins)
    return np.where(inside, place, bins).astype(np.intp)
