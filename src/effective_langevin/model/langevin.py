"""`LangevinModel`: an effective Langevin equation, in physical units."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any

import jax
import numpy as np

from .._core.errors import ArgumentError, DataError, EstimateWarning
from .._core.format import listed
from .._core.timeunits import canonical
from .._core.types import Samples
from ..data import Standardizer, TimeSeries, preprocess
from ..data.preprocess.pointwise import embed_angles
from ..diagnose import Diagnosis
from ..estimate.closure.fields import Fields
from ..estimate.mobility import Mobility
from ..estimate.score import ScoreFit
from ..estimate.space import StateSpace
from ..simulate import Stepper, StochasticMidpoint
from . import analysis, display, simulation, storage, variance_correction
from .closure import ConstantClosure, FieldClosure
from .forecast import ForecastMethods
from .noise_steps import steps_of_noise
from .rates import PassageMethods
from .response import ResponseMethods
from .simulation import SimulationMethods


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LangevinModel(SimulationMethods, ForecastMethods, ResponseMethods, PassageMethods):
    """An effective Langevin equation with the steady state of the data by construction.

    dx = [nu(x) + D(x) s(x) + div D(x)] dt + sqrt(2) D(x)^(1/2) dW; with a constant mobility Phi, dx = Phi s(x) dt +
    sqrt(2) Sigma dW with Sigma Sigma^T = sym(Phi). `el.fit` makes models and `el.load` reads them. Everything public is
    in physical units. With a `transform` (`fit(preprocess=...)`) the equation is one of transformed variables, the
    model's variables: all but `simulate` speak of these.

    Parameters
    ----------
    standardizer : Standardizer
        Mean and spread of the model's variables.
    score : ScoreFit
        The learned score, in standardised units, with its evidence.
    mobility : Mobility
        The mean mobility with its errors and its evidence.
    dt : float
        Sampling interval of the data.
    names, units : tuple of str
        Labels of the model's variables.
    time_unit : str
        Unit of time.
    states : array, shape (sample, var)
        Samples of the data, from which simulations start.
    provenance : dict, optional
        How the model was made.
    transform : FittedTransform, optional
        What leads from the series to the model's variables.
    start : float, default 0.0
        Time at which the record began.
    space : StateSpace
        Angles, symmetry and hidden variables.
    diagnosis : Diagnosis, optional
        What `fit` found about the series.
    fields : Fields, optional
        Current and diffusion that depend on the state, standardised; without them the mobility is constant.
    calendar : str, default ""
        Calendar of the dates of the series.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, seed=1)
    >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
    >>> model
    LangevinModel(x1 and x2; LogCorrelation mobility, smoothing width 0, stein_error 0.125)
    >>> model.drift([0.5, 0.5]).shape, model.diffusion([0.5, 0.5]).shape
    ((2,), (2, 2))
    >>> model.simulate(5.0, members=3, seed=1).values.shape
    (3, 51, 2)
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
    fields: Fields | None = None
    calendar: str = ""

    @property
    def dimension(self) -> int:
        """Number of variables of the equation."""
        return len(self.names)

    @property
    def closure(self) -> ConstantClosure | FieldClosure:
        """Current velocity and diffusion as functions of the state."""
        if self.fields is None:
            return ConstantClosure(self.score_function, self.mobility.matrix)
        return FieldClosure(self.score.function, self.fields, self.standardizer)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The evidence behind every choice, as plain data: how the score and the mobility were found."""
        stein = {"stein": self.score.stein.tolist(), "stein_error": self.score.stein_error}
        score = {**self.score.diagnostics, "noise_level": self.score.noise_level, **stein}
        return {"score": score, "mobility": self.mobility.diagnostics}

    @property
    def default_stepper(self) -> Stepper:
        """The stepper with the best steady state and increments for its cost."""
        return StochasticMidpoint()

    def score_function(self, x: Samples) -> Samples:
        """Return grad ln p at each state.

        Parameters
        ----------
        x : array, shape (..., var)
            States, in the model's variables.

        Returns
        -------
        array, shape (..., var)
        """
        x = self._states_like(x)
        if isinstance(x, jax.Array):
            traced: Any = ((x - self.standardizer.mean) / self.standardizer.std).reshape(-1, self.dimension)
            values: Any = self.score.function.in_batch(traced) / self.standardizer.std
            return values.reshape(x.shape)
        flat = self.standardizer.to_standard(x.reshape(-1, self.dimension))
        return self.standardizer.score_to_physical(self.score.function.over(flat).astype(float)).reshape(x.shape)

    def drift(self, x: Samples) -> Samples:
        """Return nu(x) + D(x) s(x) + div D(x) at each state; Phi s(x) with a constant mobility.

        Parameters
        ----------
        x : array, shape (..., var)
            States, in the model's variables.

        Returns
        -------
        array, shape (..., var)
        """
        return self.closure.drift(self._states_like(x))

    def current(self, x: Samples) -> Samples:
        """Return the current velocity nu(x) at each state: the mean velocity there, zero for a reversible model.

        Parameters
        ----------
        x : array, shape (..., var)
            States, in the model's variables.

        Returns
        -------
        array, shape (..., var)
        """
        return self.closure.current(self._states_like(x))

    def diffusion(self, x: Samples) -> np.ndarray:
        """Return the diffusion tensor D(x) at each state; sym(Phi) with a constant mobility.

        Parameters
        ----------
        x : array, shape (..., var)
            States, in the model's variables.

        Returns
        -------
        array, shape (..., var, var)
        """
        return self.closure.diffusion(self._states_like(x))

    def to_model_variables(self, series: TimeSeries) -> TimeSeries:
        """Apply the model's transform to a series like the one the model was fitted to.

        Other names and units of time are refused. Names that only number the variables, and units that are not stated,
        say nothing.

        Parameters
        ----------
        series : TimeSeries
            In the variables of the data.

        Returns
        -------
        TimeSeries
            In the model's variables.
        """
        own = series if self.transform is None else self.transform.apply(series)
        if own.dimension != self.dimension:
            raise DataError(f"The model has {self.dimension} variables, but the series has {own.dimension}.")
        numbered = tuple(f"x{i + 1}" for i in range(self.dimension))
        if own.names != self.names and numbered not in (own.names, self.names):
            raise DataError(
                f"The model describes {listed(self.names)}, but the series has {listed(own.names)}. Give the variables "
                "of the model in its order: `variables=[...]`, or rename them."
            )
        unit, other = (canonical(text) or text for text in (self.time_unit, own.time_unit))
        if unit and other and unit != other:
            raise DataError(
                f"The model counts time in {self.time_unit}, but the series in {own.time_unit}. Read it with "
                f"time_unit={unit!r}."
            )
        for name, unit, other in zip(self.names, self.units, own.units):
            if unit and other and unit != other:
                where = f"{name} is in {unit} in the model, but in {other} in the series"
                warnings.warn(f"{where}: the comparison may mean nothing.", EstimateWarning, stacklevel=3)
        return self.space.declare(own)

    def automatic_step(self, stepper: Stepper | None = None, dt: float | None = None) -> float:
        """Return a step that resolves the stiffest direction of 99 % of the states, and increments over `dt`.

        With hidden variables, also the variance that noise gives the observed ones over `dt`.

        Parameters
        ----------
        stepper : Stepper, optional
            Its `resolution` says how well; default: `default_stepper`.
        dt : float, optional
            Sampling interval of the paths; default: that of the data.

        Returns
        -------
        float
        """
        dt = dt or self.dt
        resolved = simulation.automatic_step(stepper or self.default_stepper, self.stiffness(), dt)
        if not self.space.hidden:
            return resolved
        return min(resolved, dt / (simulation.STEPS_OF_MOTION if self.space.rates else steps_of_noise(self, dt)))

    def stiffness(self) -> float:
        """Return the fastest rate of the equation: 99 % quantile over states.

        At each state, the spectral radius of the drift's Jacobian; where the noise depends on the state, plus the sum
        of the squares of all derivatives of sqrt(2) D^(1/2).
        """
        return self._stiffness

    _stiffness = cached_property(simulation.stiffness)  # it takes as long as many steps

    def timescales(self) -> analysis.Timescales:
        """Return relaxation times, slowest first, and periods of dx = -Phi C^-1 x dt + noise, with their errors.

        Exact for linear dynamics; otherwise the rates at which the model's correlations begin to decay. Slow hops
        between wells take longer: see the integral times of a validation.
        """
        return analysis.relaxation(self._draws())

    def circulation(self) -> analysis.Circulation:
        """Return the rotations of the observed variables by Phi_A: frequencies with errors, planes; or why not."""
        seen = self.space.observed
        draws = self._draws().of_first(seen)
        return analysis.rotations(draws, self.standardizer.std[:seen], "" if self.fields else draws.degenerate)

    def entropy_production(self) -> analysis.EntropyProduction:
        """Return < nu . D^-1 nu > per unit of time, with its error: zero if and only if the model is reversible.

        It is undefined where no noise acts along the current, or cannot be told from none, where the inferred diffusion
        had to be made positive definite, and for a smooth series with a current, whose D is an effective one.
        Velocities change their sign with the direction of time: that x moves with them produces nothing.
        """
        return analysis.produce_entropy(self, self._draws())

    def replicas(self) -> Iterator["LangevinModel"]:
        """Yield the model with each closure from blocks of time drawn with replacement, for errors of predictions."""
        fields = repeat(None) if self.fields is None else self.fields.drawn()
        for phi, drawn in zip(self.mobility.replicas, fields):
            yield replace(self, mobility=replace(self.mobility, matrix=phi), fields=drawn)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file; an existing file is replaced only once the new one is complete.

        Parameters
        ----------
        path : str or path
            File to write.
        """
        storage.write(path, self)

    def summary(self) -> str:
        """Return what the model is, as text: mobility and time scales with their errors."""
        return display.summary(self)

    def _draws(self) -> analysis.Draws:
        """Return Phi and the covariance of the smoothed data, and the same from blocks of time, standardised."""
        phi, phis, covariances = (
            self.standardizer.mobility_to_standard(m)
            for m in (self.mobility.matrix, self.mobility.replicas, self.mobility.covariances)
        )
        known = (phi, self.score.covariance, phis, covariances + self.score.blur)
        return analysis.Draws(*known, self.mobility.evidence.lifted_by, self.mobility.evidence.blocks)

    def _states_like(self, x: Samples) -> Any:
        """Return states as an array of floats; those of JAX, also traced ones, stay as they are."""
        x = x if isinstance(x, jax.Array) else np.asarray(x, float)
        if x.ndim == 0 or x.shape[-1] != self.dimension:
            raise ArgumentError(
                f"Argument `x` must end in an axis of {self.dimension} variables, but got shape {x.shape}."
            )
        return x

    def __getattr__(self, name: str) -> Any:
        """Find names of earlier versions, with a warning."""
        if name not in _RENAMED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        successor, value = _RENAMED[name]
        warnings.warn(f"`model.{name}` is now `{successor}`.", DeprecationWarning, stacklevel=2)
        return value(self)

    def __repr__(self) -> str:
        return display.one_line(self)

    def _repr_html_(self) -> str:
        return display.page(self)


_RENAMED = {
    "unit_labels": ("model.units", lambda model: model.units),
    "transformed": ("model.to_model_variables", lambda model: model.to_model_variables),
    "circles": ("model.space", lambda model: model.space if model.space.angles else None),
    "on_circles": ("effective_langevin.data.preprocess.pointwise.embed_angles", lambda model: embed_angles),
    "settled": ("el.match_variances(model, ...)", lambda model: partial(variance_correction.match_variances, model)),
}


def load(path: str | os.PathLike[str]) -> LangevinModel:
    """Read a model written by `LangevinModel.save`.

    Parameters
    ----------
    path : str or path
        File to read; files of earlier versions are read too.

    Returns
    -------
    LangevinModel

    Examples
    --------
    >>> model = el.load("model.safetensors")  # doctest: +SKIP
    """
    return LangevinModel(**storage.read(path))
