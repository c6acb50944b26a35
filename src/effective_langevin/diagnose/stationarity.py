"""Is the record stationary? Analysis of variance between stretches of it.

The record is cut into blocks of at least eight (local) integral times, nearly independent of each other. Mean, spread,
autocorrelation and step size of the blocks are compared between runs of consecutive blocks and inside the runs. The
same comparison is made between records, and between times since the start where there are several records of equal
length.

A random walk escapes this, as it has no integral time. Its sample autocorrelation does decay, over about a tenth of any
record. So a variable is suspected when its record is short in integral times, and acquitted by the Dickey-Fuller test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._core.format import listed, measured, percent
from .._core.types import Samples
from ..data import TimeSeries
from ..data.angles import find_unwrapped
from ..data.lazy import bounded
from ..statistics.resampling import FALSE_ALARM, split
from ..statistics.stationarity_tests import (
    UNIT_ROOT,
    compare_runs,
    detectable_trend,
    dickey_fuller,
    variance_components,
)
from . import thresholds
from .finding import Finding, Quantity
from .moments import SeriesMoments, resolved_times

LEVEL_FEATURES = ("mean", "log_spread", "autocorrelation")
MOTION_FEATURES = ("log_motion",)
_LENGTH = 8.0  # integral times in a block
_MOTION_LENGTH = 3.0  # integral times of the state in a block of steps, whose own memory is shorter
_LEAST, _MOST = 12, 64  # blocks
_MOST_BETWEEN = 1024  # blocks of all records together, where two of each are fewer
_LOCAL_SAMPLES = 200_000
_READ_NUMBERS = 1 << 22  # of a series that is read by blocks, in all blocks together
_PER_TIME = 30  # samples per integral time in the Dickey-Fuller regression


@dataclass(frozen=True, eq=False)
class Comparison:
    """One grouping of blocks: p-values and drifts per feature and variable; a drift is a standard deviation.

    `trend` gives the change from start to end that a test at a given p-value would find.
    """

    grouping: str
    names: tuple[str, ...]
    p_values: Float[np.ndarray, "feature var"]
    drifts: Float[np.ndarray, "feature var"]
    trend: Callable[[float], Float[np.ndarray, "feature var"]]


@dataclass(frozen=True, eq=False)
class Stationarity:
    """All comparisons that could be made, the Dickey-Fuller statistic, and what autocorrelation is never lost."""

    comparisons: tuple[Comparison, ...]
    local_times: Float[np.ndarray, " var"]
    unit_root: Float[np.ndarray, " var"]
    remaining: Float[np.ndarray, " var"]

    @property
    def tests(self) -> int:
        return sum(c.p_values.size for c in self.comparisons)

    @property
    def corrected_p(self) -> float:
        """The least p-value times the number of tests, at most one (Bonferroni)."""
        return min([1.0, *(float(c.p_values.min()) * self.tests for c in self.comparisons)])

    @property
    def chance(self) -> float:
        """The p-value below which one of all the comparisons is an alarm (Bonferroni)."""
        return FALSE_ALARM / max(self.tests, 1)

    def detectable_trend(self) -> Float[np.ndarray, " var"] | None:
        """Return the trend of each mean, from start to end of the record, that would have been detected."""
        found = [c for c in self.comparisons if c.grouping == "along the record" and c.names[0] == "mean"]
        return found[0].trend(self.chance)[0] if found else None


def compare_stretches(moments: SeriesMoments) -> Stationarity:
    """Compare mean, spread, autocorrelation and step size along the record, between records and since their start."""
    series = moments.series
    # Eighths of the series, or its records, without their mean, as many as are needed for an integral time.
    pieces = [c[0] for s in series.segments for c in split([s], max(1, round(8 * len(s) / series.n_samples)))]
    pieces = bounded(pieces[:: max(1, series.n_samples // _LOCAL_SAMPLES)], _LOCAL_SAMPLES, 1)
    pieces = [p - p.mean(axis=0) for p in pieces]
    local = np.minimum(_local_times(pieces, moments), moments.times)
    steps = [np.square(np.diff(p, axis=0)) for p in pieces if len(p) > 2]
    steps = _local_times([p - p.mean(axis=0) for p in steps], moments)
    lag = max(1, round(float(np.median(local)) / series.dt))
    lengths = {
        LEVEL_FEATURES: _LENGTH * local.max(),
        MOTION_FEATURES: max(_LENGTH * steps.max(), _MOTION_LENGTH * local.max()),
    }
    cuts = {"along the record": _along, "between records": _between, "since the start": _since_start}
    comparisons = tuple(
        _compare(grouping, names, *blocks, lag, local / series.dt)
        for names, length in lengths.items()
        for grouping, cut in cuts.items()
        if (blocks := cut(series, max(length / series.dt, 8)))
    )
    return Stationarity(comparisons, local, unit_roots(moments), moments.acf.min(axis=0))


def unit_roots(moments: SeriesMoments) -> Float[np.ndarray, " var"]:
    """Dickey-Fuller statistic of each variable whose record is short in integral times; -inf for the others."""
    series, found = moments.series, np.full(moments.series.dimension, -np.inf)
    longest = max(series.segments, key=len)
    if 2 * len(longest) < series.n_samples:
        return found
    for i in np.flatnonzero(series.duration < thresholds.SHORT_RECORD * moments.times):
        stride = max(1, int(moments.times[i] / series.dt / _PER_TIME))
        found[i] = dickey_fuller(longest[::stride, i])
    return found


def _local_times(pieces: Sequence[Samples], moments: SeriesMoments) -> Float[np.ndarray, " var"]:
    """Integral times of centred pieces: not inflated by slow drifts of the mean."""
    lags = moments.lags[moments.lags < max(max(len(p) for p in pieces) / 2, 3)]
    products = [sum(np.einsum("ti,ti->i", p[lag:], p[: len(p) - lag]) for p in pieces if len(p) > lag) for lag in lags]
    counts = [max(sum(len(p) - lag for p in pieces if len(p) > lag), 1) for lag in lags]
    covariance = np.array(products) / np.array(counts)[:, None]
    return resolved_times(covariance / np.maximum(covariance[0], 1e-30), lags, moments.series.dt)


def block_features(pieces: Sequence[Samples], lag: int, names: Sequence[str]) -> list[np.ndarray]:
    """Of one block: mean, log standard deviation and autocorrelation at `lag`, or the log of the rms step."""
    if tuple(names) == MOTION_FEATURES:
        steps = max(sum(len(p) - 1 for p in pieces), 1)
        moves = (np.diff(p, axis=0) for p in pieces)
        return [0.5 * np.log(np.maximum(sum(np.einsum("ti,ti->i", m, m) for m in moves) / steps, 1e-30))]
    count = sum(len(p) for p in pieces)
    mean = sum(p.sum(axis=0) for p in pieces) / count
    centred = [p - mean for p in pieces]
    variance = np.maximum(sum(np.einsum("ti,ti->i", p, p) for p in centred) / count, 1e-30)
    pairs = max(sum(max(len(p) - lag, 0) for p in pieces), 1)
    products = sum(np.einsum("ti,ti->i", p[: max(len(p) - lag, 0)], p[lag:]) for p in centred) / pairs
    return [np.asarray(mean), 0.5 * np.log(variance), products / variance]


def _along(series: TimeSeries, shortest: float):
    """Blocks in the order of the record, and the run of each."""
    number = int(min(series.n_samples / shortest, _MOST))
    if number < _LEAST:
        return None
    runs = 8 if number >= 32 else 4
    return list(split(series.segments, number)), np.arange(number) * runs // number


def _between(series: TimeSeries, shortest: float):
    """Blocks of each record that is long enough for two."""
    long = [s for s in series.segments if len(s) >= 2 * shortest]
    if len(long) < 2:
        return None
    most = max(2, min(8, _MOST_BETWEEN // len(long)))
    numbers = [int(min(len(s) / shortest, most)) for s in long]
    blocks = [b for s, n in zip(long, numbers) for b in split([s], n)]
    return (blocks, np.repeat(np.arange(len(long)), numbers)) if len(blocks) >= _LEAST else None


def _since_start(series: TimeSeries, shortest: float):
    """The same part, of four, of several records each; a transient makes the first part differ from the rest."""
    longest = max(len(s) for s in series.segments)
    alike = [s for s in series.segments if len(s) > 0.9 * longest]
    # Records are independent however short they are; three in a set also show their spread against each other.
    sets = int(min(max(len(alike) // 3, len(alike) * longest / 4 / shortest), len(alike), _MOST // 4))
    if sets < _LEAST // 4 or longest < 16:
        return None
    parts = [[list(split([s], 4)) for s in alike[k::sets]] for k in range(sets)]
    blocks = [[record[phase][0] for record in part] for phase in range(4) for part in parts]
    return blocks, np.repeat(np.arange(4), sets)


def _compare(
    grouping: str, names: tuple[str, ...], blocks: list, labels: np.ndarray, lag: int, times: np.ndarray
) -> Comparison:
    """Features of the blocks and their test."""
    blocks = [bounded(b, _READ_NUMBERS // len(blocks) // len(times), 4) for b in blocks]
    lag = max(1, min(lag, min(max(len(p) for p in b) for b in blocks) // 4))
    features = np.array([block_features(b, lag, names) for b in blocks])
    length = np.mean([sum(len(p) for p in b) for b in blocks])
    p_values = compare_runs(features, labels, times / length, ordered=grouping != "between records")
    between, inside, size = variance_components(features, labels)
    drifts = np.sqrt(np.maximum(between - inside, 0) / size)
    trend = partial(detectable_trend, features, labels, times / length)
    return Comparison(grouping, names, p_values, drifts, trend)


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
    """A significant difference; the most significant comes first."""

    p_value: float
    drift: float
    feature: str
    variable: str
    grouping: str


def check_stationarity(moments: SeriesMoments, series: TimeSeries) -> Finding:
    """Make one finding of all comparisons; offer to declare angles of many turns where it is not stationary."""
    finding = _judge(moments, compare_stretches(moments))
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


def _judge(moments: SeriesMoments, found: Stationarity) -> Finding:
    """Judge all comparisons; a random walk comes first."""
    numbers, names = _numbers(moments, found), moments.series.names
    alarms = sorted(
        _Alarm(float(p), float(c.drifts[k, i]), c.names[k], names[i], c.grouping)
        for c in found.comparisons
        for (k, i), p in np.ndenumerate(c.p_values)
        if p < found.chance
    )
    if (found.unit_root > UNIT_ROOT).any():
        return _random_walk(moments, found, alarms, numbers)
    if alarms:
        return _drifting(alarms, numbers)
    if (found.remaining > thresholds.UNDECAYED).any():
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
    trend = found.detectable_trend()
    return {
        **({} if trend is None else {"detectable_trend": Quantity(trend)}),
        **{name: Quantity(np.max(values, axis=0)) for name, values in drifts.items()},
        "integral_times_in_record": Quantity(moments.series.duration / moments.times),
        "local_integral_times": Quantity(found.local_times, unit=moments.series.time_unit),
        "dickey_fuller": Quantity(found.unit_root),
        "corrected_p": Quantity(found.corrected_p),
    }


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
    small, large = thresholds.DRIFT
    level = "note" if largest < small else "stop" if largest > large else "warning"
    if first.feature == "mean" and first.grouping == "along the record":
        advice += " `preprocess=[el.preprocess.Detrend()]` removes a trend of the mean."
    return Finding("stationarity", level, meaning, advice, numbers)


def _also(alarms: list[_Alarm]) -> str:
    others = list(dict.fromkeys(f"the {_FEATURES[a.feature][0]} of {a.variable}" for a in alarms))
    return f" Not constant either: {listed(others)}." if others else ""
