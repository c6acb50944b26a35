"""One pass over the series: moments in groups of consecutive samples, from which nearly every check is computed.

Groups give errors by leaving out each in turn. There are 32 of them, or 16 where they would be shorter than five
integral times.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from .._core.types import LagMatrices, Samples
from ..data import Standardizer, TimeSeries
from ..statistics.lags import LaggedMoments, lagged_moments
from ..statistics.resampling import jackknife, split

GROUPS = 32
_LARGEST_LAG = 1 << 16
_PER_OCTAVE = 4
_MANY = 128  # variables: half as many groups, for the memory of their moments
_ONE_THREAD = 1 << 18  # multiplications in a product that BLAS does on one thread (see `data.lags`)


@dataclass(frozen=True)
class Survey:
    """The standardised series and its moments; `cubes` are < x_i^2 x_j >, `quartics` < x_i^4 >, both per group."""

    series: TimeSeries
    units: Standardizer
    moments: LaggedMoments
    counts: Float[np.ndarray, " group"]
    means: Float[np.ndarray, "group var"]
    cubes: Float[np.ndarray, "group var var"]
    quartics: Float[np.ndarray, "group var"]
    times: Float[np.ndarray, " var"]
    time_errors: Float[np.ndarray, " var"]

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.counts)

    @property
    def lags(self) -> np.ndarray:
        """Lags, in samples: 0, 1, 2, ... and then in equal ratios; every power of two is among them."""
        return self.moments.lags

    @property
    def acf(self) -> Float[np.ndarray, "lag var"]:
        """Autocorrelation of each variable."""
        return autocorrelation(self.moments.mean())

    @property
    def effective_samples(self) -> Float[np.ndarray, " var"]:
        """Duration over twice the integral time: how many independent samples the record is worth."""
        return self.series.duration / (2 * self.times)

    def at(self, *lags: int) -> LagMatrices:
        """C at the given lags."""
        return self.moments.mean()[self.rows(*lags)]

    def rows(self, *lags: int | np.integer) -> np.ndarray:
        """Where the given lags stand among all."""
        return np.searchsorted(self.lags, np.array(lags))

    def jackknifed(self, function: Callable[[LagMatrices], Any], *lags: int | np.integer) -> tuple[Any, Any]:
        """A function of C at the given lags (of all, if none is given), and its standard error."""
        rows = self.rows(*lags) if lags else slice(None)
        part = LaggedMoments(self.lags[rows], self.moments.sums[:, rows], self.moments.pairs[:, rows])
        return jackknife(lambda weights: np.asarray(function(part.mean(weights))), self.groups)

    def jackknifed_acf(self, function: Callable[[np.ndarray], Any]) -> tuple[Any, Any]:
        """A function of the autocorrelations (lag, var), and its standard error; cheap in many dimensions."""
        sums = np.diagonal(self.moments.sums, axis1=2, axis2=3)

        def estimate(weights: np.ndarray) -> np.ndarray:
            pairs = np.maximum(weights @ self.moments.pairs, 1)
            covariance = np.tensordot(weights, sums, 1) / pairs[:, None]
            return np.asarray(function(covariance / covariance[0]))

        return jackknife(estimate, self.groups)

    def mean_over(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Mean of a per-group mean over groups counted `weights` times."""
        weights = weights * self.counts
        return np.tensordot(weights, values, 1) / weights.sum()


def autocorrelation(moments: LagMatrices) -> Float[np.ndarray, "lag var"]:
    """Diagonal of C(tau), normalised."""
    diagonal = np.diagonal(moments, axis1=1, axis2=2)
    return diagonal / diagonal[0]


