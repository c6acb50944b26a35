"""The choice of a closure: the simplest whose forecasts of held-out stretches are as good as those of the best."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float

from ._core.errors import DivergenceError, EstimateWarning
from ._core.types import Samples, Vector
from .data import TimeSeries
from .estimate.closure.evidence import Candidate, ClosureChoice
from .estimate.closure.state_dependent import StateDependent
from .estimate.mobility import IntegratedResponse
from .estimate.mobility.base import ClosureFit, ClosureStrategy
from .estimate.score import ScoreFit
from .estimate.space import StateSpace
from .model import LangevinModel
from .statistics.forecast_scores import energy_scores
from .statistics.integral_time import integral_times

# Simplest first.
CLOSURES: dict[str, ClosureStrategy] = {
    "constant": IntegratedResponse(),
    "current": StateDependent(diffusion=False),
    "diffusion": StateDependent(current=False),
    "both": StateDependent(),
}
_LEAST_INDEPENDENT = 100
_LAGS, _LONGEST_LAG = 5, 64
_MEMBERS, _STARTS, _LEAST_STARTS, _MOST_VALUES, _MOST_WORK = 10, 2000, 100, 4e7, 1e9
_GROUPS = 20


def choose_closure(
    series: TimeSeries,
    score: ScoreFit,
    space: StateSpace,
    model_of: Callable[[ClosureFit], LangevinModel],
    *,
    key: jax.Array,
) -> tuple[ClosureStrategy, ClosureChoice]:
    """Return the strategy for a standardised series, with the evidence.

    The richest closure is inferred from the training part first. Where the data call for a constant mobility there, or
    do not allow more, nothing is forecast. `model_of` returns the model with a closure.
    """
    train, held_out = series.split()

    def close(kind: str) -> ClosureFit:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EstimateWarning)  # the closure that is taken warns for itself
            return CLOSURES[kind].close(train, score, space, key=key)

    if reason := _why_constant(series, score, space):
        return CLOSURES["constant"], ClosureChoice("constant", reason)
    richest = close("both")
    closure = richest.mobility.evidence.closure
    kind = closure.kind if closure else "constant"
    if kind == "constant":
        reason = "on stretches left out, no current and no diffusion that depends on the state predicts better"
        return CLOSURES["constant"], ClosureChoice("constant", reason)
    simpler = ["constant", "current", "diffusion"] if kind == "both" else ["constant"]
    tried = {**{name: close(name) for name in simpler}, kind: richest}
    models = {name: model_of(closure) for name, closure in tried.items()}
    forecasts = _Forecasts.of(held_out, space, min(model.automatic_step() for model in models.values()))
    scores = {name: forecasts.scores(model) for name, model in models.items()}
    choice = compare({name: found for name, found in scores.items() if found is not None})
    lags = tuple(float(lag * series.dt) for lag in forecasts.lags)
    return CLOSURES[choice.kind], replace(choice, lags=lags, starts=len(forecasts.states))


def _why_constant(series: TimeSeries, score: ScoreFit, space: StateSpace) -> str:
    """Say why nothing but a constant mobility can be inferred; empty if more can be tried."""
    independent = series.n_samples * series.dt / (2 * integral_times(series.segments, series.dt).max())
    if independent < _LEAST_INDEPENDENT:
        return f"the series has about {independent:.0f} independent samples, too few for more"
    richest = StateDependent()
    return (
        richest.refusal(series, score, space)
        if richest.supports(space)
        else "fields of several angles are not inferred"
    )


def compare(scores: Mapping[str, Float[np.ndarray, "start lag"]]) -> ClosureChoice:
    """Take the simplest closure, the first, whose mean score is within one standard error of the best."""
    if not scores:
        return ClosureChoice("constant", "members of every closure diverged in held-out forecasts")
    losses = np.array(list(scores.values()))
    losses = losses / losses[0].mean(axis=0)
    groups = [part.mean(axis=(1, 2)) for part in np.array_split(losses, min(_GROUPS, losses.shape[1]), axis=1)]
    by_group = np.array(groups).T
    best = int(by_group.mean(axis=1).argmin())
    gaps = by_group - by_group[best]
    errors = gaps.std(axis=1, ddof=1) / np.sqrt(gaps.shape[1])
    tried = tuple(
        Candidate(kind, float(loss), float(gap), float(error))
        for kind, loss, gap, error in zip(scores, by_group.mean(axis=1), gaps.mean(axis=1), errors)
    )
    chosen = next(candidate.kind for candidate in tried if candidate.excess <= candidate.standard_error)
    reason = "it is the simplest whose held-out forecasts are within one standard error of the best"
    return ClosureChoice(chosen, reason, candidates=tried)


@dataclass(frozen=True, eq=False)
class _Forecasts:
    """States of a standardised series from which forecasts start, and what came after some lags."""

    series: TimeSeries
    lags: np.ndarray
    states: Samples
    later: Float[np.ndarray, "lag start var"]
    periods: tuple[float | None, ...]

    @classmethod
    def of(cls, series: TimeSeries, space: StateSpace, step: float) -> "_Forecasts":
        """Start evenly over the series; the longest lag is one integral time, or as short as stretches ask for.

        The finest `step` of the models bounds the number of forecasts.
        """
        forgets = float(np.mean(integral_times(series.segments, series.dt)) / series.dt)
        stretch = int(np.median([len(segment) for segment in series.segments]))
        longest = int(np.clip(round(forgets), 1, max(1, min(_LONGEST_LAG, stretch // 2))))
        lags = np.unique(np.geomspace(1, longest, _LAGS).round().astype(int))
        values, steps = _MEMBERS * series.dimension * (longest + 1), max(1.0, series.dt / step)
        most = min(_MOST_VALUES / values, max(_LEAST_STARTS, _MOST_WORK / (values * steps)))
        first, later = _pairs(series, lags, int(min(_STARTS, max(most, _GROUPS))))
        return cls(series, lags, first, later, space.periods)

    def scores(self, model: LangevinModel) -> Float[np.ndarray, "start lag"] | None:
        """Return the energy scores of ensemble forecasts; None if a member diverges."""
        units, starts = model.standardizer, len(self.states)
        initial = np.tile(units.to_physical(self.states), (_MEMBERS, 1))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", EstimateWarning)
                paths = model.simulate(self.series.dt * self.lags[-1], members=len(initial), initial=initial)
        except (DivergenceError, EstimateWarning):
            return None
        found = units.to_standard(np.stack(paths.segments)[:, self.lags])
        ensemble = self._embedded(found).reshape(_MEMBERS, starts, len(self.lags), -1)
        scores = [energy_scores(ensemble[:, :, k], self._embedded(later)) for k, later in enumerate(self.later)]
        return np.stack(scores, axis=1)

    def _embedded(self, states: np.ndarray) -> np.ndarray:
        """Return states with each angle as a point on its circle."""
        parts = [states[..., [i]] for i, period in enumerate(self.periods) if period is None]
        for i, period in enumerate(self.periods):
            if period is not None:
                angle, radius = 2 * np.pi * states[..., [i]] / period, period / (2 * np.pi)
                parts += [radius * np.cos(angle), radius * np.sin(angle)]
        return np.concatenate(parts, axis=-1)


def _pairs(series: TimeSeries, lags: Vector, most: int) -> tuple[Samples, np.ndarray]:
    """Return at most so many states, spread evenly over the series, and those that follow after each lag."""
    lengths = np.array([len(segment) for segment in series.segments])
    begin = np.cumsum(lengths) - lengths
    allowed = np.concatenate([np.arange(b, b + n - lags[-1]) for b, n in zip(begin, lengths)])
    rows = allowed[np.linspace(0, len(allowed) - 1, min(most, len(allowed))).astype(int)]
    states = series.stacked()
    return states[rows], np.stack([states[rows + lag] for lag in lags])
