"""The choice of a closure: the simplest whose forecasts of held-out stretches are as good as those of the best."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Float

from ._core.errors import EstimateWarning
from .data import TimeSeries
from .estimate.closure.evidence import Candidate, ClosureChoice
from .estimate.closure.state_dependent import StateDependent
from .estimate.mobility import IntegratedResponse
from .estimate.mobility.base import ClosureFit, ClosureStrategy
from .estimate.score import ScoreFit
from .estimate.space import StateSpace
from .forecast_skill import Forecasts
from .model import LangevinModel
from .statistics.integral_time import integral_times

# Simplest first.
CLOSURES: dict[str, ClosureStrategy] = {
    "constant": IntegratedResponse(),
    "current": StateDependent(diffusion=False),
    "diffusion": StateDependent(current=False),
    "both": StateDependent(),
}
_LEAST_INDEPENDENT = 100
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
    forecasts = Forecasts.of(held_out, space, min(model.automatic_step() for model in models.values()))
    scores = {name: forecasts.scores(model) for name, model in models.items()}
    choice = take_simplest({name: found for name, found in scores.items() if found is not None})
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


def take_simplest(scores: Mapping[str, Float[np.ndarray, "start lag"]]) -> ClosureChoice:
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
