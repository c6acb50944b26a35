"""Basins of a density on a grid: every point belongs to the peak that steepest ascent leads to."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import gaussian_filter1d

from .resampling import GROUPS, jackknife

_BARRIER = 0.75  # of the lower of two peaks: a density that falls less between them has one basin
_SECTORS, _SMOOTH, _BARRIER_OF_ANGLES = 72, 2.0, 0.4
_NEGLIGIBLE = 1e-5  # of the highest peak: what lies below is rounding, and leads to the highest peak

Shares = tuple[Float[np.ndarray, " basin"], Float[np.ndarray, " basin"]]


def find_watersheds(
    density: Float[np.ndarray, "..."],
    barrier: float = _BARRIER,
    *,
    periodic: bool = False,
    visited: np.ndarray | None = None,
) -> tuple[Int[np.ndarray, "..."], Int[np.ndarray, " basin"], Float[np.ndarray, "basin basin"]]:
    """Return the basin of each point, the flat index of each peak, and the highest density on the way between two.

    With the flat indices of points that were `visited`, peaks that no visit leads to belong to the basin next to them.
    """
    highest = np.unravel_index(np.argmax(density), density.shape)
    steps, sizes = (np.reshape(part, (-1, *[1] * density.ndim)) for part in (highest, density.shape))
    steps = np.abs(np.asarray(np.indices(density.shape)) - steps)
    away = np.linalg.norm(np.minimum(steps, sizes - steps) if periodic else steps, axis=0)
    floor = _NEGLIGIBLE * density.max()
    density = np.where(density > floor, density, floor * (1 - away / (away.max() + 1)))
    uphill = _steepest(density, periodic)
    while not np.array_equal(uphill, uphill[uphill]):
        uphill = uphill[uphill]
    peaks, labels = np.unique(uphill, return_inverse=True)
    labels, passes = labels.reshape(density.shape), np.zeros((len(peaks), len(peaks)))
    for axis in range(density.ndim):
        (a, b), (p, q) = (
            [np.take(field, np.arange(not periodic, field.shape[axis]) - shift, axis=axis) for shift in (0, 1)]
            for field in (labels, density)
        )
        for one, other in ((a, b), (b, a)):
            np.maximum.at(passes, (one, other), np.minimum(p, q))
    np.fill_diagonal(passes, 0.0)
    held = np.ones(len(peaks), bool) if visited is None else np.isin(np.arange(len(peaks)), labels.ravel()[visited])
    return _merge(labels, peaks, passes, density.ravel()[peaks], held, barrier)


def _steepest(density: np.ndarray, periodic: bool) -> Int[np.ndarray, " point"]:
    """Return the flat index of the highest point among each point and its neighbours."""
    index = np.arange(density.size).reshape(density.shape)
    best, place = density.copy(), index.copy()
    padded = np.pad(density, 1, "wrap") if periodic else np.pad(density, 1, constant_values=-np.inf)
    numbers = np.pad(index, 1, "wrap")
    for offset in np.ndindex((3,) * density.ndim):
        window = tuple(slice(o, o + n) for o, n in zip(offset, density.shape))
        higher = padded[window] > best
        best, place = np.where(higher, padded[window], best), np.where(higher, numbers[window], place)
    return place.ravel()


def _merge(
    labels: np.ndarray, peaks: np.ndarray, passes: np.ndarray, heights: np.ndarray, held: np.ndarray, barrier: float
) -> tuple:
    """Join basins that are not `held`, and across passes hardly lower than the lower of their peaks, weakest first."""
    while len(peaks) > 1:
        ratio = passes / np.minimum(heights[:, None], heights)
        low, high = np.unravel_index(np.argmax(ratio), ratio.shape)
        if not held.all() and held.any():
            low = np.argmin(np.where(held, np.inf, heights))
            high = np.argmax(np.where(np.arange(len(peaks)) == low, -1.0, passes[low]))
        elif ratio[low, high] < barrier:
            break
        elif heights[low] > heights[high]:
            low, high = high, low
        passes[high] = passes[:, high] = np.maximum(passes[high], passes[low])
        passes[high, high] = 0.0
        kept = np.arange(len(peaks)) != low
        renumbered = np.cumsum(kept) - 1
        renumbered[low] = renumbered[high]
        labels, passes = renumbered[labels], passes[np.ix_(kept, kept)]
        peaks, heights, held = peaks[kept], heights[kept], held[kept]
    return labels, peaks, passes


def basin_shares(
    data: Float[np.ndarray, " sample"], model: Float[np.ndarray, " sample"], lowest: float, period: float
) -> tuple[Float[np.ndarray, " basin"], Shares, Shares]:
    """Return the maxima of the density of the data, and the share of data and model around each, with errors."""
    edges = np.linspace(lowest, lowest + period, _SECTORS + 1)
    one, other = (
        np.array([np.histogram(part, edges)[0] for part in np.array_split(angle, GROUPS)], float)
        for angle in (data, model)
    )
    density = gaussian_filter1d(one.sum(axis=0), _SMOOTH, mode="wrap")
    basin, peaks, _ = find_watersheds(density, _BARRIER_OF_ANGLES, periodic=True)

    def shares(counts: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda weights: np.bincount(basin, weights @ counts) / np.sum(weights @ counts)

    centres = lowest + (peaks + 0.5) * period / _SECTORS
    return centres, jackknife(shares(one), GROUPS), jackknife(shares(other), GROUPS)
