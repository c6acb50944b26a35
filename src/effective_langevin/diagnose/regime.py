"""The regime: how the series moves over one sampling interval, decided from the evidence on short times.

Noise on each sample makes C(0) larger, motion blur makes it smaller than lags >= 1 extrapolate to (`nugget`). Motion
that is over within one sampling interval makes it larger, too. Only noise and blur make the past informative once the
present is known, with a positive and a negative sign (see `markov`), which tells them from other motion.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri

from .._core.types import LagMatrices
from ..statistics.nugget import Nugget, extrapolate_to_zero, signs_of_doubt
from ..statistics.regime import BALLISTIC, is_smooth, least_eigenvalue, variation_slopes
from ..statistics.resampling import FALSE_ALARM
from .markov import CellMemory, LinearMemory
from .moments import SeriesMoments, autocorrelation
from .thresholds import THRESHOLDS


@dataclass(frozen=True, eq=False)
class Regime:
    """The name of the regime and what it rests on.

    `slopes` are those of log(QV / h) at `lags` that double, per variable and (last) of all together; `coarseness` is dt
    over the fastest time seen, per variable and (last) over all directions.
    """

    name: str
    white: bool
    noisy: Bool[np.ndarray, " var"]
    blurred: Bool[np.ndarray, " var"]
    smooth: Bool[np.ndarray, " var"]
    lags: np.ndarray
    slopes: Float[np.ndarray, "octave var_and_all"]
    slope_errors: Float[np.ndarray, "octave var_and_all"]
    nugget: Nugget
    coarseness: Float[np.ndarray, " var_and_all"]
    coarseness_error: Float[np.ndarray, " var_and_all"]


def decide_regime(moments: SeriesMoments, linear: LinearMemory, cells: CellMemory | None) -> Regime:
    """Decide in the order white noise, noise, blur, smooth motion, coarse sampling: each masks the later ones."""
    lags, slopes, slope_errors = measure_variation(moments)
    nugget = measure_nugget(moments)
    by_variable = slopes[0, :-1]
    smooth, all_smooth = by_variable > THRESHOLDS.clearly_smooth, is_smooth(moments.lagged.mean()[:4])
    doubt = doubt_lag_zero(moments, nugget, linear, cells)
    noisy, blurred = doubt > 0, (doubt < 0) & ~smooth & (not all_smooth)
    noise = np.where(noisy | blurred, np.clip(nugget.variance, None, 0.9), 0.0)
    coarseness, error = step_over_fastest(moments, noise, by_variable > BALLISTIC, all_smooth)
    white = is_white(moments)
    if white:
        name = "white noise / unresolved"
    elif noisy.any():
        name = "measurement noise"
    elif blurred.any():
        name = "motion blur"
    elif all_smooth:
        name = "mixed" if (by_variable < -2 * slope_errors[0, :-1]).any() else "ballistic"
    elif smooth.any():
        name = "mixed"
    else:
        name = "coarse" if coarseness.max() > THRESHOLDS.coarse[1] else "diffusive"
    return Regime(name, white, noisy, blurred, smooth, lags, slopes, slope_errors, nugget, coarseness, error)


def measure_variation(moments: SeriesMoments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lags 1, 2, 4, ... up to four integral times of the slowest variable, the slopes between them, their errors."""
    last = min(4 * moments.times.max() / moments.series.dt, moments.lags[-1])
    lags = 2 ** np.arange(max(2, int(np.log2(max(last, 4))) + 1))
    lags = lags[lags <= moments.lags[-1]]
    return lags, *variation_slopes(moments.series.segments, lags, moments.groups)


def measure_nugget(moments: SeriesMoments) -> Nugget:
    """Variance at lag 0 that no other lag has."""
    consecutive = int(np.sum(moments.lags == np.arange(len(moments.lags))))
    return extrapolate_to_zero(moments.jackknifed_acf, consecutive)


def is_white(moments: SeriesMoments) -> bool:
    """Whether nothing at lag 1 correlates with anything, within errors."""
    value, error = moments.jackknifed(lambda c: c[1] / np.sqrt(np.outer(np.diag(c[0]), np.diag(c[0]))), 0, 1)
    # The error of a correlation of white samples is known; it is larger if their spread varies.
    error = np.maximum(error, 1 / np.sqrt(moments.series.n_samples))
    return bool((np.abs(value) < -ndtri(0.5 * FALSE_ALARM / value.size) * error).all())


def doubt_lag_zero(
    moments: SeriesMoments, nugget: Nugget, linear: LinearMemory, cells: CellMemory | None
) -> Int[np.ndarray, " var"]:
    """1 for variables with noise on each sample, -1 for blurred ones, else 0.

    C(0) differs from its extrapolation, and the past tells more than the present, with the sign that belongs to it.
    Without a partition, a nonlinear process sampled coarsely would pass for noise; so the sampling must be fine as
    well. Blur must show linearly, too.
    """

    def remembered(memory: LinearMemory) -> np.ndarray:
        value, error = np.diag(memory.value[0]), np.diag(memory.error[0])
        return signs_of_doubt(value, error, moments.groups, THRESHOLDS.least_memory)

    doubt = signs_of_doubt(nugget.variance, nugget.error, moments.groups, THRESHOLDS.least_noise)
    doubt = np.where(doubt == remembered(cells or linear), doubt, 0)
    doubt = np.where((doubt > 0) | (remembered(linear) < 0), doubt, 0)
    if cells is not None:
        return doubt
    rho, coarse = moments.acf[1:4], THRESHOLDS.coarse[0]
    decay = np.maximum(-np.diff(rho, axis=0), 1e-6)
    fine = (rho[0] > 1 - coarse) | (nugget.variance > 0.5 * (1 - rho[0]))
    return np.where((doubt < 0) | fine & (np.log(decay[0] / decay[1]) < coarse), doubt, 0)


def step_over_fastest(
    moments: SeriesMoments, noise: np.ndarray, smooth: Bool[np.ndarray, " var"], all_smooth: bool
) -> tuple[np.ndarray, np.ndarray]:
    """dt over the fastest time seen, per variable and last of all directions together, with errors.

    Of a variable: the larger of -ln rho(1) and ln (rho(0) - rho(1)) / (rho(1) - rho(2)), the decay of the curve and of
    its slope; both are dt / tau for an exponential. Of a smooth one: sqrt(2 - 2 rho(1)), from rho = 1 - tau^2 / 2. Of
    all: the same of the eigenvalue of C(h) C(0)^-1 of least modulus, in the directions that hold 99 % of the variance.
    `noise` is the share of measurement noise to take off C(0) first.
    """

    def ratios(correlation: LagMatrices) -> np.ndarray:
        correlation = correlation.copy()
        correlation[0] -= np.diag(noise * np.diag(correlation[0]))
        rho = np.clip(autocorrelation(correlation), 1e-3, None)
        first, second = np.maximum(-np.diff(rho, axis=0), 1e-6)
        rough = np.maximum(-np.log(rho[1]), np.log(first / second))
        least = least_eigenvalue(correlation[0], correlation[1])
        overall = np.sqrt(2 * max(1 - least, 0.0)) if all_smooth else -np.log(least)
        return np.append(np.where(smooth, np.sqrt(np.maximum(2 - 2 * rho[1], 0)), rough), overall)

    return moments.jackknifed(ratios, 0, 1, 2)
