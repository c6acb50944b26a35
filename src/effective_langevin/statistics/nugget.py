"""The nugget: variance at lag 0 that no other lag has, which is noise that is new in every sample.

White noise of variance nu on each sample adds nu to C(0) alone, so that C(tau) extrapolated from tau >= dt to zero
falls short of C(0) by nu. So does motion that is over within one sampling interval.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float

# Degree of the polynomial and number of lags it is fitted to.
_FITS = ((1, 2), (2, 3), (2, 4), (2, 6), (3, 4), (3, 6), (3, 8), (4, 6), (4, 8), (4, 12), (5, 8), (5, 12))
Jackknifed = Callable[[Callable[[np.ndarray], np.ndarray]], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Nugget:
    """Variance missing from the extrapolation of C(tau) to zero, per variable, in units of C(0)."""

    variance: Float[np.ndarray, " var"]
    error: Float[np.ndarray, " var"]

    @property
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Its square root and the error of that: the noise in standard deviations of the variable."""
        root = np.sqrt(np.maximum(self.variance, 0))
        return root, np.minimum(self.error / np.maximum(2 * root, 1e-12), np.sqrt(self.error))


def significant_variance(
    variance: np.ndarray, error: np.ndarray, limit: float, least: float = 0.0
) -> Float[np.ndarray, " var"]:
    """Keep the variances of noise beyond `limit` errors and beyond `least`; the others become zero."""
    return np.where(variance > np.maximum(limit * error, least), variance, 0.0)


def extrapolate_to_zero(jackknifed: Jackknifed, consecutive: int) -> Nugget:
    """C(0) less its extrapolation from lags >= 1, by the polynomial whose error and bias are least together.

    `jackknifed` maps a function of the autocorrelations (lag, var), of which the first `consecutive` are at lags
    0, 1, 2, ..., to its value and standard error.
    """
    values, errors, gaps = [], [], []
    for degree, lags in _FITS:
        if lags + 2 > consecutive:
            continue
        plain, error = jackknifed(lambda acf, d=degree, m=lags: shortfall(acf, d, m))
        gap, gap_error = jackknifed(
            lambda acf, d=degree, m=lags: shortfall(acf, d, m) - shortfall(acf, d + 1, max(m, d + 2))
        )
        values.append(plain)
        errors.append(error)
        gaps.append(np.sqrt(np.maximum(gap**2 - gap_error**2, 0)))
    total = np.hypot(errors, gaps)
    best = total.argmin(axis=0), np.arange(total.shape[1])
    return Nugget(np.array(values)[best], total[best])


def shortfall(acf: Float[np.ndarray, "lag var"], degree: int, lags: int) -> Float[np.ndarray, " var"]:
    """1 - the value at zero of the polynomial through the autocorrelations at lags 1 to `lags`."""
    return 1 - _weights_at_zero(degree, lags) @ acf[1 : lags + 1]


@cache
def _weights_at_zero(degree: int, lags: int) -> np.ndarray:
    powers = (np.arange(1, lags + 1) / lags)[:, None] ** np.arange(degree + 1)
    return np.linalg.pinv(powers)[0]
