"""Times that records show: from one set of states to another, and between two upward crossings of a level.

An upward crossing of u begins an exceedance, and between two of them there is a downward one: for high levels it is
the return time of exceedances, for low ones that of falls below.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from .._core.types import Samples
from .resampling import GROUPS, jackknife

_FEWEST = 5  # crossings of a level that has a return time


def passage_times(
    begun: Sequence[Bool[np.ndarray, " time"]], reached: Sequence[Bool[np.ndarray, " time"]], dt: float
) -> tuple[float, float]:
    """Return the mean time from samples in one set to the next sample in another, with its error; NaN without any.

    A sample after which its record ends before the other set is reached still counts for as long as it lasts
    (Kaplan and Meier). What is visited between two samples is not seen.
    """
    waits, seen = zip(*(_waits(a, b) for a, b in zip(begun, reached)))
    wait, known = np.concatenate(waits), np.concatenate(seen)
    if not known.any():
        return np.nan, np.nan
    group, order = np.arange(len(wait)) * GROUPS // len(wait), np.argsort(wait, kind="stable")
    wait, known, group = wait[order], known[order], group[order]
    steps = np.diff(wait, prepend=0)

    def mean(weights: np.ndarray) -> np.ndarray:
        weight = weights[group]
        at_risk = np.cumsum(weight[::-1])[::-1]
        left = np.cumprod(1 - np.where(known, weight, 0.0) / np.where(at_risk > 0, at_risk, 1.0))
        return np.sum(np.concatenate([[1.0], left[:-1]]) * steps)

    value, error = jackknife(mean, GROUPS)
    return dt * float(value), dt * float(error)


def _waits(begun: np.ndarray, reached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps from each sample in the first set to the next in the second or to the end, and which it was."""
    rows = np.arange(len(begun))
    arrival = np.where(reached, rows, len(rows))
    following = np.minimum.accumulate(arrival[::-1])[::-1]
    known = following < len(rows)
    return np.where(known, following - rows, len(rows) - 1 - rows)[begun], known[begun]


def return_times(
    segments: Sequence[Samples], dt: float, levels: Float[np.ndarray, "panel level"], points: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Mean time between upward crossings of rising `levels`, and its standard error; NaN where there are hardly any.

    Each panel pools `points` neighbouring variables. T(u) = time observed / crossings of u; the error is that of ln T.
    """
    counts, pairs = _count_crossings(segments, np.repeat(levels, points, axis=0))
    counts = counts.reshape(GROUPS, len(levels), points, -1).sum(axis=2)

    def log_time(weights: np.ndarray) -> np.ndarray:
        crossings = np.maximum(np.tensordot(weights, counts, 1), 0.5)
        return np.log(points * dt * np.sum(weights * pairs) / crossings)

    value, error = jackknife(log_time, GROUPS)
    time = np.where(counts.sum(axis=0) >= _FEWEST, np.exp(value), np.nan)
    return time, time * error


def _count_crossings(segments: Sequence[Samples], levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upward crossings (group, var, level) and pairs of samples (group,); no pair crosses a gap.

    A step upwards crosses all levels between its ends: one more from where it begins, one less from where it ends.
    """
    width, number = levels.shape
    lengths = [len(s) - 1 for s in segments]
    group = np.arange(sum(lengths)) * GROUPS // max(sum(lengths), 1)
    counts, size = np.empty((GROUPS, width, number)), GROUPS * (number + 1)
    for v in range(width):
        place = [np.searchsorted(levels[v], s[:, v], side="left") for s in segments]
        before, after = np.concatenate([p[:-1] for p in place]), np.concatenate([p[1:] for p in place])
        up = after > before
        cell = group[up] * (number + 1)
        begun = np.bincount(cell + before[up], minlength=size) - np.bincount(cell + after[up], minlength=size)
        counts[:, v] = np.cumsum(begun.reshape(GROUPS, -1), axis=1)[:, :-1]
    return counts, np.bincount(group, minlength=GROUPS)
