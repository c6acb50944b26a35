"""Symmetries of the state space: what the process looks the same under.

A symmetry averages matrices over its group, Phi_G = mean_g U_g Phi U_g^T, splits them into the blocks that the group
leaves independent (one per Fourier mode on a ring), and moves samples around on their orbits. Translations on a ring of
points make Phi circulant; reflections as well make it symmetric, so that nothing circulates (paper, O(2)).
"""

import warnings
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core import checks
from .._core.errors import ArgumentError, EstimateWarning
from .._core.types import Matrix, Samples, Vector
from ..data import Standardizer, TimeSeries
from ..statistics.lags import lagged_moments
from ..statistics.resampling import SymmetryTest, compare_with_image

_GROUPS = 32


class Symmetry:
    """What the estimators ask of a symmetry; the group without any element but one. States are (..., var).

    `channels` is the number of fields on a periodic grid, None where the variables are not points of a grid.
    """

    channels: int | None = None

    def check(self, dimension: int) -> None:
        """Refuse a series whose variables the group cannot act on."""

    def moved(self, x: Float[Array, "sample var"], *, key: jax.Array) -> Float[Array, "sample var"]:
        """Move every sample by a random element of the group (traceable)."""
        return x

    def mirrored(self, x: Samples) -> Samples:
        """Reflect samples, or forces on them; without a reflection, return them as they are."""
        return x

    def project(self, matrix: Matrix) -> Matrix:
        """Average matrices (..., var, var) over the group."""
        return matrix

    def project_vector(self, vector: Vector) -> Vector:
        """Average a vector over the group."""
        return vector

    def blocks(self, matrix: Matrix) -> np.ndarray:
        """Return the independent blocks of a projected matrix, (..., block, n, n)."""
        return matrix[..., None, :, :]

    def joined(self, blocks: np.ndarray, dimension: int) -> Matrix:
        """Return the matrix with the given blocks."""
        return blocks[..., 0, :, :]

    def without_reflections(self) -> "Symmetry | None":
        """Return the subgroup without reflections, None if the group has none."""
        return None


@dataclass(frozen=True)
class NoSymmetry(Symmetry):
    """Nothing is known: one block, nothing averaged."""


