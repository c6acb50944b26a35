"""Angles in one period: where it begins is a choice, made here."""

from collections.abc import Sequence

import numpy as np

from .._core.types import Samples, Vector
from .series import TimeSeries

_SECTORS, _REACH = 36, 3


def wrap(series: TimeSeries, columns: Sequence[int], periods: Vector, lowest: Vector) -> TimeSeries:
    """Bring the angles in `columns` into the periods that begin at `lowest`."""
    columns = list(columns)

    def wrap_segment(values: Samples) -> Samples:
        out = np.array(values, float)
        out[:, columns] = (out[:, columns] - lowest) % periods + lowest
        return out

    return series.map(wrap_segment)


def unfold(series: TimeSeries, columns: Sequence[int], periods: Vector) -> TimeSeries:
    """Bring the angles in `columns` into periods that begin where samples are rarest, so that few paths jump."""
    turns = series.stacked()[:, list(columns)] / periods % 1
    return wrap(series, columns, periods, np.array([_find_rarest(t) for t in turns.T]) * periods)


def _find_rarest(turns: np.ndarray) -> float:
    """Find where in [0, 1) samples are rarest: the middle of the emptiest sixth, to a thirty-sixth of a turn."""
    counts = np.histogram(turns, _SECTORS, (0, 1))[0]
    share = sum(np.roll(counts, shift) for shift in range(-_REACH, _REACH + 1))
    return float((np.argmin(share) + 0.5) / _SECTORS)
