"""The choice of a closure: the simplest whose forecasts of held-out stretches are as good as those of the best."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from jaxtyping import Float

from .estimate.closure.evidence import Candidate, ClosureChoice
from .estimate.closure.state_dependent import StateDependent
from .estimate.mobility import IntegratedResponse
from .estimate.mobility.base import ClosureStrategy
from .forecast_skill import Forecasts
from .held_out import LEAST_INDEPENDENT, Trials
from .statistics.resampling import simplest_of_best

# Simplest first.
CLOSURES: dict[str, ClosureStrategy] = {
    "constant": IntegratedResponse(),
    "current": StateDependent(diffusion=False),
    "diffusion": StateDependent(current=False),
    "both": StateDependent(),
}
_GROUPS = 20


def choose_closure(trials: Trials) -> tuple[ClosureStrategy, ClosureChoice]:
    """Return the strategy for a series, with the evidence.

    The richest closure is inferred from the training part first. Where the data call for a constant mobility there, or
    do not allow more, no closures are compared.
    """
    if reason := _why_constant(trials):
        return CLOSURES["constant"], ClosureChoice("constant", reason)
    closure = trials.close(CLOSURES["both"]).mobility.evidence.closure
    kind = closure.kind if closure else "constant"
    if kind == "constant":
        reason = "on stretches left out, no current and no diffusion that depends on the state predicts better"
        return CLOSURES["constant"], ClosureChoice("constant", reason)
    simpler = ["constant", "current", "diffusion"] if kind == "both" else ["constant"]
    tried = {**{name: CLOSURES[name] for name in simpler}, kind: CLOSURES["both"]}
    ensembles = dict(zip(tried, trials.forecast(*tried.values())))
    forecasts = cast(Forecasts, trials.forecasts)
    choice = take_simplest({name: forecasts.scores(found) for name, found in ensembles.items() if found is not None})
    trials.equate(CLOSURES[choice.kind], tried[choice.kind])
    lags = tuple(float(lag * trials.series.dt) for lag in forecasts.lags)
    return CLOSURES[choice.kind], replace(choice, lags=lags, starts=len(forecasts.states))


def _why_constant(trials: Trials) -> str:
    """Say why nothing but a constant mobility can be inferred; empty if more can be tried."""
    if trials.independent < LEAST_INDEPENDENT:
        return f"the series has about {trials.independent:.0f} independent samples, too few for more"
    richest = StateDependent()
    return (
        richest.refusal(trials.series, trials.score, trials.space)
        if richest.supports(trials.space)
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
    chosen, *gaps = simplest_of_best(by_group)
    rows = np.transpose([by_group.mean(axis=1), *gaps]).tolist()
    tried = tuple(Candidate(kind, *row) for kind, row in zip(scores, rows))
    reason = "it is the simplest whose held-out forecasts are within one standard error of the best"
    return ClosureChoice(tried[chosen].kind, reason, candidates=tried)
