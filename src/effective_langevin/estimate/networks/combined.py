"""Networks made of others."""

from functools import reduce
from operator import add

import equinox as eqx
import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Float

from ..space import StateSpace
from .network import AbstractNetwork


class Residual(AbstractNetwork):
    """linear x + network(x): with linear = sigma (C + sigma^2)^-1 the network learns what the Gaussian score leaves."""

    linear: Float[Array, "var var"]
    network: AbstractNetwork

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        return jnp.matmul(self.linear, x, precision=Precision.HIGHEST) + self.network(x)


class Sum(AbstractNetwork):
    """The sum of networks."""

    networks: tuple[AbstractNetwork, ...]

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        return reduce(add, (network(x) for network in self.networks))


class OnCircles(AbstractNetwork):
    """network(cos, sin, ...), periodic by construction: `periods` has None for a variable that is not an angle."""

    network: AbstractNetwork
    periods: tuple[float | None, ...] = eqx.field(static=True)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        return self.network(StateSpace(self.periods).embed(x, library=jnp))
