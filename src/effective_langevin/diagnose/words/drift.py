"""Findings on change: stationarity and seasonality."""

import numpy as np

from ..._core.format import listed, measured, percent
from ..findings.finding import Finding, Quantity
from ..seasonality import Line, Seasonality
from ..stationarity import Stationarity
from ..survey import Survey
from ..unit_root import UNIT_ROOT

_SMALL, _LARGE = 0.05, 0.5  # drifts, in standard deviations or relative
_UNDECAYED = 0.3
_SHARE = 0.01
_WORDS = {
    "mean": ("mean", "{} standard deviations"),
    "log_spread": ("standard deviation", "{} of itself"),
    "autocorrelation": ("autocorrelation", "{}"),
    "log_motion": ("size of the steps", "{} of itself"),
}


def stationarity(survey: Survey, found: Stationarity) -> Finding:
    """One finding out of all comparisons; a random walk comes first."""
    numbers = _numbers(survey, found)
    alarms = _alarms(survey, found)
    if (found.unit_root > UNIT_ROOT).any():
        return _random_walk(survey, found, alarms, numbers)
    if alarms:
        return _drifting(alarms, numbers)
    if (found.remaining > _UNDECAYED).any():
        meaning = (
            f"The memory outlasts the records: {percent(float(found.remaining.max()))} of the correlation is left at "
            "the longest lag. Within such records a random walk cannot be told from a stationary process."
        )
        return Finding("stationarity", "warning", meaning, "Use longer records.", numbers)
    if not any(c.names[0] == "mean" for c in found.comparisons):
        meaning = "The record is too short beside its integral times to test whether it is stationary."
        return Finding("stationarity", "note", meaning, "Make sure by other means, or record for longer.", numbers)
    least = min(float(c.p_values.min()) for c in found.comparisons)
    tests = sum(c.p_values.size for c in found.comparisons)
    where = listed(list(dict.fromkeys(c.grouping for c in found.comparisons)))
    meaning = (
        f"Mean, spread, autocorrelation and step size are the same {where}, "
        f"within errors ({tests} tests, corrected p = {min(1.0, least * tests):.2g})."
    )
    return Finding("stationarity", "ok", meaning, "", numbers)


def _numbers(survey: Survey, found: Stationarity) -> dict[str, Quantity]:
    drifts = {f"{name}_drift": [] for name in _WORDS}
    for c in found.comparisons:
        for name, values in zip(c.names, c.drifts):
            drifts[f"{name}_drift"].append(values)
    numbers = {name: Quantity(np.max(values, axis=0)) for name, values in drifts.items() if values}
    numbers["integral_times_in_record"] = Quantity(survey.series.duration / survey.times)
    numbers["local_integral_times"] = Quantity(found.local_times, unit=survey.series.time_unit)
    numbers["dickey_fuller"] = Quantity(found.unit_root)
    tests = sum(c.p_values.size for c in found.comparisons)
    numbers["corrected_p"] = Quantity(min([1.0, *(float(c.p_values.min()) * tests for c in found.comparisons)]))
    return numbers


def _random_walk(survey: Survey, found: Stationarity, alarms: list, numbers: dict[str, Quantity]) -> Finding:
    walks = found.unit_root > UNIT_ROOT
    worst = int(np.argmax(np.where(walks, found.unit_root, -np.inf)))
    names = [n for n, w in zip(survey.series.names, walks) if w]
    meaning = (
        f"Not stationary, as far as one can tell: {listed(names)} does not keep returning to a mean. The record is "
        f"only {measured(survey.series.duration / survey.times[worst])} integral times long, and the Dickey-Fuller "
        f"statistic is {measured(found.unit_root[worst])} where a stationary record has less than {UNIT_ROOT:g}. "
        f"A random walk, a trend, or a memory as long as the record look like this.{_also(alarms)}"
    )
    advice = "Do not fit this as it is. Remove the trend, model the increments, or record ten times longer."
    return Finding("stationarity", "stop", meaning, advice, numbers)


