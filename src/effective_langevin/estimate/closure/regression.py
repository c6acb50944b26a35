"""The current velocity of a smooth series in a few variables: the mean of dx/dt at each state, by least squares.

    dx/dt = P(x) + A s(x) + rest

with polynomials P. A s(x) holds what a diffusion adds: the current of dx = f dt + sqrt(2) Sigma dW is f - D s. The
regression uses the data as they are. Noise on its inputs would flatten nu, and polynomials do not need it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np
from jaxtyping import Float

from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries
from ...statistics.lags import lagged_moments
from ...statistics.resampling import simplest_of_best
from ...statistics.velocities import differentiate, trim
from .polynomials import PolynomialCurrent, monomials
from .weak_moments import FunctionRows

_RIDGES = (1e-10, 1e-7, 1e-5, 1e-3)
_MOST_TERMS = 220
_LARGEST_DEGREE = 5
_EXACT = 1e-6  # share of < v^2 > below which a further degree is not asked for


@dataclass(frozen=True, eq=False)
class CurrentRegression:
    """Sums of products of features and velocities in groups of time, from which nu of any degree follows."""

    products: Float[np.ndarray, "group feature feature"]
    pairs: Vector
    size: int
    degree: int
    ridge: float
    losses: Float[np.ndarray, "degree ridge"]

    @classmethod
    def of(
        cls, series: TimeSeries, scores: Sequence[Samples], groups: int, degree: int | None = None
    ) -> "CurrentRegression":
        """Take dx/dt of a smooth series; choose the degree, unless it is given, and the ridge."""
        return cls.from_motion(
            trim(series.segments), trim(scores), differentiate(series.segments, series.dt), groups, degree
        )

    @classmethod
    def from_motion(
        cls,
        states: Sequence[Samples],
        scores: Sequence[Samples],
        velocities: Sequence[Samples],
        groups: int,
        degree: int | None = None,
    ) -> "CurrentRegression":
        """Sum over segments of states; choose the degree, unless it is given, and the ridge.

        They are those which predict groups of time left out.
        """
        size = states[0].shape[1]
        terms = _most_terms(sum(map(len, states)))
        most = degree or max(d for d in range(1, _LARGEST_DEGREE + 1) if d == 1 or comb(size + d, d) <= terms)
        width, parts = comb(size + most, size) + 2 * size, zip(states, scores, velocities)
        features = [FunctionRows(partial(_features, most), width, *part) for part in parts if len(part[0])]
        moments = lagged_moments(features, features, [0], groups)
        found = cls(moments.sums[:, 0], moments.pairs[:, 0], size, most, 0.0, np.zeros((0, 0)))
        return found._choose(degree)

    def _choose(self, degree: int | None) -> "CurrentRegression":
        degrees = [degree] if degree else list(range(1, self.degree + 1))
        losses = np.array([[self._held_out(d, ridge) for ridge in _RIDGES] for d in degrees])  # degree, ridge, group
        best = losses.mean(axis=2).argmin(axis=1)
        chosen, *_ = simplest_of_best(losses[np.arange(len(degrees)), best], _EXACT)
        ridge = _RIDGES[best[chosen]]
        return CurrentRegression(self.products, self.pairs, self.size, degrees[chosen], ridge, losses.mean(axis=2))

    def coefficients(self, weights: np.ndarray) -> Float[np.ndarray, "feature var"]:
        """Coefficients of the monomials, then of the score, from groups counted `weights` times each."""
        return self._solve(np.tensordot(weights, self.products, 1), self.degree, self.ridge)

    def current(self, weights: np.ndarray, low: Vector, high: Vector) -> PolynomialCurrent:
        """Return nu as a field, within the box that holds the data."""
        found = self.coefficients(weights)
        return PolynomialCurrent.of(found[: -self.size].T, found[-self.size :].T, low, high)

    def held_out_violation(self) -> tuple[float, float]:
        """Return |sym < nu x^T >| / |< nu nu^T >| over groups that nu was not learned from, with its error."""
        groups = len(self.pairs)
        found = [self._violation(1.0 - np.eye(groups)[g], np.eye(groups)[g]) for g in range(groups)]
        size = float(np.linalg.norm(np.mean([square for _, square in found], axis=0)))
        odd = np.array([matrix for matrix, _ in found])
        error = odd.std(axis=0, ddof=1) / np.sqrt(groups)
        return float(np.linalg.norm(odd.mean(axis=0)) / size), float(np.linalg.norm(error) / size)

    def share_explained(self) -> Vector:
        """Return the share of < v^2 > of each variable that nu explains in groups left out."""
        groups = len(self.pairs)
        rest = np.mean([self._squares(self.degree, self.ridge, g) for g in range(groups)], axis=0)
        return 1 - rest

    def _violation(self, train: np.ndarray, test: np.ndarray) -> tuple[Matrix, Matrix]:
        found, chosen = self.coefficients(train), self._columns(self.degree)
        mean = np.tensordot(test, self.products, 1) / (test @ self.pairs)
        carried = found.T @ mean[np.ix_(chosen, np.arange(1, 1 + self.size))]
        return 0.5 * (carried + carried.T), found.T @ mean[np.ix_(chosen, chosen)] @ found

    def _columns(self, degree: int) -> np.ndarray:
        """The features of a degree: its monomials come first, the scores after all monomials."""
        first = self.products.shape[1] - 2 * self.size
        return np.concatenate([np.arange(comb(self.size + degree, degree)), first + np.arange(self.size)])

    def _solve(self, products: Matrix, degree: int, ridge: float) -> np.ndarray:
        chosen, velocity = self._columns(degree), np.arange(-self.size, 0)
        gram, target = products[np.ix_(chosen, chosen)], products[np.ix_(chosen, velocity)]
        scale = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
        scaled = gram / np.outer(scale, scale) + ridge * np.eye(len(chosen))
        return np.linalg.lstsq(scaled, target / scale[:, None], rcond=None)[0] / scale[:, None]

    def _squares(self, degree: int, ridge: float, group: int) -> Vector:
        """< |v - nu|^2 > / < v^2 > of each variable in one group, with nu from the others."""
        found = self._solve(self.products.sum(axis=0) - self.products[group], degree, ridge)
        chosen, velocity = self._columns(degree), np.arange(-self.size, 0)
        test, whole = self.products[group] / self.pairs[group], self.products.sum(axis=0) / self.pairs.sum()
        cross = np.sum(found * test[np.ix_(chosen, velocity)], axis=0)
        square = np.einsum("fi,fg,gi->i", found, test[np.ix_(chosen, chosen)], found)
        both = np.diagonal(test)[velocity], np.diagonal(whole)[velocity]
        return (both[0] - 2 * cross + square) / both[1]

    def _held_out(self, degree: int, ridge: float) -> Vector:
        return np.array([self._squares(degree, ridge, g).mean() for g in range(len(self.pairs))])


def _features(degree: int, x: Samples, score: Samples, velocity: Samples) -> Samples:
    """Monomials of the states, their scores, and their velocities, side by side."""
    return np.concatenate([monomials(x, degree), score, velocity], axis=1)


def _most_terms(samples: int) -> int:
    """At most a few hundred, and at least a hundred samples for each."""
    return min(_MOST_TERMS, max(samples // 100, 1))
