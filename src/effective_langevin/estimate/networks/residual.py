"""Gaussian preconditioning: the network learns only what is not linear."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Float


class Residual(eqx.Module):
    """linear x + network(x): with linear = sigma (C + sigma^2)^-1 the network is what the Gaussian score leaves."""

    linear: Float[Array, "var var"]
    network: Any

    @classmethod
    def blank(cls, network: Any, dimension: int) -> "Residual":
        """Of the right shape, with nothing in it."""
        return cls(jnp.zeros((dimension, dimension)), network)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        return jnp.matmul(self.linear, x, precision=Precision.HIGHEST) + self.network(x)

    def in_batch(self, x: Float[Array, "batch var"], half: bool = False) -> Float[Array, "batch var"]:
        """A batch of states."""
        return jnp.matmul(x, self.linear.T, precision=Precision.HIGHEST) + self.network.in_batch(x, half)

    def frozen(self, x: Float[Array, "batch var"]) -> "Residual":
        """As used after training."""
        return Residual(self.linear, self.network.frozen(x))

    def scaled_by(self, factor: float) -> "Residual":
        """The sum times a number."""
        return Residual(factor * self.linear, self.network.scaled_by(factor))

    def flat(self, dimension: int, half: bool = False) -> "Residual":
        """The form in which it is stepped fastest; `half` the digits are enough for what is left beside the rest."""
        return Residual(self.linear, self.network.flat(dimension, half))

    def followed_by(self, matrix: Float[Array, "var var"]) -> "Residual":
        """The sum and then a matrix; for a flat network, which can absorb one."""
        return Residual(jnp.matmul(matrix, self.linear, precision=Precision.HIGHEST), self.network.followed_by(matrix))

    @property
    def architecture(self) -> dict[str, Any]:
        """What `rebuilt` needs to make a network of the same shape."""
        return {"kind": "Residual", "network": self.network.architecture}
