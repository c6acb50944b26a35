"""Angles of a series, declared by its `periods`: which period, where it begins, and which variables may be angles."""

from collections.abc import Sequence

import numpy as np

from .._core.errors import DataError
from .._core.types import Samples, Vector
from .series import TimeSeries

_SECTORS, _REACH = 36, 3
_TURN, _DEGREES = 2 * np.pi, 360.0
_MANY_TURNS, _PREFERENCE = 3, 0.3


def choose_period(series: TimeSeries, column: int, period: float | None) -> float:
    """Return the period asked for, or 360 for a variable in degrees and 2 pi otherwise; refuse what cannot be."""
    name, unit, x = series.names[column], series.units[column], series.excerpt().stacked()[:, column]
    low, high = float(x.min()), float(x.max())
    in_degrees = unit.strip().lower().startswith(("deg", "°"))
    looks = not unit and period is None and low >= -_DEGREES / 2 and high <= _DEGREES and high - low > 0.8 * _DEGREES
    if looks or (in_degrees and period is not None and abs(period - _TURN) < 0.01):
        raise DataError(
            f"Variable {name!r} goes from {low:.4g} to {high:.4g} {unit}".rstrip() + ", which looks like degrees: its "
            f"period is 360 (`period=360`, or {name}:360). If it counts turns in radians, pass `period=2 * np.pi`."
        )
    return float(period or (_DEGREES if in_degrees else _TURN))


def find_unwrapped(series: TimeSeries) -> dict[str, float]:
    """Find variables without a period that go through many turns of 2 pi or 360 and prefer some angles."""
    found, samples = {}, series.excerpt().stacked()
    ranges = samples.max(axis=0) - samples.min(axis=0)  # all at once: columns one by one take far longer
    for name, period, x, width in zip(series.names, series.periods, samples.T, ranges):
        for turn in (_TURN, _DEGREES) if period is None else ():
            if width > _MANY_TURNS * turn:
                phase = np.exp(2j * np.pi * x / turn)
                if max(abs(phase.mean()), abs((phase**2).mean())) > _PREFERENCE:
                    found[name] = turn
    return found


def lowest(series: TimeSeries) -> Vector:
    """Return where the period of each angle begins: at zero if all its samples are >= 0, else half a period below."""
    if not any(series.periods):
        return np.zeros(series.dimension)
    low = np.min([block.min(axis=0) for block in series.blocks()], axis=0)
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
    samples = series.excerpt().stacked()
    begin = [period * _find_rarest(x / period % 1) if period else 0.0 for x, period in zip(samples.T, series.periods)]
    return wrap(series, begin)


def _find_rarest(turns: np.ndarray) -> float:
    """Find where in [0, 1) samples are rarest: the middle of the emptiest sixth, to a thirty-sixth of a turn."""
    counts = np.histogram(turns, _SECTORS, (0, 1))[0]
    share = sum(np.roll(counts, shift) for shift in range(-_REACH, _REACH + 1))
    return float((np.argmin(share) + 0.5) / _SECTORS)
