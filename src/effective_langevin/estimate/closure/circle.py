"""The current and the diffusion of one angle: on a circle nothing can leave, so that p nu = J is the same everywhere.

    nu(x) = J / p(x),   J = mean number of turns per unit of time

J is counted, p follows from the score. With J known, D solves the response of smooth functions on the circle at every
horizon (`mobility.angles`). On a torus of several angles p nu need not be constant and none of this holds: they keep
the current of a constant mobility, Phi_A s.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.errors import ArgumentError
from ..._core.types import Samples, Vector
from ...data import TimeSeries
from ...statistics.integral_time import error_groups, integral_times
from ...statistics.lags import lagged_moments
from ...statistics.regime import BALLISTIC
from ...statistics.resampling import drawn_weights, jackknife, rating_groups
from ..mobility.angles import CircleMoments
from ..mobility.base import ClosureFit, Inference, Mobility
from ..mobility.response import IntegratedResponse, infer_on_circles
from ..networks import OnGrid
from ..score import Score, ScoreFit
from ..space import StateSpace
from .evidence import ClosureEvidence
from .fields import ConstantDiffusion, CurrentField, Fields, stack_replicas

_POINTS = 1024
_REPLICAS = 40


class CircleCurrent(CurrentField):
    """J / p around a circle, between its values on a regular grid."""

    values: Float[Array, " point"]
    period: float = eqx.field(static=True)

    @classmethod
    def of(cls, density: Vector, flux: float, period: float) -> "CircleCurrent":
        """Return the current of a density that is given on a regular grid around the circle."""
        return cls(jnp.asarray(flux / density, jnp.float32), period)

    def in_batch(self, x, score):
        return jax.vmap(OnGrid(self.values[:, None], (self.period,)))(x)


@dataclass(frozen=True, eq=False)
class RingInference:
    """Current and diffusion of one angle: J for any weights of the groups of time, p on a regular grid, and D."""

    turns: Callable[[np.ndarray], float]
    density: Vector
    period: float
    mobility: Inference

    @property
    def flux(self) -> float:
        return self.turns(np.ones(self.mobility.blocks))

    @property
    def flux_error(self) -> float:
        return float(jackknife(lambda weights: np.array(self.turns(weights)), self.mobility.blocks)[1])

    @property
    def diffusion(self) -> float:
        return float(self.mobility.phi[0, 0])

    def fields(self, weights: np.ndarray | None = None) -> tuple[CircleCurrent, ConstantDiffusion]:
        """Return nu and D, groups of time counted `weights` times each."""
        weights = np.ones(self.mobility.blocks) if weights is None else weights
        current = CircleCurrent.of(self.density, self.turns(weights), self.period)
        return current, ConstantDiffusion.of(self.mobility.estimate(weights))


def close_ring(series: TimeSeries, score: ScoreFit, space: StateSpace) -> ClosureFit:
    """Return < M > = D with its errors, and the fields nu = J / p and D, of a standardised series of one angle."""
    found = infer_ring(series, score, space)
    groups, weights = found.mobility.blocks, drawn_weights(found.mobility.blocks, _REPLICAS)
    states = lagged_moments(series.segments, series.segments, [0], groups)
    evidence = ClosureEvidence("current", "counting turns", white=not found.mobility.evidence.ballistic)
    mobility = Mobility(
        found.mobility.phi,
        found.mobility.standard_error,
        "StateDependent",
        np.array([found.mobility.estimate(drawn) for drawn in weights]),
        replace(found.mobility.evidence, closure=evidence),
        np.array([states.mean(drawn)[0] for drawn in weights]),
    )
    return ClosureFit(mobility, Fields(*found.fields(), stack_replicas([found.fields(drawn) for drawn in weights])))


def infer_ring(series: TimeSeries, score: ScoreFit, space: StateSpace) -> RingInference:
    """Return J, p and D of a standardised series of one angle."""
    if space.dimension != 1 or not space.angles:
        raise ArgumentError("The current J / p is that of one angle: declare its period in TimeSeries(periods=[...]).")
    period = float(space.periods[0] or np.nan)
    density = density_around(score.function, period)
    mean = space.embed(series.stacked()).mean(axis=0)
    smooth = [space.embed(x) - mean for x in series.segments]
    # The slope is that of the quadratic variation of what the mean motion leaves over, between one and two lags.
    one, two = (np.concatenate([m[:-2] for m in moves_of(series, period, lag)]).var() for lag in (1, 2))
    times, slope = integral_times(smooth, series.dt), float(np.log2(two / one) - 1)
    groups = error_groups(smooth, series.dt, times)
    turns = count_turns(series, period, groups)

    lags = IntegratedResponse().choose_lags(series, times, slope > BALLISTIC)
    scores = [score.function.over(x).astype(float) for x in series.segments]
    grid = np.arange(_POINTS) * period / _POINTS
    shape = [np.interp(x.astype(float) % period, grid, 1 / density, period=period) for x in series.segments]
    moments = CircleMoments.of(series, scores, space, lags, groups, shape, turns)
    return RingInference(turns, density, period, infer_on_circles(moments, slope, times))


def density_around(score: Score, period: float) -> Vector:
    """Return p on a regular grid from its score, whose mean around the circle is taken out: ln p is periodic."""
    grid = np.arange(_POINTS)[:, None] * period / _POINTS
    slope = np.fft.rfft(score.over(grid).astype(float)[:, 0])
    waves = 2j * np.pi / period * np.arange(len(slope))
    log_density = np.fft.irfft(np.append(0.0, slope[1:] / waves[1:]), _POINTS)
    density = np.exp(log_density - log_density.max())
    return density / (density.mean() * period)


def count_turns(series: TimeSeries, period: float, groups: int) -> Callable[[np.ndarray], float]:
    """Return the mean number of turns per unit of time, the short way around, for any weights of the groups of time."""
    ones = [np.ones((len(x), 1)) for x in series.segments]
    moves = lagged_moments(ones, moves_of(series, period), [1], rating_groups(groups))
    return lambda weights: float(moves.mean(weights)[0, 0, 0] / (period * series.dt))


def moves_of(series: TimeSeries, period: float, lag: int = 1) -> list[Samples]:
    """Return how far the angle goes within `lag` samples from each sample on; zero where the record ends before."""
    steps = [np.diff(x.astype(float), axis=0, append=x[-1:]) for x in series.segments]
    steps = [step - period * np.round(step / period) for step in steps]
    return [sum((np.roll(step, -k, axis=0) for k in range(1, lag)), start=step) for step in steps]
