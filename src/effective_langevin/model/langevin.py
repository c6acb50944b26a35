"""`LangevinModel`: dx = Phi s(x) dt + sqrt(2) Sigma dW with Sigma Sigma^T = sym(Phi), in physical units."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, keys
from .._core.deprecation import keywords_once_positional
from .._core.errors import ArgumentError, DataError
from .._core.types import Samples
from ..data import Standardizer, TimeSeries, preprocess
from ..diagnose import Diagnosis
from ..estimate.mobility import Mobility
from ..estimate.score import ScoreFit
from ..estimate.space import StateSpace
from ..simulate import LeimkuhlerMatthews, StochasticHeun, integrate, survivors
from ..simulate.steppers import Equation, Stepper, WrapAngles
from . import analysis, display, storage, variance_correction
from .closure import Closure, ConstantClosure
from .drift import jacobians

_MANY = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class LangevinModel:
    """An effective Langevin equation with the steady state of the data by construction.

    Everything public is in physical units. `states` are samples of the data from which simulations start, `start` is
    the time at which the record began. With a `transform` (`fit(preprocess=...)`) the equation is one of transformed
    variables, and these are what `names`, `mobility`, `score_function`, `drift`, `diffusion` and `states` speak of;
    `simulate` comes back to the variables of the series.
    """

    standardizer: Standardizer
    score: ScoreFit
    mobility: Mobility
    dt: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    time_unit: str
    states: Samples
    provenance: dict[str, Any] = field(default_factory=dict)
    transform: preprocess.FittedTransform | None = None
    start: float = 0.0
    space: StateSpace
    diagnosis: Diagnosis | None = None

    @property
    def dimension(self) -> int:
        """Number of variables of the equation."""
        return len(self.names)

    @property
    def unit_labels(self) -> tuple[str, ...]:
        """Old name of `units`."""
        warnings.warn("`model.unit_labels` is now `model.units`.", DeprecationWarning, stacklevel=2)
        return self.units

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The evidence behind every choice: how the score and the mobility were found."""
        return {
            "score": {
                **self.score.diagnostics,
                "noise_level": self.score.noise_level,
                "stein": self.score.stein.tolist(),
                "stein_error": self.score.stein_error,
            },
            "mobility": self.mobility.diagnostics,
        }

    def score_function(self, x: Samples) -> Samples:
        """grad ln p at each state, (..., var) -> (..., var), in the model's own variables."""
        x = self._states_like(x)
        flat = self.standardizer.to_standard(x.reshape(-1, self.dimension))
        return self.standardizer.score_to_physical(self.score.function.over(flat).astype(float)).reshape(x.shape)

    @property
    def closure(self) -> Closure:
        """Current velocity and diffusion, in physical units."""
        return ConstantClosure(self.score_function, self.mobility.matrix)

    def drift(self, x: Samples) -> Samples:
        """nu(x) + D(x) s(x) + div D(x) at each state, (..., var) -> (..., var), in the model's own variables."""
        return self.closure.drift(self._states_like(x))

    def current(self, x: Samples) -> Samples:
        """The current velocity nu(x) at each state, (..., var) -> (..., var): zero for a reversible model."""
        return self.closure.current(self._states_like(x))

    def diffusion(self, x: Samples) -> np.ndarray:
        """The diffusion tensor D(x) at each state, (..., var) -> (..., var, var), in the model's own variables."""
        return self.closure.diffusion(self._states_like(x))

    def transformed(self, series: TimeSeries) -> TimeSeries:
        """A series like the one the model was fitted to, in the model's own variables."""
        own = series if self.transform is None else self.transform.apply(series)
        if own.dimension != self.dimension:
            raise DataError(f"The model has {self.dimension} variables, but the series has {own.dimension}.")
        return self.space.declare(own)

    @keywords_once_positional("members", "seed")
    def simulate(
        self,
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
        start: float | None = None,
        transformed: bool = False,
    ) -> TimeSeries:
        """Simulate an ensemble; returns (member, time, var), sampled every `dt` (default: that of the data).

        Paths come back in the variables and units of the series, with what `preprocess` took away put back: at `start`,
        the time at which the paths begin, and after. Default: the start of the record, so that the ensemble is one of
        other histories that the record might have had; beyond the record, a season goes on and a trend keeps its last
        value. With `transformed`, paths stay in the model's own variables.

        The integrator's `step` follows from the stiffness unless given. `initial` is (member, var) in the variables of
        the series, or, for a model with delays, their past, (member, time, var), up to `start`; default: states of the
        data, whatever their season. `noise` supplies Brownian increments, (member, step, var), each of variance `step`.
        The stepper is `LeimkuhlerMatthews` for a model without circulation, `StochasticHeun` otherwise or with given
        `noise`. The equation has the steady state of the data blurred by the noise level; `denoise` returns the clean
        states to be expected instead, with the spread of clean ones: by default where the blur exceeds the spread of
        the data in some direction. A member that diverges is left out with a warning; the others go on.
        """
        duration = checks.positive_number("duration", duration)
        dt = checks.optional_positive_number("dt", dt) or self.dt
        members = checks.integer_at_least("members", members, 1)
        stepper = stepper or (self.default_stepper if noise is None else StochasticHeun())
        wanted = checks.optional_positive_number("step", step) or self.automatic_step(stepper)
        save_every, frames = max(1, int(np.ceil(dt / wanted - 1e-6))), max(1, round(duration / dt))
        step, key = dt / save_every, keys.key_from_seed(seed)
        begin = self.start if start is None else checks.number_or_numbers("start", start, 1, "path")[0]
        states = self._initial(initial, members, begin, key)
        if noise is not None:
            shape = (members, frames * save_every, self.dimension)
            noise = checks.shaped_array("noise", noise, shape, f"(member, step, var) = {shape} at step {step:g}")
        run = integrate(
            self._advance(stepper, members, step),
            states,
            frames=frames,
            save_every=save_every,
            step=step,
            key=keys.named(key, "noise"),
            noise=noise,
            bound=1e3,
        )
        paths = survivors(run, step)
        if (not self.score.resolved) if denoise is None else denoise:
            blurred = paths.reshape(-1, self.dimension)
            paths = self.score.expected_clean(blurred).reshape(paths.shape)
        own = TimeSeries(
            self.standardizer.to_physical(paths.astype(float)),
            dt,
            names=self.names,
            units=self.units,
            time_unit=self.time_unit,
            start=begin,
        )
        own = self.space.wrap(own)
        return own if self.transform is None or transformed else self.transform.invert(own)

    def settled(
        self, duration: float | None = None, members: int = 1024, seed: int = 0, rounds: int = 4
    ) -> "LangevinModel":
        """The model with a linear term in its score that gives its steady state the variances of the data.

        For a model whose validation shows wrong variances though the score is good: where regimes follow each other
        slowly, the data determine their weights better than score matching finds them. Simulates `members` for a
        `duration` (default: 20 times the longest integral time of the data), `rounds` times. The mobility is not
        touched.
        """
        if self.space.angles:
            raise ArgumentError("A model of angles cannot be settled: their variances mean nothing on a circle.")
        known = self.mobility.evidence.integral_times
        longest = 100 * self.dt if known is None else float(known.max())
        time = checks.optional_positive_number("duration", duration) or 20 * max(longest, self.dt)
        members, rounds = (checks.integer_at_least(n, v, 1) for n, v in (("members", members), ("rounds", rounds)))
        return variance_correction.settled(self, time, members, seed, rounds)

    def automatic_step(self, stepper: Stepper | None = None) -> float:
        """A step that resolves the stiffest direction met by 99 % of the states, at the accuracy of the stepper."""
        return (stepper or self.default_stepper).resolution / self.stiffness()

    @property
    def default_stepper(self) -> Stepper:
        """The stepper with the best steady state for its cost: it depends on whether there is circulation."""
        return LeimkuhlerMatthews() if self.closure.reversible else StochasticHeun()

    def stiffness(self) -> float:
        """99 % quantile over states of the spectral radius of the drift's Jacobian (one over time)."""
        drift = self._equation(_MANY).drift
        states = jnp.asarray(self.standardizer.to_standard(self.states[:512]), jnp.float32)
        rates = np.linalg.eigvals(np.asarray(jacobians(drift, states), float))
        return float(np.quantile(np.abs(rates).max(axis=1), 0.99))

    def timescales(self) -> analysis.Timescales:
        """Relaxation times, slowest first, and periods of oscillation of dx = -Phi C^-1 x dt + noise, with errors.

        Exact for linear dynamics; otherwise the rates at which the model's correlations begin to decay. Slow hops
        between wells take longer: see the integral times of a validation.
        """
        return analysis.relaxation(self._draws())

    def circulation(self) -> analysis.Circulation:
        """Rotations made by Phi_A: frequencies with errors, and the planes they turn in; none in one dimension."""
        return analysis.rotations(self._draws(), self.standardizer.std)

    def entropy_production(self) -> analysis.EntropyProduction:
        """tr(Phi_A^T Phi_S^-1 Phi_A < s s^T >) per unit of time, with its error: zero if and only if reversible."""
        clean = self.standardizer.to_standard(self.states)
        kick = np.random.default_rng(0).normal(size=clean.shape) @ self.score.spread
        states = np.concatenate([clean + kick, clean - kick]) if self.score.noise_level else clean
        return analysis.entropy_production(self._draws(), states, self.score.function.over(states).astype(float))

    def replicas(self) -> Iterator["LangevinModel"]:
        """The model with each mobility from blocks of time drawn with replacement: for the error of any prediction."""
        for phi in self.mobility.replicas:
            yield replace(self, mobility=replace(self.mobility, matrix=phi))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file; an existing file is replaced only once the new one is complete."""
        storage.write(path, self)

    def _draws(self) -> analysis.Draws:
        """Phi and the covariance of the blurred data, and the same from blocks of time, standardised."""
        phi, phis, covariances = (
            self.standardizer.mobility_to_standard(m)
            for m in (self.closure.mean(), self.mobility.replicas, self.mobility.covariances)
        )
        return analysis.Draws(phi, self.score.covariance, phis, covariances + self.score.blur)

    def _equation(self, members: int = 1) -> Equation:
        """The equation in standardised units, with its Gaussian linear part -<M> C^-1, ready for many members."""
        flat = members >= _MANY or jax.default_backend() == "cpu"
        score = self.score.function.lower(low_precision=True) if flat else self.score.function
        linear = -self.standardizer.mobility_to_standard(self.closure.mean()) @ np.linalg.inv(self.score.covariance)
        return Equation(
            *self.closure.to_standard(score, self.standardizer),
            linear=jnp.asarray(linear, jnp.float32),
            centre=jnp.zeros(self.dimension),
        )

    def _advance(self, stepper: Stepper, members: int, step: float) -> Any:
        """Return the one-step map in standardised units."""
        advance = stepper.advance(self._equation(members), step)
        if not self.space.angles:
            return advance
        periods = np.array([p or np.inf for p in self.space.periods]) / self.standardizer.std
        return WrapAngles(advance, jnp.asarray(periods, jnp.float32))

    def _initial(self, initial: Samples | None, members: int, start: float, key: jax.Array) -> Samples:
        """Standardised starting points: as given, or drawn from the states of the data."""
        if initial is None:
            rows = np.asarray(jax.random.choice(keys.named(key, "initial"), len(self.states), (members,)))
            return self.standardizer.to_standard(self.states[rows])
        width = self.dimension if self.transform is None else len(self.transform.names)
        if self.transform is not None and np.ndim(initial) == 3:
            past = checks.shaped_array("initial", initial, (members, None, width), f"({members}, time, {width})")
        else:
            past = checks.shaped_array("initial", initial, (members, width), f"({members}, {width})")[:, None]
        checks.finite("initial", past)
        return self.standardizer.to_standard(past[:, -1] if self.transform is None else self._present(past, start))

    def _present(self, past: np.ndarray, start: float) -> Samples:
        """The last state of each path up to `start`, (member, time, var), in the model's own variables."""
        assert self.transform is not None
        labels = {"names": self.transform.names, "units": self.transform.units, "time_unit": self.transform.time_unit}
        # The first once more, because a series has at least two samples.
        series = TimeSeries([*past, past[0]], self.dt, start=start - self.dt * (past.shape[1] - 1), **labels)
        return np.stack([segment[-1] for segment in self.transform.apply(series).segments[:-1]])

    def _states_like(self, x: Samples) -> np.ndarray:
        x = np.asarray(x, float)
        if x.ndim == 0 or x.shape[-1] != self.dimension:
            raise ArgumentError(
                f"Argument `x` must end in an axis of {self.dimension} variables, but got shape {x.shape}."
            )
        return x

    def __repr__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.page(self)


def load(path: str | os.PathLike[str]) -> LangevinModel:
    """Read a model written by `LangevinModel.save`."""
    return LangevinModel(**storage.read(path))
