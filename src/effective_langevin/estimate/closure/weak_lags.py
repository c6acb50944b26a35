"""The lags at which the equations of the weak form are taken.

A diffusion is seen from lag 0 on. Noise that is new in every sample changes lag 0 alone. The first lag is then 1, and
the others are so far apart that the state moves more between them than the noise. Smooth motion of a variable whose
velocity is hidden acts as a diffusion where its quadratic variation grows no faster than time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._core.types import Samples, Vector
from ...statistics.lags import lagged_moments, longest_lag
from ...statistics.regime import BALLISTIC, quadratic_variation_slope, slope_beneath_noise

HORIZONS = 4
_WIDEST = 64
_SETTLED = 0.1  # slope of the quadratic variation beyond a lag, at which smooth motion has become a diffusion


@dataclass(frozen=True)
class Lags:
    """The lags of the equations, in sampling intervals: the first, and some that follow at a stride."""

    first: int = 0
    stride: int = 1

    @property
    def every(self) -> np.ndarray:
        return self.first + self.stride * np.arange(HORIZONS + 1)

    @classmethod
    def beyond_noise(cls, segments: Sequence[Samples]) -> "Lags":
        """Return lags from 1 on, with the least stride, a power of two, over which the state moves more than noise."""
        strides = _powers_of_two(segments)
        left = _total_correlation(segments, [0, 1, *(1 + strides)])
        moved = left[1] - left[2:]
        enough = moved >= left[0] - left[1] - moved[0]
        return cls(1, int(strides[enough.argmax() if enough.any() else -1]))

    @classmethod
    def beyond_smooth_motion(cls, segments: Sequence[Samples]) -> "Lags":
        """Return multiples of the least lag, a power of two, from which the correlation falls as it does at once."""
        lags = _powers_of_two(segments)
        now, next_, last = _total_correlation(segments, np.concatenate([lags, 2 * lags, 3 * lags])).reshape(3, -1)
        settled = now - last <= 2 ** (1 + _SETTLED) * (now - next_)
        lag = int(lags[settled.argmax() if settled.any() else -1])
        return cls(lag, lag)


FROM_ZERO = Lags()


def _powers_of_two(segments: Sequence[Samples]) -> np.ndarray:
    """Return strides of which the series has pairs enough."""
    return 2 ** np.arange(1 + int(np.log2(np.clip(longest_lag(segments) // (HORIZONS + 1), 1, _WIDEST))))


def _total_correlation(segments: Sequence[Samples], lags: Sequence[int] | np.ndarray) -> Vector:
    return np.trace(lagged_moments(segments, segments, lags).mean(), axis1=1, axis2=2)


def hides_smooth_motion(segments: Sequence[Samples]) -> bool:
    """Tell whether noise hides that some variable moves smoothly: to lags 0 to 2 both together may look diffusive.

    Without noise the quadratic variation grows from lag 0 at least as fast as from lag 1.
    """
    variables = ([s[:, [i]] for s in segments] for i in range(segments[0].shape[1]))
    slopes = [(quadratic_variation_slope(part), slope_beneath_noise(part)) for part in variables]
    return any(beneath > BALLISTIC and at_zero < beneath - BALLISTIC for at_zero, beneath in slopes)
