"""Ensemble forecasts of stretches that a model was not learned from, and their energy scores."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from ._core.errors import DivergenceError, EstimateWarning
from ._core.types import Samples
from .data import TimeSeries
from .estimate.space import StateSpace
from .model import LangevinModel
from .statistics.forecast_scores import choose_starts, energy_scores
from .statistics.integral_time import integral_times

_LAGS, _LONGEST_LAG = 5, 64
MEMBERS = 10
_STARTS, _LEAST_STARTS, _MOST_VALUES, _MOST_WORK = 2000, 100, 4e7, 1e9
_FEWEST = 20
_POINTS = 8  # of a field that count as independent, at most


def forecast_skill(model: LangevinModel, series: TimeSeries, seed: int = 0) -> float:
    """Return one minus the energy score of forecasts over that of climatology, mean over lags up to an integral time.

    It is 1 for a perfect forecast, 0 for one like climatology, -inf where members diverge. Climatology draws states of
    the same series, so that no model can improve its skill through it.
    """
    own, units = model.to_model_variables(series), model.standardizer
    space = model.space.in_units_of(units.std)
    forecasts = Forecasts.of(own.map(units.to_standard), space, model.automatic_step())
    ensemble = forecasts.ensemble(replace(model, transform=None))
    if ensemble is None:
        return -np.inf
    scores = forecasts.scores(ensemble)
    return float(1 - np.mean(scores.mean(axis=0) / forecasts.climatology(seed).mean(axis=0)))


@dataclass(frozen=True, eq=False)
class Forecasts:
    """States of a standardised series from which forecasts start, and what came after some lags."""

    series: TimeSeries
    lags: np.ndarray
    states: Samples
    later: Float[np.ndarray, "lag start var"]
    space: StateSpace

    @classmethod
    def of(cls, series: TimeSeries, space: StateSpace, step: float) -> "Forecasts":
        """Start evenly over the series; the longest lag is one integral time, or as short as stretches ask for.

        The finest `step` of the models bounds the number of forecasts. A field has an outcome at each of its points, so
        that fewer forecasts tell as much.
        """
        forgets = float(np.mean(integral_times(space.observe(series).segments, series.dt)) / series.dt)
        stretch = int(np.median([len(segment) for segment in series.segments]))
        longest = int(np.clip(round(forgets), 1, max(1, min(_LONGEST_LAG, stretch // 2))))
        lags = np.unique(np.geomspace(1, longest, _LAGS).round().astype(int))
        values, steps = MEMBERS * series.dimension * (longest + 1), max(1.0, series.dt / step)
        most = min(_MOST_VALUES / values, max(_LEAST_STARTS, _MOST_WORK / (values * steps)))
        wanted = _STARTS / (min(series.dimension / space.channels, _POINTS) if space.channels else 1)
        lengths, states = [len(segment) for segment in series.segments], series.stacked()
        rows = choose_starts(lengths, longest, int(min(wanted, max(most, _FEWEST))))
        return cls(series, lags, states[rows], np.stack([states[rows + lag] for lag in lags]), space)

    def ensemble(self, model: LangevinModel) -> Float[np.ndarray, "member start lag var"] | None:
        """Return ten forecasts of each outcome; None if a member diverges."""
        units, starts = model.standardizer, len(self.states)
        states = np.tile(self.states, (MEMBERS, 1))
        if self.space.errors:
            states = self.space.blur_hidden(states, np.random.default_rng(0).normal(size=states.shape))
        initial = units.to_physical(states)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", EstimateWarning)
                paths = model.simulate(self.series.dt * self.lags[-1], members=len(initial), initial=initial)
        except (DivergenceError, EstimateWarning):
            return None
        found = units.to_standard(np.stack(paths.segments)[:, self.lags])
        return self._embedded(found).reshape(MEMBERS, starts, len(self.lags), -1)

    def scores(self, ensemble: Float[np.ndarray, "member start lag var"]) -> Float[np.ndarray, "start lag"]:
        """Return the energy scores of ensemble forecasts."""
        scores = [energy_scores(ensemble[:, :, k], self._embedded(later)) for k, later in enumerate(self.later)]
        return np.stack(scores, axis=1)

    @property
    def outcomes(self) -> Float[np.ndarray, "start lag var"]:
        return np.moveaxis(self._embedded(self.later), 0, 1)

    def climatology(self, seed: int) -> Float[np.ndarray, "start lag"]:
        """Return the energy scores of forecasts that are states of the series, drawn at random."""
        states = self.series.stacked()
        drawn = np.random.default_rng(seed).integers(len(states), size=(MEMBERS, len(self.states), 1))
        return self.scores(self._embedded(states[drawn.repeat(len(self.lags), axis=2)]))

    def persistence(self) -> Float[np.ndarray, "start lag"]:
        """Return the energy scores of forecasts that are the state at the start: its distance to what came."""
        return np.linalg.norm(self.outcomes - self._embedded(self.states)[:, None], axis=-1)

    def _embedded(self, states: np.ndarray) -> np.ndarray:
        """Return the observed variables, with each angle as a point on its circle."""
        periods = self.space.periods[: self.space.observed]
        parts = [states[..., [i]] for i, period in enumerate(periods) if period is None]
        for i, period in enumerate(periods):
            if period is not None:
                angle, radius = 2 * np.pi * states[..., [i]] / period, period / (2 * np.pi)
                parts += [radius * np.cos(angle), radius * np.sin(angle)]
        return np.concatenate(parts, axis=-1)
