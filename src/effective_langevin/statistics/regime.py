"""The regime at short times: how the quadratic variation of a series grows with the lag.

    tr QV(h) / h = 2 tr [C(0) - C(h)] / h:   constant for a diffusion, ~ h for smooth motion, ~ 1/h for added noise

Its logarithmic slope is about 0 for a diffusion, 1 for smooth (ballistic) motion and -1 for measurement noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float

from .._core.types import LagMatrices, Matrix, Samples
from .lags import autocovariances, longest_lag, require_lag
from .resampling import jackknife

# Slope above which a series is smooth, a third of the way from a diffusion (0) to smooth motion (1); below minus this
# slope noise on each sample dominates the shortest lag.
BALLISTIC = 0.3
# Slopes of smooth motion that relaxes fast, and how much smaller the slope is one lag later: see `is_smooth`.
LEAST_SMOOTH, SMOOTHER = 0.1, 0.42
_VARIANCE_KEPT = 0.99  # share of the variance in the directions whose fastest decay is looked at
_MOST_NUMBERS = 8_000_000


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
    correlation = _total_correlation(segments, range(4))
    slope, beneath = float(slopes_from_moments(correlation[:3])[0]), slope_beneath_noise(segments)
    if slope < -BALLISTIC and beneath > BALLISTIC:
        return ShortTimeRegime(beneath, True, True)
    return ShortTimeRegime(slope, is_smooth(correlation), False)


def is_smooth(correlation: LagMatrices) -> bool:
    """Whether C at lags 0 to 3 is that of smooth motion: its slope falls by much from lag 0 to lag 1.

    Relaxation bends QV(h)/h down at both alike: the two slopes are equal for an exponential, whatever its time. Their
    difference is 0.41 to 0.59 for inertia over one sampling interval or more, 0.32 to 0.36 if every sample is a mean
    over the whole interval (motion blur), which leaves lags >= 1 as they are.
    """
    decay = _total_decay(correlation[1:])
    slope = slopes_from_moments(correlation[:3])[0]
    if slope <= LEAST_SMOOTH or (decay <= 0).any():
        return bool(slope > BALLISTIC)
    return bool(slope - slopes_from_moments(correlation[1:])[0] > SMOOTHER)


def quadratic_variation_slope(segments: Sequence[Samples]) -> float:
    """Slope of all variables together between one and two lags."""
    return float(slopes_from_moments(_total_correlation(segments, range(3)))[0])


def slope_beneath_noise(segments: Sequence[Samples]) -> float:
    """Slope from lag 1 on, where noise that is new in every sample does not show.

    The smaller of those over two to four and over four to eight lags; minus infinity where a record is too short.
    """
    if longest_lag(segments) < 12:
        return -np.inf
    correlation = _total_correlation(segments, [1, 3, 5, 9])
    return float(slopes_from_moments(correlation).min()) if (_total_decay(correlation) > 0).all() else -np.inf


def _total_correlation(segments: Sequence[Samples], lags: Sequence[int]) -> LagMatrices:
    """tr C at some lags, as matrices of one entry: slopes need no more."""
    require_lag(segments, max(lags), enough=0.0)
    return autocovariances(segments, max(lags)).sum(axis=1)[list(lags), None, None]


def slopes_from_moments(correlation: LagMatrices) -> Float[np.ndarray, " octave"]:
    """d log(QV / h) / d log h of all variables together, from C at the lags k, k + h, k + 2h, k + 4h, ..."""
    decay = _total_decay(correlation)
    return np.log2(decay[1:] / decay[:-1]) - 1


def _total_decay(correlation: LagMatrices) -> Float[np.ndarray, " lag"]:
    """tr [C(first) - C(lag)] for all lags but the first."""
    return np.trace(correlation[0] - correlation[1:], axis1=1, axis2=2)


def variation_slopes(
    segments: Sequence[Samples], lags: np.ndarray, groups: int
) -> tuple[Float[np.ndarray, "octave var_and_all"], Float[np.ndarray, "octave var_and_all"]]:
    """Slopes of each variable and (last) of all together between `lags` that double, with standard errors.

    From squared steps: C(0) - C(h) would be less exact, because of the ends of the records.
    """
    sums, pairs = squared_steps(segments, lags, groups)

    def slopes(weights: np.ndarray) -> np.ndarray:
        squares = np.tensordot(weights, sums, 1) / np.maximum(weights @ pairs, 1)[:, None]
        rate = np.maximum(squares, 1e-30) / lags[:, None]
        return np.diff(np.log2(np.column_stack([rate, rate.mean(axis=1)])), axis=0)

    return jackknife(slopes, groups)


def squared_steps(segments: Sequence[Samples], lags: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of (x(t + lag) - x(t))^2, (group, lag, var), and numbers of pairs, (group, lag)."""
    edges = np.linspace(0, sum(len(s) for s in segments), groups + 1).astype(int)
    sums, pairs, start = np.zeros((groups, len(lags), segments[0].shape[1])), np.zeros((groups, len(lags))), 0
    for segment in segments:
        stride = max(1, segment.size // _MOST_NUMBERS)
        for k, lag in enumerate(lags):
            squares = np.square(segment[lag::stride] - segment[: max(len(segment) - lag, 0) : stride])
            cuts = np.clip(-(-(edges - start) // stride), 0, len(squares))
            for g in np.flatnonzero(np.diff(cuts)):
                sums[g, k] += squares[cuts[g] : cuts[g + 1]].sum(axis=0)
            pairs[:, k] += np.diff(cuts)
        start += len(segment)
    return sums, pairs


def least_eigenvalue(covariance: Matrix, lagged: Matrix) -> float:
    """Smallest modulus among the eigenvalues of C(h) C(0)^-1 in the directions of large variance, at least 0.001."""
    scale = np.sqrt(np.diag(covariance))
    values, vectors = scipy.linalg.eigh(covariance / np.outer(scale, scale))
    kept = np.cumsum(values[::-1]) - values[::-1] < _VARIANCE_KEPT * values.sum()
    whitening = vectors[:, ::-1][:, kept] / np.sqrt(values[::-1][kept])
    propagator = whitening.T @ (lagged / np.outer(scale, scale)) @ whitening
    return max(float(np.abs(np.linalg.eigvals(propagator)).min()), 1e-3)
