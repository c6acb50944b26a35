"""How often levels are crossed: the mean time between two upward crossings, for data and model at the same interval.

An upward crossing of u begins an exceedance, and between two of them there is a downward one: for high levels it is
the return time of exceedances, for low ones that of falls below.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..data import TimeSeries
from ..statistics.resampling import jackknife
from .statistics import GROUPS

LEVELS = 41
_FEWEST = 5


@dataclass(frozen=True)
class ReturnTimes:
    """Mean times between upward crossings of `levels`, (panel, level), with standard errors; NaN where hardly any."""

    levels: Float[np.ndarray, "panel level"]
    data: Float[np.ndarray, "panel level"]
    model: Float[np.ndarray, "panel level"]
    data_error: Float[np.ndarray, "panel level"]
    model_error: Float[np.ndarray, "panel level"]


def compare_return_times(data: TimeSeries, paths: TimeSeries, levels: np.ndarray, points: int = 1) -> ReturnTimes:
    """Return times of rising `levels` (panel, level); each panel pools `points` neighbouring variables."""
    sides = [_return_times(series, levels, points) for series in (data, paths)]
    (one, one_error), (other, other_error) = sides
    return ReturnTimes(levels, one, other, one_error, other_error)


def _return_times(series: TimeSeries, levels: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """T(u) = time observed / crossings of u, with the leave-one-group-out error of its logarithm, times T."""
    counts, pairs = _crossings(series, np.repeat(levels, points, axis=0))
    counts = counts.reshape(GROUPS, len(levels), points, -1).sum(axis=2)

    def log_time(weights: np.ndarray) -> np.ndarray:
        crossings = np.maximum(np.tensordot(weights, counts, 1), 0.5)
        return np.log(points * series.dt * np.sum(weights * pairs) / crossings)

    value, error = jackknife(log_time, GROUPS)
    time = np.where(counts.sum(axis=0) >= _FEWEST, np.exp(value), np.nan)
    return time, time * error


def _crossings(series: TimeSeries, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upward crossings (group, var, level) and pairs of samples (group,); no pair crosses a gap.

    A step upwards crosses all levels between its ends: one more from where it begins, one less from where it ends.
    """
    width, number = levels.shape
    lengths = [len(s) - 1 for s in series.segments]
    group = np.arange(sum(lengths)) * GROUPS // max(sum(lengths), 1)
    counts = np.empty((GROUPS, width, number))
    for v in range(width):
        place = [np.searchsorted(levels[v], s[:, v], side="left") for s in series.segments]
        before, after = np.concatenate([p[:-1] for p in place]), np.concatenate([p[1:] for p in place])
        up = after > before
        cell = group[up] * (number + 1)
        size = GROUPS * (number + 1)
        begun = np.bincount(cell + before[up], minlength=size) - np.bincount(cell + after[up], minlength=size)
        counts[:, v] = np.cumsum(begun.reshape(GROUPS, -1), axis=1)[:, :-1]
    return counts, np.bincount(group, minlength=GROUPS)
