"""Network architectures: small frozen descriptions that build equinox modules, and back from a stored description.

A built network maps one state to one vector, `network(x)`; `network.in_batch(x, half)` maps a batch while training,
where a normalisation may use the statistics of the batch and `half` the digits may do; `network.frozen(x)` is the
network as used after training.
"""

from typing import Any, Protocol

import jax

from .circles import OnCircles
from .combined import Sum
from .grid import OnGrid
from .mlp import MLP, Layers
from .residual import Residual
from .unet import UNet, UNet1D

__all__ = ["MLP", "Layers", "NetworkStrategy", "OnCircles", "OnGrid", "Residual", "Sum", "UNet", "UNet1D", "rebuilt"]


class NetworkStrategy(Protocol):
    """A description of a network."""

    def build(self, dimension: int, *, key: jax.Array) -> Any:
        """Fresh weights for a state of that dimension."""
        ...


def rebuilt(architecture: dict[str, Any], dimension: int) -> Any:
    """A network of a stored architecture, with weights that still have to be filled in."""
    settings = dict(architecture)
    kind = settings.pop("kind")
    if kind == "Residual":
        return Residual.blank(rebuilt(settings["network"], dimension), dimension)
    if kind == "Sum":
        return Sum(tuple(rebuilt(network, dimension) for network in settings["networks"]))
    if kind == "OnGrid":
        return OnGrid.blank(tuple(settings["shape"]), tuple(settings["periods"]))
    if kind == "OnCircles":
        periods = tuple(settings["periods"])
        inner = settings["network"]
        inputs = len(periods) + sum(period is not None for period in periods)
        return OnCircles(MLP(tuple(inner["hidden"])).build(dimension, key=jax.random.key(0), inputs=inputs), periods)
    description = {"MLP": MLP, "UNet1D": UNet1D}[kind]
    return description(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}).build(
        dimension, key=jax.random.key(0)
    )
