"""Velocities of smooth segments, from centred differences."""

from collections.abc import Sequence
from typing import Any

from .._core.types import Samples, Segment
from ..data.lazy import Rows, window

_REACH = 2  # samples that a velocity needs on either side


def differentiate(segments: Sequence[Segment], dt: float) -> list[Any]:
    """dx/dt = (8 [x(t + h) - x(t - h)] - [x(t + 2h) - x(t - 2h)]) / 12 h, but for two samples at either end.

    Of rows that are read by blocks the velocities are read by blocks, too; a block takes what it needs from the next.
    """
    return [_velocities(x, dt) if _has_any(x) else x[:0] for x in segments]


def trim(segments: Sequence[Segment]) -> list[Any]:
    """Return the samples that have a velocity."""
    return [window(x, _REACH, len(x) - _REACH) if _has_any(x) else x[:0] for x in segments]


def _velocities(x: Segment, dt: float) -> Any:
    if isinstance(x, Rows):
        shape = len(x) - 2 * _REACH, x.shape[1]
        return Rows(lambda first, stop: _differences(x[first : stop + 2 * _REACH], dt), shape, x.block)
    return _differences(x, dt)


def _differences(x: Any, dt: float) -> Samples:
    return (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * dt)


def _has_any(segment: Segment) -> bool:
    return len(segment) > 2 * _REACH
