"""Current velocity and diffusion as functions of the standardised state, for many states at once.

Both are pytrees whose arrays are data: they are stored like networks, and one compilation serves all of one shape.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

States = Float[Array, "batch var"]
Tensors = Float[Array, "batch var var"]


class CurrentField(eqx.Module):
    """nu(x), the mean velocity at x. Every subclass is final."""

    @abstractmethod
    def in_batch(self, x: States, score: States) -> States:
        """Return nu at each state, given the score there."""


class DiffusionField(eqx.Module):
    """D(x), positive semi-definite everywhere. Every subclass is final."""

    @abstractmethod
    def in_batch(self, x: States) -> Tensors:
        """Return D at each state."""

    @abstractmethod
    def factor(self, x: States) -> Tensors:
        """Return a matrix whose product with its transpose is D, at each state."""

    def divergence(self, x: States) -> States:
        """Return sum_j d_j D_ij at each state, of the very field that `in_batch` returns."""

        def along(j):
            direction = jnp.zeros(x.shape[1]).at[j].set(1.0)
            slope = jax.jvp(self.in_batch, (x,), (jnp.broadcast_to(direction, x.shape),))[1]
            return slope[:, :, j]

        return sum(along(j) for j in range(x.shape[1]))
