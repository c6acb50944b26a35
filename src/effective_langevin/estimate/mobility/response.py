"""The integrated response: a mobility without derivative, partition or simulation, right at coarse sampling.

For a stationary diffusion with constant mobility, at every tau,

    d/dtau C(tau) = G(tau) Phi,   G(tau) = < x(t + tau) s(x(t))^T >,   G(0) = -I,

so that (int_0^T G) Phi = C(T) - C(0) for every horizon T. T -> 0 is -dC/dt(0+), T -> infinity is Green-Kubo. If the
mobility depends on the state, Phi(T) drifts with T and only its limit at T -> 0 is the mean mobility <M>.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline

from ..._core import checks
from ..._core.resampling import jackknife
from ..._core.types import LagMatrices
from ...data import TimeSeries, lagged_moments
from ..score import ScoreFit
from .base import error_groups, integral_times

_SPLINE_GAIN = 8.0
_SIGNIFICANT = 4.0
_SUBSTANTIAL = 0.1
_BALLISTIC = 0.3


@dataclass(frozen=True)
class IntegratedResponse:
    """Weighted least squares over all horizons up to `lags` samples.

    The score is evaluated on the data and scaled so that G(0) = -I holds in the sample, which removes the first-order
    effect of the noise level and most of the sampling error. The integral is that of a cubic spline. Horizon T weighs
    1 / (sampling error^2 + quadrature error^2) of Phi(T): the former from leaving out blocks, the latter from using
    every second lag only. Phi is the weighted mean of Phi(T) over horizons.

    Where Phi(T) drifts by more than 10 % and beyond 4 standard errors, one constant does not fit all horizons. If the
    series is diffusive at its sampling interval, Phi is then the limit T -> 0 of a line (or a parabola) through Phi(T).
    If it is ballistic (smooth at short times, its quadratic variation growing faster than time), that limit is
    meaningless; the effective mobility over the longer half of the horizons is used instead.
    """

    lags: int | None = None

    def __post_init__(self):
        if self.lags is not None:
            checks.integer_at_least("lags", self.lags, 6)

    def infer(self, series: TimeSeries, score: ScoreFit, *, key: jax.Array):
        """Correlations and responses on one set of lags, Phi(T) with its errors, then the limit."""
        times = integral_times(series)
        lags = 2 * ((self.lags or int(np.clip(0.5 * times.min() / series.dt, 8, 24))) // 2)
        groups, steps = error_groups(series), np.arange(lags + 1)
        scores = [score.function.over(s) for s in series.segments]
        correlation = lagged_moments(series.segments, series.segments, steps, groups)
        response = lagged_moments(series.segments, scores, steps, groups)

        def curve(weights: np.ndarray, stride: int = 1) -> LagMatrices:
            c, g = (m.mean(weights)[::stride] for m in (correlation, response))
            return phi_by_horizon(c, g, stride * series.dt)

        by_horizon, sampling = jackknife(curve, groups)
        quadrature = _quadrature_error(by_horizon, curve(np.ones(groups), 2))
        error = np.sqrt(np.linalg.norm(sampling, axis=(1, 2)) ** 2 + quadrature**2)
        smoothness = quadratic_variation_slope(correlation.mean())
        phi, standard_error, trend = _limit(curve, error, groups, smoothness > _BALLISTIC)
        return (
            phi,
            standard_error,
            {
                "horizon": (steps[1:] * series.dt).tolist(),
                "phi_by_horizon": by_horizon.tolist(),
                "sampling_error_by_horizon": sampling.tolist(),
                "quadrature_error_by_horizon": quadrature.tolist(),
                "horizon_weight": (error**-2 / np.sum(error**-2)).tolist(),
                "integral_times": times.tolist(),
                "quadratic_variation_slope": smoothness,
                **trend,
            },
        )


def phi_by_horizon(correlation: LagMatrices, response: LagMatrices, dt: float) -> LagMatrices:
    """Phi(T) = (int_0^T G)^-1 (C(T) - C(0)) for every horizon T = dt, 2 dt, ..."""
    response = -response @ np.linalg.inv(response[0])
    tau = dt * np.arange(len(response))
    integrals = CubicSpline(tau, response, axis=0).antiderivative()(tau)[1:]
    return np.linalg.solve(integrals, correlation[1:] - correlation[0])


def quadratic_variation_slope(correlation: LagMatrices) -> float:
    """d log(<|dx|^2> / h) / d log h between one and two lags: about 0 for a diffusion, 1 for smooth motion."""
    decay = np.trace(correlation[0] - correlation[1:3], axis1=1, axis2=2)
    return float(np.log2(decay[1] / decay[0]) - 1)


def _limit(curve, error: np.ndarray, groups: int, ballistic: bool):
    """One Phi out of Phi(T), as described in `IntegratedResponse`, with the evidence for the choice."""

    def fitted(fit):
        return jackknife(lambda weights: np.tensordot(fit, curve(weights), 1), groups)

    (phi,), (standard_error,) = fitted(_polynomial_fit(error, 0))
    slopes, slope_errors = fitted(_polynomial_fit(error, 1))
    drift = float(np.linalg.norm(slopes[1]) / np.linalg.norm(slopes[0]))
    if drift < _SUBSTANTIAL or not _significant(slopes, slope_errors):
        return phi, standard_error, {"horizon_rule": "mean", "trend": drift}
    if ballistic:
        longer = np.arange(len(error)) >= len(error) // 2
        (phi,), (standard_error,) = fitted(longer[None] / longer.sum())
        return phi, standard_error, {"horizon_rule": "finite", "trend": drift}
    curved, curved_errors = fitted(_polynomial_fit(error, 2))
    use = (curved, curved_errors) if _significant(curved, curved_errors) else (slopes, slope_errors)
    return use[0][0], use[1][0], {"horizon_rule": "limit", "trend": drift}


def _significant(coefficients: np.ndarray, errors: np.ndarray) -> bool:
    """Whether the highest power is there beyond its error."""
    return bool(np.linalg.norm(coefficients[-1]) > _SIGNIFICANT * np.linalg.norm(errors[-1]))


def _polynomial_fit(error: np.ndarray, degree: int) -> Float[np.ndarray, "power horizon"]:
    """Weights that turn Phi(T) into coefficients of powers of T / T_max."""
    powers = (np.arange(1, len(error) + 1)[:, None] / len(error)) ** np.arange(degree + 1)
    return np.linalg.pinv(powers / error[:, None]) / error


def _quadrature_error(fine: LagMatrices, coarse: LagMatrices) -> np.ndarray:
    """Error of the spline integral at each horizon, from halving the resolution; the first lag counts double."""
    gaps = np.linalg.norm(fine[1::2] - coarse, axis=(1, 2)) / _SPLINE_GAIN
    error = np.repeat(gaps, 2)
    error[0] *= 2
    return error
