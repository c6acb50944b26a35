"""Histograms, lagged moments and increments in groups of consecutive samples, so that every metric has an error."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.types import LagMatrices, Matrix, Samples, Vector
from .lags import LaggedMoments, lagged_moments, longest_lag
from .regime import squared_steps
from .resampling import GROUPS

BINS = 200
INCREMENT_LAGS = np.array([1, 2, 4, 8])


@dataclass(frozen=True, eq=False)
class SeriesStatistics:
    """Histograms, lagged moments and squared increments of one series per group, for any weighting of the groups."""

    edges: Float[np.ndarray, "var edge"]
    histograms: Float[np.ndarray, "group var bin"]
    lagged: LaggedMoments
    dt: float
    squares: Float[np.ndarray, "group lag var"]
    pairs: Float[np.ndarray, "group lag"]

    def histogram(self, weights: np.ndarray) -> Float[np.ndarray, "var bin"]:
        return np.tensordot(weights, self.histograms, 1)

    def density(self) -> Float[np.ndarray, "var bin"]:
        """Probability density per bin over all groups."""
        counts = self.histogram(np.ones(GROUPS))
        return counts / counts.sum(axis=1, keepdims=True) / np.diff(self.edges, axis=1)

    def covariance(self, weights: np.ndarray) -> Matrix:
        return self.lagged.mean(weights)[0]

    def correlation(self, weights: np.ndarray) -> LagMatrices:
        """C(tau) normalised by the standard deviations: rho_ij(tau) of x_i(t + tau) with x_j(t)."""
        moments = self.lagged.mean(weights)
        scale = np.sqrt(np.diagonal(moments[0]))
        return moments / scale[:, None] / scale

    def acf(self, weights: np.ndarray) -> Float[np.ndarray, "lag var"]:
        """Normalised autocorrelation of each variable; the mean removed is that of the whole series."""
        return np.diagonal(self.correlation(weights), axis1=1, axis2=2)

    def increments(self, weights: np.ndarray, points: int = 1) -> Float[np.ndarray, "lag var_or_field"]:
        """< (x(t + k dt) - x(t))^2 > at `INCREMENT_LAGS`, NaN where no record is that long; mean over `points`."""
        pairs = weights @ self.pairs
        means = np.tensordot(weights, self.squares, 1) / np.where(pairs > 0, pairs, np.nan)[:, None]
        return means.reshape(len(means), -1, points).mean(axis=-1)

    @property
    def tau(self) -> np.ndarray:
        return self.lagged.lags * self.dt


def series_statistics(
    segments: Sequence[Samples],
    dt: float,
    edges: np.ndarray,
    lags: np.ndarray,
    groups: int = GROUPS,
    mean: Vector | None = None,
) -> SeriesStatistics:
    """All statistics of a series in one pass per group; those of a part of one, with the `mean` of all of it."""
    samples = np.concatenate(segments)
    parts = np.array_split(samples, groups)
    # Equal bins are counted without sorting the samples.
    bins = [(len(row) - 1, (row[0], row[-1])) for row in edges]
    histograms = [[np.histogram(part[:, i], *row)[0] for i, row in enumerate(bins)] for part in parts]
    mean = samples.mean(axis=0) if mean is None else mean
    centred = [s - mean for s in segments]
    lagged = lagged_moments(centred, centred, lags, groups)
    return SeriesStatistics(
        edges, np.array(histograms, float), lagged, dt, *squared_steps(segments, INCREMENT_LAGS, groups)
    )


def add_up(parts: Iterable[tuple[int, SeriesStatistics]]) -> SeriesStatistics:
    """Return the statistics of all parts of a series, each of them added to the group that is named beside it."""
    total: SeriesStatistics | None = None
    for group, part in parts:
        if total is None:
            hist, sums, pairs, squares, steps = (np.zeros((GROUPS, *array.shape[1:])) for array in _arrays(part))
            lagged = LaggedMoments(part.lagged.lags, sums, pairs)
            total = SeriesStatistics(part.edges, hist, lagged, part.dt, squares, steps)
        for mine, other in zip(_arrays(total), _arrays(part)):
            mine[group] += other[0]
    if total is None:
        raise ValueError("There is no part.")
    return total


def _arrays(found: SeriesStatistics) -> tuple[np.ndarray, ...]:
    return found.histograms, found.lagged.sums, found.lagged.pairs, found.squares, found.pairs


def histogram_edges(samples: Samples) -> Float[np.ndarray, "var edge"]:
    """Equal bins between the 0.05 % and 99.95 % quantiles of each variable."""
    low, high = np.quantile(samples, [0.0005, 0.9995], axis=0)
    return np.linspace(low, high, BINS + 1).T


def pair_histogram(samples: Samples, edges: np.ndarray, i: int, j: int, coarsen: int = 4) -> np.ndarray:
    """Joint density of two variables on a coarser grid of the same range."""
    return np.histogram2d(samples[:, i], samples[:, j], [edges[i][::coarsen], edges[j][::coarsen]], density=True)[0]


def comparison_lags(times: np.ndarray, segments: Sequence[Samples], dt: float, points: int = 80) -> np.ndarray:
    """Lags from 0 to five of the slowest integral `times`, at most `points` of them."""
    longest = max(max(len(s) for s in segments) // 4, min(4, longest_lag(segments)))
    reach = int(np.clip(np.ceil(5 * times.max() / dt), min(4, longest), longest))
    return np.unique(np.linspace(0, reach, min(points, reach) + 1).round().astype(int))


def floor(distance: Callable[[np.ndarray, np.ndarray], np.ndarray], splits: int = 10) -> np.ndarray:
    """Mean distance between two halves of the data, over several halvings; a half is a weight per group."""
    half = np.arange(GROUPS) < GROUPS // 2
    rng = np.random.default_rng(0)
    halves = [half, *(rng.permutation(half) for _ in range(splits - 1))]
    return np.mean([distance(h.astype(float), 1.0 - h) for h in halves], axis=0)
