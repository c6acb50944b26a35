"""Distances between the statistics of data and model, one definition each."""

import numpy as np
from jaxtyping import Float

from .._core.types import Matrix


def matrix_error(found: Matrix, exact: Matrix) -> float:
    """|A - B|_F / |B|_F, of mobilities and of covariances."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def pdf_kl(data: Float[np.ndarray, "var bin"], model: Float[np.ndarray, "var bin"]) -> Float[np.ndarray, " var"]:
    """KL(data || model) of each variable from counts in common bins; half a count keeps empty bins finite."""
    p = data / data.sum(axis=-1, keepdims=True)
    q = (model + 0.5) / (model + 0.5).sum(axis=-1, keepdims=True)
    return np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0) / q), 0.0), axis=-1)


def acf_rmse(data: Float[np.ndarray, "lag var"], model: Float[np.ndarray, "lag var"]) -> float:
    """Root mean square over variables and lags of the difference of normalised autocorrelations."""
    return float(np.sqrt(np.mean((data - model) ** 2)))


def increment_error(data: Float[np.ndarray, "lag var"], model: Float[np.ndarray, "lag var"]) -> float:
    """Largest relative difference of mean squared increments; what is unknown or zero in the data does not count."""
    known = np.isfinite(data) & np.isfinite(model) & (data > 0)
    return float(np.max(np.abs(model[known] / data[known] - 1), initial=0.0))
