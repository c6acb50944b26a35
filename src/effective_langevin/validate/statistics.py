"""Sufficient statistics of a series, in groups of consecutive samples, so that every metric has an error bar."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.types import LagMatrices, Matrix, Samples
from ..data import TimeSeries
from ..statistics.lags import LaggedMoments, lagged_moments

GROUPS = 20
BINS = 200


@dataclass(frozen=True)
class SeriesStatistics:
    """Histograms, covariances and lagged moments of one series, per group; any weighting of groups can be asked for."""

    edges: Float[np.ndarray, "var edge"]
    histograms: Float[np.ndarray, "group var bin"]
    lagged: LaggedMoments
    dt: float

    def histogram(self, weights: np.ndarray) -> Float[np.ndarray, "var bin"]:
        """Counts per bin."""
        return np.tensordot(weights, self.histograms, 1)

    def density(self) -> Float[np.ndarray, "var bin"]:
        """Probability density per bin over all groups."""
        counts = self.histogram(np.ones(GROUPS))
        return counts / counts.sum(axis=1, keepdims=True) / np.diff(self.edges, axis=1)

    def covariance(self, weights: np.ndarray) -> Matrix:
        """C(0)."""
        return self.lagged.mean(weights)[0]

    def correlation(self, weights: np.ndarray) -> LagMatrices:
        """C(tau) normalised by the standard deviations: rho_ij(tau) of x_i(t + tau) with x_j(t)."""
        moments = self.lagged.mean(weights)
        scale = np.sqrt(np.diagonal(moments[0]))
        return moments / scale[:, None] / scale

    def acf(self, weights: np.ndarray) -> Float[np.ndarray, "lag var"]:
        """Normalised autocorrelation of each variable; the mean removed is that of the whole series."""
        return np.diagonal(self.correlation(weights), axis1=1, axis2=2)

    @property
    def tau(self) -> np.ndarray:
        """Lag times."""
        return self.lagged.lags * self.dt


def floor(distance: Callable[[np.ndarray, np.ndarray], np.ndarray], splits: int = 10) -> np.ndarray:
    """Mean distance between two halves of the data, over several ways of halving it; a half is a weight per group."""
    half = np.arange(GROUPS) < GROUPS // 2
    rng = np.random.default_rng(0)
    halves = [half, *(rng.permutation(half) for _ in range(splits - 1))]
    return np.mean([distance(h.astype(float), 1.0 - h) for h in halves], axis=0)


def histogram_edges(samples: Samples) -> np.ndarray:
    """Equal bins between the 0.05 % and 99.95 % quantiles of each variable."""
    low, high = np.quantile(samples, [0.0005, 0.9995], axis=0)
    return np.linspace(low, high, BINS + 1).T


def series_statistics(series: TimeSeries, edges: np.ndarray, lags: np.ndarray) -> SeriesStatistics:
    """All statistics of a series in one pass per group."""
    samples = series.stacked()
    parts = np.array_split(samples, GROUPS)
    histograms = [[np.histogram(part[:, i], edges[i])[0] for i in range(samples.shape[1])] for part in parts]
    mean = samples.mean(axis=0)
    centred = [s - mean for s in series.segments]
    return SeriesStatistics(
        edges, np.array(histograms, float), lagged_moments(centred, centred, lags, GROUPS), series.dt
    )


def pair_histogram(samples: Samples, edges: np.ndarray, i: int, j: int, coarsen: int = 4) -> np.ndarray:
    """Joint density of two variables on a coarser grid of the same range."""
    return np.histogram2d(samples[:, i], samples[:, j], [edges[i][::coarsen], edges[j][::coarsen]], density=True)[0]


def comparison_lags(acf_times: np.ndarray, series: TimeSeries, points: int = 80) -> np.ndarray:
    """Lags from 0 to five integral times of the slowest variable, at most `points` of them."""
    longest = max(len(s) for s in series.segments)
    reach = int(np.clip(np.ceil(5 * acf_times.max() / series.dt), 4, max(4, longest // 4)))
    return np.unique(np.linspace(0, reach, min(points, reach) + 1).round().astype(int))
