"""Basins of an angle: where its density has maxima, and how many samples lie around each."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter1d

from .resampling import GROUPS, jackknife
from .watershed import find_watersheds

_SECTORS = 72
_SMOOTH = 2.0
_BARRIER = 0.4  # of the lower of two maxima: a density that falls less between them has one basin

Shares = tuple[Float[np.ndarray, " basin"], Float[np.ndarray, " basin"]]


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
    basin, peaks, _ = find_watersheds(density, _BARRIER, periodic=True)

    def shares(counts: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda weights: np.bincount(basin, weights @ counts) / np.sum(weights @ counts)

    centres = lowest + (peaks + 0.5) * period / _SECTORS
    return centres, jackknife(shares(one), GROUPS), jackknife(shares(other), GROUPS)
