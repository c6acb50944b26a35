"""The lags at which the equations of the weak form are taken.

A diffusion is seen from lag 0 on. Noise that is new in every sample changes lag 0 alone. The first lag is then 1, and
the others are so far apart that the state moves more between them than the noise. Smooth motion of a variable whose
velocity is hidden acts as a diffusion where its quadratic variation grows no faster than time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._core.types import Samples
from ...statistics.lags import lagged_moments, longest_lag
from ...statistics.regime import BALLISTIC

HORIZONS = 4
_WIDEST = 64


@dataclass(frozen=True)
class Lags:
    """The lags of the equations, in sampling intervals: the first, and some that follow at a stride."""

    first: int = 0
    stride: int = 1

    @property
    def every(self) -> np.ndarray:
        """The first lag and the horizons."""
        return self.first + self.stride * np.arange(HORIZONS + 1)

    @classmethod
    def beyond_lag_zero(cls, segments: Sequence[Samples], *, smooth: bool) -> "Lags":
        """Return lags from 1 on, with the least stride, a power of two, over which the state moves more than noise.

        With `smooth` the motion between them must also be that of a diffusion.
        """
        reach = min(_WIDEST, (longest_lag(segments) - 1) // HORIZONS)
        strides = 2 ** np.arange(int(np.log2(max(reach, 1))) + 1)
        lags = [0, 1, *(1 + strides), 1 + 2 * strides[-1]]
        correlation = np.trace(lagged_moments(segments, segments, lags).mean(), axis1=1, axis2=2)
        moved = correlation[1] - correlation[2:]
        enough = moved[:-1] >= correlation[0] - correlation[1] - moved[0]
        if smooth:
            enough &= np.log2(np.maximum(moved[1:] / moved[:-1], 1e-9)) - 1 <= BALLISTIC
        return cls(1, int(strides[enough.argmax() if enough.any() else -1]))


FROM_ZERO = Lags()
