"""Does a series look the same backwards? A test with moments of second and third order, and with turns.

    C_ij(h) - C_ji(h),   < x_i(t)^2 x_j(t + h) > - < x_i(t + h)^2 x_j(t) >   and the mean turn of (x_i, x_j) within h

vanish at every lag for a reversible process. The first sees rotations, also of an angle by its cos and sin. The second
sees what second moments cannot: slow rises and fast falls, in one variable as well. The third counts turns around the
mean, each as much as any other: areas of opposite sign at small and large radii cancel in second moments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.types import Samples
from .lags import LaggedMoments, lagged_moments
from .resampling import critical, jackknife

_MOST_VARIABLES = 6  # in more, second moments only
_ALIKE = 1e-6  # of two variables: what is left of one given the other, as a share of its variance


@dataclass(frozen=True, eq=False)
class Difference:
    """A difference between the series and its reverse, at each lag and for each i and j, with its error."""

    value: Float[np.ndarray, "lag var var"]
    error: Float[np.ndarray, "lag var var"]

    @property
    def sizes(self) -> Float[np.ndarray, "lag var var"]:
        """How many errors each is away from zero."""
        return np.abs(self.value) / np.where(self.error > 0, self.error, np.inf)


@dataclass(frozen=True, eq=False)
class ReversalTest:
    """Differences between the series and its reverse, standardised; one counts beyond `limit` standard errors.

    `differences` are "second" (of x_i with x_j), "third" (of x_i^2 with x_j) and "turns" (of x_i and x_j around their
    mean, per lag).
    """

    lags: np.ndarray
    differences: dict[str, Difference]
    limit: float

    @property
    def clearest(self) -> tuple[str, float, tuple[int, int, int]]:
        """Which difference is largest, by how many errors, and where: lag, i, j."""
        kind = max(self.differences, key=lambda name: self.differences[name].sizes.max())
        sizes = self.differences[kind].sizes
        lag, i, j = np.unravel_index(int(sizes.argmax()), sizes.shape)
        return kind, float(sizes.max()), (int(lag), int(i), int(j))

    def differs(self, kind: str) -> bool:
        return kind in self.differences and bool(self.differences[kind].sizes.max() > self.limit)

    @property
    def irreversible(self) -> bool:
        return any(self.differs(kind) for kind in self.differences)

    @property
    def visible(self) -> float:
        """The size of a difference that would have been seen in most of the moments."""
        moments = [d.error.ravel() for kind, d in self.differences.items() if kind != "turns"]
        return float(self.limit * np.median(np.concatenate(moments)))


def compare_with_reverse(
    segments: Sequence[Samples], lags: np.ndarray, groups: int, second: LaggedMoments | None = None
) -> ReversalTest:
    """Compare a standardised series with its reverse; all differences jointly (Student's law, Bonferroni).

    In many variables nothing but moments of `second` order is looked at, which may be known.
    """
    size = segments[0].shape[1]
    few, pairs = size <= _MOST_VARIABLES, size * (size - 1) // 2
    if few or second is None:
        features = [np.concatenate([s, np.square(s)], axis=1) if few else s for s in segments]
        mean = np.concatenate(features).mean(axis=0)
        # Means drop out but for the ends of records, where they would only add noise.
        centred = [f - mean for f in features]
        moments = lagged_moments(centred, centred, lags, groups)
    else:
        centred, moments = [], second

    def difference(weights: np.ndarray) -> np.ndarray:
        found = moments.mean(weights)
        return found - np.swapaxes(found, 1, 2)

    value, error = jackknife(difference, groups)
    kinds = {"second": np.s_[:, :size, :size]} | ({"third": np.s_[:, size:, :size]} if few else {})
    differences = {kind: Difference(value[part], error[part]) for kind, part in kinds.items()}
    if few and pairs:
        differences["turns"] = Difference(*jackknife(_mean_turns([c[:, :size] for c in centred], lags, groups), groups))
    tests = len(lags) * (pairs + (size**2 + pairs if few else 0))
    return ReversalTest(lags, differences, critical(groups, tests))


def _mean_turns(centred: Sequence[Samples], lags: np.ndarray, groups: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the mean turns (lag, i, j) from x_i towards x_j around the mean, for any weights of the groups."""
    first, second = np.triu_indices(centred[0].shape[1], 1)
    covariance = np.cov(np.concatenate(centred).T)
    slope = covariance[first, second] / covariance[first, first]
    rest = np.diagonal(covariance)[second] - slope * covariance[first, second]
    known = rest > _ALIKE * np.diagonal(covariance)[second]
    # What x_i tells of x_j is taken out: two variables that are nearly alike turn within a narrow ellipse.
    into = np.where(known, np.sqrt(covariance[first, first] / np.where(known, rest, 1.0)), 0.0)
    angles = [np.arctan2(into * (x[:, second] - slope * x[:, first]), x[:, first]) / (2 * np.pi) for x in centred]
    ones = [np.ones((len(x), 1)) for x in centred]
    counted = [lagged_moments(ones, [_turned(angle, lag) for angle in angles], [lag], groups) for lag in lags]

    def turns(weights: np.ndarray) -> np.ndarray:
        found = np.zeros((len(lags), *covariance.shape))
        found[:, first, second] = [counts.mean(weights)[0, 0] for counts in counted]
        return found - np.swapaxes(found, 1, 2)

    return turns


def _turned(angle: Samples, lag: int) -> Samples:
    """Return the turns from each sample to that `lag` later, half a turn at most; zero where the record ends before."""
    moved = np.zeros(angle.shape)
    step = angle[lag:] - angle[:-lag]
    moved[: len(step)] = step - np.round(step)
    return moved
