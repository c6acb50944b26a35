"""Is the record stationary? Analysis of variance between stretches of it.

The record is cut into blocks of at least eight (local) integral times, nearly independent of each other. Mean, spread,
autocorrelation and motion of the blocks are replaced by normal scores of their ranks, so that a few wild blocks decide
nothing, and the variance between runs of consecutive blocks is compared with that inside the runs (F test). The same
comparison is made between records, and between times since the start where there are several records of equal length.

A random walk escapes this, as it has no integral time; see `unit_root`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import fdtrc, ndtri

from .._core.types import Samples
from ..data import TimeSeries
from ..statistics.resampling import FALSE_ALARM, split
from .survey import Survey, integral_times
from .unit_root import unit_roots

LEVEL_FEATURES = ("mean", "log_spread", "autocorrelation")
MOTION_FEATURES = ("log_motion",)
_LENGTH = 8.0  # integral times in a block
_MOTION_LENGTH = 3.0  # integral times of the state in a block of steps, whose own memory is shorter
_LEAST, _MOST = 12, 64  # blocks
_LOCAL_SAMPLES = 200_000


@dataclass(frozen=True)
class Comparison:
    """Blocks of one grouping: p-values and drifts per feature and variable; a drift is a standard deviation."""

    grouping: str
    names: tuple[str, ...]
    features: Float[np.ndarray, "block feature var"]
    labels: np.ndarray
    p_values: Float[np.ndarray, "feature var"]
    drifts: Float[np.ndarray, "feature var"]


@dataclass(frozen=True)
class Stationarity:
    """All comparisons that could be made, the Dickey-Fuller statistic, and what autocorrelation is never lost."""

    comparisons: tuple[Comparison, ...]
    local_times: Float[np.ndarray, " var"]
    unit_root: Float[np.ndarray, " var"]
    remaining: Float[np.ndarray, " var"]

    @property
    def chance(self) -> float:
        """The p-value below which one of all the comparisons is an alarm (Bonferroni)."""
        return FALSE_ALARM / max(sum(c.p_values.size for c in self.comparisons), 1)


def compare_stretches(survey: Survey) -> Stationarity:
    """Compare mean, spread, autocorrelation and motion along the record, between records and since their start."""
    series = survey.series
    pieces = _locally_centred(series)
    local = np.minimum(_local_times(pieces, survey), survey.times)
    steps = [np.square(np.diff(p, axis=0)) for p in pieces if len(p) > 2]
    steps = _local_times([p - p.mean(axis=0) for p in steps], survey)
    lag = max(1, round(float(np.median(local)) / series.dt))
    comparisons = []
    for names, length in (
        (LEVEL_FEATURES, _LENGTH * local.max()),
        (MOTION_FEATURES, max(_LENGTH * steps.max(), _MOTION_LENGTH * local.max())),
    ):
        for grouping, cut in (
            ("along the record", _along),
            ("between records", _between),
            ("since the start", _since_start),
        ):
            if found := cut(series, max(length / series.dt, 8)):
                comparisons.append(_compared(grouping, names, *found, lag, local / series.dt))
    return Stationarity(tuple(comparisons), local, unit_roots(survey), survey.acf.min(axis=0))


def _locally_centred(series: TimeSeries) -> list[Samples]:
    """Eighths of the series, or its records, without their mean, as many as are needed for an integral time."""
    eighth = series.n_samples / 8
    pieces = [c[0] for s in series.segments for c in split([s], max(1, round(len(s) / eighth)))]
    return [p - p.mean(axis=0) for p in pieces[:: max(1, series.n_samples // _LOCAL_SAMPLES)]]


def _local_times(pieces: Sequence[Samples], survey: Survey) -> Float[np.ndarray, " var"]:
    """Integral times of centred pieces: not inflated by slow drifts of the mean."""
    lags = survey.lags[survey.lags < max(max(len(p) for p in pieces) / 2, 3)]
    products = [sum(np.einsum("ti,ti->i", p[lag:], p[: len(p) - lag]) for p in pieces if len(p) > lag) for lag in lags]
    counts = [max(sum(len(p) - lag for p in pieces if len(p) > lag), 1) for lag in lags]
    covariance = np.array(products) / np.array(counts)[:, None]
    return integral_times(covariance / np.maximum(covariance[0], 1e-30), lags, survey.series.dt)[0]


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
    """Runs of consecutive blocks in the order of the record."""
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
    groups = [alike[k::sets] for k in range(sets)]
    parts = [[list(split([s], 4)) for s in group] for group in groups]
    blocks = [[record[phase][0] for record in part] for phase in range(4) for part in parts]
    return blocks, np.repeat(np.arange(4), sets)


def _compared(grouping, names, blocks, labels, lag: int, times: np.ndarray) -> Comparison:
    """Features of the blocks and their test."""
    lag = max(1, min(lag, min(max(len(p) for p in b) for b in blocks) // 4))
    found = [block_features(b, lag) for b in blocks]
    features = np.array([[f[name] for name in names] for f in found])
    length = np.mean([sum(len(p) for p in b) for b in blocks])
    p_values = differences(features, labels, times / length, ordered=grouping != "between records")
    between, inside, size = variance_components(features, labels)
    drifts = np.sqrt(np.maximum(between - inside, 0) / size)
    return Comparison(grouping, names, features, labels, p_values, drifts)


def differences(features: np.ndarray, labels: np.ndarray, correlation: np.ndarray, *, ordered: bool) -> np.ndarray:
    """p-values of the F test and, if the order of runs means something, of a trend, on normal scores of the ranks.

    `correlation` is the integral time over the length of a block; neighbouring blocks are correlated by half of it.
    """
    blocks, runs = len(features), labels.max() + 1
    # In random order, so that ties (in a constant stretch) do not look like a trend.
    order = np.random.default_rng(0).permutation(blocks)
    scores = np.empty_like(features)
    scores[order] = ndtri((features[order].argsort(axis=0, kind="stable").argsort(axis=0) + 0.5) / blocks)
    between, inside, size = variance_components(scores, labels)
    inflation = (1 + correlation * (size - 1) / size) / (1 - correlation / size)
    p_values = fdtrc(runs - 1, blocks - runs, between / np.maximum(inside, 1e-300) / inflation)
    if not ordered:
        return p_values
    return np.minimum(2 * np.minimum(p_values, trend_p_values(scores, labels, 1 + correlation)), 1.0)


def trend_p_values(scores: np.ndarray, labels: np.ndarray, inflation: np.ndarray) -> np.ndarray:
    """Two-sided p-values of a linear trend over the runs, whose variance is `inflation` times that of white scores."""
    order = labels - labels.mean()
    explained = np.tensordot(order, scores, 1) ** 2 / np.sum(order**2) / np.sum(scores**2, axis=0)
    freedom = len(labels) - 2
    return fdtrc(1, freedom, freedom * explained / np.maximum(1 - explained, 1e-300) / inflation)


def variance_components(values: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean squares between and inside runs, and the size of a run."""
    sizes = np.bincount(labels).astype(float)
    means = np.array([values[labels == k].mean(axis=0) for k in range(len(sizes))])
    spread = np.tensordot(sizes, (means - values.mean(axis=0)) ** 2, 1)
    inside = ((values - means[labels]) ** 2).sum(axis=0)
    return spread / (len(sizes) - 1), inside / (len(values) - len(sizes)), float(sizes.mean())
