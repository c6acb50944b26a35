"""The distribution of each variable: heavy tails, outliers, hard edges, angles."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.format import listed, measured
from ..data import TimeSeries
from ..statistics.resampling import jackknife
from . import thresholds
from .finding import Finding, Quantity
from .moments import SeriesMoments

_TAIL = 0.01  # share of samples that counts as the tail
_EDGE = 0.01  # of the range: what counts as near an edge
_TURNS = (2 * np.pi, 360.0)
_MOST_SAMPLES, _LEAST_SAMPLES, _NUMBERS = 400_000, 100_000, 1 << 22  # looked at, fewer of many variables
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
        return self.crowding > thresholds.CROWDED_EDGE


def describe_marginals(moments: SeriesMoments) -> Marginals:
    """Kurtosis with its error from the groups, the rest from a thinned sample."""

    def excess(weights: np.ndarray) -> np.ndarray:
        counts = weights * moments.counts
        variance = weights @ moments.own[:, 0] / (weights @ moments.pairs[:, 0])
        return counts @ moments.quartics / counts.sum() / variance**2 - 3

    series = moments.excerpt
    most = np.clip(_NUMBERS // series.dimension, _LEAST_SAMPLES, _MOST_SAMPLES)
    stride = max(1, series.n_samples // int(most))
    sample = np.concatenate([s[::stride] for s in series.segments])
    independent = np.minimum(series.duration / (2 * moments.times) / len(sample), 1.0)
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
    far = thresholds.OUTLIER * (high - low) / _QUARTILES
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


_TRY_LOG = "Record for longer, or look at the histogram. A positive, skewed variable is better fitted as its logarithm."


def check_tails(moments: SeriesMoments, found: Marginals) -> Finding:
    """Judge outliers, tail exponent and kurtosis."""
    names, kurtosis, error = moments.series.names, found.kurtosis, found.kurtosis_error
    numbers = {
        "excess_kurtosis": Quantity(kurtosis, error),
        "tail_exponent": Quantity(found.tail, found.tail_error),
        "outliers": Quantity(found.outliers),
    }
    if 0 < found.outliers.sum() < thresholds.FEW_OUTLIERS * moments.series.n_samples:
        hit = listed([f"{name} {n}" for name, n in zip(names, found.outliers) if n])
        meaning = f"Outliers: single samples far from all others, {hit}. They distort every moment."
        return Finding("tails", "warning", meaning, "Look at them. If they are errors, replace them by NaN.", numbers)
    heavy = found.tail + 2 * found.tail_error < thresholds.TAIL_EXPONENT
    if heavy.any():
        worst = int(np.argmin(np.where(heavy, found.tail, np.inf)))
        meaning = (
            f"Heavy tails in {listed([n for n, h in zip(names, heavy) if h])}: P(|x| > u) falls like u to the power "
            f"-{measured(found.tail[worst], found.tail_error[worst])} ({names[worst]}). Moments of fourth order do not "
            "exist, so error bars of variances and correlations are too small."
        )
        advice = (
            "Check for outliers. Transform the variable before fitting, for example with "
            f'`preprocess=[el.preprocess.Log(["{names[worst]}"])]` if it is positive.'
        )
        return Finding("tails", "warning", meaning, advice, numbers)
    peaked = (kurtosis > thresholds.KURTOSIS) & (kurtosis > thresholds.SURE * error)
    worst = int(np.argmax(np.where(peaked, kurtosis, kurtosis - 1e6)))
    most = f"excess kurtosis {measured(kurtosis[worst], error[worst])} ({names[worst]})"
    if peaked.any():
        advice = "Check for outliers. If the tails are real, the noise may depend on the state: see the validation."
        return Finding("tails", "note", f"Tails heavier than Gaussian: {most}. Moments are finite.", advice, numbers)
    if (kurtosis + 2 * error > thresholds.KURTOSIS).any():
        advice = "" if (kurtosis < thresholds.KURTOSIS).all() else _TRY_LOG
        level = "note" if advice else "ok"
        return Finding("tails", level, f"Cannot tell whether tails are heavier than Gaussian: {most}.", advice, numbers)
    return Finding("tails", "ok", f"No heavy tails: {most}.", "", numbers)


def check_edges(moments: SeriesMoments, found: Marginals) -> Finding:
    """Look for hard limits of the variables, and for angles."""
    names, hard = moments.series.names, found.hard_edges()
    limits = moments.units.mean + moments.units.std * found.range
    numbers = {
        "lowest": Quantity(limits[0]),
        "highest": Quantity(limits[1]),
        "crowding_at_lowest": Quantity(found.crowding[0]),
        "crowding_at_highest": Quantity(found.crowding[1]),
    }
    angles = [name for name, turn in zip(names, found.full_turn) if turn]
    if angles:
        period, turn = ("360", "360") if found.full_turn.max() > 10 else ("2 pi", "2 * np.pi")
        looks = "looks like an angle" if len(angles) == 1 else "look like angles"
        meaning = f"{listed(angles)} {looks}: the range is {period}, with jumps from one end to the other."
        declared = ", ".join(f'"{name}": {turn}' for name in angles)
        advice = f"Declare it: `el.TimeSeries(..., periods={{{declared}}})`. The fit then treats it as a circle."
        return Finding("edges", "warning", meaning, advice, numbers)
    sides = [(i, side) for i in range(len(names)) for side in (0, 1) if hard[side, i]]
    if sides:
        bounded = listed([f"{names[i]} at {measured(limits[side, i])}" for i, side in sides])
        advice = (
            "The score jumps there. Transform to an unbounded variable, for example with "
            f'`preprocess=[el.preprocess.Log(["{names[sides[0][0]]}"])]` if the edge is at zero, or expect leaks.'
        )
        return Finding("edges", "note", f"Samples crowd at a hard edge: {bounded}.", advice, numbers)
    return Finding("edges", "ok", "No hard edges seen.", "", numbers)
