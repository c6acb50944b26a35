"""Standardised units inside, physical units outside, and how each product travels between them."""

from dataclasses import dataclass

import numpy as np

from .._core.errors import DataError
from .._core.types import Matrix, Samples, Vector
from .series import TimeSeries


@dataclass(frozen=True)
class Standardizer:
    """Componentwise x = S^-1 (u - mu), S = diag(std) (paper, Sec. V).

    Under it s_u = S^-1 s_x, Phi_u = S Phi_x S and Sigma_u = S Sigma_x.
    """

    mean: Vector
    std: Vector

    @classmethod
    def from_series(cls, series: TimeSeries) -> "Standardizer":
        """Mean and standard deviation of all samples; refuses a constant variable."""
        samples = series.stacked()
        mean, std = samples.mean(axis=0), np.array([column.std() for column in samples.T])
        largest = np.maximum(samples.max(axis=0), -samples.min(axis=0))
        for name, centre, width, size in zip(series.names, mean, std, largest):
            if width <= 1e-12 * size:
                raise DataError(
                    f"Variable {name!r} is constant (always {centre:g}): it has no dynamics to model. Drop it."
                )
        return cls(mean, std)

    def to_standard(self, x: Samples) -> Samples:
        """States, physical to standardised."""
        centred = np.subtract(x, self.mean)
        return np.divide(centred, self.std, out=centred)

    def to_physical(self, x: Samples) -> Samples:
        """States, standardised to physical."""
        return x * self.std + self.mean

    def score_to_physical(self, score: Samples) -> Samples:
        """s_u = S^-1 s_x."""
        return score / self.std

    def mobility_to_physical(self, phi: Matrix) -> Matrix:
        """Phi_u = S Phi_x S (also for covariances and their standard errors)."""
        return self.std[:, None] * phi * self.std

    def mobility_to_standard(self, phi: Matrix) -> Matrix:
        """Phi_x = S^-1 Phi_u S^-1."""
        return phi / self.std[:, None] / self.std

    def noise_factor_to_physical(self, sigma: Matrix) -> Matrix:
        """Sigma_u = S Sigma_x."""
        return self.std[:, None] * sigma
