"""Mobilities from the correlation matrix C(tau) = < x(t + tau) x(t)^T > alone."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..._core import checks
from ..._core.errors import EstimateWarning
from ..._core.types import LagMatrices, Matrix
from ...data import TimeSeries
from ...data.lazy import Rows
from ...statistics.integral_time import error_groups
from ...statistics.lags import lagged_moments, longest_lag, require_lag
from ...statistics.resampling import OverWeights
from ..score import ScoreFit
from ..space import StateSpace
from .base import Inference, MobilityStrategy, correlations_of, times_of


@dataclass(frozen=True)
class QuadraticVariation(MobilityStrategy):
    """Phi_S = < dx dx^T > / 2h, Phi_A = -(C(h) - C(h)^T) / 2h.

    Positive by construction and consistent as h -> 0; biased by O(h), and by any measurement noise over h.

    Parameters
    ----------
    lag : int, default 1
        The lag h, in sampling intervals.

    Examples
    --------
    >>> el.QuadraticVariation(lag=2)
    QuadraticVariation(lag=2)
    """

    lag: int = 1

    def __post_init__(self):
        checks.integer_at_least("lag", self.lag, 1)

    def infer(self, series: TimeSeries, score: ScoreFit, *, space: StateSpace, key: jax.Array) -> Inference:
        groups = error_groups(series.segments, series.dt, times_of(series))
        estimate = self._at(self.lag, series, space, groups)
        if longest_lag(series.segments) >= 2 * self.lag:
            return _with_bias(estimate, groups, self._at(2 * self.lag, series, space, groups)(np.ones(groups)))
        # Records that do not reach twice the lag: what a linear process would have there.
        now, once = correlations_of(series, [0, self.lag], groups).mean()
        later = once @ np.linalg.pinv(now, hermitian=True) @ once
        return _with_bias(estimate, groups, space.symmetry.project(now - later) / (2 * self.lag * series.dt))

    @staticmethod
    def _at(lag: int, series: TimeSeries, space: StateSpace, groups: int) -> OverWeights:
        """Phi at one lag, for any weights of the blocks."""
        increments = [_increments(s, lag) for s in series.segments if len(s) > lag]
        squares = lagged_moments(increments, increments, [0], groups)
        crossed = correlations_of(series, [lag], groups)

        def estimate(weights: np.ndarray) -> np.ndarray:
            square, lagged = squares.mean(weights)[:, 0], crossed.mean(weights)[:, 0]
            return space.symmetry.project((square - (lagged - lagged.mT)) / (2 * lag * series.dt))

        return OverWeights(estimate)


@dataclass(frozen=True)
class CorrelationFit(MobilityStrategy):
    """-dC/dt(0+) from a polynomial through C at the first lags.

    Parameters
    ----------
    degree : int, default 3
        Degree of the polynomial.
    lags : int, default 5
        The largest lag, in sampling intervals; equal to `degree` it is a Richardson extrapolation.
    skip_zero : bool, default False
        Leave out lag 0, the only one that measurement noise changes.

    Examples
    --------
    >>> el.CorrelationFit(degree=2, lags=4, skip_zero=True).lags
    4
    """

    degree: int = 3
    lags: int = 5
    skip_zero: bool = False

    def __post_init__(self):
        checks.integer_at_least("degree", self.degree, 1)
        checks.instance_of("skip_zero", self.skip_zero, (bool,))
        checks.integer_at_least("lags", self.lags, self.degree + self.skip_zero)

    def infer(self, series: TimeSeries, score: ScoreFit, *, space: StateSpace, key: jax.Array) -> Inference:
        groups = error_groups(series.segments, series.dt, times_of(series))
        require_lag(series.segments, 2 * self.lags, advice=" Or use fewer `lags`.")
        moments = correlations_of(series, np.arange(2 * self.lags + 1), groups)
        powers = np.arange(1, self.lags + 1)[:, None] ** np.arange(int(not self.skip_zero), self.degree + 1)
        slope = np.linalg.pinv(powers)[int(self.skip_zero)]

        def estimate(weights: np.ndarray, stride: int = 1) -> np.ndarray:
            correlation = moments.mean(weights)[:, : stride * self.lags + 1 : stride]
            origin = 0.0 if self.skip_zero else correlation[:, :1]
            rise = np.tensordot(correlation[:, 1:] - origin, slope, (1, 0))
            return space.symmetry.project(-rise / (stride * series.dt))

        return _with_bias(OverWeights(estimate), groups, estimate(np.ones((1, groups)), 2)[0])


@dataclass(frozen=True)
class LogCorrelation(MobilityStrategy):
    """Phi = A C(0) with A = -log(C(h) C(0)^-1) / h: the linear inverse model, exact when E[x(h) | x(0)] is affine.

    Directions in which the data spread less than the smoothing width of the score are left out of the logarithm; they
    relax at the median rate of the others.

    Parameters
    ----------
    lag : int, default 1
        The lag h, in sampling intervals.

    Examples
    --------
    >>> el.LogCorrelation().lag
    1
    """

    lag: int = 1

    def __post_init__(self):
        checks.integer_at_least("lag", self.lag, 1)

    def infer(self, series: TimeSeries, score: ScoreFit, *, space: StateSpace, key: jax.Array) -> Inference:
        groups, blur = error_groups(series.segments, series.dt, times_of(series)), score.noise_level**2
        require_lag(series.segments, 2 * self.lag)
        moments = correlations_of(series, [0, self.lag, 2 * self.lag], groups)
        back, into = score.scale, np.linalg.inv(score.scale)
        variances, directions = np.linalg.eigh(into @ moments.mean()[0] @ into)
        frame = directions[:, variances > max(blur, 1e-12 * variances.max())]
        rest = np.eye(len(frame)) - frame @ frame.T

        def propagator(correlation: LagMatrices, steps: int = 1) -> Matrix:
            inside = frame.T @ into @ correlation[[0, steps]] @ into @ frame
            return np.linalg.solve(inside[0].T, inside[1].T).T

        def estimate(weights, steps: int = 1) -> Matrix:
            # The real part of the principal logarithm by eigenvalues, many times faster than `scipy.linalg.logm`.
            correlation = space.symmetry.project(moments.mean(weights))
            values, vectors = np.linalg.eig(propagator(correlation, steps))
            logarithms = np.log(values.astype(complex)) / (steps * self.lag * series.dt)
            rates = -np.real(vectors * logarithms @ np.linalg.inv(vectors))
            typical = np.median(-logarithms.real)
            covariance = into @ correlation[0] @ into + blur * np.eye(len(frame))
            return space.symmetry.project(back @ (frame @ rates @ frame.T + typical * rest) @ covariance @ back)

        eigenvalues = np.linalg.eigvals(propagator(space.symmetry.project(moments.mean())))
        if (np.abs(eigenvalues.imag) < 1e-12).any() and eigenvalues[np.abs(eigenvalues.imag) < 1e-12].real.min() <= 0:
            warnings.warn(
                "The lagged correlation has a negative eigenvalue: its logarithm is not real. The sampling is too "
                "coarse for a linear inverse model at this lag.",
                EstimateWarning,
                stacklevel=4,
            )
        return _with_bias(estimate, groups, estimate(np.ones(groups), 2))


def _increments(segment: Any, lag: int) -> Any:
    """x(t + lag) - x(t): an array, or rows that are read by blocks."""
    if not isinstance(segment, Rows):
        return segment[lag:] - segment[:-lag]
    late, early = segment.window(lag, len(segment)), segment.window(0, len(segment) - lag)
    return Rows(lambda first, stop: late[first:stop] - early[first:stop], early.shape, segment.block)


def _with_bias(estimate: Callable[..., Matrix], groups: int, coarser: Matrix) -> Inference:
    """The inference, with the change to twice the interval as the measure of what the interval costs."""
    return Inference.of(estimate, groups, discretisation_bias=coarser - estimate(np.ones(groups)))
