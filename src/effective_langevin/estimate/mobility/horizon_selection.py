"""One mobility out of Phi(T) at many horizons T: the combination with the least estimated error.

Phi(T) of a short horizon hardly depends on the score and has the largest error of quadrature; that of a long one the
reverse, and it drifts with T where the score is off or the mobility depends on the state. Each candidate is the value
at T -> 0 of a polynomial of degree 0, 1 or 2 through the horizons up to some T_max. Its mean square error is the sum of

    sampling      the scatter when blocks of time are left out
    trend         the square of its distance from the most flexible candidate, less what the other two explain of it
    quadrature    the square of the change to be expected from a finer sampling, from that to a coarser one

The choice is cross-validated: what the chosen candidate makes of four fifths of the series is compared with what the
most flexible one makes of the fifth held out, and that distance with the one to be expected. (To choose by that
distance is worse: see `benchmarks/horizon_rule.py`.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core.types import LagMatrices, Matrix
from ...statistics.resampling import for_each

_GAIN = 16.0  # a cubic spline's error falls as h^4
_DEGREES = (0, 1, 2)
_FOLDS = 5


@dataclass(frozen=True)
class Combination:
    """Weights of the horizons, and the squares of the three errors, as norms over all entries of Phi."""

    degree: int
    weights: np.ndarray
    sampling: float
    trend: float
    quadrature: float
    bias: Matrix
    reference: float  # sampling error of the most flexible candidate, squared

    @property
    def error(self) -> float:
        return float(np.sqrt(self.sampling + self.trend + self.quadrature))

    @property
    def expected_held_out(self) -> float:
        """The distance between both sides of a cross-validation that these errors lead to expect."""
        return float(np.sqrt(_FOLDS / (_FOLDS - 1) * self.sampling + _FOLDS * self.reference + self.trend))

    def evidence(self, size: float) -> dict[str, Any]:
        """Return the fields of `HorizonEvidence` that describe the choice, relative to |Phi| = `size`."""
        return {
            "rule": "mean" if self.degree == 0 else "limit",
            "degree": self.degree,
            "used": int(np.count_nonzero(self.weights)),
            "weights": self.weights,
            "sampling_error": float(np.sqrt(self.sampling) / size),
            "trend_error": float(np.sqrt(self.trend) / size),
            "quadrature_error": float(np.sqrt(self.quadrature) / size),
        }


def select_combination(
    fine: LagMatrices, others: np.ndarray, coarse: LagMatrices, candidates: list[tuple[int, np.ndarray]]
) -> Combination:
    """The candidate with the least estimated error.

    `fine` is Phi(T), `others` the same with each block of time left out in turn, `coarse` at every second horizon from
    every second lag.
    """
    unbiased = candidates[-1][1]
    signed = quadrature_error(fine, coarse)
    apart = np.moveaxis(others - others.mean(axis=0), 1, 0).reshape(len(fine), -1)
    covariance = (len(others) - 1) / len(others) * (apart @ apart.T)  # of the horizons, over all entries of Phi

    def scatter(weights: np.ndarray) -> float:
        return max(0.0, float(weights @ covariance @ weights))

    def rated(degree: int, weights: np.ndarray) -> Combination:
        bias, apart = np.tensordot(weights, signed, 1), weights - unbiased
        explained = scatter(apart) + np.sum(np.tensordot(apart, signed, 1) ** 2)
        trend = max(0.0, float(np.sum(np.tensordot(apart, fine, 1) ** 2) - explained))
        return Combination(degree, weights, scatter(weights), trend, float(np.sum(bias**2)), bias, scatter(unbiased))

    return min((rated(*candidate) for candidate in candidates), key=lambda c: c.error)


def held_out_error(
    by_horizon: Callable[[np.ndarray], LagMatrices], groups: int, candidates: list[np.ndarray], unbiased: np.ndarray
) -> np.ndarray:
    """Distance of each candidate on the rest of the series from the unbiased one on the part held out; rms over parts.

    `by_horizon` gives Phi(T) for any weights of the groups of samples, which are consecutive.
    """
    part = np.arange(groups) * min(_FOLDS, groups) // groups
    rest, held_out = (
        for_each(by_horizon, choice.astype(float))
        for choice in (part != np.unique(part)[:, None], part == np.unique(part)[:, None])
    )
    aim = np.tensordot(held_out, unbiased, (1, 0))
    apart = [np.tensordot(rest, weights, (1, 0)) - aim for weights in candidates]
    return np.sqrt([np.mean(np.sum(difference**2, axis=(1, 2))) for difference in apart])


def candidate_weights(times: np.ndarray, degrees: Sequence[int] = _DEGREES) -> list[tuple[int, np.ndarray]]:
    """Degree and weights of each candidate; the most flexible, by default a parabola through all horizons, is last.

    `times` are those over which the horizons average.
    """
    count = len(times)
    found = []
    for degree in degrees:
        for used in sorted({1, 2, 3, 4, 6, count // 2, count}):
            if used <= count and used >= (degree + 2 if degree else 1):
                weights = np.zeros(count)
                powers = (times[:used, None] / times[used - 1]) ** np.arange(degree + 1)
                weights[:used] = np.linalg.pinv(powers)[0]
                found.append((degree, weights))
    return found


def quadrature_error(fine: LagMatrices, coarse: LagMatrices) -> LagMatrices:
    """Error of the integral at each horizon, from halving the resolution; the first lag counts double."""
    gaps = (fine[1 : 2 * len(coarse) : 2] - coarse) / _GAIN
    error = np.repeat(gaps, 2, axis=0)[: len(fine)]
    error = np.concatenate([error, np.repeat(error[-1:], len(fine) - len(error), axis=0)])
    error[0] *= 2
    return error
