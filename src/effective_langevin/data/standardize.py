"""Standardised units inside, physical units outside, and how each product travels between them."""

from dataclasses import dataclass

import numpy as np

from .._core.errors import DataError
from .._core.types import Matrix, Samples, Vector
from .series import TimeSeries

_SMALLEST, _LARGEST = 1e-75, 1e75  # fourth powers stay within float64
_FAR = 1e4  # ranges between a variable and zero


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Standardised units x = S^-1 (u - mean), with S = diag(std) (paper, Sec. V).

    Scores transform as s_u = S^-1 s_x, mobilities as Phi_u = S Phi_x S.

    Parameters
    ----------
    mean, std : array (var,)
        Mean and standard deviation of each variable.

    Examples
    --------
    >>> series = el.TimeSeries(np.array([[1.0], [3.0]]), dt=1.0)
    >>> units = el.Standardizer.from_series(series)
    >>> units.to_standard(series.values).tolist()
    [[-1.0], [1.0]]
    """

    mean: Vector
    std: Vector

    @classmethod
    def from_series(cls, series: TimeSeries) -> "Standardizer":
        """Compute mean and standard deviation of all samples; refuse a constant variable.

        Parameters
        ----------
        series : TimeSeries
            The series in physical units.

        Returns
        -------
        Standardizer
        """
        ends = [(block.min(axis=0), block.max(axis=0)) for block in series.blocks()]
        low, high = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
        with np.errstate(over="ignore"):
            spread = high - low
        for name, first, width in zip(series.names, low, spread):
            if width == 0:
                raise DataError(
                    f"Variable {name!r} is constant (always {first:g}): it has no dynamics to model. Drop it."
                )
            if not _SMALLEST < width < _LARGEST:
                raise DataError(
                    f"Variable {name!r} varies by {width:.3g}: powers of such numbers leave the range of float64. "
                    "Give it in another unit."
                )
        shift = np.where(np.maximum(high, -low) > _FAR * spread, low, 0.0)  # no digit is lost to a large offset
        count, mean, variance = 0, np.zeros(len(shift)), np.zeros(len(shift))
        for block in series.blocks():
            shifted = block - shift if shift.any() else block
            added = shifted.mean(axis=0), np.array([column.var() for column in shifted.T])
            count, mean, variance = _merge(count, mean, variance, len(block), *added)
        return cls(shift + mean, np.sqrt(variance))

    def of_first(self, count: int) -> "Standardizer":
        """Return the units of the first variables alone.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        Standardizer
        """
        return Standardizer(self.mean[:count], self.std[:count])

    def to_standard(self, x: Samples) -> Samples:
        """Convert states from physical to standardised units.

        Parameters
        ----------
        x : array (sample, var)
            The states.

        Returns
        -------
        array (sample, var)
        """
        centred = np.subtract(x, self.mean)
        return np.divide(centred, self.std, out=centred)

    def to_physical(self, x: Samples) -> Samples:
        """Convert states from standardised to physical units.

        Parameters
        ----------
        x : array (sample, var)
            The states.

        Returns
        -------
        array (sample, var)
        """
        return x * self.std + self.mean

    def score_to_physical(self, score: Samples) -> Samples:
        """Convert a score to physical units, s_u = S^-1 s_x.

        Parameters
        ----------
        score : array (sample, var)
            The score in standardised units.

        Returns
        -------
        array (sample, var)
        """
        return score / self.std

    def mobility_to_physical(self, phi: Matrix) -> Matrix:
        """Convert a mobility, a covariance or its errors to physical units, Phi_u = S Phi_x S.

        Parameters
        ----------
        phi : array (var, var)
            The mobility.

        Returns
        -------
        array (var, var)
        """
        return self.std[:, None] * phi * self.std

    def mobility_to_standard(self, phi: Matrix) -> Matrix:
        """Convert a mobility to standardised units, Phi_x = S^-1 Phi_u S^-1.

        Parameters
        ----------
        phi : array (var, var)
            The mobility.

        Returns
        -------
        array (var, var)
        """
        return phi / self.std[:, None] / self.std

    def noise_factor_to_physical(self, sigma: Matrix) -> Matrix:
        """Convert a noise factor to physical units, Sigma_u = S Sigma_x.

        Parameters
        ----------
        sigma : array (var, var)
            The noise factor in standardised units.

        Returns
        -------
        array (var, var)
        """
        return self.std[:, None] * sigma


def _merge(
    count: int, mean: Vector, variance: Vector, more: int, other_mean: Vector, other_variance: Vector
) -> tuple[int, Vector, Vector]:
    """Return number, mean and variance of two sets of samples together (Chan, Golub, LeVeque 1979)."""
    if not count:
        return more, other_mean, other_variance
    total, apart = count + more, other_mean - mean
    squares = count * variance + more * other_variance + apart**2 * (count * more / total)
    return total, mean + apart * (more / total), squares / total