@dataclass(frozen=True)
class Translations(Symmetry):
    """The variables are points on a ring, and no point is special: SO(2).

    Parameters
    ----------
    channels : int, default 1
        Number of fields. The state is field after field, each on the same points.
    continuous : bool, default False
        The points resolve the fields, so that a shift by any distance is a symmetry. A score is then trained on samples
        shifted by fractions of a point, along their Fourier interpolant. It makes more of the same data.

    Examples
    --------
    >>> el.Translations(channels=2).channels
    2
    """

    channels: int = 1
    continuous: bool = False

    def __post_init__(self):
        checks.integer_at_least("channels", self.channels, 1)
        checks.instance_of("continuous", self.continuous, (bool,))

    def check(self, dimension: int) -> None:
        if dimension % self.channels or dimension // self.channels < 3:
            raise ArgumentError(
                f"{type(self).__name__} acts on {self.channels} field(s) of at least 3 points on a ring, but the "
                f"series has {dimension} variables."
            )

    def moved(self, x, *, key: jax.Array):
        """Every sample shifted around the ring by a random number of points, whole or any."""
        points = x.shape[1] // self.channels
        if self.continuous:
            return self._glided(x, jax.random.uniform(key, (len(x), 1, 1), x.dtype, 0, points))
        return self._shifted(x, jax.random.randint(key, (len(x), 1), 0, points))

    def project(self, matrix: Matrix) -> Matrix:
        return self.joined(self.blocks(matrix), matrix.shape[-1])

    def project_vector(self, vector: Vector) -> Vector:
        """The mean of each field at all its points."""
        fields = vector.reshape(*vector.shape[:-1], self.channels, -1)
        return np.broadcast_to(fields.mean(axis=-1, keepdims=True), fields.shape).reshape(vector.shape)

    def blocks(self, matrix: Matrix) -> np.ndarray:
        """One channel x channel block per Fourier mode: the transform of the mean over each circulant diagonal."""
        points = matrix.shape[-1] // self.channels
        grid = matrix.reshape(*matrix.shape[:-2], self.channels, points, self.channels, points)
        here = np.arange(points)
        diagonals = np.moveaxis(grid, -2, -3)[..., (here[:, None] + here) % points, here]
        return np.moveaxis(np.fft.rfft(diagonals.mean(axis=-1), axis=-1), -1, -3)

    def joined(self, blocks: np.ndarray, dimension: int) -> Matrix:
        points = dimension // self.channels
        columns = np.fft.irfft(np.moveaxis(blocks, -3, -1), points, axis=-1)
        here = np.arange(points)
        grid = np.moveaxis(columns[..., (here[:, None] - here) % points], -3, -2)
        return grid.reshape(*blocks.shape[:-3], dimension, dimension)

    def _shifted(self, x, shift):
        points = x.shape[1] // self.channels
        within = (jnp.arange(points) - shift) % points
        place = jnp.concatenate([points * c + within for c in range(self.channels)], axis=1)
        return jnp.take_along_axis(x, place, axis=1)

    def _glided(self, x, shift):
        """Shifted by any number of points: each Fourier mode turns by its own angle."""
        fields = x.reshape(len(x), self.channels, -1)
        points = fields.shape[-1]
        turn = jnp.exp(-2j * jnp.pi / points * shift * jnp.arange(points // 2 + 1))
        return jnp.fft.irfft(turn * jnp.fft.rfft(fields), points).reshape(x.shape)


@dataclass(frozen=True)
class TranslationsAndReflections(Translations):
    """No point and no direction on the ring is special: O(2), so that Phi_A = 0 for a single field.

    Parameters
    ----------
    channels : int, default 1
        Number of fields. The state is field after field, each on the same points.
    continuous : bool, default False
        Shifts by any distance are a symmetry, as in `Translations`.
    parity : int or tuple of int, default 1
        A reflection maps field u(x) to `parity` u(-x); 1 or -1, for all fields or one for each.

    Examples
    --------
    >>> el.TranslationsAndReflections(channels=2, parity=(1, -1)).parity
    (1, -1)
    """

    parity: int | tuple[int, ...] = 1

    def __post_init__(self):
        super().__post_init__()
        signs = self.parity if isinstance(self.parity, tuple | list) else (self.parity,) * self.channels
        if len(signs) != self.channels or any(sign not in (-1, 1) for sign in signs):
            must = f"1 or -1, for all fields or for each of {self.channels}"
            raise checks.refused("parity", must, self.parity)
        object.__setattr__(self, "parity", tuple(int(sign) for sign in signs))

    def without_reflections(self) -> Translations:
        return Translations(self.channels)

    @property
    def _signs(self) -> np.ndarray:
        return np.asarray(self.parity)

    def moved(self, x, *, key: jax.Array):
        shift_key, flip_key = jax.random.split(key)
        flip = jax.random.bernoulli(flip_key, 0.5, (len(x), 1))
        return super().moved(jnp.where(flip, self.mirrored(x), x), key=shift_key)

    def mirrored(self, x):
        fields = x.reshape(len(x), self.channels, -1)[..., ::-1] * self._signs.astype(x.dtype)[:, None]
        return fields.reshape(x.shape)

    def project_vector(self, vector: Vector) -> Vector:
        """The mean of each even field; an odd one has none."""
        even = np.repeat((1 + self._signs) / 2, vector.shape[-1] // self.channels)
        return even * super().project_vector(vector)

    def blocks(self, matrix: Matrix) -> np.ndarray:
        """As for translations; the reflection maps a mode to its complex conjugate, with the signs of the fields."""
        modes = super().blocks(matrix)
        return 0.5 * (modes + np.outer(self._signs, self._signs) * modes.conj())


SYMMETRIES = {kind.__name__: kind for kind in (NoSymmetry, Translations, TranslationsAndReflections)}


def common_units(units: Standardizer, symmetry: Symmetry) -> Standardizer:
    """Mean and standard deviation averaged over the variables that the symmetry makes alike."""
    mean = symmetry.project_vector(units.mean)
    second = symmetry.project(np.diag(units.std**2 + (units.mean - mean) ** 2))
    return Standardizer(mean, np.sqrt(np.diagonal(second)))


def compare_with_projection(series: TimeSeries, symmetry: Symmetry, lag: int) -> SymmetryTest:
    """Compare C(0), C(lag) of a standardised series with their projections, against a bootstrap over blocks of time."""
    moments = lagged_moments(series.segments, series.segments, [0, lag], _GROUPS)

    def departure(weights: np.ndarray) -> np.ndarray:
        correlation = moments.mean(weights)
        return correlation - symmetry.project(correlation)

    return compare_with_image(departure, float(np.linalg.norm(moments.mean())), _GROUPS)


def check_symmetry(series: TimeSeries, symmetry: Symmetry) -> SymmetryTest | None:
    """Test whether a standardised series has the symmetry it is said to have; warn if it does not."""
    if not symmetry.channels:
        return None
    result = compare_with_projection(series, symmetry, 1)
    if not result.respected:
        warnings.warn(
            f"The data do not respect {type(symmetry).__name__}: their correlations are {100 * result.distance:.2g} % "
            "away from it, more than sampling error explains. Leave out `symmetry`, or choose a smaller group.",
            EstimateWarning,
            stacklevel=3,
        )
    return result
