"""How the series moves over a few samples: quadratic variation, measurement noise, and whether the sampling is fine.

    tr QV(h) / h = 2 tr [C(0) - C(h)] / h:   constant for a diffusion, ~ h for smooth motion, ~ 1/h for added noise

White noise of variance nu on each sample adds nu to C(0) and to no other lag, so the extrapolation of C(tau) from
tau >= dt to zero falls short of C(0) by nu. So does motion that is over within one sampling interval; what tells the
two apart is that only noise makes the past informative once the present is known (see `markov`).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float
from scipy.special import ndtri

from .._core.types import LagMatrices
from ..data import TimeSeries
from ..statistics.resampling import FALSE_ALARM, jackknife
from .survey import Survey, autocorrelation

# Degree of the polynomial and number of lags it is fitted to.
_FITS = ((1, 2), (2, 3), (2, 4), (2, 6), (3, 4), (3, 6), (3, 8), (4, 6), (4, 8), (4, 12), (5, 8), (5, 12))
# Share of the variance that the directions hold whose fastest decay is looked at.
_VARIANCE_KEPT = 0.99
_MOST_NUMBERS = 8_000_000


@dataclass(frozen=True)
class Variation:
    """tr QV(h) / (h tr QV(1)) at lags that double, its logarithmic slopes, and the slope of each variable at lag 1."""

    lags: np.ndarray
    ratio: Float[np.ndarray, " lag"]
    ratio_error: Float[np.ndarray, " lag"]
    slopes: Float[np.ndarray, " lag"]
    slope_errors: Float[np.ndarray, " lag"]
    by_variable: Float[np.ndarray, " var"]
    by_variable_error: Float[np.ndarray, " var"]


@dataclass(frozen=True)
class Nugget:
    """Variance missing from the extrapolation of C(tau) to zero, per variable, in units of C(0)."""

    variance: Float[np.ndarray, " var"]
    error: Float[np.ndarray, " var"]

    @property
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Its square root and the error of that: the noise in standard deviations of the variable."""
        root = np.sqrt(np.maximum(self.variance, 0))
        return root, np.minimum(self.error / np.maximum(2 * root, 1e-12), np.sqrt(self.error))


def quadratic_variation(survey: Survey) -> Variation:
    """Quadratic variation over time at lags 1, 2, 4, ... up to four integral times of the slowest variable."""
    last = min(4 * survey.times.max() / survey.series.dt, survey.lags[-1])
    lags = 2 ** np.arange(max(2, int(np.log2(max(last, 4))) + 1))
    lags = lags[lags <= survey.lags[-1]]
    sums, pairs = squared_steps(survey.series, lags, survey.groups)

    def rates(weights: np.ndarray) -> np.ndarray:
        """QV(h) / h of each variable, and of all."""
        squares = np.tensordot(weights, sums, 1) / np.maximum(weights @ pairs, 1)[:, None]
        rate = np.maximum(squares, 1e-30) / lags[:, None]
        return np.column_stack([rate, rate.mean(axis=1)])

    ratio, ratio_error = jackknife(lambda w: (r := rates(w)[:, -1]) / r[0], survey.groups)
    slopes, errors = jackknife(lambda w: np.diff(np.log2(rates(w)), axis=0), survey.groups)
    return Variation(lags, ratio, ratio_error, slopes[:, -1], errors[:, -1], slopes[0, :-1], errors[0, :-1])


