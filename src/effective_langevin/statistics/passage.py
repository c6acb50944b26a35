"""First-passage times in records: how long it takes from one set of states to another, with records that end first."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from .resampling import GROUPS, jackknife


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
