"""The distribution of each variable: heavy tails, outliers, hard edges, angles."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..data import TimeSeries
from ..statistics.resampling import jackknife
from .moments import SeriesMoments
from .thresholds import THRESHOLDS

_TAIL = 0.01  # share of samples that counts as the tail
_EDGE = 0.01  # of the range: what counts as near an edge
_TURNS = (2 * np.pi, 360.0)
_MOST_SAMPLES = 400_000
_QUARTILES = 1.349  # interquartile range of a normal law, in standard deviations


@dataclass(frozen=True, eq=False)
class Marginals:
    """Per variable: excess kurtosis, tail exponent (of P(|x| > u) ~ u^-alpha), crowding at both edges, and full turn.

    `outliers` counts samples that stand alone, far from the median and from their neighbours in time. `full_turn` is
    2 pi or 360 for what looks like an angle that jumps at its ends, and 0 otherwise.
    """

    kurtosis: Float[np.ndarray, " var"]
    kurtosis_error: Float[np.ndarray, " var"]
    tail: Float[np.ndarray, " var"]
    tail_error: Float[np.ndarray, " var"]
    outliers: np.ndarray
    range: Float[np.ndarray, "side var"]
    crowding: Float[np.ndarray, "side var"]
    full_turn: Float[np.ndarray, " var"]

    def hard_edges(self) -> Float[np.ndarray, "side var"]:
        """Whether samples crowd at the lowest and at the highest value seen."""
        return self.crowding > THRESHOLDS.crowded_edge


def describe_marginals(moments: SeriesMoments) -> Marginals:
    """Kurtosis with its error from the groups, the rest from a thinned sample."""

    def excess(weights: np.ndarray) -> np.ndarray:
        counts = weights * moments.counts
        variance = np.diag(moments.lagged.mean(weights)[0])
        return counts @ moments.quartics / counts.sum() / variance**2 - 3

    series = moments.series
    stride = max(1, series.n_samples // _MOST_SAMPLES)
    sample = np.concatenate([s[::stride] for s in series.segments])
    independent = np.minimum(moments.effective_samples / len(sample), 1.0)
    tails = np.array([tail_exponent(np.abs(x - np.median(x)), share) for x, share in zip(sample.T, independent)])
    ends = np.array([sample.min(axis=0), sample.max(axis=0)])
    near = _EDGE * (ends[1] - ends[0])
    crowding = np.array([(sample < ends[0] + near).mean(axis=0), (sample > ends[1] - near).mean(axis=0)])
    # A smooth record stays at its turning points for a while: one excursion does not make an edge.
    crowding = np.maximum(crowding - 3 * moments.times / series.duration, 0)
    turns = _full_turns(series, ends, (ends[1] - ends[0]) * moments.units.std)
    kurtosis, error = jackknife(excess, moments.groups)
    return Marginals(kurtosis, error, tails[:, 0], tails[:, 1], _outliers(series, sample), ends, crowding, turns)


def tail_exponent(sizes: np.ndarray, independent: float) -> tuple[float, float]:
    """Hill's (1975) estimate from the largest 1 % of sizes, and its error; `independent` is a share of the samples."""
    count = max(int(_TAIL * len(sizes)), 10)
    largest = np.partition(sizes, len(sizes) - count - 1)[-count - 1 :]
    mean_log = np.mean(np.log(largest / largest.min())) if largest.min() > 0 else 0.0
    exponent = 1 / mean_log if mean_log > 0 else np.inf  # tied samples have no tail
    return float(exponent), float(exponent / np.sqrt(max(independent * count, 1.0)))


def _outliers(series: TimeSeries, sample: np.ndarray) -> np.ndarray:
    """Number of samples of each variable beyond 20 standard deviations by the quartiles, half as far from the next."""
    low, middle, high = np.quantile(sample, [0.25, 0.5, 0.75], axis=0)
    far = THRESHOLDS.outlier * (high - low) / _QUARTILES
    far[far < 1e-6] = np.inf
    counts = np.zeros(sample.shape[1], int)
    for segment in series.segments:
        for row, i in zip(*np.nonzero(np.abs(segment - middle) > far)):
            beside = segment[[r for r in (row - 1, row + 1) if 0 <= r < len(segment)], i]
            distance = abs(segment[row, i] - middle[i])
            counts[i] += bool((np.abs(segment[row, i] - beside) > 0.5 * distance).all())
    return counts


def _full_turns(series: TimeSeries, ends: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """2 pi or 360 where the physical `extent` is that, if single steps of one such variable cross most of it."""
    turns = np.zeros(len(extent))
    for turn in _TURNS:
        turns[np.abs(extent / turn - 1) < 0.02] = turn
    for i in np.flatnonzero(turns):
        jump = 0.75 * (ends[1, i] - ends[0, i])
        if sum(int((np.abs(np.diff(s[:, i])) > jump).sum()) for s in series.segments) >= 3:
            # A neighbour with the same range is an angle too, even if it never crossed its ends.
            return turns
    return np.zeros_like(turns)
