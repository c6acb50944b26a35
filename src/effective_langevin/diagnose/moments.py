"""One pass over the series: moments in groups of consecutive samples, from which nearly every check is computed.

Groups give errors by leaving out each in turn. There are 32 of them, or 16 where they would be shorter than five
integral times.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from .._core.types import LagMatrices, Samples
from ..data import Standardizer, TimeSeries
from ..statistics.integral_time import integral_time
from ..statistics.lags import LaggedMoments, lagged_moments, longest_lag, own_moments
from ..statistics.resampling import jackknife, split

_MOST_GROUPS = 32
_LARGEST_LAG = 1 << 16
_PER_OCTAVE = 4
FEW_PAIRS = 0.1  # as a share of the samples: fewer pairs would lie in a few groups
_MANY = 128  # variables: half as many groups, for the memory of their moments
_ONE_THREAD = 1 << 18  # multiplications in a product that BLAS does on one thread (see `statistics.lags`)


@dataclass(frozen=True, eq=False)
class SeriesMoments:
    """The standardised series and its moments; `cubes` are < x_i^2 x_j >, `quartics` < x_i^4 >, both per group.

    `own` are sums of products of each variable with itself at the `lags` (0, 1, 2, ... and then in equal ratios; every
    power of two is among them) and `pairs` their numbers; `lagged` has those of all pairs of variables, at the few lags
    where they are looked at: 0 to 3, powers of two up to twice the longest integral time, and `fast_lag`.
    """

    series: TimeSeries
    units: Standardizer
    lags: np.ndarray
    own: Float[np.ndarray, "group lag var"]
    pairs: Float[np.ndarray, "group lag"]
    fast_lag: int
    lagged: LaggedMoments
    counts: Float[np.ndarray, " group"]
    means: Float[np.ndarray, "group var"]
    cubes: Float[np.ndarray, "group var var"]
    quartics: Float[np.ndarray, "group var"]
    times: Float[np.ndarray, " var"]
    time_errors: Float[np.ndarray, " var"]

    @cached_property
    def excerpt(self) -> TimeSeries:
        """The standardised series, or a part of one that is read by blocks, for what is not a sum over samples."""
        return self.series.excerpt()

    @property
    def groups(self) -> int:
        return len(self.counts)

    @property
    def acf(self) -> Float[np.ndarray, "lag var"]:
        return _normalised(self.own, self.pairs)

    @property
    def effective_samples(self) -> Float[np.ndarray, " var"]:
        """Duration over twice the integral time: how many independent samples the record is worth."""
        return self.series.duration / (2 * self.times)

    def jackknifed(self, function: Callable[[LagMatrices], Any], *lags: int | np.integer) -> tuple[Any, Any]:
        """A function of C at some of the lags where it is known, and its standard error."""
        part = self.at(np.array(lags))
        return jackknife(lambda weights: np.asarray(function(part.mean(weights))), self.groups)

    def at(self, lags: np.ndarray) -> LaggedMoments:
        """C at some of the lags where it is known."""
        return self.lagged.at(np.searchsorted(self.lagged.lags, lags))

    def jackknifed_acf(self, function: Callable[[np.ndarray], Any]) -> tuple[Any, Any]:
        """A function of the autocorrelations (lag, var), and its standard error; cheap in many dimensions."""

        def estimate(weights: np.ndarray) -> np.ndarray:
            return np.asarray(function(_normalised(self.own, self.pairs, weights)))

        return jackknife(estimate, self.groups)


def _normalised(
    own: Float[np.ndarray, "group lag var"], pairs: Float[np.ndarray, "group lag"], weights: np.ndarray | None = None
) -> Float[np.ndarray, "lag var"]:
    """Autocorrelations, with each group counted once or `weights` times."""
    weights = np.ones(len(own)) if weights is None else weights
    number = weights @ pairs
    covariance = np.tensordot(weights, own, 1) / np.where(number > 0, number, np.nan)[:, None]
    return covariance / covariance[0]


def autocorrelation(moments: LagMatrices) -> Float[np.ndarray, "lag var"]:
    """Diagonal of C(tau), normalised."""
    diagonal = np.diagonal(moments, axis1=1, axis2=2)
    return diagonal / diagonal[0]


def resolved_times(acf: Float[np.ndarray, "lag var"], lags: np.ndarray, dt: float) -> Float[np.ndarray, " var"]:
    """Integral times from uneven lags, at least half a sampling interval."""
    return dt * np.maximum(integral_time(acf, lags, to_crossing=True), 0.5)


def measure_moments(series: TimeSeries) -> SeriesMoments:
    """Standardise, correlate at lags that grow until all variables have decorrelated, and sum powers."""
    units = Standardizer.from_series(series)
    standard = series.map(units.to_standard)
    lags, own, pairs = _decaying_moments(standard)
    times = resolved_times(_normalised(own, pairs), lags, series.dt)
    groups = min(_affordable_groups(series.duration / (5 * times.max())), len(own))
    own, pairs = (v.reshape(groups, len(v) // groups, *v.shape[1:]).sum(axis=1) for v in (own, pairs))
    fast = int(lags[np.searchsorted(lags, max(1, 0.5 * times.min() / series.dt))])
    few = np.unique([*range(4), fast, *_powers_of_two(min(2 * max(times.max() / series.dt, 1), lags[-1]))])
    lagged = lagged_moments(standard.segments, standard.segments, few, groups)
    powers = [_power_means(pieces) for pieces in split(standard.segments, groups)]
    counts, means, cubes, quartics = (np.array(s) for s in zip(*powers))
    everything = lags, own, pairs, fast, lagged, counts, means, cubes, quartics
    found = SeriesMoments(standard, units, *everything, times, times)
    _, errors = found.jackknifed_acf(lambda acf: resolved_times(acf, lags, series.dt))
    return replace(found, time_errors=errors)


def log_lags(low: int, high: int) -> np.ndarray:
    """Every lag up to 16, then four per octave, from `low` (excluded) to `high` (included)."""
    octaves = np.arange(4 * _PER_OCTAVE, _PER_OCTAVE * 20 + 1) / _PER_OCTAVE
    lags = np.unique(np.concatenate([np.arange(16), np.round(2.0**octaves), [high]])).astype(int)
    return lags[(lags > low) & (lags <= high)]


def _powers_of_two(most: float) -> np.ndarray:
    return 2 ** np.arange(int(np.log2(most)) + 1)


def _decaying_moments(series: TimeSeries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lags up to five integral times of the slowest variable, or a part of a record, own sums there, numbers of pairs.

    In many groups.
    """
    longest = max(len(s) for s in series.segments)
    reachable = longest // (2 if sum(2 * len(s) > longest for s in series.segments) >= 4 else 4)
    # Rows of zeros separate the segments: keep them below the samples in number.
    most = max(4, min(reachable, _LARGEST_LAG, max(16, 4 * series.n_samples // len(series.segments))))
    most = min(most, longest_lag(series.segments, FEW_PAIRS))
    groups = _affordable_groups(series.n_samples / 16 if series.dimension <= _MANY else 0)
    parts, reach, low = [], 16, -1
    while True:
        reach = min(reach, most)
        parts.append(own_moments(series.segments, log_lags(low, reach), groups))
        own, pairs = (np.concatenate(part, axis=1) for part in zip(*parts))
        acf, lags = _normalised(own, pairs), log_lags(-1, reach)
        decayed = (acf <= 0).any(axis=0).all() and reach >= 5 * resolved_times(acf, lags, 1.0).max()
        if reach >= most or decayed:
            return lags, own, pairs
        low, reach = reach, 4 * reach


def _affordable_groups(wanted: float) -> int:
    """32 groups if that many are wanted, otherwise 16: fewer would leave the errors themselves unknown."""
    return _MOST_GROUPS if wanted >= _MOST_GROUPS else _MOST_GROUPS // 2


def _power_means(pieces: list[Samples]) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
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
