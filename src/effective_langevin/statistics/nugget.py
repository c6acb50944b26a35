"""Is C(0) what lags >= 1 extrapolate to? If not, lag 0 is in doubt.

C(0) too large: white noise of variance nu on each sample adds nu to C(0) and to no other lag. So does motion that is
over within one sampling interval. C(0) too small: each sample is a mean over a part e of the sampling interval (motion
blur, finite exposure). Of an exponential C(0) exp(-tau/T) that leaves C(0) (1 - e/3T) at lag 0, and at lags >= 1 the
same decay, larger by the factor (sinh z / z)^2 with z = e/2T. Inertia over less than one sampling interval looks alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, Int

from .resampling import critical

# Degree of the polynomial and number of lags it is fitted to.
_FITS = ((1, 2), (2, 3), (2, 4), (2, 6), (3, 4), (3, 6), (3, 8), (4, 6), (4, 8), (4, 12), (5, 8), (5, 12))
DOUBTED_BY_CHANCE = 1e-4
Jackknifed = Callable[[Callable[[np.ndarray], np.ndarray]], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Nugget:
    """C(0) less its extrapolation from lags >= 1, per variable, in units of C(0)."""

    variance: Float[np.ndarray, " var"]
    error: Float[np.ndarray, " var"]

    @property
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Its square root and the error of that: the noise in standard deviations of the variable."""
        root = np.sqrt(np.maximum(self.variance, 0))
        return root, np.minimum(self.error / np.maximum(2 * root, 1e-12), np.sqrt(self.error))


def signs_of_doubt(
    difference: np.ndarray, error: np.ndarray, groups: int, least: float = 0.0
) -> Int[np.ndarray, " var"]:
    """Return 1 where C(0) is too large, -1 where it is too small, 0 where lag 0 is not in doubt.

    The chance of any alarm about a series without fault is `DOUBTED_BY_CHANCE`, over both signs and all variables.
    """
    limit = np.maximum(critical(groups, np.size(difference), DOUBTED_BY_CHANCE) * error, least)
    return np.sign(difference).astype(int) * (np.abs(difference) > limit)


def extrapolate_to_zero(jackknifed: Jackknifed, consecutive: int) -> Nugget:
    """C(0) less its extrapolation from lags >= 1, by the polynomial whose error and bias are least together.

    Polynomials are those through the autocorrelations or, where all of them are positive, through their logarithms.
    `jackknifed` maps a function of the autocorrelations (lag, var), of which the first `consecutive` are at lags
    0, 1, 2, ..., to its value and standard error.
    """
    fits = [(degree, lags) for degree, lags in _FITS if lags + 2 <= consecutive]

    def values(acf: np.ndarray) -> np.ndarray:
        found = []
        for logarithmic in (False, True):
            for degree, lags in fits:
                plain = shortfall(acf, degree, lags, logarithmic)
                found.append([plain, plain - shortfall(acf, degree + 1, max(lags, degree + 2), logarithmic)])
        return np.array(found)

    value, error = jackknifed(values)
    # What the next degree changes is bias, as far as it is not noise.
    bias = np.sqrt(np.maximum(value[:, 1] ** 2 - error[:, 1] ** 2, 0))
    total = np.nan_to_num(np.hypot(error[:, 0], bias), nan=np.inf)
    best = total.argmin(axis=0), np.arange(total.shape[1])
    return Nugget(value[:, 0][best], total[best])


def shortfall(
    acf: Float[np.ndarray, "lag var"], degree: int, lags: int, logarithmic: bool = False
) -> Float[np.ndarray, " var"]:
    """1 - the value at zero of the polynomial through the autocorrelations at lags 1 to `lags`, or their logarithms."""
    weights, known = _weights_at_zero(degree, lags), acf[1 : lags + 1]
    if not logarithmic:
        return 1 - weights @ known
    return 1 - np.exp(np.clip(weights @ np.log(np.where(known > 0, known, np.nan)), -5, 5))


@cache
def _weights_at_zero(degree: int, lags: int) -> np.ndarray:
    powers = (np.arange(1, lags + 1) / lags)[:, None] ** np.arange(degree + 1)
    return np.linalg.pinv(powers)[0]
