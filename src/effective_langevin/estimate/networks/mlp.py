"""The multilayer perceptron of the paper's low-dimensional systems."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..._core import checks


class Layers(eqx.Module):
    """Linear layers with swish between them and a linear output."""

    layers: list[eqx.nn.Linear]

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        for layer in self.layers[:-1]:
            x = jax.nn.swish(layer(x))
        return self.layers[-1](x)

    @property
    def architecture(self) -> dict[str, Any]:
        """What `rebuilt` needs to make a network of the same shape."""
        return {"kind": "MLP", "hidden": [layer.weight.shape[0] for layer in self.layers[:-1]]}

    def in_batch(self, x: Float[Array, "batch var"], half: bool = False) -> Float[Array, "batch var"]:
        """Every sample of a batch on its own, with all digits."""
        return jax.vmap(self)(x)

    def frozen(self, x: Float[Array, "batch var"]) -> "Layers":
        """Nothing to freeze."""
        return self

    def flat(self, dimension: int, half: bool = False) -> "Layers":
        """Already in the form in which it is stepped fastest."""
        return self

    def scaled_by(self, factor: float) -> "Layers":
        """The network times a number, absorbed in its last layer."""

        def ends(network) -> tuple[Any, Any]:
            return network.layers[-1].weight, network.layers[-1].bias

        return eqx.tree_at(ends, self, tuple(factor * end for end in ends(self)))


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron; the paper's low-dimensional systems use hidden layers of 128 and 64."""

    hidden: tuple[int, ...] = (128, 64)

    def __post_init__(self):
        object.__setattr__(self, "hidden", checks.integers_at_least("hidden", self.hidden, 1))

    def build(self, dimension: int, *, key: jax.Array, inputs: int | None = None) -> Layers:
        """Fresh weights for a state of that dimension, or for one seen through as many `inputs`."""
        sizes = (inputs or dimension, *self.hidden, dimension)
        keys = jax.random.split(key, len(sizes) - 1)
        return Layers([eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys)])
