"""The multilayer perceptron of the paper's low-dimensional systems."""

from dataclasses import dataclass

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..._core import checks
from .network import AbstractNetwork


class Layers(AbstractNetwork):
    """Linear layers with swish between them and a linear output."""

    layers: list[eqx.nn.Linear]

    def __call__(self, x: Float[Array, " input"]) -> Float[Array, " var"]:
        for layer in self.layers[:-1]:
            x = jax.nn.swish(layer(x))
        return self.layers[-1](x)


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron with swish between its layers and a linear output.

    Parameters
    ----------
    hidden : tuple of int, default (128, 64)
        Widths of the hidden layers; the default is that of the paper's low-dimensional systems.

    Examples
    --------
    >>> el.DenoisingScore(network=el.MLP(hidden=(64, 64))).network
    MLP(hidden=(64, 64))
    """

    hidden: tuple[int, ...] = (128, 64)

    def __post_init__(self):
        object.__setattr__(self, "hidden", checks.integers_at_least("hidden", self.hidden, 1))

    def build(self, dimension: int, *, key: jax.Array, inputs: int | None = None, outputs: int = 1) -> Layers:
        """Draw fresh weights for states of that dimension.

        `inputs` is the length of the input where it is another one, such as cos and sin of angles; `outputs` is the
        number of vectors of that dimension that the network returns, one after the other.
        """
        sizes = (inputs or dimension, *self.hidden, outputs * dimension)
        keys = jax.random.split(key, len(sizes) - 1)
        return Layers([eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys)])
