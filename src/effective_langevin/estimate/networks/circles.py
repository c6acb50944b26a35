"""A network on circles: it sees cos and sin of every angle, and is periodic by construction."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..circles import Circles


class OnCircles(eqx.Module):
    """network(cos, sin, ...): `periods` holds that of each variable, None where it is no angle."""

    network: Any
    periods: tuple[float | None, ...] = eqx.field(static=True)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        return self.network(Circles(self.periods).embedded(x, library=jnp))

    def in_batch(self, x: Float[Array, "batch var"], half: bool = False) -> Float[Array, "batch var"]:
        """Every sample of a batch on its own, with all digits."""
        return jax.vmap(self)(x)

    def frozen(self, x: Float[Array, "batch var"]) -> "OnCircles":
        """Nothing to freeze."""
        return self

    def flat(self, dimension: int, half: bool = False) -> "OnCircles":
        """Already in the form in which it is stepped fastest."""
        return self

    def scaled_by(self, factor: float) -> "OnCircles":
        """The network times a number."""
        return OnCircles(self.network.scaled_by(factor), self.periods)

    @property
    def architecture(self) -> dict[str, Any]:
        """What `rebuilt` needs to make a network of the same shape."""
        return {"kind": "OnCircles", "network": self.network.architecture, "periods": list(self.periods)}
