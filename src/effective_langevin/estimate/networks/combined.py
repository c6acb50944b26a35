"""Networks added up."""

from functools import reduce
from operator import add
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ...execution.batches import for_batches


class Sum(eqx.Module):
    """The sum of networks."""

    networks: tuple[Any, ...]

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        return reduce(add, (network(x) for network in self.networks))

    def in_batch(self, x: Float[Array, "batch var"], half: bool = False) -> Float[Array, "batch var"]:
        """A batch of states, with the digits they have."""
        return reduce(add, (for_batches(network)(x) for network in self.networks))

    def flat(self, dimension: int, half: bool = False) -> "Sum":
        """The form in which it is stepped fastest."""
        return Sum(tuple(network.flat(dimension, half) for network in self.networks))

    @property
    def architecture(self) -> dict[str, Any]:
        """What `rebuilt` needs to make networks of the same shape."""
        return {"kind": "Sum", "networks": [network.architecture for network in self.networks]}
