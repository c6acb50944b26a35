"""Forecasts: ensembles of paths from given states, seen at given times ahead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from .._core import checks, keys
from .._core.format import after_number, count, listed, rounded, with_unit
from .._core.types import Paths, Samples, Vector
from ..data import TimeSeries
from ..statistics.forecast_scores import member_quantiles
from .simulation import expect_clean, run_model, starting_states, to_series

if TYPE_CHECKING:
    from .langevin import LangevinModel

Propagate = Callable[[Samples, int, jax.Array], Paths]

_MOST_VALUES = 2e7
_WHOLE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """An ensemble of forecasts: `values` (start, member, lead, variable), in the variables and units of the series.

    `leads` are times ahead, `starts` the time of each start and `states` (start, variable) what was observed then. A
    diverged member is NaN at all leads, and left out of the statistics.
    """

    values: Float[np.ndarray, "start member lead var"]
    leads: Float[np.ndarray, " lead"]
    starts: Float[np.ndarray, " start"]
    states: Samples
    names: tuple[str, ...]
    units: tuple[str, ...]
    periods: tuple[float | None, ...]
    time_unit: str = ""
    calendar: str = ""

    @property
    def mean(self) -> Float[np.ndarray, "start lead var"]:
        """Mean of the members; of an angle, its mean direction."""
        means = np.nanmean(self.values, axis=1)
        for i, period in enumerate(self.periods):
            if period:
                turn = period / (2 * np.pi)
                means[..., i] = turn * np.angle(np.nanmean(np.exp(1j * self.values[..., i] / turn), axis=1))
        return means

    @property
    def spread(self) -> Float[np.ndarray, "start lead var"]:
        """Standard deviation of the members."""
        members = np.isfinite(self.values).sum(axis=1)
        return np.sqrt(np.nansum(self.deviations**2, axis=1) / (members - 1))

    @property
    def deviations(self) -> Float[np.ndarray, "start member lead var"]:
        """Members less their mean; of an angle, the shorter way round."""
        return shortest(self.values - self.mean[:, None], self.periods)

    @property
    def diverged(self) -> np.ndarray:
        """Whether a member diverged, (start, member)."""
        return np.logical_not(np.isfinite(self.values).all(axis=(2, 3)))

    def quantiles(self, levels: float | Sequence[float] = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Return quantiles of the members, which hold their share of outcomes for any number of members.

        Parameters
        ----------
        levels : float or sequence of float, default (0.05, 0.5, 0.95)
            Between 0 and 1.

        Returns
        -------
        array, shape (level, start, lead, var)
        """
        levels = [checks.fraction("levels", level) for level in np.atleast_1d(levels).tolist()]
        return self.mean + member_quantiles(np.moveaxis(self.deviations, 1, 0), levels)

    def to_xarray(self, *, dataset: bool = False) -> Any:
        """Convert to xarray, with dates where the data have them.

        Parameters
        ----------
        dataset : bool, default False
            Return a Dataset with one variable (start, member, lead) per name, fields on their grid.

        Returns
        -------
        xarray.DataArray (start, member, lead, variable) or xarray.Dataset
            The coordinate `time` (start, lead) is the time that is forecast.
        """
        from ..data.io.xarray import label_forecast

        return label_forecast(self, dataset=dataset)

    def plot(self, ax: Any = None, *, start: int = 0) -> Any:
        """Draw the forecast of each variable: median, and bands of 50 % and 90 %.

        Parameters
        ----------
        ax : Axes or array of Axes, optional
            Where to draw, one for each variable; by default a new figure.
        start : int, default 0
            Which start to draw.

        Returns
        -------
        array of Axes
        """
        from ..validate.plots import plot_forecast

        one = slice(start, start + 1) if start >= 0 else slice(start, start + 1 or None)
        shown = {name: getattr(self, name)[one] for name in ("values", "starts", "states")}
        return plot_forecast(replace(self, **shown), ax)

    def summary(self) -> str:
        """Return the forecast of the first start, as text: mean and spread at a few leads."""
        shown = np.unique(np.linspace(0, len(self.leads) - 1, 5).astype(int))
        unit = after_number(self.time_unit)
        head = f"{'lead':>12s}  " + "".join(f"{with_unit(n, u):>20s}" for n, u in zip(self.names, self.units))
        rows = [
            f"{rounded(float(self.leads[k])) + unit:>12s}  "
            + "".join(f"{f'{m:.3g} ± {s:.2g}':>20s}" for m, s in zip(self.mean[0, k], self.spread[0, k]))
            for k in shown
        ]
        return "\n".join([repr(self), head, *rows])

    def __repr__(self) -> str:
        starts, members = self.values.shape[:2]
        lost = f"; {int(self.diverged.sum())} diverged" if self.diverged.any() else ""
        longest = f"{rounded(float(self.leads[-1]))}{after_number(self.time_unit)}"
        ahead = f"{count(len(self.leads), 'lead')} up to {longest}"
        return f"Forecast({listed(self.names)}; {count(starts, 'start')}, {count(members, 'member')}, {ahead}{lost})"


