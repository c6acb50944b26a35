"""What a network is: a function of one state, a frozen description that builds it, and networks made of others."""

from abc import abstractmethod
from functools import reduce
from operator import add
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Float

from ...execution.grid import corner_offsets, locate
from ..space import StateSpace


class AbstractNetwork(eqx.Module):
    """A map from one standardised state to one vector of the same length, or to several. Every subclass is final.

    How it runs fast, over many states or steps, is registered elsewhere (`forms`), for its class.
    """

    @abstractmethod
    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        """Map one state."""


class NetworkStrategy(Protocol):
    """A description of a network."""

    def build(self, dimension: int, *, key: jax.Array) -> AbstractNetwork:
        """Draw fresh weights for a state of that dimension.

        With a further argument `outputs` the network can learn the current velocity beside the score.
        """
        ...


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


class OnGrid(AbstractNetwork):
    """A periodic vector field between its values on a regular grid, by linear interpolation."""

    values: Float[Array, "... var"]
    periods: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        shape = self.values.shape[:-1]
        cell, shares = locate(x, shape, self.periods)
        around = tuple((cell[i] + corner_offsets(len(shape))[:, i]) % n for i, n in enumerate(shape))
        return jnp.sum(shares[:, None] * self.values[around], axis=0)
