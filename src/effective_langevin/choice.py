"""The choice of a closure: the simplest whose forecasts of held-out stretches are as good as those of the best."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from jaxtyping import Float

from .estimate.closure.evidence import Candidate, ClosureChoice
from .estimate.closure.state_dependent import StateDependent
from .estimate.mobility import IntegratedResponse
from .estimate.mobility.base import ClosureFit, ClosureStrategy
from .forecast_skill import Forecasts
from .held_out import LEAST_INDEPENDENT, Trials
from .statistics.joint_tests import StudentNull
from .statistics.resampling import simplest_of_best

# Simplest first.
CLOSURES: dict[str, ClosureStrategy] = {
    "constant": IntegratedResponse(),
    "current": StateDependent(diffusion=False),
    "diffusion": StateDependent(current=False),
    "both": StateDependent(),
}
_GROUPS = 20
_WORSE_CHANCE = 0.01  # of an alarm about a field whose forecasts are as good as those of simpler closures, at most


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
    tried = {**{name: CLOSURES[name] for name in _simpler(kind)}, kind: CLOSURES["both"]}
    choice = _compare(trials, tried)
    trials.equate(CLOSURES[choice.kind], tried[choice.kind])
    return CLOSURES[choice.kind], choice


def check_support(trials: Trials, strategy: ClosureStrategy, found: ClosureFit) -> ClosureChoice | None:
    """Compare the forecasts of fields that were asked for with those of simpler closures, on held-out stretches.

    None where there is nothing to compare: for a constant mobility, for hidden variables, and for currents that are
    learned from velocities, which are chosen on stretches left out.
    """
    closure = found.mobility.evidence.closure
    if not isinstance(strategy, StateDependent) or not closure or closure.kind == "constant" or trials.space.hidden:
        return None
    if trials.independent < LEAST_INDEPENDENT:
        return ClosureChoice(closure.kind, "it was asked for", asked=True, few=trials.independent)
    closure = trials.close(strategy).mobility.evidence.closure if closure.from_correlations else None
    if closure is None or closure.kind == "constant":
        return None
    parts = {"current": replace(strategy, diffusion=False), "diffusion": replace(strategy, current=False)}
    simpler = {name: parts.get(name, CLOSURES["constant"]) for name in _simpler(closure.kind)}
    tried = _compare(trials, {**simpler, closure.kind: strategy})
    return replace(tried, kind=closure.kind, reason="it was asked for", asked=True, better=_better(tried, closure.kind))


def _better(found: ClosureChoice, kind: str) -> str:
    """Return the closure whose forecasts are better than those of a richer kind beyond chance; empty if none is."""
    known = {tried.kind: tried for tried in found.candidates}
    best = min(known, key=lambda name: known[name].loss)
    asked = known[kind]
    if best == kind or not np.isfinite(known[best].loss):
        return ""
    groups = min(_GROUPS, found.starts)
    chance = StudentNull(groups, len(known) - 1).chance(asked.excess / max(asked.standard_error, 1e-12))
    return best if chance < _WORSE_CHANCE or not np.isfinite(asked.loss) else ""


def _simpler(kind: str) -> list[str]:
    """Return the closures that are simpler than one kind."""
    return ["constant", "current", "diffusion"] if kind == "both" else ["constant"]


def _compare(trials: Trials, tried: Mapping[str, ClosureStrategy]) -> ClosureChoice:
    """Forecast held-out stretches with every closure, simplest first; those whose members diverge are out."""
    ensembles = dict(zip(tried, trials.forecast(*tried.values())))
    forecasts = cast(Forecasts, trials.forecasts)
    choice = take_simplest({name: forecasts.scores(found) for name, found in ensembles.items() if found is not None})
    known = {candidate.kind: candidate for candidate in choice.candidates}
    candidates = tuple(known.get(name, Candidate(name, np.inf, np.inf, 0.0)) for name in tried)
    lags = tuple(float(lag * trials.series.dt) for lag in forecasts.lags)
    return replace(choice, lags=lags, starts=len(forecasts.states), candidates=candidates)


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


def take_simplest(scores: Mapping[str, Float[np.ndarray, "start lag"]], spared: float = 0.0) -> ClosureChoice:
    """Take the simplest closure, the first, whose mean score is within one standard error of the best.

    With `spared`, it may be worse by that share of the score of the first as well.
    """
    if not scores:
        return ClosureChoice("constant", "members of every closure diverged in held-out forecasts")
    losses = np.array(list(scores.values()))
    losses = losses / losses[0].mean(axis=0)
    groups = [part.mean(axis=(1, 2)) for part in np.array_split(losses, min(_GROUPS, losses.shape[1]), axis=1)]
    by_group = np.array(groups).T
    chosen, *gaps = simplest_of_best(by_group, spared)
    rows = np.transpose([by_group.mean(axis=1), *gaps]).tolist()
    tried = tuple(Candidate(kind, *row) for kind, row in zip(scores, rows))
    reason = "it is the simplest whose held-out forecasts are within one standard error of the best"
    return ClosureChoice(tried[chosen].kind, reason, candidates=tried)