def squared_steps(series: TimeSeries, lags: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of (x(t + lag) - x(t))^2, (group, lag, var), and pairs; C(0) - C(lag) would be less exact, by its ends."""
    edges = np.linspace(0, series.n_samples, groups + 1).astype(int)
    sums, pairs = np.zeros((groups, len(lags), series.dimension)), np.zeros((groups, len(lags)))
    start = 0
    for segment in series.segments:
        stride = max(1, segment.size // _MOST_NUMBERS)
        for k, lag in enumerate(lags):
            squares = np.square(segment[lag::stride] - segment[: max(len(segment) - lag, 0) : stride])
            cuts = np.clip(-(-(edges - start) // stride), 0, len(squares))
            for g in np.flatnonzero(np.diff(cuts)):
                sums[g, k] += squares[cuts[g] : cuts[g + 1]].sum(axis=0)
            pairs[:, k] += np.diff(cuts)
        start += len(segment)
    return sums, pairs


def is_white(survey: Survey) -> bool:
    """Whether nothing at lag 1 correlates with anything, within errors."""
    value, error = survey.jackknifed(lambda c: c[1] / np.sqrt(np.outer(np.diag(c[0]), np.diag(c[0]))), 0, 1)
    # The error of a correlation of white samples is known; it is larger if their spread varies.
    error = np.maximum(error, 1 / np.sqrt(survey.series.n_samples))
    return bool((np.abs(value) < -ndtri(0.5 * FALSE_ALARM / value.size) * error).all())


def nugget(survey: Survey) -> Nugget:
    """C(0) less its extrapolation from lags >= 1, by the polynomial fit whose error and bias are least together."""
    values, errors, gaps = [], [], []
    for degree, lags in _FITS:
        if lags + 1 > survey.lags[-1] or not np.array_equal(survey.lags[: lags + 2], np.arange(lags + 2)):
            continue
        plain, error = survey.jackknifed_acf(lambda acf, d=degree, m=lags: _shortfall(acf, d, m))
        gap, gap_error = survey.jackknifed_acf(
            lambda acf, d=degree, m=lags: _shortfall(acf, d, m) - _shortfall(acf, d + 1, max(m, d + 2))
        )
        values.append(plain)
        errors.append(error)
        gaps.append(np.sqrt(np.maximum(gap**2 - gap_error**2, 0)))
    total = np.hypot(errors, gaps)
    best = total.argmin(axis=0), np.arange(total.shape[1])
    return Nugget(np.array(values)[best], total[best])


def _shortfall(acf: Float[np.ndarray, "lag var"], degree: int, lags: int) -> np.ndarray:
    """1 - the value at zero of the polynomial through the autocorrelations at lags 1 to `lags`."""
    return 1 - _weights_at_zero(degree, lags) @ acf[1 : lags + 1]


@cache
def _weights_at_zero(degree: int, lags: int) -> np.ndarray:
    powers = (np.arange(1, lags + 1) / lags)[:, None] ** np.arange(degree + 1)
    return np.linalg.pinv(powers)[0]


def step_over_fastest(
    survey: Survey, noise: np.ndarray, smooth: Bool[np.ndarray, " var"], all_smooth: bool
) -> tuple[np.ndarray, np.ndarray]:
    """dt over the fastest time seen, per variable and last of all directions together, with errors.

    Of a variable: the larger of -ln rho(1) and ln (rho(0) - rho(1)) / (rho(1) - rho(2)), the decay of the curve and of
    its slope; both are dt / tau for an exponential. Of a smooth one: sqrt(2 - 2 rho(1)), from rho = 1 - tau^2 / 2. Of
    all: the same of the eigenvalue of C(h) C(0)^-1 of least modulus, in the directions that hold 99 % of the variance.
    `noise` is the share of measurement noise to take off C(0) first.
    """

    def ratios(moments: LagMatrices) -> np.ndarray:
        moments = moments.copy()
        moments[0] -= np.diag(noise * np.diag(moments[0]))
        rho = np.clip(autocorrelation(moments), 1e-3, None)
        first, second = np.maximum(-np.diff(rho, axis=0), 1e-6)
        rough = np.maximum(-np.log(rho[1]), np.log(first / second))
        least = least_eigenvalue(moments[0], moments[1])
        overall = np.sqrt(2 * max(1 - least, 0.0)) if all_smooth else -np.log(least)
        return np.append(np.where(smooth, np.sqrt(np.maximum(2 - 2 * rho[1], 0)), rough), overall)

    return survey.jackknifed(ratios, 0, 1, 2)


def least_eigenvalue(covariance: np.ndarray, lagged: np.ndarray) -> float:
    """Smallest modulus among the eigenvalues of C(h) C(0)^-1 in the directions of large variance, at least 0.001."""
    scale = np.sqrt(np.diag(covariance))
    values, vectors = scipy.linalg.eigh(covariance / np.outer(scale, scale))
    kept = np.cumsum(values[::-1]) - values[::-1] < _VARIANCE_KEPT * values.sum()
    whitening = vectors[:, ::-1][:, kept] / np.sqrt(values[::-1][kept])
    propagator = whitening.T @ (lagged / np.outer(scale, scale)) @ whitening
    return max(float(np.abs(np.linalg.eigvals(propagator)).min()), 1e-3)
