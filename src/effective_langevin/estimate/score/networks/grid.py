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
        place = x * jnp.asarray([n / period for n, period in zip(shape, self.periods)], x.dtype)
        low = jnp.floor(place)
        beyond, first = place - low, low.astype(jnp.int32)
        total = jnp.zeros_like(x)
        for corner in np.ndindex(*(2 for _ in shape)):
            share = jnp.prod(jnp.where(jnp.asarray(corner) == 1, beyond, 1 - beyond))
            cell = tuple((first[i] + step) % n for i, (step, n) in enumerate(zip(corner, shape)))
            total += share * self.values[cell]
        return total

    def flat(self, dimension: int) -> "OnGrid":
        """Already in the form in which it is stepped fastest."""
        return self

    @property
    def architecture(self) -> dict[str, Any]:
        """What `rebuilt` needs to make a field of the same shape."""
        return {"kind": "OnGrid", "shape": list(self.values.shape[:-1]), "periods": list(self.periods)}
