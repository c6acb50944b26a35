"""Integral times, and how many groups of consecutive samples give error bars."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .._core.types import Samples
from .lags import autocovariances

_LONGEST_LAG = 1 << 14


def integral_time(acf: Float[np.ndarray, " lag"], dt: float) -> float:
    """Integrate a normalised autocorrelation up to its first zero; independent samples are twice that far apart."""
    below = np.flatnonzero(acf <= 0)
    stop = below[0] if len(below) else len(acf)
    return float(dt * (acf[:stop].sum() - 0.5))


def integral_times(segments: Sequence[Samples], dt: float) -> Float[np.ndarray, " var"]:
    """Integral time of each variable (of mean zero), at least half a sampling interval."""
    longest = max(len(s) for s in segments)
    covariances = autocovariances(segments, min(max(longest // 4, 1), _LONGEST_LAG))
    return np.array([max(integral_time(c / c[0], dt), 0.5 * dt) for c in covariances.T])


def error_groups(segments: Sequence[Samples], dt: float, times: np.ndarray | None = None) -> int:
    """Count the groups for error bars: each at least ten integral times long, 4 to 32 in all."""
    times = integral_times(segments, dt) if times is None else times
    return int(np.clip(sum(len(s) for s in segments) * dt / (10 * max(times.max(), dt)), 4, 32))
