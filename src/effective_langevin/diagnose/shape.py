"""The shape of the distribution of each variable: heavy tails, hard edges, angles."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..statistics.resampling import jackknife
from .survey import Survey

_TAIL = 0.01  # share of samples that counts as the tail
_EDGE = 0.01  # of the range: what counts as near an edge
_CROWDED = 0.002  # share of the samples near an edge above which the edge is hard
_TURNS = (2 * np.pi, 360.0)
_MOST_SAMPLES = 400_000
_FAR = 20.0  # standard deviations, by the quartiles
_QUARTILES = 1.349  # interquartile range of a normal law, in standard deviations


@dataclass(frozen=True)
class Shape:
    """Per variable: excess kurtosis, tail exponent (of P(|x| > u) ~ u^-alpha), crowding at both edges, and full turn.

    `outliers` counts samples that stand alone, far from the median and from their neighbours in time. `full_turn` is
    2 pi or 360 for what looks like an angle that jumps at its ends, else 0.
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
        return self.crowding > _CROWDED


def describe_shape(survey: Survey) -> Shape:
    """Kurtosis with its error from the groups, the rest from a thinned sample."""

    def excess(weights: np.ndarray) -> np.ndarray:
        counts = weights * survey.counts
        variance = np.diag(survey.moments.mean(weights)[0])
        return counts @ survey.quartics / counts.sum() / variance**2 - 3

    kurtosis, kurtosis_error = jackknife(excess, survey.groups)
    stride = max(1, survey.series.n_samples // _MOST_SAMPLES)
    sample = np.concatenate([s[::stride] for s in survey.series.segments])
    independent = np.minimum(survey.effective_samples / len(sample), 1.0)
    tails = [tail_exponent(np.abs(x - np.median(x)), share) for x, share in zip(sample.T, independent)]
    low, high = sample.min(axis=0), sample.max(axis=0)
    near = _EDGE * (high - low)
    crowding = np.array([(sample < low + near).mean(axis=0), (sample > high - near).mean(axis=0)])
    # A smooth record stays at its turning points for a while: what one excursion can do is no edge.
    crowding -= 3 * survey.times / survey.series.duration
    tail, tail_error = np.array(tails).T
    spans = np.array([low, high])
    crowding, turns = np.maximum(crowding, 0), _full_turns(survey, spans)
    return Shape(kurtosis, kurtosis_error, tail, tail_error, _outliers(survey, sample), spans, crowding, turns)


def tail_exponent(sizes: np.ndarray, independent: float) -> tuple[float, float]:
    """Hill's estimate from the largest 1 % of sizes, and its error; `independent` is the share of independent ones."""
    count = max(int(_TAIL * len(sizes)), 10)
    largest = np.partition(sizes, len(sizes) - count - 1)[-count - 1 :]
    mean_log = np.mean(np.log(largest / largest.min())) if largest.min() > 0 else 0.0
    # Tied samples have no tail.
    exponent = 1 / mean_log if mean_log > 0 else np.inf
    return float(exponent), float(exponent / np.sqrt(max(independent * count, 1.0)))


def _outliers(survey: Survey, sample: np.ndarray) -> np.ndarray:
    """Number of samples of each variable beyond 20 standard deviations by the quartiles, half as far from the next."""
    low, middle, high = np.quantile(sample, [0.25, 0.5, 0.75], axis=0)
    far = _FAR * (high - low) / _QUARTILES
    far[far < 1e-6] = np.inf
    found = np.zeros(sample.shape[1], int)
    for segment in survey.series.segments:
        rows, columns = np.nonzero(np.abs(segment - middle) > far)
        for row, i in zip(rows, columns):
            beside = segment[[r for r in (row - 1, row + 1) if 0 <= r < len(segment)], i]
            distance = abs(segment[row, i] - middle[i])
            found[i] += bool((np.abs(segment[row, i] - beside) > 0.5 * distance).all())
    return found


def _full_turns(survey: Survey, spans: np.ndarray) -> np.ndarray:
    """2 pi or 360 where the range is that, if single steps of one such variable cross most of it; else 0."""
    extent = (spans[1] - spans[0]) * survey.units.std
    turns = np.zeros(len(extent))
    for turn in _TURNS:
        turns[np.abs(extent / turn - 1) < 0.02] = turn
    for i in np.flatnonzero(turns):
        jump = 0.75 * (spans[1, i] - spans[0, i])
        jumps = sum(int((np.abs(np.diff(s[:, i])) > jump).sum()) for s in survey.series.segments)
        if jumps >= 3:
            # A neighbour with the same range is an angle too, even if it never crossed its ends.
            return turns
    return np.zeros_like(turns)
