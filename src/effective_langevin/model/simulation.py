"""How a model is simulated: steps in standardised units, paths in the variables and units of the series."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._core import checks, keys
from .._core.deprecation import keywords_once_positional
from .._core.errors import DivergenceError, EstimateWarning
from .._core.format import count
from .._core.types import Paths, Samples, Vector
from ..data import TimeSeries
from ..execution.compilation import soon_compiled
from ..simulate import Ensemble, Equation, EulerMaruyama, StepMap, Stepper, StochasticHeun, integrate
from ..simulate.ensemble import Sizes
from ..simulate.forcing import Forced, Forcing, tabulate_forcing
from ..simulate.steppers import WrapAngles

if TYPE_CHECKING:
    from ..data.io.store import StoredPaths
    from .langevin import LangevinModel

_MANY = 256
_BOUND = 1e3
_FARTHEST = 3.0  # standard deviations that the drift moves a state in one step, where D depends on the state
_LONG = 50.0
_ASIDE = 0.02  # standard deviations
# Least steps per sampling interval where noise acts on v alone. It moves x over an interval by a variance of
# 2 D dt^3 / 3. One step of the default stepper makes D dt^3 of it; n steps are off by the share 1 / 2 n^2.
STEPS_OF_MOTION = 4
_FASTEST = 1e3  # rates per sampling interval of the data: 1e4 took minutes for a validation
_MOST_STEPS, _COPIES, _RESOLVED = 2**30, 2, 1e-3


class SimulationMethods:
    """The method of a model that simulates it."""

    @overload
    def simulate(self, duration: float, *, out: None = None, **given: Any) -> TimeSeries: ...

    @overload
    def simulate(self, duration: float, *, out: str | os.PathLike[str], **given: Any) -> "StoredPaths": ...

    @keywords_once_positional("members", "seed")
    def simulate(
        self: Any,
        duration: float,
        *,
        dt: float | None = None,
        members: int = 1,
        seed: int = 0,
        step: float | None = None,
        initial: Samples | None = None,
        noise: np.ndarray | None = None,
        stepper: Stepper | None = None,
        denoise: bool | None = None,
        start: float | Sequence[float] | None = None,
        transformed: bool = False,
        forcing: Forcing | None = None,
        out: str | os.PathLike[str] | None = None,
        origin: str | None = None,
        overwrite: bool = False,
    ) -> Any:
        """Simulate an ensemble, in the variables of the series.

        What `preprocess` removed is added again. A member that diverges is left out with a warning.

        Parameters
        ----------
        duration : float
            Length of each path.
        dt : float, optional
            Sampling interval of the paths; default: that of the data.
        members : int, default 1
            Number of paths.
        seed : int, default 0
            Seed of the initial states and of the noise.
        step : float, optional
            Step of the integrator; default: from the stiffness of the drift.
        initial : array, shape (member, var) or (member, time, var), optional
            States at `start` in the variables of the series, or the past up to then, for a model with delays; default:
            states of the data, whatever their season.
        noise : array, shape (member, step, var), optional
            Brownian increments of variance `step`; default: drawn from `seed`.
        stepper : Stepper, optional
            Default: `StochasticMidpoint`. With given `noise`, `StochasticHeun`, or `EulerMaruyama` where the noise
            depends on the state.
        denoise : bool, optional
            The equation has the steady state of the smoothed data. If true, return the expected clean states instead,
            with the spread of clean ones; default: where the smoothing width exceeds the spread of the data somewhere.
        start : float or list of float, optional
            Time at which the paths, or each of them, begin; default: the start of the record. Beyond the record a
            season goes on and a trend keeps its last value.
        transformed : bool, default False
            If true, the paths stay in the model's variables.
        forcing : array, shape (var,), or function of times, optional
            A push that is added to the drift, in the model's variables: constant, or a function from times (time,) of
            the first path to pushes (time, var).
        out : path, optional
            A Zarr store, ending in .zarr, into which the paths are written as they are simulated, whatever the memory.
            A call that was interrupted or killed goes on when it is made again. Members that diverge are NaN from then
            on. Values are in single precision, or in double if a variable is far from zero.
        origin : str, optional
            With `out`, the date of time zero: times are then dates, as they are for a series that was read from dates.
        overwrite : bool, default False
            Whether to replace a store that is there.

        Returns
        -------
        TimeSeries, or StoredPaths with `out`
            One segment for each member, beginning with its initial state; or a record with the `path` of the store,
            whose `open()` shows it as an xarray.Dataset.
        """
        model: LangevinModel = self
        duration = checks.positive_number("duration", duration)
        dt = checks.optional_positive_number("dt", dt) or model.dt
        members, key = checks.integer_at_least("members", members, 1), keys.key_from_seed(seed)
        for name, switch in (("denoise", denoise or False), ("transformed", transformed)):
            checks.instance_of(name, switch, (bool, np.bool_))
        step = checks.optional_positive_number("step", step)
        frames = _count_frames(duration, dt, 0 if out is not None else members, model.dimension)
        begin = _check_starts(model.start if start is None else start, members, duration, dt)
        states = starting_states(model, initial, members, begin, key)
        driven: dict[str, Any] = {"step": step, "noise": noise, "stepper": stepper, "forcing": forcing}
        given = {"dt": dt, "key": key, "start": begin[0], **driven}
        if out is not None:
            from .streaming import write_paths

            how = {"denoise": denoise, "transformed": transformed, "begin": begin, "origin": origin}
            return write_paths(model, states, frames, out=out, overwrite=overwrite, **how, **given)
        ensemble, step = run_model(model, states, frames, **given)
        starts = np.array(begin)[~ensemble.diverged]
        return as_observed(model, ensemble.survivors(step), dt, starts, denoise, transformed)


def as_observed(
    model: "LangevinModel", paths: Paths, dt: float, starts: Vector, denoise: bool | None, transformed: bool
) -> TimeSeries:
    """Return standardised paths as a series in the variables of the data, or of the model if `transformed`."""
    own = to_series(model, paths, dt, starts, denoise)
    return own if model.transform is None or transformed else model.transform.invert(own)


def run_model(
    model: "LangevinModel",
    states: Samples,
    frames: int,
    *,
    dt: float,
    key: jax.Array,
    step: float | None = None,
    noise: np.ndarray | None = None,
    stepper: Stepper | None = None,
    forcing: Forcing | None = None,
    start: float = 0.0,
) -> tuple[Ensemble, float]:
    """Step standardised states on, saving every `dt`; return all members, diverged ones too, and the step."""
    driven = {"dt": dt, "step": step, "stepper": stepper, "forcing": forcing, "start": start}
    advance, counted, sizes = step_map(model, states, frames, **driven, noisy=noise is not None)
    if noise is not None:
        shape = (len(states), frames * sizes.save_every, model.dimension)
        told = f"(member, step, var) = {shape} at step {sizes.step:g}"
        noise = checks.shaped_array("noise", noise, shape, told)
    ensemble = integrate(advance, counted, **vars(sizes), key=keys.named(key, "noise"), noise=noise)
    return Ensemble(ensemble.paths[..., : model.dimension], ensemble.diverged), sizes.step


def step_map(
    model: "LangevinModel",
    states: Samples,
    frames: int,
    *,
    dt: float,
    step: float | None,
    stepper: Stepper | None,
    forcing: Forcing | None,
    start: float,
    noisy: bool = False,
) -> tuple[StepMap, Samples, Sizes]:
    """Return the one-step map, the states as it takes them, and how often it is applied; `noisy`: noise is given."""
    equation = standard_equation(model, len(states))
    driven = StochasticHeun() if equation.additive else EulerMaruyama()
    stepper = stepper or (driven if noisy else model.default_stepper)
    checks.offers("stepper", stepper, "advance", "StochasticMidpoint()")
    step = step or model.automatic_step(stepper, dt)
    if not dt / step < _MOST_STEPS:
        raise checks.refused("step", f"at least {dt / _MOST_STEPS:.2g}, for {_MOST_STEPS:g} steps per sample", step)
    save_every = max(1, int(np.ceil(dt / step - 1e-6)))
    step = dt / save_every
    if not equation.additive:  # beyond the data a large D makes the drift too stiff for a step that suits the data
        equation = replace(equation, fastest=jnp.float32(_FARTHEST / step))
    advance = stepper.advance(equation, step)
    if model.space.angles:
        periods = np.array([p or np.inf for p in model.space.periods]) / model.standardizer.std
        draws = {"averages_noise": advance.averages_noise, "draws": advance.draws}
        advance = WrapAngles(advance, jnp.asarray(periods, jnp.float32), **draws)
    if advance.averages_noise:
        _warn_of_increments(type(stepper).__name__, save_every)
    sizes = Sizes(frames, save_every, step, model.dimension, _BOUND)
    if forcing is None:
        return advance, states, sizes
    times = start + step * (np.arange(frames * save_every) + 0.5)
    pushes = tabulate_forcing(forcing, times, model.dimension) / model.standardizer.std
    return Forced.of(advance, step * pushes), Forced.counted(states), sizes


def to_series(
    model: "LangevinModel", paths: Paths, dt: float, starts: Vector, denoise: bool | None = None
) -> TimeSeries:
    """Return standardised paths (member, time, var) as a series of the model's variables, in physical units."""
    if (not model.score.resolved) if denoise is None else denoise:
        paths = expect_clean(model, paths)
    labels: dict[str, Any] = {"names": model.names, "units": model.units, "time_unit": model.time_unit}
    labels |= {"start": starts.tolist(), "calendar": model.calendar}
    return model.space.wrap(TimeSeries(model.standardizer.to_physical(paths.astype(float)), dt, **labels))