def shortest(differences: np.ndarray, periods: Sequence[float | None]) -> np.ndarray:
    """Return differences (..., var) with those of angles the shorter way round."""
    if not any(periods):
        return differences
    turns = np.array([period or np.inf for period in periods])
    return differences - np.where(np.isfinite(turns), turns, 0.0) * np.round(differences / turns)


def count_leads(leads: float | Sequence[float] | np.ndarray, dt: float) -> np.ndarray:
    """Return times ahead as numbers of sampling intervals; one number stands for all intervals up to it."""
    given = np.atleast_1d(np.asarray(leads, float))
    steps = np.rint(given / dt)
    if given.ndim > 1 or not given.size or not (np.abs(given / dt - steps) < _WHOLE * steps).all():
        hint = f"Leads are times: the sampling interval is {dt:g}."
        raise checks.refused("leads", f"positive multiples of {dt:g}, rising", leads, hint)
    steps = steps.astype(int)
    if np.ndim(leads) == 0:
        return np.arange(1, steps[0] + 1)
    if (np.diff(steps) <= 0).any():
        raise checks.refused("leads", f"positive multiples of {dt:g}, rising", leads)
    return steps


class ForecastMethods:
    """The method of a model that forecasts."""

    def forecast(
        self: Any,
        states: Samples | TimeSeries,
        leads: float | Sequence[float],
        *,
        members: int = 100,
        seed: int = 0,
        start: float | Sequence[float] | None = None,
    ) -> Forecast:
        """Forecast from given states: an ensemble at given times ahead, in the variables of the series.

        Measurement noise is added where `fit` found it, so that forecasts are those of new observations.

        Parameters
        ----------
        states : array, shape (var,), (start, var) or (start, time, var), or TimeSeries
            States in the variables of the series, or the past up to then, for a model with delays. Of a series, the
            last state of every record, with its date.
        leads : float or sequence of float
            Times ahead, in the unit of time of the series, multiples of its `dt`; a number stands for all of them up
            to it.
        members : int, default 100
            Members of each ensemble.
        seed : int, default 0
            Seed of the noise.
        start : float or sequence of float, optional
            Time of the states, for models that know a season or a trend; default: the start of the record.

        Returns
        -------
        Forecast
            With `values` (start, member, lead, var), `mean`, `spread`, `quantiles`, `to_xarray` and `plot`.

        Examples
        --------
        >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, seed=1)
        >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
        >>> found = model.forecast([[1.0, 0.0], [0.0, 1.0]], leads=[0.1, 0.5, 1.0], members=200)
        >>> found
        Forecast(x1 and x2; 2 starts, 200 members, 3 leads up to 1)
        >>> found.mean.shape
        (2, 3, 2)
        """
        model: LangevinModel = self
        steps = count_leads(leads, model.dt)
        members = checks.integer_at_least("members", members, 2)
        if isinstance(states, TimeSeries):
            checks.not_given("start", start, "the series says when it ends.")
            own = model.to_model_variables(states)
            last = dict(zip(own.records, zip(own.segments, own.times)))
            ends, begin = zip(*((segment[-1], times[-1]) for segment, times in last.values()))
            standard = model.standardizer.to_standard(np.stack(ends))
        else:
            past = np.asarray(states, float)
            past = past[None] if past.ndim == 1 else past
            begin = checks.number_or_numbers("start", model.start if start is None else start, len(past), "start")
            standard = starting_states(model, past, len(past), begin, keys.key_from_seed(seed), name="states")
        return forecast_from(model, standard, np.array(begin), steps, members=members, seed=seed)


