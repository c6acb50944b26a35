"""A constant diffusion beside a known current: from what the current leaves over of the motion.

White noise is left over of a diffusion. Then D int_0^T G = C(T) - C(0) + int_0^T < x(tau) nu(x(0))^T > dtau at every
horizon T. Of smooth motion something smooth is left over, dv = dx/dt - nu, which acts like noise beyond its
correlation time: D = int_0^T < dv(tau) dv(0)^T > dtau (Green-Kubo).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._core.matrices import positive_part
from ..._core.types import LagMatrices, Matrix, Samples, Vector
from ...data import TimeSeries
from ...statistics.integral_time import error_groups, integral_times
from ...statistics.lags import lagged_moments
from ...statistics.regime import BALLISTIC, squared_steps
from ...statistics.velocities import differentiate, trim
from ..mobility.evidence import HorizonEvidence
from ..mobility.response import Combined
from ..mobility.responses import Moments
from ..symmetry import Symmetry

_WINDOW = 5.0  # horizon of Green-Kubo in units of the correlation time of what is left over
_LONGEST = 256
_THERMOSTAT = 0.05  # least relaxation rate due to D, in units of one over the mean integral time


@dataclass(frozen=True, eq=False)
class ResidualDiffusion:
    """D from groups of time counted so many times each, and its dependence on the horizon."""

    estimate: Callable[[np.ndarray], Matrix]
    groups: int
    horizon: HorizonEvidence
    white: bool

    def at_least(self, scale: Matrix, series: TimeSeries, symmetry: Symmetry) -> "ResidualDiffusion":
        """Lift D so that it relaxes every direction at a small share of the rate at which the series forgets.

        A learned current changes the density a little, and D must hold it. `scale` times its transpose is the spread
        of the data, narrow directions widened.
        """
        rate, inverse = _THERMOSTAT / integral_times(series.segments, series.dt).mean(), np.linalg.inv(scale)

        def lifted(weights: np.ndarray) -> Matrix:
            values, vectors = np.linalg.eigh(inverse @ self.estimate(weights) @ inverse.T)
            root = scale @ vectors * np.sqrt(np.maximum(values, rate))
            return root @ root.T

        horizon = self.horizon
        if horizon.phi_by_mode is not None:
            used = symmetry.blocks(lifted(np.ones(self.groups)))
            horizon = replace(horizon, phi_of_mode=np.real(np.trace(used, axis1=1, axis2=2)))
        return replace(self, estimate=lifted, horizon=horizon)

    def on_hidden(self, observed: int, blur: Vector, speed: Vector) -> "ResidualDiffusion":
        """Keep noise to the hidden variables, and lift D there to the square of the smoothing width times the speed.

        What is observed moves with the hidden variables, so that noise reaches it through them alone. `speed` is that
        of each variable in units of its spread, and `blur` the variance of the smoothing. D then forgets a departure
        of that width from the states of the data while a variable moves by its spread: as fast as motion carries it on.
        """
        root, size = np.sqrt(blur * speed)[observed:], len(blur)

        def lifted(weights: np.ndarray) -> Matrix:
            found = self.estimate(weights)[observed:, observed:] / np.outer(root, root)
            values, vectors = np.linalg.eigh(found)
            half = root[:, None] * vectors * np.sqrt(np.maximum(values, 1.0))
            whole = np.zeros((size, size))
            whole[observed:, observed:] = half @ half.T
            return whole

        return replace(self, estimate=lifted)


def infer_diffusion(
    series: TimeSeries,
    scores: Sequence[Samples],
    currents: Sequence[Samples],
    symmetry: Symmetry,
) -> ResidualDiffusion:
    """Return the D that belongs to a current, given the score and the current at every sample."""
    times = integral_times(series.segments, series.dt)
    groups = error_groups(series.segments, series.dt, times)
    if _leaves_white_noise(series, currents):
        lags = np.arange(2 * (int(np.clip(0.5 * times.min() / series.dt, 8, 24)) // 2) + 1)
        moments = Moments.of(series, list(scores), lags, groups, True).with_rates(series, list(scores))
        combined = Combined.of(moments.with_current(series, list(currents)), symmetry, 0)
        return ResidualDiffusion(
            lambda weights: positive_part(combined.phi(weights)), groups, combined.evidence()["horizon"], True
        )
    velocities = differentiate(series.segments, series.dt)
    rest = [v - nu for v, nu in zip(velocities, trim(currents)) if len(v)]
    return integrate_rest(rest, series.dt, symmetry, groups)


def _leaves_white_noise(series: TimeSeries, currents: Sequence[Samples]) -> bool:
    """Tell from the steps over one and two intervals whether the path without its current is a diffusion."""
    rest = [
        np.cumsum(np.diff(x, axis=0) - 0.5 * series.dt * (nu[1:] + nu[:-1]), axis=0)
        for x, nu in zip(series.segments, currents)
        if len(x) > 3
    ]
    sums, pairs = squared_steps(rest, np.array([1, 2]), 1)
    squares = sums[0].sum(axis=1) / pairs[0]
    return bool(np.log2(squares[1] / max(squares[0], 1e-300)) - 1 <= BALLISTIC)


def integrate_rest(rest: Sequence[Samples], dt: float, symmetry: Symmetry, groups: int) -> ResidualDiffusion:
    """Integrate the correlations of what is left over up to a few of its correlation times (Green-Kubo)."""
    lags = np.arange(min(_LONGEST, max(len(part) for part in rest) // 4) + 1)
    moments = lagged_moments(rest, rest, lags, groups)
    tau = dt * lags

    def curve(weights: np.ndarray) -> LagMatrices:
        found = symmetry.project(moments.mean(weights))
        steps = 0.5 * dt * (found[1:] + found[:-1])
        return np.cumsum(0.5 * (steps + np.swapaxes(steps, 1, 2)), axis=0)

    whole = curve(np.ones(groups))
    total, start = np.trace(whole, axis1=1, axis2=2), np.trace(moments.mean()[0])
    correlation_time = np.maximum(total / max(start, 1e-300), 0)
    reached = np.flatnonzero(tau[1:] >= _WINDOW * correlation_time)
    end = int(reached[0]) if len(reached) else len(lags) - 2
    horizon = HorizonEvidence(rule="residual", horizons=tau[1:], chosen=tau[1:][[end]])
    if symmetry.channels:
        modes = np.real(np.trace(symmetry.blocks(whole), axis1=2, axis2=3)).T
        chosen = np.full(len(modes), tau[1 + end])
        horizon = replace(horizon, phi_by_mode=modes / symmetry.channels, phi_of_mode=modes[:, end], chosen=chosen)
    elif whole.shape[1] <= 8:
        horizon = replace(horizon, phi=whole)
    return ResidualDiffusion(lambda weights: positive_part(curve(weights)[end]), groups, horizon, False)
