"""The memory of a model: none, velocities or delays, asked for or chosen by forecasts of held-out stretches."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ._core import checks
from ._core.errors import ArgumentError, DataError, EstimateWarning
from .choice import CLOSURES
from .comparison import Comparison, default_leads, score_forecasts, tabulate
from .data import TimeSeries
from .data.preprocess.chain import FittedChain, join
from .data.preprocess.memory import Delays, FittedVelocity, Velocity
from .data.segments import part_at
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
# Share of the error of forecasts without memory: a smaller one is not worth a memory that is less simple.
_SPARED = 0.01
_REASON = (
    "it is the simplest whose held-out forecasts are within one standard error of the best, "
    f"and {100 * _SPARED:g} % of the error without memory"
)
_PARTS, _BLOCKS, _TIMES = 5, 10, 3


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
    standard error of the best, and 1 % of the error without memory, is taken. Every fifth of a short record is held out
    in turn, so that all of it is forecast. Where the diagnosis finds no memory, none is tried.
    """
    if not isinstance(asked, str):
        return asked, None
    if reason := _why_none(diagnosis):
        return None, MemoryChoice("none", reason)
    mean = transformed.stacked().mean(axis=0)
    centred = transformed.map(lambda x: x - mean)
    long = count_independent(centred) >= LEAST_INDEPENDENT
    tried = {name_memory(memory): memory for memory in _candidates(transformed, long)}
    trial = partial(fit_with, mobility=mobility or StateDependent() if long else mobility)
    try:
        found = _compare(tried, _part(series), default_leads(centred), trial, long)
    except DataError as error:
        return None, MemoryChoice("none", f"the forecasts could not be compared ({error})")
    scores = zip(found.names, found.score, found.excess, found.standard_error)
    rows = tuple(Candidate(name, *(float(number) for number in numbers)) for name, *numbers in scores)
    choice = MemoryChoice(found.simplest, _REASON, tuple(found.leads.tolist()), found.starts, rows)
    return tried[choice.kind], choice


def _compare(
    tried: Mapping[str, Memory | None], series: TimeSeries, leads: np.ndarray, trial: Callable[..., Any], long: bool
) -> Comparison:
    """Compare the forecasts with each memory, from all held-out starts together."""
    past = max(m.count * m.lag if isinstance(m, Delays) else m.reach for m in tried.values() if m)
    folds = _folds(series, past + int(leads[-1]), 1 if long else _PARTS)
    unit = series.stacked().std(axis=0)
    scores = [score_forecasts(_fit_each(tried, train, trial), test, leads, unit) for train, test in folds]
    common = [name for name in tried if all(name in fold for fold in scores)]
    joined = {name: np.concatenate([fold[name] for fold in scores]) for name in common}
    return tabulate(joined, leads * series.dt, series.time_unit, _SPARED)


def _fit_each(
    tried: Mapping[str, Memory | None], train: TimeSeries, trial: Callable[..., LangevinModel]
) -> dict[str, LangevinModel]:
    """Fit a model with each memory that the samples allow; one without memory in any case."""
    models: dict[str, LangevinModel] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        for name, memory in tried.items():
            with suppress(ArgumentError, DataError):  # too short, or too many variables for what it needs
                models[name] = trial(train, memory=memory)
        if _NONE not in models:
            models = {_NONE: trial(train, memory=None, mobility=IntegratedResponse()), **models}
    return models


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


def _folds(series: TimeSeries, reach: int, number: int) -> list[tuple[TimeSeries, TimeSeries]]:
    """Return training and held-out parts, so many: the last fifth of each of ten blocks, then the one before.

    Each held-out stretch has the samples of a forecast several times, so that a short record has fewer blocks.
    """
    blocks = int(np.clip(series.n_samples / (_PARTS * _TIMES * reach), 1, _BLOCKS))
    edges, folds = np.linspace(0, series.n_samples, blocks * _PARTS + 1), []
    for k in reversed(range(_PARTS - number, _PARTS)):
        pieces = part_at(series, np.concatenate([edges[k:-1:_PARTS], edges[k + 1 :: _PARTS]]))
        train, test = (series.with_segments(found, places=places) for found, places in pieces)
        folds.append((train, test))
    return folds


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
