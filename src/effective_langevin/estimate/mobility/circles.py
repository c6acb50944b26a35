"""The integrated response of smooth functions on circles, for variables that are angles.

With e = cos and sin of every angle, other variables as they are, and f_j a combination of those of x_j alone,

    < e(T) f_j(0) > - < e f_j > = sum_k Phi_kj int_0^T < e(t + tau) [s_k f_j' + delta_kj f_j''](t) > dtau

at every T, means removed. On the line, where e = f = x, it is the response of `response`. Every column of Phi has as
many equations as there are entries of e, and is their least-squares solution.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..._core.types import LagMatrices, Matrix, Samples
from ...data import LaggedMoments, TimeSeries, lagged_moments
from ..circles import Circles
from ..symmetry import Symmetry
from .quadrature import integrated


@dataclass(frozen=True)
class CircleMoments:
    """Lagged moments of e with f and with s_k f_j', in groups of time.

    `slopes` is < e' f_j' >, with which the response begins by Stein's identity; `whitening` makes the entries of e
    independent. f_j'' = -rate_j^2 f_j, but for a constant, where x_j is an angle, and zero elsewhere.
    """

    moments: LaggedMoments
    slopes: Matrix
    whitening: Matrix
    circles: Circles
    dt: float

    @classmethod
    def of(
        cls, series: TimeSeries, scores: list[Samples], circles: Circles, lags: np.ndarray, groups: int
    ) -> "CircleMoments":
        """From a standardised series and the score on its samples."""
        samples = series.stacked()
        mean, slope = circles.embedded(samples).mean(axis=0), circles.embedded(samples, 1)
        future = [circles.embedded(x) - mean for x in series.segments]
        chosen = _followed(series, future, scores, circles)
        past = [
            np.concatenate([e @ chosen, _pushes(score, circles.embedded(x, 1) @ chosen)], axis=1)
            for e, x, score in zip(future, series.segments, scores)
        ]
        spread, axes = np.linalg.eigh(np.cov(circles.embedded(samples).T).reshape(len(mean), -1))
        whitening = (axes / np.sqrt(np.maximum(spread, 1e-6 * spread[-1]))).T
        slopes = slope.T @ (slope @ chosen) / len(slope)
        return cls(lagged_moments(future, past, lags, groups), slopes, whitening, circles, series.dt)

    @property
    def groups(self) -> int:
        """Number of groups of time."""
        return len(self.moments.sums)

    @property
    def tau(self) -> np.ndarray:
        """Lag times."""
        return self.dt * self.moments.lags

    def phi_by_horizon(self, weights: np.ndarray, symmetry: Symmetry, first: int = 0, stride: int = 1) -> LagMatrices:
        """Phi(T) for every horizon T beyond the lag `first`; no symmetry but that of the circles."""
        moments, size = self.whitening @ self.moments.mean(weights), len(self.circles.periods)
        correlation, pushes = moments[..., :size], moments[..., size:].reshape(*moments.shape[:2], size, size)
        lags, columns = slice(first, None, stride), []
        for j in range(size):
            response = self._response(j, correlation[..., j], pushes[..., j])[lags]
            integral, change = integrated(response, self.tau[lags]), correlation[lags, :, j] - correlation[first, :, j]
            columns.append(np.einsum("tij,tj->ti", np.linalg.pinv(integral[1:]), change[1:]))
        return np.stack(columns, axis=-1)

    def _response(self, j: int, correlation: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """G(tau) of f_j, (lag, entry, var), the score scaled so that it begins as that of the exact score would."""
        period, response = self.circles.periods[j], np.zeros_like(pushes)
        if period:
            response[:, :, j] = -((2 * np.pi / period) ** 2) * correlation
        own = np.array(self.circles.owners)[:, None] == np.arange(pushes.shape[-1])
        start = self.whitening @ np.where(own, -self.slopes[:, j, None], 0.0)
        return response + pushes @ np.linalg.lstsq(pushes[0], start - response[0], rcond=None)[0]


def _pushes(score: Samples, slopes: Samples) -> Samples:
    """s_k f_j' for every k and, within it, every j."""
    return (np.asarray(score, float)[:, :, None] * slopes[:, None, :]).reshape(len(score), -1)


def _followed(series: TimeSeries, future: list[Samples], scores: list[Samples], circles: Circles) -> Matrix:
    """The combination of cos and sin that is followed for each angle, (entry, var); elsewhere the variable itself.

    Of the one that decays slowest and the one that decays fastest it is that with the larger mobility over one step:
    where a response dies out between two samples, its integral comes out too large, and the mobility too small.
    """
    chosen = np.zeros((len(circles.owners), len(circles.periods)))
    for j, period in enumerate(circles.periods):
        own = np.flatnonzero(np.array(circles.owners) == j)
        if not period:
            chosen[own, j] = 1.0
            continue
        parts = [e[:, own] for e in future]
        now, later = lagged_moments(parts, parts, [0, 1]).mean()
        pairs = scipy.linalg.eigh(later + later.T, now)[1]
        sizes = [_over_one_step(series, parts, scores, circles, own, pair, j) for pair in pairs.T]
        chosen[own, j] = pairs[:, int(np.argmax(sizes))]
    return chosen


def _over_one_step(series, parts, scores, circles: Circles, own: np.ndarray, pair: np.ndarray, j: int) -> float:
    """Phi_jj from the first step of one function of one angle, by the trapezoidal rule."""
    rate = 2 * np.pi / float(circles.periods[j] or np.inf)
    slopes = [circles.embedded(x, 1)[:, own] @ pair for x in series.segments]
    values = [part @ pair for part in parts]
    past = [np.column_stack([f, s[:, j] * slope]) for f, s, slope in zip(values, scores, slopes)]
    (c, g), (c_later, g_later) = lagged_moments([f[:, None] for f in values], past, [0, 1]).mean()[:, 0]
    start = -float(np.mean(np.concatenate(slopes) ** 2))
    scale = (start + rate**2 * c) / g
    return (c_later - c) / (0.5 * series.dt * (start + scale * g_later - rate**2 * c_later))