def expect_clean(model: "LangevinModel", paths: Paths) -> Paths:
    """Return the expected clean states of standardised paths, with the spread of clean ones."""
    return model.score.expected_clean(paths.reshape(-1, model.dimension)).reshape(paths.shape)


def standard_equation(model: "LangevinModel", members: int = 1) -> Equation:
    """Return the equation in standardised units, with its Gaussian linear part -<M> C^-1, ready for many members."""
    flat = members >= _MANY or jax.default_backend() == "cpu"
    score = model.score.function.lower(low_precision=True) if flat else model.score.function
    linear = -model.standardizer.mobility_to_standard(model.mobility.matrix) @ np.linalg.inv(model.score.covariance)
    drift, noise = jax.tree.map(_single, model.closure.to_standard(score, model.standardizer))
    return Equation(drift, noise, jnp.asarray(linear, jnp.float32), jnp.zeros(model.dimension, jnp.float32))


def _single(leaf: Any) -> Any:
    """Return an array in single precision: a user may have switched JAX to double."""
    return leaf.astype(jnp.float32) if eqx.is_inexact_array(leaf) and leaf.dtype == np.float64 else leaf


def automatic_step(stepper: Stepper, rate: float, dt: float) -> float:
    """Return the step at which a stepper resolves the fastest rate, and increments over `dt` to about 1 %.

    1 - exp(-z) of one step z = rate x step is off by a share of the order of z^2, and 1 - exp(-Z) of the interval
    Z = rate x dt by Z / (exp(Z) - 1) times that: increments over a longer interval allow a longer step.
    """
    longer = np.sqrt(np.expm1(z) / z) if (z := min(rate * dt, _LONG)) > 0 else 1.0
    return min(stepper.resolution, longer * stepper.increments) / max(rate, 1e-9 / dt)


