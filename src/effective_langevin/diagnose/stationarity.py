"""Is the record stationary? Analysis of variance between stretches of it.

The record is cut into blocks of at least eight (local) integral times, nearly independent of each other. Mean, spread,
autocorrelation and step size of the blocks are compared between runs of consecutive blocks and inside the runs. The
same comparison is made between records, and between times since the start where there are several records of equal
length.

A random walk escapes this, as it has no integral time. Its sample autocorrelation does decay, over about a tenth of any
record. So a variable is suspected when its record is short in integral times, and acquitted by the Dickey-Fuller test.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from .._core.types import Samples
from ..data import TimeSeries
from ..statistics.resampling import FALSE_ALARM, split
from ..statistics.stationarity_tests import compare_runs, dickey_fuller, variance_components
from .moments import SeriesMoments, resolved_times
from .thresholds import THRESHOLDS

LEVEL_FEATURES = ("mean", "log_spread", "autocorrelation")
MOTION_FEATURES = ("log_motion",)
_LENGTH = 8.0  # integral times in a block
_MOTION_LENGTH = 3.0  # integral times of the state in a block of steps, whose own memory is shorter
_LEAST, _MOST = 12, 64  # blocks
_LOCAL_SAMPLES = 200_000
_PER_TIME = 30  # samples per integral time in the Dickey-Fuller regression


@dataclass(frozen=True, eq=False)
class Comparison:
    """One grouping of blocks: p-values and drifts per feature and variable; a drift is a standard deviation."""

    grouping: str
    names: tuple[str, ...]
    p_values: Float[np.ndarray, "feature var"]
    drifts: Float[np.ndarray, "feature var"]


@dataclass(frozen=True, eq=False)
class Stationarity:
    """All comparisons that could be made, the Dickey-Fuller statistic, and what autocorrelation is never lost."""

    comparisons: tuple[Comparison, ...]
    local_times: Float[np.ndarray, " var"]
    unit_root: Float[np.ndarray, " var"]
    remaining: Float[np.ndarray, " var"]

    @property
    def tests(self) -> int:
        """Number of p-values."""
        return sum(c.p_values.size for c in self.comparisons)

    @property
    def corrected_p(self) -> float:
        """The least p-value times the number of tests, at most one (Bonferroni)."""
        return min([1.0, *(float(c.p_values.min()) * self.tests for c in self.comparisons)])

    @property
    def chance(self) -> float:
        """The p-value below which one of all the comparisons is an alarm (Bonferroni)."""
        return FALSE_ALARM / max(self.tests, 1)


def compare_stretches(moments: SeriesMoments) -> Stationarity:
    """Compare mean, spread, autocorrelation and step size along the record, between records and since their start."""
    series = moments.series
    # Eighths of the series, or its records, without their mean, as many as are needed for an integral time.
    pieces = [c[0] for s in series.segments for c in split([s], max(1, round(8 * len(s) / series.n_samples)))]
    pieces = [p - p.mean(axis=0) for p in pieces[:: max(1, series.n_samples // _LOCAL_SAMPLES)]]
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
    for i in np.flatnonzero(series.duration < THRESHOLDS.short_record * moments.times):
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


def block_features(pieces: Sequence[Samples], lag: int) -> dict[str, Any]:
    """Of one block: mean, log standard deviation, autocorrelation at `lag`, log of the rms step between samples."""
    count = sum(len(p) for p in pieces)
    mean = sum(p.sum(axis=0) for p in pieces) / count
    centred = [p - mean for p in pieces]
    variance = np.maximum(sum(np.einsum("ti,ti->i", p, p) for p in centred) / count, 1e-30)
    pairs = max(sum(max(len(p) - lag, 0) for p in pieces), 1)
    products = sum(np.einsum("ti,ti->i", p[: max(len(p) - lag, 0)], p[lag:]) for p in centred) / pairs
    steps = max(sum(len(p) - 1 for p in pieces), 1)
    motion = np.maximum(sum(np.square(np.diff(p, axis=0)).sum(axis=0) for p in pieces) / steps, 1e-30)
    return {
        "mean": mean,
        "log_spread": 0.5 * np.log(variance),
        "autocorrelation": products / variance,
        "log_motion": 0.5 * np.log(motion),
    }


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
    numbers = [int(min(len(s) / shortest, 8)) for s in long]
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
    lag = max(1, min(lag, min(max(len(p) for p in b) for b in blocks) // 4))
    by_block = [block_features(b, lag) for b in blocks]
    features = np.array([[f[name] for name in names] for f in by_block])
    length = np.mean([sum(len(p) for p in b) for b in blocks])
    p_values = compare_runs(features, labels, times / length, ordered=grouping != "between records")
    between, inside, size = variance_components(features, labels)
    return Comparison(grouping, names, p_values, np.sqrt(np.maximum(between - inside, 0) / size))
