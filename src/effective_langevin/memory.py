"""The memory of a model: none, velocities or delays, asked for or chosen by forecasts of held-out stretches."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from ._core import checks
from ._core.errors import ArgumentError, DataError, EstimateWarning
from .choice import CLOSURES
from .comparison import compare, default_leads
from .data import TimeSeries
from .data.preprocess.chain import FittedChain, join
from .data.preprocess.memory import Delays, FittedVelocity, Velocity
from .diagnose import Diagnosis
from .estimate.closure.evidence import Candidate, MemoryChoice
from .estimate.closure.state_dependent import StateDependent
from .estimate.mobility import IntegratedResponse
from .estimate.mobility.base import ClosureStrategy
from .estimate.space import StateSpace
from .held_out import LEAST_INDEPENDENT, count_independent
from .model import LangevinModel
from .statistics.regime import classify_short_times

AUTO, _NONE = "auto", "none"
Memory = Velocity | Delays

_FORM = '"velocity", "velocity:N", "delays:N" or "delays:N:LAG", "auto", el.Velocity() or el.Delays(n, lag)'
_MOST_TRIED = 100_000  # samples from which the choice is made
_WINDOWS = (1.0, 2.0)  # of delays, in units of the time over which a smooth variable moves by its spread
_COPIES = 5
_ROUGH = (Delays(1), Delays(3))  # of a series that is not smooth
_HELD_OUT, _STRETCHES, _TIMES = 0.2, 10, 3


def as_memory(given: Memory | str | None) -> Memory | str | None:
    """Return the argument `memory` of `fit`: None, a transform, or "auto"."""
    if given is None or isinstance(given, Velocity | Delays) or given == AUTO:
        return given
    if given == _NONE:
        return None
    if isinstance(given, str):
        name, *given_numbers = given.split(":")
        if all(n.isdecimal() and int(n) > 0 for n in given_numbers):
            numbers = [int(n) for n in given_numbers]
            if name == "velocity" and len(numbers) <= 1:
                return Velocity(*numbers)
            if name == "delays" and 1 <= len(numbers) <= 2:
                return Delays(*numbers)
    raise checks.refused("memory", _FORM, given)


def name_memory(memory: Memory | None) -> str:
    """Return the name of a memory on the command line; "none" for none."""
    if memory is None:
        return _NONE
    if isinstance(memory, Velocity):
        return f"velocity:{memory.order}" if memory.order > 1 else "velocity"
    return f"delays:{memory.count}:{memory.lag}"


def check_memory(memory: Memory | str | None, series: TimeSeries, space: StateSpace, mobility: object) -> None:
    """Refuse what has no memory of this kind: angles, fields with a symmetry, and a constant mobility beside v."""
    if memory is None:
        return
    if space.angles:
        named = ", ".join(series.names[k] for k in space.angles)
        hint = f"Put el.preprocess.Periodic() into `preprocess` first: it makes cos and sin of {named}."
        raise ArgumentError(f"Argument `memory` must be None for variables that are angles. {hint}")
    if space.channels:
        raise ArgumentError("Argument `memory` must be None with a `symmetry`: fields have no hidden variables here.")
    if _has_inertia(memory) and not (mobility is None or isinstance(mobility, StateDependent)):
        kind = type(mobility).__name__
        hint = "Leave it out: no noise acts on x, whose velocity is known."
        raise ArgumentError(f"Argument `mobility` must be None or StateDependent() with velocities, not {kind}. {hint}")


def remember(
    memory: Memory | None, transform: FittedChain | None, series: TimeSeries, space: StateSpace
) -> tuple[FittedChain | None, TimeSeries, StateSpace]:
    """Add hidden variables to a transformed series, as one more step of its transform."""
    if memory is None:
        return transform, series, space
    if isinstance(memory, Velocity) and not classify_short_times(series.segments).ballistic:
        warnings.warn(
            "The series is not smooth at its sampling interval, so that its velocity is mostly noise. Use "
            '`memory="auto"`, or a finer sampling.',
            EstimateWarning,
            stacklevel=3,
        )
    fitted = memory.fit(series)
    longer = fitted.apply(series)
    errors = fitted.errors.tolist() if isinstance(fitted, FittedVelocity) and _has_inertia(memory) else ()
    own = StateSpace.of(longer, space.symmetry).with_hidden(series.dimension, errors)
    return join([*(transform.steps if transform else ()), fitted]), longer, own


def choose_memory(
    asked: Memory | str | None,
    series: TimeSeries,
    transformed: TimeSeries,
    diagnosis: Diagnosis | None,
    mobility: ClosureStrategy | None,
    fit_with: Callable[..., LangevinModel],
) -> tuple[Memory | None, MemoryChoice | None]:
    """Return the memory that is asked for, or, for "auto", the one that suits the series, with the evidence.

    Models with each memory, and a closure that depends on the state where the record is long enough for one, are fitted
    without some stretches. They forecast the observed variables there, all from the same times. The simplest within one
    standard error of the best is taken. Where the diagnosis finds no memory, none is tried.
    """
    if not isinstance(asked, str):
        return asked, None
    if reason := _why_none(diagnosis):
        return None, MemoryChoice("none", reason)
    mean = transformed.stacked().mean(axis=0)
    centred = transformed.map(lambda x: x - mean)
    long = count_independent(centred) >= LEAST_INDEPENDENT
    tried = {name_memory(memory): memory for memory in _candidates(transformed, long)}
    train, test = _split(_part(series), centred, [memory for memory in tried.values() if memory])
    mobility = mobility or StateDependent() if long else mobility
    models: dict[str, LangevinModel] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        for name, memory in tried.items():
            with suppress(ArgumentError, DataError):  # too short, or too many variables for what it needs
                models[name] = fit_with(train, memory=memory, mobility=mobility)
        if _NONE not in models:
            models = {_NONE: fit_with(train, memory=None, mobility=IntegratedResponse()), **models}
        try:
            found = compare(models, test)
        except DataError as error:
            return None, MemoryChoice("none", f"the forecasts could not be compared ({error})")
    scores = zip(found.names, found.score, found.excess, found.standard_error)
    reason = "it is the simplest whose held-out forecasts are within one standard error of the best"
    rows = tuple(Candidate(name, *(float(number) for number in numbers)) for name, *numbers in scores)
    choice = MemoryChoice(found.simplest, reason, tuple(found.leads.tolist()), found.starts, rows)
    return tried[choice.kind], choice


def _why_none(diagnosis: Diagnosis | None) -> str:
    """Say why no memory is tried; empty if it should be."""
    known = {finding.name: finding for finding in diagnosis.findings} if diagnosis else {}
    if "Markov test" in known and known["Markov test"].level == "ok":
        return "given the present, the past adds nothing that the Markov test of the diagnosis could see"
    return ""


def _candidates(series: TimeSeries, long: bool) -> list[Memory | None]:
    """Return what is tried, simplest first: derivatives of a smooth series, and delays over about its fast time.

    One delay is tried as well where a series moves by its spread within a few samples, before the velocity, which is
    not well known there. Of a series that is not smooth, or not long enough for a closure that depends on the state, a
    few delays are tried.
    """
    if not (long and classify_short_times(series.segments).ballistic):
        return [None, *_ROUGH]
    steps = np.concatenate([np.diff(s.astype(float), axis=0) for s in series.segments if len(s) > 1])
    fast = float(np.mean(series.stacked().std(axis=0) / np.sqrt((steps**2).mean(axis=0))))
    lags = dict.fromkeys(max(1, round(window * fast / _COPIES)) for window in _WINDOWS)
    coarse = _ROUGH[:1] if min(lags) == 1 else ()
    return [None, *coarse, Velocity(), Velocity(2), *(Delays(_COPIES, lag) for lag in lags)]


def _split(series: TimeSeries, centred: TimeSeries, tried: Sequence[Memory]) -> tuple[TimeSeries, TimeSeries]:
    """Hold out ten stretches, fewer of a short record: each holds the past of a state and its future several times."""
    past = max(m.count * m.lag if isinstance(m, Delays) else m.reach for m in tried)
    ahead = default_leads(centred)[-1]
    blocks = _HELD_OUT * series.n_samples / (_TIMES * (past + ahead))
    return series.split(_HELD_OUT, int(np.clip(blocks, 1, _STRETCHES)))


def _part(series: TimeSeries) -> TimeSeries:
    """Return the series, or a part of a long one: its first segments."""
    sizes = np.cumsum([len(segment) for segment in series.segments])
    count = int(np.searchsorted(sizes, _MOST_TRIED)) + 1
    if count < len(series.segments):
        places = list(zip(series.records, series.starts))[:count]
        return series.with_segments(series.segments[:count], places=places)
    return series


def closure_with(memory: Memory | None, mobility: ClosureStrategy | None) -> ClosureStrategy | None:
    """Return the closure asked for; beside velocities, a current is the only one."""
    return CLOSURES["current"] if isinstance(memory, Velocity) and mobility is None else mobility


def _has_inertia(memory: Memory | str | None) -> bool:
    """Tell whether the state is (x, v), with forces and noise on v alone."""
    return isinstance(memory, Velocity) and memory.order == 1
