"""Does a series look the same backwards? A test with moments of second and third order.

    C_ij(h) - C_ji(h)   and   < x_i(t)^2 x_j(t + h) > - < x_i(t + h)^2 x_j(t) >

vanish at every lag for a reversible process. The first sees rotations, also of an angle by its cos and sin. The second
sees what second moments cannot: slow rises and fast falls, in one variable as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.types import Samples
from .lags import lagged_moments
from .resampling import critical, jackknife

_THIRD_ORDER = 6  # variables: in more, second moments only


@dataclass(frozen=True, eq=False)
class ReversalTest:
    """Differences between the series and its reverse, standardised, at each lag, with errors.

    `third` (lag, i, j) is of x_i^2 with x_j, `second` (lag, i, j) of x_i with x_j. A difference counts beyond `limit`
    standard errors.
    """

    lags: np.ndarray
    second: Float[np.ndarray, "lag var var"]
    second_error: Float[np.ndarray, "lag var var"]
    third: Float[np.ndarray, "lag var var"]
    third_error: Float[np.ndarray, "lag var var"]
    limit: float

    @property
    def clearest(self) -> tuple[int, float, tuple[int, int, int]]:
        """Order of the moment that differs most, by how many errors, and where: lag, i, j."""
        sizes = {
            order: np.abs(value) / np.where(error > 0, error, np.inf)
            for order, value, error in ((2, self.second, self.second_error), (3, self.third, self.third_error))
            if value.size
        }
        order = max(sizes, key=lambda k: sizes[k].max())
        lag, i, j = np.unravel_index(int(sizes[order].argmax()), sizes[order].shape)
        return order, float(sizes[order].max()), (int(lag), int(i), int(j))

    @property
    def irreversible(self) -> bool:
        """Whether the series differs from its reverse."""
        return self.clearest[1] > self.limit

    @property
    def visible(self) -> float:
        """The size of a difference that would have been seen in most of the moments."""
        return float(self.limit * np.median(np.concatenate([self.second_error.ravel(), self.third_error.ravel()])))


def compare_with_reverse(segments: Sequence[Samples], lags: np.ndarray, groups: int) -> ReversalTest:
    """Compare a standardised series with its reverse; all differences jointly (Student's law, Bonferroni)."""
    size = segments[0].shape[1]
    squares = [np.square(s) for s in segments] if size <= _THIRD_ORDER else []
    features = [np.concatenate(parts, axis=1) for parts in zip(segments, squares)] if squares else list(segments)
    mean = np.concatenate(features).mean(axis=0)
    # Means drop out but for the ends of records, where they would only add noise.
    centred = [f - mean for f in features]
    moments = lagged_moments(centred, centred, lags, groups)

    def difference(weights: np.ndarray) -> np.ndarray:
        found = moments.mean(weights)
        return found - np.swapaxes(found, 1, 2)

    value, error = jackknife(difference, groups)
    tests = len(lags) * (size * (size - 1) // 2 + (size**2 if squares else 0))
    second, third = np.s_[:, :size, :size], np.s_[:, size:, :size]
    return ReversalTest(lags, value[second], error[second], value[third], error[third], critical(groups, tests))