def survey(series: TimeSeries) -> Survey:
    """Standardise, correlate at lags that grow until all variables have decorrelated, and sum powers."""
    units = Standardizer.from_series(series)
    standard = series.map(units.to_standard)
    moments = _decaying_moments(standard)
    times, _ = integral_times(autocorrelation(moments.mean()), moments.lags, series.dt)
    groups = min(_affordable_groups(series.duration / (5 * times.max())), len(moments.sums))
    moments = LaggedMoments(moments.lags, _merged(moments.sums, groups), _merged(moments.pairs, groups))
    sums = [_power_sums(pieces) for pieces in split(standard.segments, groups)]
    counts, means, cubes, quartics = (np.array(s) for s in zip(*sums))
    found = Survey(standard, units, moments, counts, means, cubes, quartics, times, times)
    _, errors = found.jackknifed_acf(lambda acf: integral_times(acf, moments.lags, series.dt)[0])
    return replace(found, time_errors=errors)


def integral_times(acf: Float[np.ndarray, "lag var"], lags: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Integral of each autocorrelation up to its first zero (trapezoids between uneven lags), and where that is."""
    positive = np.logical_and.accumulate(acf > 0, axis=0)
    kept = np.where(positive, acf, 0.0)
    steps = np.diff(lags)[:, None] * np.ones_like(acf[1:])
    # In the interval where the curve crosses zero, up to the crossing of the chord.
    crossing = positive[:-1] & ~positive[1:]
    steps[crossing] *= acf[:-1][crossing] / (acf[:-1] - acf[1:])[crossing]
    areas = 0.5 * steps * (kept[1:] + kept[:-1])
    return dt * np.maximum(areas.sum(axis=0), 0.5), positive.sum(axis=0)


def log_lags(low: int, high: int) -> np.ndarray:
    """Every lag up to 16, then four per octave, from `low` (excluded) to `high` (included)."""
    octaves = np.arange(4 * _PER_OCTAVE, _PER_OCTAVE * 20 + 1) / _PER_OCTAVE
    lags = np.unique(np.concatenate([np.arange(16), np.round(2.0**octaves), [high]])).astype(int)
    return lags[(lags > low) & (lags <= high)]


def _decaying_moments(series: TimeSeries) -> LaggedMoments:
    """Moments in many groups, at lags up to five integral times of the slowest variable, or a part of a record."""
    longest = max(len(s) for s in series.segments)
    reachable = longest // (2 if sum(2 * len(s) > longest for s in series.segments) >= 4 else 4)
    # Rows of zeros separate the segments: keep them below the samples in number.
    most = min(reachable, _LARGEST_LAG, max(16, 4 * series.n_samples // len(series.segments)))
    groups = _affordable_groups(series.n_samples / 16 if series.dimension <= _MANY else 0)
    parts, reach, low = [], 16, -1
    while True:
        reach = min(reach, max(most, 4))
        parts.append(lagged_moments(series.segments, series.segments, log_lags(low, reach), groups))
        whole = LaggedMoments(
            np.concatenate([p.lags for p in parts]),
            np.concatenate([p.sums for p in parts], axis=1),
            np.concatenate([p.pairs for p in parts], axis=1),
        )
        acf = autocorrelation(whole.mean())
        times, ends = integral_times(acf, whole.lags, 1.0)
        if reach >= max(most, 4) or (reach >= 5 * times.max() and (ends < len(acf)).all()):
            return whole
        low, reach = reach, 4 * reach


def _affordable_groups(wanted: float) -> int:
    """32 groups if that many are wanted, otherwise 16: fewer would leave the errors themselves unknown."""
    return GROUPS if wanted >= GROUPS else GROUPS // 2


def _merged(values: np.ndarray, groups: int) -> np.ndarray:
    return values.reshape(groups, len(values) // groups, *values.shape[1:]).sum(axis=1)


def _power_sums(pieces: list[Samples]) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Number of samples, and means of x_i, x_i^2 x_j and x_i^4, in blocks of bounded memory."""
    width = pieces[0].shape[1]
    total, first, cubes, quartics = 0, np.zeros(width), np.zeros((width, width)), np.zeros(width)
    block = max(_ONE_THREAD // width**2, 64)
    for piece in pieces:
        for start in range(0, len(piece), block):
            x = piece[start : start + block]
            squares = x * x
            total += len(x)
            first += x.sum(axis=0)
            cubes += squares.T @ x
            quartics += np.einsum("ti,ti->i", squares, squares)
    return total, first / total, cubes / total, quartics / total
