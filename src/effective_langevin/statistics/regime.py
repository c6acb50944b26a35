"""The regime at short times: how the quadratic variation of a series grows with the lag.

    tr QV(h) / h = 2 tr [C(0) - C(h)] / h:   constant for a diffusion, ~ h for smooth motion, ~ 1/h for added noise

Its logarithmic slope is about 0 for a diffusion, 1 for smooth (ballistic) motion and -1 for measurement noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.types import LagMatrices, Samples
from .lags import lagged_moments

# Slope above which a series is smooth, a third of the way from a diffusion (0) to smooth motion (1); below minus this
# slope noise on each sample dominates the shortest lag.
BALLISTIC = 0.3


@dataclass(frozen=True)
class ShortTimeRegime:
    """The slope of the quadratic variation, and what it says.

    `noisy` means smooth motion beneath measurement noise: the slope is then that beneath the noise.
    """

    slope: float
    ballistic: bool
    noisy: bool


def classify_short_times(segments: Sequence[Samples]) -> ShortTimeRegime:
    """Tell smooth motion, with or without noise on each sample, from a diffusion."""
    slope, beneath = quadratic_variation_slope(segments), slope_beneath_noise(segments)
    if slope < -BALLISTIC and beneath > BALLISTIC:
        return ShortTimeRegime(beneath, True, True)
    return ShortTimeRegime(slope, slope > BALLISTIC, False)


def quadratic_variation_slope(segments: Sequence[Samples]) -> float:
    """Slope of all variables together between one and two lags."""
    return float(slopes_from_moments(lagged_moments(segments, segments, [0, 1, 2]).mean())[0])


def slope_beneath_noise(segments: Sequence[Samples]) -> float:
    """Slope from lag 1 on, where noise that is new in every sample does not show.

    The smaller of those over two to four and over four to eight lags; minus infinity where a record is too short.
    """
    if max(len(s) for s in segments) < 16:
        return -np.inf
    decay = total_decay(lagged_moments(segments, segments, [1, 3, 5, 9]).mean())
    return float(doubling_slopes(decay).min()) if (decay > 0).all() else -np.inf


def slopes_from_moments(correlation: LagMatrices) -> Float[np.ndarray, " octave"]:
    """Slopes of all variables together, from C at lags 0, h, 2h, 4h, ..."""
    return doubling_slopes(total_decay(correlation))


def total_decay(correlation: LagMatrices) -> Float[np.ndarray, " lag"]:
    """tr [C(first) - C(lag)] for all lags but the first."""
    return np.trace(correlation[0] - correlation[1:], axis1=1, axis2=2)


def doubling_slopes(decay: Float[np.ndarray, "lag ..."]) -> Float[np.ndarray, "octave ..."]:
    """d log(QV / h) / d log h between lags that double, from C(0) - C(h) at each of them."""
    return np.log2(decay[1:] / decay[:-1]) - 1
