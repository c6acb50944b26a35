"""Velocities of smooth segments, from centred differences."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from .._core.types import Samples, Segment
from ..data.lazy import Rows, window

# Weights of x(t + k h) - x(t - k h), k = 1 ... 4: exact for polynomials of degree 8. Of a chaotic field that is sampled
# as coarsely as is common, the formula of fourth order makes velocities .5 to 2 % too slow.
_WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
_REACH = len(_WEIGHTS)  # samples that a velocity needs on either side


def differentiate(segments: Sequence[Segment], dt: float) -> list[Any]:
    """Return dx/dt from centred differences of eighth order, but for four samples at either end.

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
    count = len(x) - 2 * _REACH
    later = (x[_REACH + k :][:count] - x[_REACH - k :][:count] for k in range(1, _REACH + 1))
    return reduce(add, (weight * change for weight, change in zip(_WEIGHTS, later))) / dt


def _has_any(segment: Segment) -> bool:
    return len(segment) > 2 * _REACH
