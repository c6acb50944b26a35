"""Velocities of smooth segments, from centred differences."""

from collections.abc import Sequence

from .._core.types import Samples


def differentiate(segments: Sequence[Samples], dt: float) -> list[Samples]:
    """dx/dt = (8 [x(t + h) - x(t - h)] - [x(t + 2h) - x(t - 2h)]) / 12 h, but for two samples at either end."""
    return [(8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * dt) for x in segments]


def trim(segments: Sequence[Samples]) -> list[Samples]:
    """Return the samples that have a velocity."""
    return [x[2:-2] for x in segments]
