"""Matrix functions that several stages need."""

import numpy as np

from .errors import ArgumentError
from .types import Matrix

_ROUNDING = 1e-9


def square_root(matrix: Matrix) -> Matrix:
    """Return S with S S^T = `matrix`: lower triangular if that is positive definite, symmetric if it is singular."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        if values[0] < -_ROUNDING * values[-1]:
            raise ArgumentError(
                f"A diffusion tensor cannot have a negative eigenvalue, but got {values[0]:g}."
            ) from None
        return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
