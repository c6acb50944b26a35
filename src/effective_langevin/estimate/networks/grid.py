"""A vector field around circles, given by its values on a grid."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...execution.grid import corner_offsets, locate
from .network import AbstractNetwork


class OnGrid(AbstractNetwork):
    """A periodic vector field between its values on a regular grid, by linear interpolation."""

    values: Float[Array, "... var"]
    periods: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        shape = self.values.shape[:-1]
        cell, shares = locate(x, shape, self.periods)
        around = tuple((cell[i] + corner_offsets(len(shape))[:, i]) % n for i, n in enumerate(shape))
        return jnp.sum(shares[:, None] * self.values[around], axis=0)