def stiffness(model: "LangevinModel") -> float:
    """Return the 99 % quantile over states of the fastest rate (one over time)."""
    states = jnp.asarray(model.standardizer.to_standard(model.states[:512]), jnp.float32)
    rate = float(np.quantile(fastest_rates(standard_equation(model, _MANY), states), 0.99))
    if not rate * model.dt < _FASTEST:
        raise DivergenceError(
            f"The fastest rate of the equation is {rate:.2g} per unit of time, more than {_FASTEST:g} per sampling "
            "interval of the data: it cannot be stepped. Nearly collinear variables, ones that take few values and "
            "heavy tails do that: drop a variable, use `preprocess=[el.preprocess.PCA(0.99)]`, or a logarithm."
        )
    return rate


def _count_frames(duration: float, dt: float, members: int, size: int) -> int:
    """Return the number of samples after the first; refuse paths that this machine cannot hold."""
    samples = duration / dt + 1
    hint = "Ask for fewer members, a shorter duration or a longer dt."
    checks.fits_in_memory(
        _COPIES * 8.0 * samples * members * size, f"{count(members, 'path')} of {samples:.3g} samples", hint
    )
    return max(1, round(duration / dt))


def _check_starts(start: float | Sequence[float], members: int, duration: float, dt: float) -> tuple[float, ...]:
    """Return the time at which each path begins; refuse one at which float64 cannot tell samples apart."""
    starts = checks.number_or_numbers("start", start, members, "path")
    if np.spacing(np.abs(starts).max() + duration) > _RESOLVED * dt:
        raise checks.refused("start", f"a time at which steps of {dt:g} can be told apart", start)
    return starts


