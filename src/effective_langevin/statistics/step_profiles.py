"""How the size of a step depends on the state it starts from.

    q_i(b) = < (x_i(t + tau) - x_i(t))^2 | x(t) in bin b > / < (x_i(t + tau) - x_i(t))^2 >

Bins are fifths of the states, ordered by the variable itself or by the radius |C^-1/2 x|, the distance from the mean
in units of the covariance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.types import Matrix, Samples
from .conditional_means import sums_by_cell
from .resampling import GROUPS, jackknife

BINS = 5

Profiles = Float[np.ndarray, "kind var bin"]  # kind 0: by the variable itself, kind 1: by the radius


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
