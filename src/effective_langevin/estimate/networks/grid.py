"""A vector field around circles, given by its values on a grid."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class OnGrid(eqx.Module):
    """A periodic vector field between its values on a regular grid, by linear interpolation."""

    values: Float[Array, "... var"]
    periods: tuple[float, ...] = eqx.field(static=True)

    @classmethod
    def blank(cls, shape: tuple[int, ...], periods: tuple[float, ...]) -> "OnGrid":
        """Of the right shape, with nothing in it."""
        return cls(jnp.zeros((*shape, len(shape))), periods)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        shape = self.values.shape[:-1]
        cell, shares = _place(x, shape, self.periods)
        around = tuple((cell[i] + _sides(len(shape))[:, i]) % n for i, n in enumerate(shape))
        return jnp.sum(shares[:, None] * self.values[around], axis=0)

    def flat(self, dimension: int, half: bool = False) -> "OnCorners":
        """The form in which it is stepped fastest: all values around a cell in one place."""
        axes = tuple(range(dimension))
        around = [jnp.roll(self.values, [-int(step) for step in side], axes) for side in _sides(dimension)]
        return OnCorners(jnp.stack(around, axis=-2), self.periods)

    @property
    def architecture(self) -> dict[str, Any]:
        """What `rebuilt` needs to make a field of the same shape."""
        return {"kind": "OnGrid", "shape": list(self.values.shape[:-1]), "periods": list(self.periods)}


class OnCorners(eqx.Module):
    """The same field with the values at all corners of a cell beside each other."""

    corners: Float[Array, "... corner var"]
    periods: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        shape = self.corners.shape[:-2]
        cell, shares = _place(x, shape, self.periods)
        return jnp.sum(shares[:, None] * self.corners[tuple(cell[i] % n for i, n in enumerate(shape))], axis=0)


def _place(x: Array, shape: tuple[int, ...], periods: tuple[float, ...]) -> tuple[Array, Array]:
    """The cell of a state, and the share that each of its corners has in the value there."""
    place = x * jnp.asarray([n / period for n, period in zip(shape, periods)], x.dtype)
    low = jnp.floor(place)
    shares = jnp.prod(jnp.where(_sides(len(shape)) == 1, place - low, 1 - place + low), axis=1)
    return low.astype(jnp.int32), shares


def _sides(dimension: int) -> np.ndarray:
    """The corners of a cell, (corner, var), 0 or 1 along each side."""
    return np.array(list(np.ndindex(*(2 for _ in range(dimension)))))
