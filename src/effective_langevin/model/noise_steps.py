"""How many steps a sampling interval needs where noise reaches the observed variables through hidden ones.

Most of such noise is brought by motion, so that few steps get its variance wrong though they resolve all rates. For the
linear part of the equation, dx = -A x dt + noise of covariance 2 D dt, both variances are known. A midpoint step h
takes x to (1 - h A + h^2 A^2 / 2) x and adds noise of covariance 2 h (B D B^T + E D E^T), B = 1 - h A / 2 from its
first draw and E = h A / 2 - h^2 A^2 / 8 from its second.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import expm

from .._core.types import Matrix, Vector

if TYPE_CHECKING:
    from .langevin import LangevinModel

_OFF = 0.01  # share of the variance
_NOTHING = 1e-9  # share of the variance of the data beneath which noise does not matter
_MOST = 64


def steps_of_noise(model: "LangevinModel", dt: float) -> int:
    """Return the least number of steps at which noise moves the observed variables over `dt` by the right variance."""
    covariance = model.score.covariance
    phi = model.standardizer.mobility_to_standard(model.mobility.matrix)
    rates = phi @ np.linalg.inv(covariance)
    decay = expm(-dt * rates)
    exact, whole = np.diagonal(covariance - decay @ covariance @ decay.T), np.diagonal(covariance)
    for steps in range(1, _MOST):
        off = np.abs(variance_of_steps(rates, 0.5 * (phi + phi.T), dt, steps) - exact)
        if (off <= _OFF * exact + _NOTHING * whole)[: model.space.observed].all():
            return steps
    return _MOST


def variance_of_steps(rates: Matrix, diffusion: Matrix, dt: float, steps: int) -> Vector:
    """Return the variance that midpoint steps of a linear equation give a state known before, after `dt`."""
    one, moved = np.eye(len(rates)), dt / steps * rates
    first, second = one - 0.5 * moved, 0.5 * moved - 0.125 * moved @ moved
    kick = 2 * dt / steps * (first @ diffusion @ first.T + second @ diffusion @ second.T)
    decay, covariance = one - moved + 0.5 * moved @ moved, np.zeros_like(kick)
    for _ in range(steps):
        covariance = decay @ covariance @ decay.T + kick
    return np.diagonal(covariance)
