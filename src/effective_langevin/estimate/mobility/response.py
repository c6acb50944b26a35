"""The integrated response: a mobility without derivative, partition or simulation, right at coarse sampling.

For a stationary diffusion with constant mobility, at every tau,

    d/dtau C(tau) = G(tau) Phi,   G(tau) = < x(t + tau) s(x(t))^T >,   G(0) = -I,

so that (int_0^T G) Phi = C(T) - C(0) for every horizon T. T -> 0 is -dC/dt(0+), T -> infinity is Green-Kubo.
"""

from dataclasses import dataclass

import jax
import numpy as np
from scipy.interpolate import CubicSpline

from ..._core import checks
from ..._core.types import LagMatrices
from ...data import TimeSeries, lagged_moments
from ..score import ScoreFit
from .base import error_groups, integral_times, jackknife

_SPLINE_GAIN = 8.0


@dataclass(frozen=True)
class IntegratedResponse:
    """Weighted least squares over all horizons up to `lags` samples.

    The score is evaluated on the data and scaled so that G(0) = -I holds in the sample, which removes the first-order
    effect of the noise level and most of the sampling error. The integral is that of a cubic spline. Horizon T weighs
    1 / (sampling error^2 + quadrature error^2) of Phi(T): the former from leaving out blocks, the latter from using
    every second lag only.
    """

    lags: int | None = None

    def __post_init__(self):
        if self.lags is not None:
            checks.integer_at_least("lags", self.lags, 6)

    def infer(self, series: TimeSeries, score: ScoreFit, *, key: jax.Array):
        """Correlations and responses on one set of lags, then the weighted solve."""
        times = integral_times(series)
        lags = self.lags or int(np.clip(0.5 * times.min() / series.dt, 8, 24))
        lags = 2 * (lags // 2)
        groups, steps = error_groups(series), np.arange(lags + 1)
        scores = [score.function.over(s) for s in series.segments]
        correlation = lagged_moments(series.segments, series.segments, steps, groups)
        response = lagged_moments(series.segments, scores, steps, groups)

        def curve(weights, stride: int = 1):
            return phi_by_horizon(correlation.mean(weights)[::stride], response.mean(weights)[::stride], stride * series.dt)

        by_horizon, sampling = jackknife(lambda w: curve(w)[0], groups)
        quadrature = _quadrature_error(by_horizon, curve(np.ones(groups), 2)[0])
        error = np.sqrt(np.linalg.norm(sampling, axis=(1, 2)) ** 2 + quadrature**2)

        def estimate(weights):
            _, integrals, decays = curve(weights)
            return weighted_solve(integrals, decays, series.dt, 1 / error**2)

        phi, standard_error = jackknife(estimate, groups)
        return phi, standard_error, {
            "horizon": (steps[1:] * series.dt).tolist(), "phi_by_horizon": by_horizon.tolist(),
            "sampling_error_by_horizon": sampling.tolist(), "quadrature_error_by_horizon": quadrature.tolist(),
            "horizon_weight": (error**-2 / np.sum(error**-2)).tolist(), "integral_times": times.tolist()}


def phi_by_horizon(correlation: LagMatrices, response: LagMatrices, dt: float):
    """Phi(T) for every horizon, with the integrals of G and the decays C(T) - C(0) it solves for."""
    response = -response @ np.linalg.inv(response[0])
    tau = dt * np.arange(len(response))
    integrals = CubicSpline(tau, response, axis=0).antiderivative()(tau)[1:]
    decays = correlation[1:] - correlation[0]
    return np.linalg.solve(integrals, decays), integrals, decays


def weighted_solve(integrals: LagMatrices, decays: LagMatrices, dt: float, weights: np.ndarray):
    """Least squares for Phi over horizons, each equation divided by its horizon and weighted."""
    weights = weights / (dt * np.arange(1, len(integrals) + 1)) ** 2
    normal = np.einsum("t,tki,tkj->ij", weights, integrals, integrals)
    right = np.einsum("t,tki,tkj->ij", weights, integrals, decays)
    return np.linalg.solve(normal, right)


def _quadrature_error(fine: LagMatrices, coarse: LagMatrices) -> np.ndarray:
    """Error of the spline integral at each horizon, from halving the resolution; the first lag counts double."""
    gaps = np.linalg.norm(fine[1::2] - coarse, axis=(1, 2)) / _SPLINE_GAIN
    error = np.repeat(gaps, 2)
    error[0] *= 2
    return error
