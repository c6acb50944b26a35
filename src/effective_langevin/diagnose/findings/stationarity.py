"""Findings on change: stationarity and seasonality."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..._core.format import listed, measured, percent
from ...data import TimeSeries
from ...data.angles import find_unwrapped
from ...statistics.stationarity_tests import UNIT_ROOT
from ..moments import SeriesMoments
from ..seasonality import Seasonality
from ..stationarity import Stationarity
from ..thresholds import THRESHOLDS
from .finding import Finding, Quantity

# What each feature is called, and how its drift is written.
_FEATURES = {
    "mean": ("mean", lambda drift: f"{measured(drift)} standard deviations"),
    "log_spread": ("standard deviation", lambda drift: f"{percent(drift)} of itself"),
    "autocorrelation": ("autocorrelation", measured),
    "log_motion": ("step size", lambda drift: f"{percent(drift)} of itself"),
}
# The verb and the advice for each grouping.
_GROUPINGS = {
    "along the record": ("drifts", "Fit a stretch without the drift, or add its cause as a variable."),
    "between records": (
        "differs",
        "The records do not come from one process. Fit them separately, or find out what differs.",
    ),
    "since the start": ("changes", "The records have not settled. Leave out their first part."),
}


class _Alarm(NamedTuple):
    p_value: float
    drift: float
    feature: str
    variable: str
    grouping: str


def stationarity(moments: SeriesMoments, found: Stationarity) -> Finding:
    """One finding out of all comparisons; a random walk comes first."""
    numbers, alarms = _numbers(moments, found), _alarms(moments, found)
    if (found.unit_root > UNIT_ROOT).any():
        return _random_walk(moments, found, alarms, numbers)
    if alarms:
        return _drifting(alarms, numbers)
    if (found.remaining > THRESHOLDS.undecayed).any():
        meaning = (
            f"The memory outlasts the records: {percent(float(found.remaining.max()))} of the correlation is left at "
            "the longest lag. Such records do not distinguish a random walk from a stationary process."
        )
        return Finding("stationarity", "warning", meaning, "Use longer records.", numbers)
    if not any(c.names[0] == "mean" for c in found.comparisons):
        meaning = "The record is too short, compared with its integral times, to test whether it is stationary."
        return Finding("stationarity", "note", meaning, "Make sure by other means, or record for longer.", numbers)
    where = listed(list(dict.fromkeys(c.grouping for c in found.comparisons)))
    meaning = (
        f"Mean, spread, autocorrelation and step size are the same {where}, "
        f"within errors ({found.tests} tests, corrected p = {found.corrected_p:.2g})."
    )
    return Finding("stationarity", "ok", meaning, "", numbers)


def _numbers(moments: SeriesMoments, found: Stationarity) -> dict[str, Quantity]:
    drifts: dict[str, list] = {}
    for c in found.comparisons:
        for name, values in zip(c.names, c.drifts):
            drifts.setdefault(f"{name}_drift", []).append(values)
    return {
        **{name: Quantity(np.max(values, axis=0)) for name, values in drifts.items()},
        "integral_times_in_record": Quantity(moments.series.duration / moments.times),
        "local_integral_times": Quantity(found.local_times, unit=moments.series.time_unit),
        "dickey_fuller": Quantity(found.unit_root),
        "corrected_p": Quantity(found.corrected_p),
    }


def _alarms(moments: SeriesMoments, found: Stationarity) -> list[_Alarm]:
    """Every significant difference, the most significant first."""
    return sorted(
        _Alarm(float(p), float(c.drifts[k, i]), c.names[k], moments.series.names[i], c.grouping)
        for c in found.comparisons
        for (k, i), p in np.ndenumerate(c.p_values)
        if p < found.chance
    )


def _random_walk(moments: SeriesMoments, found: Stationarity, alarms: list[_Alarm], numbers: dict) -> Finding:
    walks = found.unit_root > UNIT_ROOT
    worst = int(np.argmax(np.where(walks, found.unit_root, -np.inf)))
    names = [name for name, walk in zip(moments.series.names, walks) if walk]
    meaning = (
        f"Probably not stationary: {listed(names)} {'does' if len(names) == 1 else 'do'} not keep returning to a "
        f"mean. The record is only {measured(moments.series.duration / moments.times[worst])} integral times long, and "
        f"the Dickey-Fuller statistic is {measured(found.unit_root[worst])}, not below {UNIT_ROOT:g} as for a "
        f"stationary record. A random walk, a trend, or a memory as long as the record look like this.{_also(alarms)}"
    )
    advice = (
        "Do not fit this as it is. Remove the trend with `preprocess=[el.preprocess.Detrend()]`, model the increments, "
        "or record ten times longer."
    )
    return Finding("stationarity", "stop", meaning, advice, numbers)


def _drifting(alarms: list[_Alarm], numbers: dict[str, Quantity]) -> Finding:
    first = alarms[0]
    word, written = _FEATURES[first.feature]
    verb, advice = _GROUPINGS[first.grouping]
    others = [a for a in alarms if (a.feature, a.variable) != (first.feature, first.variable)]
    meaning = (
        f"Not stationary: the {word} of {first.variable} {verb} {first.grouping} by about {written(first.drift)}, "
        f"beyond what its memory explains (p = {first.p_value:.1g}).{_also(others)}"
    )
    largest = max(a.drift for a in alarms if a.feature != "autocorrelation" or a.drift < 1)
    small, large = THRESHOLDS.drift
    level = "note" if largest < small else "stop" if largest > large else "warning"
    if first.feature == "mean" and first.grouping == "along the record":
        advice += " `preprocess=[el.preprocess.Detrend()]` removes a trend of the mean."
    return Finding("stationarity", level, meaning, advice, numbers)


def offer_angles(finding: Finding, series: TimeSeries) -> Finding:
    """Offer to declare variables that may be angles counted over many turns, where the series is not stationary."""
    turns = find_unwrapped(series) if finding.level in ("warning", "stop") else {}
    if not turns:
        return finding
    period, written = ("360", "360") if max(turns.values()) > 10 else ("2 pi", "2 * np.pi")
    declared = ", ".join(f'"{name}": {written}' for name in turns)
    advice = (
        f"If {listed(list(turns))} {'is an angle' if len(turns) == 1 else 'are angles'} (many turns of {period}), "
        f"declare it: `el.TimeSeries(..., periods={{{declared}}})`. {finding.advice}"
    )
    return replace(finding, advice=advice)


def _also(alarms: list[_Alarm]) -> str:
    others = list(dict.fromkeys(f"the {_FEATURES[a.feature][0]} of {a.variable}" for a in alarms))
    return f" Not constant either: {listed(others)}." if others else ""


def seasonality(moments: SeriesMoments, found: Seasonality) -> Finding:
    """Lines in the spectrum of the variables or of their squares."""
    unit, names, lines = moments.series.time_unit, moments.series.names, found.lines
    numbers = {
        "periods": Quantity([line.period for line in lines], [line.period_error for line in lines], unit),
        "shares_of_variance": Quantity([line.share for line in lines]),
        "variables": Quantity([names[line.variable] for line in lines]),
        "of_square": Quantity([line.of_square for line in lines]),
        "steady": Quantity([line.steady for line in lines]),
        "window": Quantity(found.window, unit=unit),
    }
    if not lines:
        meaning = f"No spectral line with a period below {measured(found.window / 4, None, unit)}."
        meaning = meaning if found.examined else "The records are too short to look for cycles."
        return Finding("seasonality", "ok", meaning, "", numbers)
    what = listed(
        [
            f"period {measured(line.period, line.period_error, unit)} in {'the variance of ' * line.of_square}"
            f"{names[line.variable]} ({percent(line.share)} of its fluctuations)"
            for line in lines
        ],
        2,
    )
    first = lines[0]
    if not first.steady:
        meaning = f"A narrow peak in the spectrum: {what}. Its strength varies: a resonance, not a fixed cycle."
        return Finding("seasonality", "note", meaning, "Nothing, unless you know of a cycle of that period.", numbers)
    phase = f"add its phase with `preprocess=[el.preprocess.PhaseAugmentation({first.period:.6g})]`"
    advice = (
        f"Divide by the spread of each phase, or {phase}."
        if first.of_square
        else f"Remove it with `preprocess=[el.preprocess.RemoveSeasonalCycle({first.period:.6g})]`, or {phase}."
    ) + " Give the exact period if you know it."
    level = "warning" if first.share > THRESHOLDS.cycle_share else "note"
    return Finding("seasonality", level, f"There is a cycle: {what}.", advice, numbers)
