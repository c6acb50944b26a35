"""Angles of a series, declared by its `periods`: where a period begins."""

from collections.abc import Sequence

import numpy as np

from .._core.types import Samples, Vector
from .series import TimeSeries

_SECTORS, _REACH = 36, 3


def lowest(series: TimeSeries) -> Vector:
    """Return where the period of each angle begins: at zero if all its samples are >= 0, else half a period below."""
    low = np.min([segment.min(axis=0) for segment in series.segments], axis=0)
    return np.array([0.0 if period is None or x >= 0 else -period / 2 for period, x in zip(series.periods, low)])


def wrap(series: TimeSeries, lowest: Sequence[float]) -> TimeSeries:
    """Bring every angle into the period that begins at its `lowest`."""
    columns = [i for i, period in enumerate(series.periods) if period]
    periods, begin = np.array([series.periods[i] for i in columns]), np.array(lowest)[columns]

    def wrap_segment(values: Samples) -> Samples:
        out = np.array(values, float)
        out[:, columns] = (out[:, columns] - begin) % periods + begin
        return out

    return series.map(wrap_segment)


def unfold(series: TimeSeries) -> TimeSeries:
    """Bring every angle into the period that begins where samples are rarest, so that few paths jump."""
    if not any(series.periods):
        return series
    samples = series.stacked()
    begin = [period * _find_rarest(x / period % 1) if period else 0.0 for x, period in zip(samples.T, series.periods)]
    return wrap(series, begin)


def _find_rarest(turns: np.ndarray) -> float:
    """Find where in [0, 1) samples are rarest: the middle of the emptiest sixth, to a thirty-sixth of a turn."""
    counts = np.histogram(turns, _SECTORS, (0, 1))[0]
    share = sum(np.roll(counts, shift) for shift in range(-_REACH, _REACH + 1))
    return float((np.argmin(share) + 0.5) / _SECTORS)
