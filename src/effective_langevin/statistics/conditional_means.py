"""Means of quantities over the samples in each cell of the state space, with errors from groups of time.

The size of a step depends on the state it starts from as

    q_i(b) = < (x_i(t + tau) - x_i(t))^2 | x(t) in bin b > / < (x_i(t + tau) - x_i(t))^2 >

Bins are fifths of the states, ordered by the variable itself or by the radius |C^-1/2 x|, the distance from the mean
in units of the covariance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from .._core.types import Matrix, Samples
from .resampling import GROUPS, jackknife

BINS = 5  # of step profiles

Profiles = Float[np.ndarray, "kind var bin"]  # kind 0: by the variable itself, kind 1: by the radius


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


@dataclass(frozen=True, eq=False)
class StateBins:
    """Fifths of the states by each variable and by the radius: inverse covariance, and inner edges (edge, feature)."""

    whitening: Matrix
    edges: np.ndarray

    @classmethod
    def from_samples(cls, samples: Samples) -> "StateBins":
        """Take equally many samples in each bin."""
        width = samples.shape[1]
        whitening = np.linalg.pinv(np.cov(samples.T).reshape(width, width), hermitian=True)
        quantiles = np.linspace(0, 1, BINS + 1)[1:-1]
        return cls(whitening, np.quantile(_features(samples, whitening), quantiles, axis=0))


def step_profiles(segments: Sequence[Samples], lag: int, bins: StateBins) -> tuple[Profiles, Profiles]:
    """Mean squared steps over `lag` samples by state, relative to their mean, and their standard errors."""
    long = [s for s in segments if len(s) > lag]
    steps = np.concatenate([(s[lag:] - s[:-lag]) ** 2 for s in long])
    features = _features(np.concatenate([s[:-lag] for s in long]), bins.whitening)
    width = steps.shape[1]
    sums, counts = np.empty((2, GROUPS, 2, width, BINS))
    for kind, columns in enumerate((range(width), [width] * width)):
        for variable, column in enumerate(columns):
            cell = np.searchsorted(bins.edges[:, column], features[:, column])
            total, number = sums_by_cell(steps[:, [variable]], cell, BINS)
            sums[:, kind, variable], counts[:, kind, variable] = total[..., 0], number[..., 0]

    def relative(weights: np.ndarray) -> Profiles:
        total, number = np.tensordot(weights, sums, 1), np.tensordot(weights, counts, 1)
        mean = total.sum(axis=-1, keepdims=True) / number.sum(axis=-1, keepdims=True)
        return total / np.maximum(number, 1) / mean

    return jackknife(relative, GROUPS)


def _features(samples: Samples, whitening: Matrix) -> Float[np.ndarray, "sample feature"]:
    """Every variable, then the squared radius."""
    return np.column_stack([samples, np.einsum("ti,ij,tj->t", samples, whitening, samples)])
