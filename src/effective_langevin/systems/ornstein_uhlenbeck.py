"""Ornstein-Uhlenbeck processes of any dimension, reversible or rotating."""

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
    """dx = -A x dt + sqrt(2) Sigma dW. Covariance A C + C A^T = 2 Sigma Sigma^T, score -C^-1 x, mobility A C."""

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
        """A non-reversible process: relaxation rates 1, 1.5, 2, ... and a rotation between neighbouring variables."""
        rates = np.diag(1 + 0.5 * np.arange(dimension))
        turn = rotation * (np.eye(dimension, k=1) - np.eye(dimension, k=-1))
        return cls(rates + turn, np.eye(dimension) + 0.3 * np.eye(dimension, k=-1))

    @property
    def names(self) -> tuple[str, ...]:
        """x1, x2, ..."""
        return tuple(f"x{i + 1}" for i in range(len(self.drift_matrix)))

    @property
    def covariance(self) -> Matrix:
        """The stationary covariance, from the Lyapunov equation."""
        return solve_continuous_lyapunov(self.drift_matrix, 2 * self.noise_matrix @ self.noise_matrix.T)

    @property
    def mobility(self) -> Matrix:
        """A C."""
        return self.drift_matrix @ self.covariance

    def score_function(self, x: Samples) -> Samples:
        """-C^-1 x."""
        return -np.linalg.solve(self.covariance, np.asarray(x, float)[..., None])[..., 0]

    def _initial(self, members, rng):
        return rng.multivariate_normal(np.zeros(self.dimension), self.covariance, members)

    def _equation(self):
        return self._drift, self.noise_matrix

    def _drift(self, x):
        return -times(jnp.asarray(self.drift_matrix, x.dtype), x[None])[0]
