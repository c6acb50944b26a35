"""Exact answers in one and two dimensions: the generator of a diffusion on a grid.

    L f = drift . grad f + D : grad grad f,   p from L^T p = 0,   C(tau) = < (e^{L tau} x) x^T >_p

Central differences, second order. It is the oracle for autocorrelations, mean mobilities and the error of a closure.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from .._core.types import LagMatrices, Matrix, Samples, Vector


@dataclass(frozen=True)
class FokkerPlanck:
    """Generator of dx = drift dt + sqrt(2) Sigma(x) dW on a rectangular grid with D = Sigma Sigma^T."""

    axes: tuple[np.ndarray, ...]
    drift: Samples
    diffusion: np.ndarray

    @classmethod
    def from_system(cls, system, limits, points: int) -> "FokkerPlanck":
        """Evaluate the drift and diffusion of a system of one or two dimensions on a grid."""
        return cls.from_functions(system.drift, system.diffusion, limits, points)

    @classmethod
    def from_functions(cls, drift, diffusion, limits, points: int) -> "FokkerPlanck":
        """As `from_system`, from two functions of (sample, var) arrays."""
        axes = tuple(np.linspace(low, high, points) for low, high in limits)
        states = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
        return cls(axes, np.asarray(drift(states)), np.asarray(diffusion(states)))

    @property
    def states(self) -> Samples:
        """Grid points, (point, var)."""
        return np.stack([m.ravel() for m in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    @cached_property
    def generator(self) -> sp.csc_array:
        """The backward generator L, sparse."""
        first, second = self._derivatives()
        total = sp.csc_array((len(self.drift), len(self.drift)))
        for i in range(len(self.axes)):
            total = (
                total
                + sp.diags_array(self.drift[:, i]) @ first[i]
                + sp.diags_array(self.diffusion[:, i, i]) @ second[i]
            )
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
        """Stationary mean."""
        return self.density @ self.states

    def covariance(self) -> Matrix:
        """Stationary covariance."""
        centred = self.states - self.mean()
        return centred.T @ (self.density[:, None] * centred)

    def mean_mobility(self) -> Matrix:
        """<M> = -< (L x) x^T > = -dC/dt(0+)."""
        centred = self.states - self.mean()
        return -(self.drift * self.density[:, None]).T @ centred

    def correlation(self, dt: float, lags: int, substeps: int = 8) -> LagMatrices:
        """C(k dt) = < x(k dt) x(0)^T > for k = 0 ... lags, by a second-order L-stable time step."""
        centred = self.states - self.mean()
        weighted = self.density[:, None] * centred
        h = dt / substeps
        gamma = 1 - np.sqrt(0.5)
        solver = splu(sp.csc_array(sp.eye_array(len(self.drift)) - gamma * h * self.generator))
        value, out = centred.copy(), [centred.T @ weighted]
        for _ in range(lags):
            for _ in range(substeps):
                stage = solver.solve(self.generator @ value)
                value = (
                    value
                    + h * (1 - gamma) * stage
                    + h * gamma * solver.solve(self.generator @ (value + h * (1 - gamma) * stage))
                )
            out.append(value.T @ weighted)
        return np.array(out)

    def _derivatives(self):
        """First and second central differences along each axis (one-sided at the border, where p vanishes)."""
        first, second = [], []
        for axis, grid in enumerate(self.axes):
            n, step = len(grid), grid[1] - grid[0]
            one = sp.lil_array(0.5 * (sp.eye_array(n, k=1) - sp.eye_array(n, k=-1)))
            one[0, :2], one[-1, -2:] = [-0.5, 0.5], [-0.5, 0.5]
            two = sp.lil_array(sp.eye_array(n, k=1) - 2 * sp.eye_array(n) + sp.eye_array(n, k=-1))
            two[0, :2], two[-1, -2:] = [-1, 1], [1, -1]
            for store, matrix in ((first, one / step), (second, two / step**2)):
                factors = [sp.eye_array(len(g)) for g in self.axes]
                factors[axis] = matrix
                product = factors[0]
                for factor in factors[1:]:
                    product = sp.kron(product, factor)
                store.append(sp.csr_array(product))
        return first, second
