"""Linear interpolation on a regular periodic grid, with the values at all corners of a cell beside each other."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class OnCorners(eqx.Module):
    """A vector field between its values at the corners of each cell; one look-up per state."""

    corners: Float[Array, "... corner var"]
    periods: tuple[float, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, values: Float[Array, "... var"], periods: tuple[float, ...]) -> "OnCorners":
        """Gather the values around every cell."""
        axes = tuple(range(values.ndim - 1))
        around = [jnp.roll(values, [-int(step) for step in side], axes) for side in corner_offsets(len(axes))]
        return cls(jnp.stack(around, axis=-2), periods)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        shape = self.corners.shape[:-2]
        cell, shares = locate(x, shape, self.periods)
        return jnp.sum(shares[:, None] * self.corners[tuple(cell[i] % n for i, n in enumerate(shape))], axis=0)


def locate(x: Array, shape: tuple[int, ...], periods: tuple[float, ...]) -> tuple[Array, Array]:
    """Return the cell of a state, and the weight that each of its corners has in the value there."""
    place = x * jnp.asarray([n / period for n, period in zip(shape, periods)], x.dtype)
    low = jnp.floor(place)
    shares = jnp.prod(jnp.where(corner_offsets(len(shape)) == 1, place - low, 1 - place + low), axis=1)
    return low.astype(jnp.int32), shares


def corner_offsets(dimension: int) -> np.ndarray:
    """Return the corners of a cell, (corner, var), 0 or 1 along each side."""
    return np.array(list(np.ndindex(*(2,) * dimension)))