def forecast_from(
    model: "LangevinModel",
    states: Samples,
    starts: Vector,
    steps: np.ndarray,
    *,
    members: int,
    seed: int,
    propagate: Propagate | None = None,
) -> Forecast:
    """Forecast from standardised states at the times `starts`, over so many sampling intervals.

    `propagate` replaces the model by another way to go on from standardised states. Starts come in blocks that bound
    the memory: only the leads asked for are kept.
    """
    key, frames = keys.key_from_seed(seed), int(steps[-1])
    size, one = float(len(states)) * members * len(steps), float(members) * (frames + 1)
    hint = "Ask for fewer members, fewer starts or shorter leads."
    checks.fits_in_memory(8.0 * model.dimension * max(size, one), f"{max(size, one):.3g} states of a forecast", hint)
    block = max(1, int(_MOST_VALUES / (members * (frames + 1) * model.dimension)))
    parts = []
    for number, first in enumerate(range(0, len(states), block)):
        some, own_key = slice(first, first + block), keys.named(key, f"starts {number}")
        begin = np.repeat(states[some], members, axis=0)
        paths = propagate(begin, frames, own_key) if propagate else _run(model, begin, frames, own_key)
        lost = np.logical_not(np.isfinite(paths[:, -1]).all(axis=1))
        paths = np.where(lost[:, None, None], 0.0, paths)
        values = _in_data_variables(model, paths, np.repeat(starts[some], members))[:, steps]
        values[lost] = np.nan
        parts.append(values.reshape(-1, members, *values.shape[1:]))
    of = model.transform
    labels = (model.names, model.units, model.space.periods) if of is None else (of.names, of.units, of.periods)
    observed = _in_data_variables(model, np.repeat(states[:, None], 2, axis=1), starts)[:, 0]
    return Forecast(np.concatenate(parts), steps * model.dt, starts, observed, *labels, model.time_unit, model.calendar)


def _in_data_variables(model: "LangevinModel", paths: Paths, starts: Vector) -> Paths:
    """Return standardised paths that begin at the times `starts` in the variables of the data, transforms undone."""
    if model.transform is None and not model.space.angles:
        return model.standardizer.to_physical(paths.astype(float))
    own = to_series(model, paths, model.dt, starts, denoise=False)
    return np.stack((own if model.transform is None else model.transform.invert(own)).segments)


def _run(model: "LangevinModel", states: Samples, frames: int, key: jax.Array) -> Paths:
    """Simulate the model from observed states; a diverged member is NaN."""
    if model.space.errors:
        drawn = np.asarray(jax.random.normal(keys.named(key, "hidden"), states.shape))
        states = model.space.in_units_of(model.standardizer.std).blur_hidden(states, drawn)
    ensemble, _ = run_model(model, _with_noise(model, states, key), frames, dt=model.dt, key=key)
    return ensemble.paths if model.score.resolved else expect_clean(model, ensemble.paths)


def _with_noise(model: "LangevinModel", states: Samples, key: jax.Array) -> Samples:
    """Move observed states by measurement noise, where it was found: y + nu^2 s(y) + nu sqrt(2 - nu^2) xi.

    The state beneath an observation is known up to its noise, and what will be observed has noise, too. The move
    leaves the steady state as it is. For a Gaussian, and noise in proportion to the spread, forecasts are then exact:
    their mean is damped by 1 - nu^2 and their variance is that of the observations at every lead.
    """
    noise = model.mobility.evidence.measurement_noise
    if noise is None or not np.any(noise):
        return states
    drawn = np.asarray(jax.random.normal(keys.named(key, "measurement"), states.shape))
    square = np.square(noise)
    scores = model.score.function.over(states).astype(float)
    return states + square * scores + np.sqrt(square * (2 - square)) * drawn
