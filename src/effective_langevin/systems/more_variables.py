"""Equations in three variables or any number of them, with what is known about them exactly."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from .._core import checks
from .._core.errors import ArgumentError
from .._core.types import Matrix, Samples
from ..execution.batches import times
from .base import System


class OrnsteinUhlenbeck(System):
    """dx = -A x dt + sqrt(2) Sigma dW. Covariance A C + C A^T = 2 Sigma Sigma^T, score -C^-1 x, mobility A C.

    Parameters
    ----------
    drift_matrix : array, shape (var, var)
        A; its eigenvalues have positive real parts.
    noise_matrix : array, shape (var, brownian), optional
        Sigma; default: the identity.

    Examples
    --------
    >>> system = el.systems.OrnsteinUhlenbeck([[1.0, 2.0], [-2.0, 1.0]])
    >>> system.covariance
    array([[1., 0.],
           [0., 1.]])
    >>> system.mobility
    array([[ 1.,  2.],
           [-2.,  1.]])
    """

    step: ClassVar[float] = 0.01
    burn_in: ClassVar[float] = 0.0
    drift_matrix: np.ndarray
    noise_matrix: np.ndarray

    def __init__(self, drift_matrix: Matrix, noise_matrix: Matrix | None = None):
        size = len(drift_matrix)
        self.drift_matrix = checks.shaped_array("drift_matrix", drift_matrix, (size, size), "(var, var)")
        given = np.eye(size) if noise_matrix is None else noise_matrix
        self.noise_matrix = checks.shaped_array("noise_matrix", given, (size, None), "(var, brownian)")
        if np.linalg.eigvals(self.drift_matrix).real.min() <= 0:
            raise ArgumentError(
                "Argument `drift_matrix` must have eigenvalues with positive real part: the process is not stationary."
            )

    @classmethod
    def rotating(cls, dimension: int, rotation: float = 1.0) -> "OrnsteinUhlenbeck":
        """Make a process that is not reversible, with relaxation rates 1, 1.5, 2, ...

        Parameters
        ----------
        dimension : int
            Number of variables.
        rotation : float, default 1.0
            Strength of the rotation between neighbouring variables.

        Returns
        -------
        OrnsteinUhlenbeck
            The process.
        """
        rates = np.diag(1 + 0.5 * np.arange(dimension))
        turn = rotation * (np.eye(dimension, k=1) - np.eye(dimension, k=-1))
        return cls(rates + turn, np.eye(dimension) + 0.3 * np.eye(dimension, k=-1))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables: x1, x2, ..."""
        return tuple(f"x{i + 1}" for i in range(len(self.drift_matrix)))

    @property
    def covariance(self) -> Matrix:
        """Stationary covariance, from the Lyapunov equation."""
        return solve_continuous_lyapunov(self.drift_matrix, 2 * self.noise_matrix @ self.noise_matrix.T)

    @property
    def mobility(self) -> Matrix:
        """A C."""
        return self.drift_matrix @ self.covariance

    @property
    def entropy_production(self) -> float | None:
        """tr(B^T D^-1 B C) with nu = -B x, B = A - D C^-1; None where no noise acts along nu."""
        covariance, diffusion = self.covariance, self.noise_matrix @ self.noise_matrix.T
        turning = self.drift_matrix - diffusion @ np.linalg.inv(covariance)
        inverse = np.linalg.pinv(diffusion, hermitian=True)
        if not np.allclose(diffusion @ inverse @ turning, turning, atol=1e-9 * np.abs(self.drift_matrix).max()):
            return None
        return float(np.trace(turning.T @ inverse @ turning @ covariance))

    def score_function(self, x: Samples) -> Samples:
        return -np.linalg.solve(self.covariance, np.asarray(x, float)[..., None])[..., 0]

    def _initial(self, members, rng):
        return rng.multivariate_normal(np.zeros(self.dimension), self.covariance, members)

    def _drift(self, x):
        return -times(jnp.asarray(self.drift_matrix, x.dtype), x[None])[0]

    def _noise(self, x):
        return self.noise_matrix


class StochasticLorenz63(System):
    """Lorenz-63 with noise of amplitude 5 on each variable.

    No exact score is known. The diffusion is noise^2 / 2 times the identity; the circulation depends strongly on the
    state, so a constant closure follows only the envelope of the third autocorrelation.

    Parameters
    ----------
    sigma, rho, beta, noise : float
        Prandtl number, Rayleigh number, aspect ratio and amplitude of the noise; defaults 10, 28, 8/3, 5.

    Examples
    --------
    >>> el.systems.StochasticLorenz63().drift([1.0, 2.0, 3.0])
    array([10., 23., -6.])
    """

    names: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 30.0
    exact: ClassVar[tuple[str, ...]] = ()
    sigma: float = 10.0
    rho: float = 28.0
    beta: float = 8 / 3
    noise: float = 5.0

    def _initial(self, members, rng):
        return np.array([0.0, 0.0, 25.0]) + 5 * rng.normal(size=(members, 3))

    def _drift(self, x):
        return jnp.stack([self.sigma * (x[1] - x[0]), x[0] * (self.rho - x[2]) - x[1], x[0] * x[1] - self.beta * x[2]])

    def _noise(self, x):
        return self.noise / np.sqrt(2) * np.eye(3)