def fastest_rates(equation: Equation, states: Array) -> np.ndarray:
    """Return the spectral radius of the drift's Jacobian at each state, plus the squared gradient of the noise.

    The gradient is one of finite differences: a noise factor need not be differentiable, where the noise vanishes.
    """
    jacobians = np.asarray(_jacobians(equation.drifts, states), float)
    rates, finite = np.full(len(states), np.inf), np.isfinite(jacobians).all(axis=(1, 2))
    rates[finite] = np.abs(np.linalg.eigvals(jacobians[finite])).max(axis=1, initial=0.0)
    if equation.additive:
        return rates
    aside = _ASIDE * jnp.eye(states.shape[1], dtype=states.dtype)[:, None]
    up, down = (jax.lax.map(equation.factors, states + sign * aside) for sign in (1, -1))
    return rates + np.sum(np.square((up - down) / (2 * _ASIDE)), axis=(0, 2, 3))


def _warn_of_increments(stepper: str, steps: int) -> None:
    """Warn that the paths of a stepper with averaged noise are right in the steady state only."""
    text = (
        f"{stepper} is right in the steady state only: at {count(steps, 'step')} per sampling interval, the mean "
        f"squared increments of its paths are {50 / steps:.2g} % too small, or more. Leave `stepper` out for paths "
        "with right increments."
    )
    warnings.warn(text, EstimateWarning, stacklevel=6)


@soon_compiled
def _jacobians(function, states):
    """Return (state, ..., var): the change of a function of a batch along one direction after the other."""

    def along(direction):
        return jax.jvp(function, (states,), (jnp.broadcast_to(direction, states.shape),))[1]

    return jnp.moveaxis(jax.lax.map(along, jnp.eye(states.shape[1], dtype=states.dtype)), 0, -1)


def starting_states(
    model: "LangevinModel",
    initial: Samples | None,
    members: int,
    starts: Sequence[float],
    key: jax.Array,
    name: str = "initial",
) -> Samples:
    """Return standardised starting points: as given at the time of each, or drawn from the states of the data."""
    if initial is None:
        rows = jax.random.randint(keys.named(key, "initial"), (members,), 0, len(model.states), jnp.int32)
        return model.standardizer.to_standard(model.states[np.asarray(rows)])
    inward = model.transform
    width = model.dimension if inward is None else len(inward.names)
    if inward is not None and np.ndim(initial) == 3:
        past = checks.shaped_array(name, initial, (members, None, width), f"({members}, time, {width})")
    else:
        past = checks.shaped_array(name, initial, (members, width), f"({members}, {width})")[:, None]
    checks.finite(name, past)
    if inward is None:
        return model.standardizer.to_standard(past[:, -1])
    # The transform sees the past of every member up to `start`, and the first again: a series has two samples or more.
    labels: dict[str, Any] = {"names": inward.names, "units": inward.units, "time_unit": inward.time_unit}
    begin = [start - model.dt * (past.shape[1] - 1) for start in (*starts, starts[0])]
    series = TimeSeries([*past, past[0]], model.dt, start=begin, **labels)
    ends = np.stack([segment[-1] for segment in inward.apply(series).segments[:-1]])
    return model.standardizer.to_standard(ends)
