"""Basins of an angle: where its density has maxima, and how many samples lie around each."""

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter1d

from .resampling import GROUPS, jackknife

_SECTORS = 72
_SMOOTH = 2.0
_BARRIER = 0.4  # of the lower of two maxima: a density that falls less between them has one basin

Shares = tuple[Float[np.ndarray, " basin"], Float[np.ndarray, " basin"]]


def basin_shares(
    data: Float[np.ndarray, " sample"], model: Float[np.ndarray, " sample"], lowest: float, period: float
) -> tuple[Float[np.ndarray, " basin"], Shares, Shares]:
    """Return the maxima of the density of the data, and the share of data and model around each, with errors."""
    counts = [_sectors(angle, lowest, period) for angle in (data, model)]
    peaks, borders = _peaks_and_borders(gaussian_filter1d(counts[0].sum(axis=0), _SMOOTH, mode="wrap"))

    def shares(groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
        share = np.roll(weights @ groups, -borders[0]) / np.sum(weights @ groups)
        return np.add.reduceat(share, (np.array(borders) - borders[0]) % _SECTORS)

    one, other = (jackknife(lambda weights, g=groups: shares(g, weights), GROUPS) for groups in counts)
    return lowest + (np.array(peaks) + 0.5) * period / _SECTORS, one, other


def _sectors(angle: np.ndarray, lowest: float, period: float) -> np.ndarray:
    """Count the samples in each sector of the circle, (group, sector)."""
    edges = np.linspace(lowest, lowest + period, _SECTORS + 1)
    return np.array([np.histogram(part, edges)[0] for part in np.array_split(angle, GROUPS)], float)


def _peaks_and_borders(density: np.ndarray) -> tuple[list[int], list[int]]:
    """Find the maxima with a real minimum on either side, in order around the circle, and the minimum before each."""
    peaks = [k for k in range(len(density)) if density[k - 1] < density[k] >= density[(k + 1) % len(density)]]
    peaks = peaks or [int(np.argmax(density))]
    while len(peaks) > 1:
        borders = [_lowest_between(density, a, b) for a, b in zip(peaks[-1:] + peaks[:-1], peaks)]
        # Each border beside the lower of its two maxima; the weakest goes, and that maximum with it.
        depth = [density[border] / min(density[peaks[i - 1]], density[peaks[i]]) for i, border in enumerate(borders)]
        weakest = int(np.argmax(depth))
        if depth[weakest] < _BARRIER:
            return peaks, borders
        peaks.remove(min(peaks[weakest - 1], peaks[weakest], key=lambda k: density[k]))
    return peaks, [0]


def _lowest_between(density: np.ndarray, start: int, stop: int) -> int:
    """Return the sector of lowest density on the way from one maximum up to the next."""
    way = np.arange(start, stop if stop > start else stop + len(density)) % len(density)
    return int(way[np.argmin(density[way])])
