"""Exact answers in one and two dimensions: the generator of a diffusion on a grid.

    L f = drift . grad f + D : grad grad f,   p from L^T p = 0,   C(tau) = < (e^{L tau} x) x^T >_p

Central differences, second order. It is the oracle for autocorrelations, mean mobilities and the error of a closure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from .._core.types import LagMatrices, Matrix, Samples, Vector

_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class FokkerPlanck:
    """Generator of dx = drift dt + sqrt(2) Sigma(x) dW on a rectangular grid with D = Sigma Sigma^T.

    Parameters
    ----------
    axes : tuple of array
        Grid points along each variable.
    drift : array, shape (point, var)
    diffusion : array, shape (point, var, var)

    Examples
    --------
    >>> line = el.systems.FokkerPlanck.from_system(el.systems.OrnsteinUhlenbeck([[2.0]]), [(-4, 4)], points=401)
    >>> line.covariance().round(3)
    array([[0.5]])
    """

    axes: tuple[np.ndarray, ...]
    drift: Samples
    diffusion: np.ndarray

    @classmethod
    def from_system(cls, system: Any, limits: Sequence[tuple[float, float]], points: int) -> "FokkerPlanck":
        """Evaluate the drift and diffusion of a system of one or two variables on a grid.

        Parameters
        ----------
        system : System
            The system.
        limits : sequence of (float, float)
            First and last grid point along each variable.
        points : int
            Grid points along each variable.

        Returns
        -------
        FokkerPlanck
        """
        return cls.from_functions(system.drift, system.diffusion, limits, points)

    @classmethod
    def from_functions(
        cls, drift: Callable, diffusion: Callable, limits: Sequence[tuple[float, float]], points: int
    ) -> "FokkerPlanck":
        """Evaluate two functions of (sample, var) arrays on a grid.

        Parameters
        ----------
        drift, diffusion : callable
            Functions to (sample, var) and to (sample, var, var).
        limits : sequence of (float, float)
            First and last grid point along each variable.
        points : int
            Grid points along each variable.

        Returns
        -------
        FokkerPlanck
        """
        axes = tuple(np.linspace(low, high, points) for low, high in limits)
        states = _grid_points(axes)
        return cls(axes, np.asarray(drift(states)), np.asarray(diffusion(states)))

    def __repr__(self) -> str:
        return f"FokkerPlanck({' x '.join(str(len(axis)) for axis in self.axes)} points)"

    @property
    def states(self) -> Samples:
        """Grid points, (point, var)."""
        return _grid_points(self.axes)

    @cached_property
    def generator(self) -> sp.csc_array:
        """The backward generator L, sparse."""
        first, second = zip(*(self._derivatives(axis) for axis in range(len(self.axes))))
        total = sp.csc_array((len(self.drift), len(self.drift)))
        for i in range(len(self.axes)):
            total = total + sp.diags_array(self.drift[:, i]) @ first[i]
            total = total + sp.diags_array(self.diffusion[:, i, i]) @ second[i]
            for j in range(i):
                total = total + sp.diags_array(2 * self.diffusion[:, i, j]) @ (first[i] @ first[j])
        return sp.csc_array(total)

    @cached_property
    def density(self) -> np.ndarray:
        """Stationary probability of each grid point (sums to one)."""
        operator = self.generator.T.tolil()
        operator[0] = 1.0
        right = np.zeros(operator.shape[0])
        right[0] = 1.0
        return splu(sp.csc_array(operator)).solve(right)

    def mean(self) -> Vector:
        """Return the stationary mean."""
        return self.density @ self.states

    def covariance(self) -> Matrix:
        """Return the stationary covariance."""
        centred = self.states - self.mean()
        return centred.T @ (self.density[:, None] * centred)

    def mean_mobility(self) -> Matrix:
        """Return <M> = -< (L x) x^T > = -dC/dt(0+)."""
        return -(self.drift * self.density[:, None]).T @ (self.states - self.mean())

    def current(self) -> Samples:
        """Return nu with p nu_i = drift_i p - sum_j d_j (D_ij p) at each grid point; NaN where p is negligible."""
        slopes = [self._derivatives(axis)[0] for axis in range(len(self.axes))]
        flux = self.drift * self.density[:, None]
        for j, slope in enumerate(slopes):
            flux -= slope @ (self.diffusion[:, :, j] * self.density[:, None])
        negligible = self.density < _NEGLIGIBLE * self.density.max()
        return np.where(negligible[:, None], np.nan, flux / np.where(negligible, 1.0, self.density)[:, None])

    def entropy_production(self) -> float:
        """Return < nu . D^-1 nu > over the grid points where p is not negligible."""
        velocity = self.current()
        seen = np.isfinite(velocity[:, 0])
        pulled = np.linalg.solve(self.diffusion[seen], velocity[seen, :, None])[..., 0]
        return float(self.density[seen] @ np.sum(velocity[seen] * pulled, axis=1))

    def correlation(self, dt: float, lags: int, substeps: int = 8) -> LagMatrices:
        """Return C(k dt) = < x(k dt) x(0)^T > for k = 0 ... lags, by a second-order L-stable time step.

        Parameters
        ----------
        dt : float
            Interval between lags.
        lags : int
            Number of lags beyond lag 0.
        substeps : int, default 8
            Time steps in one interval.

        Returns
        -------
        array, shape (lags + 1, var, var)
        """
        centred = self.states - self.mean()
        weighted, advance = self.density[:, None] * centred, expectation_after(dt, self.generator, substeps)
        value, out = centred.copy(), [centred.T @ weighted]
        for _ in range(lags):
            value = advance(value)
            out.append(value.T @ weighted)
        return np.array(out)

    def _derivatives(self, axis: int) -> list[sp.csr_array]:
        """Return first and second central differences along an axis (one-sided at the border, where p vanishes)."""
        n, step = len(self.axes[axis]), self.axes[axis][1] - self.axes[axis][0]
        one = sp.lil_array(0.5 * (sp.eye_array(n, k=1) - sp.eye_array(n, k=-1)))
        one[0, :2], one[-1, -2:] = [-0.5, 0.5], [-0.5, 0.5]
        two = sp.lil_array(sp.eye_array(n, k=1) - 2 * sp.eye_array(n) + sp.eye_array(n, k=-1))
        two[0, :2], two[-1, -2:] = [-1, 1], [1, -1]
        others = [sp.eye_array(len(grid)) for grid in self.axes]
        return [
            sp.csr_array(reduce(sp.kron, [*others[:axis], matrix, *others[axis + 1 :]]))
            for matrix in (one / step, two / step**2)
        ]


def expectation_after(dt: float, generator: Any, substeps: int = 8) -> Callable[[np.ndarray], np.ndarray]:
    """Return the map from f to E[f(x(dt)) | x(0)] on the grid, by a second-order L-stable time step."""
    h, gamma = dt / substeps, 1 - np.sqrt(0.5)
    solver = splu(sp.csc_array(sp.eye_array(generator.shape[0]) - gamma * h * generator))

    def advance(value: np.ndarray) -> np.ndarray:
        for _ in range(substeps):
            half = value + h * (1 - gamma) * solver.solve(generator @ value)
            value = half + h * gamma * solver.solve(generator @ half)
        return value

    return advance


def _grid_points(axes: Sequence[np.ndarray]) -> Samples:
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
