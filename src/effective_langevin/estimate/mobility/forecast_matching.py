"""A mobility with positive diffusion that forecasts what is observed as the inferred one does.

A delayed copy of a variable moves without noise: what it becomes is known. No diffusion in continuous time does that,
so that the D inferred beside delays has a negative eigenvalue, however long the record. To raise it adds noise
that reaches the observed variables within one sampling interval: for x(t + 1) = 1.2 x(t) - 0.3 x(t - 1) + noise, the
variance of the forecast becomes 22 % too large. But the hidden variables are free. Of all mobilities with positive
diffusion we take the one whose forecasts of the observed variables are nearest, in Kullback-Leibler divergence.

In coordinates z in which the states have covariance 1 and the observed variables come first, as far as forecasts are
linear, those over a time tau have mean b z and variance S,

    P = exp(-Phi tau),   b = P[observed],   S = 1 - b b^T,

and their divergence from those with mean B z and variance S_0 = 1 - B B^T is, averaged over states,

    [ tr S^-1 (S_0 + (b - B)(b - B)^T) - ln det S_0 S^-1 - n ] / 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import expm, expm_frechet
from scipy.optimize import minimize

from ..._core.types import Matrix, Vector

_FLOOR = 1e-4  # least eigenvalue of D, in units of the largest
_TOLD = 0.1  # correlation with the state beneath which a forecast tells nothing
_MOST_DOUBLINGS = 40
_MOST_STEPS, _PRECISION = 1000, 1e-7

Means = Float[np.ndarray, "observed var"]


def match_forecasts(phi: Matrix, start: Matrix, covariance: Matrix, dt: float, observed: int) -> Matrix | None:
    """Return the mobility with positive diffusion whose forecasts of the first variables are those of `phi`.

    The search begins at `start`, whose diffusion is positive. `covariance` is that of the steady state. Forecasts over
    1, 2, 4, ... sampling intervals count alike, until they tell nothing. Where those of `phi` have no positive
    variance there is nothing to match: None.
    """
    root = np.linalg.cholesky(covariance)
    rates, begin = (dt * np.linalg.solve(root, np.linalg.solve(root, matrix).T).T for matrix in (phi, start))
    aims = _forecasts(rates, observed)
    if not aims:
        return None
    shape = _Positive(len(phi), _FLOOR * float(np.abs(np.linalg.eigvalsh(rates + rates.T)).max()) / 2)

    def loss(parameters: Vector) -> tuple[float, Vector]:
        value, slope = _distance(shape.matrix(parameters), aims)
        return value, shape.slope(parameters, slope)

    options = {"maxiter": _MOST_STEPS, "gtol": _PRECISION, "ftol": 0.0, "maxcor": 30}
    found = minimize(loss, shape.parameters(begin), jac=True, method="L-BFGS-B", options=options)
    return root @ shape.matrix(found.x) @ root.T / dt


def _forecasts(rates: Matrix, observed: int) -> list[Means]:
    """Return the mean forecasts over 1, 2, 4, ... sampling intervals, while they have a variance and tell anything."""
    step, means = expm(-rates), []
    for _ in range(_MOST_DOUBLINGS):
        told = np.linalg.norm(step[:observed], 2)
        if not _TOLD < told < 1:
            break
        means.append(step[:observed])
        step = step @ step
    return means


def _distance(rates: Matrix, aims: Sequence[Means]) -> tuple[float, Matrix]:
    """Return the sum of the divergences over all leads, and its slope along each entry of `rates`."""
    steps = [expm(-rates)]
    for _ in aims[1:]:
        steps.append(steps[-1] @ steps[-1])
    value, slope = 0.0, np.zeros_like(rates)
    for k in reversed(range(len(aims))):
        if k + 1 < len(aims):  # through the square
            slope = slope @ steps[k].T + steps[k].T @ slope
        own, by_mean = _divergence(steps[k][: len(aims[k])], aims[k])
        value += own
        slope[: len(by_mean)] += by_mean
    return value, -np.asarray(expm_frechet(-rates.T, slope, compute_expm=False))


def _divergence(mean: Means, aim: Means) -> tuple[float, Means]:
    """Return the divergence of forecasts from those aimed at, and its slope along each entry of their mean."""
    one = np.eye(len(mean))
    variance, wanted = one - mean @ mean.T, one - aim @ aim.T
    inverse, off = np.linalg.inv(variance), mean - aim
    left = inverse @ (wanted + off @ off.T)
    value = np.trace(left) - np.linalg.slogdet(wanted @ inverse)[1] - len(mean)
    return 0.5 * float(value), inverse @ off - (one - left) @ inverse @ mean


@dataclass(frozen=True)
class _Positive:
    """Matrices K K^T + floor + R with K lower triangular and R antisymmetric, and their parameters."""

    size: int
    floor: float

    def matrix(self, parameters: Vector) -> Matrix:
        lower, turning = self._split(parameters)
        return lower @ lower.T + self.floor * np.eye(self.size) + turning - turning.T

    def slope(self, parameters: Vector, slope: Matrix) -> Vector:
        """Return the slope along each parameter from that along each entry."""
        lower, _ = self._split(parameters)
        along = (slope + slope.T) @ lower
        return np.concatenate([along[np.tril_indices(self.size)], (slope - slope.T)[np.triu_indices(self.size, 1)]])

    def parameters(self, matrix: Matrix) -> Vector:
        """Return the parameters of a matrix, with a symmetric part raised to twice the floor."""
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        lower = np.linalg.cholesky((vectors * np.maximum(values - self.floor, self.floor)) @ vectors.T)
        turning = 0.5 * (matrix - matrix.T)
        return np.concatenate([lower[np.tril_indices(self.size)], turning[np.triu_indices(self.size, 1)]])

    def _split(self, parameters: Vector) -> tuple[Matrix, Matrix]:
        count = self.size * (self.size + 1) // 2
        lower, turning = np.zeros((self.size, self.size)), np.zeros((self.size, self.size))
        lower[np.tril_indices(self.size)] = parameters[:count]
        turning[np.triu_indices(self.size, 1)] = parameters[count:]
        return lower, turning