def _alarms(survey: Survey, found: Stationarity) -> list[tuple[float, float, str, str, str]]:
    """(p-value, drift, feature, variable, grouping) of every significant difference, most significant first."""
    alarms = [
        (float(p), float(c.drifts[k, i]), c.names[k], survey.series.names[i], c.grouping)
        for c in found.comparisons
        for (k, i), p in np.ndenumerate(c.p_values)
        if p < found.chance
    ]
    return sorted(alarms)


def _drifting(alarms: list[tuple[float, float, str, str, str]], numbers: dict[str, Quantity]) -> Finding:
    p, drift, feature, variable, grouping = alarms[0]
    word, form = _WORDS[feature]
    amount = form.format(measured(drift) if feature in ("mean", "autocorrelation") else percent(drift))
    change = {"along the record": "drifts", "between records": "differs", "since the start": "changes"}[grouping]
    meaning = (
        f"Not stationary: the {word} of {variable} {change} {grouping} by about {amount}, beyond what its memory "
        f"explains (p = {p:.1g}).{_also([a for a in alarms if a[2:4] != (feature, variable)])}"
    )
    largest = max(a[1] for a in alarms if a[2] != "autocorrelation" or a[1] < 1)
    level = "note" if largest < _SMALL else "stop" if largest > _LARGE else "warning"
    advice = {
        "along the record": "Use a stretch that is alike throughout, remove the drift, or add what drives it.",
        "between records": "The records do not come from one process. Fit them apart, or find out what differs.",
        "since the start": "The records have not settled. Leave out their first part.",
    }[grouping]
    return Finding("stationarity", level, meaning, advice, numbers)


def _also(alarms: list[tuple[float, float, str, str, str]]) -> str:
    others = list(dict.fromkeys(f"the {_WORDS[feature][0]} of {variable}" for _, _, feature, variable, _ in alarms))
    return f" Not constant either: {listed(others)}." if others else ""


def seasonality(survey: Survey, found: Seasonality) -> Finding:
    """Lines in the spectrum of the variables or of their squares."""
    unit, lines = survey.series.time_unit, found.lines
    numbers = {
        "periods": Quantity([line.period for line in lines], [line.period_error for line in lines], unit),
        "shares_of_variance": Quantity([line.share for line in lines]),
        "variables": Quantity([survey.series.names[line.variable] for line in lines]),
        "of_square": Quantity([line.of_square for line in lines]),
        "steady": Quantity([line.steady for line in lines]),
        "window": Quantity(found.window, unit=unit),
    }
    if not lines:
        if not found.spectra:
            return Finding("seasonality", "ok", "The records are too short to look for cycles.", "", numbers)
        meaning = f"No spectral line with a period below {measured(found.window / 4, None, unit)}."
        return Finding("seasonality", "ok", meaning, "", numbers)
    what = listed([_line(survey, line) for line in lines], 2)
    if not lines[0].steady:
        meaning = f"A narrow peak in the spectrum: {what}. Its strength comes and goes: a resonance, not a fixed cycle."
        return Finding("seasonality", "note", meaning, "Nothing, unless you know of a cycle of that period.", numbers)
    advice = "Add the phase of the cycle as two variables, cos and sin, or model the cycle apart" + (
        ": subtract the mean of each phase first."
        if not lines[0].of_square
        else ": divide by the spread of each phase."
    )
    level = "warning" if lines[0].share > _SHARE else "note"
    return Finding("seasonality", level, f"There is a cycle: {what}.", advice, numbers)


def _line(survey: Survey, line: Line) -> str:
    period = measured(line.period, line.period_error, survey.series.time_unit)
    of = "the variance of " if line.of_square else ""
    return f"period {period} in {of}{survey.series.names[line.variable]} ({percent(line.share)} of its fluctuations)"
