"""Matrix functions that several stages need."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .errors import ArgumentError, DataError
from .types import Matrix

_ROUNDING = 1e-9


@contextmanager
def singular_refused(reasons: str = "") -> Iterator[None]:
    """Turn a matrix that the series leaves singular into a sentence about the series, with the reasons if known."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        guess = (
            "A variable may be a combination of others, repeat itself exactly, or hardly vary. `el.diagnose(series)` "
            "names redundant variables; drop them, or use `preprocess=[el.preprocess.PCA(0.99)]`."
        )
        raise DataError(f"The series does not determine the model ({error}). {reasons or guess}") from error


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


def positive_part(matrix: Matrix) -> Matrix:
    """The symmetric part, without its negative eigenvalues: no noise where the data show none."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return vectors * np.maximum(values, 0.0) @ vectors.T
