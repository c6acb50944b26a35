"""What a network is: a function of one state, and a frozen description that builds it."""

from abc import abstractmethod
from typing import Protocol

import equinox as eqx
import jax
from jaxtyping import Array, Float


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
