"""Means of quantities over the samples in each cell of the state space, with errors from groups of time."""

import numpy as np
from jaxtyping import Float, Int

from .._core.types import Samples
from .resampling import GROUPS, jackknife


def sums_by_cell(
    values: Samples, cell: Int[np.ndarray, " sample"], cells: int
) -> tuple[Float[np.ndarray, "group cell value"], Float[np.ndarray, "group cell 1"]]:
    """Sums of each quantity over the samples in each cell and their numbers, in groups of consecutive samples."""
    place = np.arange(len(cell)) * GROUPS // len(cell) * cells + cell
    sums = [np.bincount(place, weights, GROUPS * cells) for weights in (*values.T, None)]
    found = np.array(sums, float).reshape(-1, GROUPS, cells)
    return np.moveaxis(found[:-1], 0, -1), found[-1][..., None]


def conditional_means(
    values: Samples, cell: Int[np.ndarray, " sample"], cells: int
) -> tuple[Float[np.ndarray, "cell value"], Float[np.ndarray, "cell value"]]:
    """Mean of each quantity in each cell and its standard error; not a number where a cell is empty."""
    sums, counts = sums_by_cell(values, cell, cells)

    def mean(weights: np.ndarray) -> np.ndarray:
        number = np.tensordot(weights, counts, 1)
        return np.tensordot(weights, sums, 1) / np.where(number > 0, number, np.nan)

    return jackknife(mean, GROUPS)


def equal_bins(values: Float[np.ndarray, " sample"], bins: int) -> Float[np.ndarray, " edge"]:
    """Inner edges of bins that hold equally many samples."""
    return np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1])
