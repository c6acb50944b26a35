"""Integral times, and how many groups of consecutive samples give error bars."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .._core.types import Samples
from ..data.lazy import is_lazy
from .lags import autocovariances, longest_lag

_LONGEST_LAG = 1 << 14
_FIRST_REACH = 1 << 10


def integral_time(acf: Float[np.ndarray, "lag ..."], tau: np.ndarray, *, to_crossing: bool = False) -> np.ndarray:
    """Integrate normalised autocorrelations at the times `tau` up to their first zero, by trapezoids.

    Independent samples are twice that far apart. With `to_crossing` the last interval ends where the chord crosses
    zero, which matters where lags are far apart.
    """
    positive = np.logical_and.accumulate(acf > 0, axis=0)
    kept = np.where(positive, acf, 0.0)
    widths = np.diff(tau).reshape(-1, *[1] * (acf.ndim - 1)) * np.ones_like(acf[1:])
    if to_crossing:
        last = positive[:-1] & ~positive[1:]
        widths[last] *= acf[:-1][last] / (acf[:-1] - acf[1:])[last]
    return 0.5 * np.sum(widths * (kept[1:] + kept[:-1]), axis=0)


def integral_times(segments: Sequence[Samples], dt: float) -> Float[np.ndarray, " var"]:
    """Integral time of each variable (of mean zero), at least half a sampling interval."""
    longest = max(len(s) for s in segments)
    most = max(longest // 4, min(longest_lag(segments), 8))  # short records: as far as there are pairs
    most = min(most, _LONGEST_LAG)
    reach = most if any(is_lazy(s) for s in segments) else min(_FIRST_REACH, most)
    while ((covariances := autocovariances(segments, reach)) > 0).all(axis=0).any() and reach < most:
        reach = min(8 * reach, most)  # what lies beyond the first zero does not count
    acf = np.pad(covariances / covariances[0], ((0, 1), (0, 0)))  # what lies beyond the longest lag counts as zero
    return np.maximum(integral_time(acf, dt * np.arange(len(acf))), 0.5 * dt)


def error_groups(segments: Sequence[Samples], dt: float, times: np.ndarray | None = None) -> int:
    """Count the groups for error bars: each at least ten integral times long, 4 to 32 in all."""
    times = integral_times(segments, dt) if times is None else times
    return int(np.clip(sum(len(s) for s in segments) * dt / (10 * max(times.max(), dt)), 4, 32))
