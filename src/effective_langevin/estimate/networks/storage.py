"""Networks as plain data: the shape of a network, from which one with blank weights is rebuilt."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..._core.errors import ModelFileError
from .mlp import MLP, Layers
from .network import AbstractNetwork, OnCircles, OnGrid, Residual, Sum
from .unet import UNet, UNet1D


def describe_network(network: AbstractNetwork) -> dict[str, Any]:
    """Return what `rebuild_network` needs to make a network of the same shape."""
    for kind, entry in _KINDS.items():
        if type(network) is entry.network:
            return {"kind": kind, **entry.describe(network)}
    raise ModelFileError(f"A score with a network of class {type(network).__name__} cannot be saved.")


def rebuild_network(description: dict[str, Any], dimension: int) -> AbstractNetwork:
    """Return a network of a stored shape, with weights that still have to be filled in."""
    settings: dict[str, Any] = {
        n: tuple(value) if isinstance(value, list) else value for n, value in description.items()
    }
    return _KINDS[settings.pop("kind")].rebuild(settings, dimension)


class _Kind(NamedTuple):
    """A class of networks, its settings as plain data, and the way back from settings and dimension."""

    network: type[AbstractNetwork]
    describe: Callable[[Any], dict[str, Any]]
    rebuild: Callable[[dict[str, Any], int], AbstractNetwork]


def _further_outputs(outputs: int, inputs: int) -> dict[str, int]:
    """Say how many vectors a network returns, where it is more than one."""
    return {"outputs": outputs // inputs} if outputs > inputs else {}


def _build(kind: Any, settings: dict[str, Any], dimension: int) -> AbstractNetwork:
    outputs = settings.pop("outputs", 1)
    return kind(**settings).build(dimension, key=jax.random.key(0), outputs=outputs)


def _rebuild_on_circles(settings: dict[str, Any], dimension: int) -> OnCircles:
    inputs = dimension + sum(period is not None for period in settings["periods"])
    layers = MLP(tuple(settings["network"]["hidden"])).build(dimension, key=jax.random.key(0), inputs=inputs)
    return OnCircles(layers, settings["periods"])


_KINDS = {
    "MLP": _Kind(
        Layers,
        lambda network: {
            "hidden": [layer.weight.shape[0] for layer in network.layers[:-1]],
            **_further_outputs(network.layers[-1].weight.shape[0], network.layers[0].weight.shape[1]),
        },
        lambda settings, dimension: _build(MLP, settings, dimension),
    ),
    "UNet1D": _Kind(
        UNet,
        lambda network: (
            asdict(network.description)
            | {"multipliers": list(network.description.multipliers)}
            | _further_outputs(len(network.out.bias), network.description.channels)
        ),
        lambda settings, dimension: _build(UNet1D, settings, dimension),
    ),
    "Residual": _Kind(
        Residual,
        lambda network: {"network": describe_network(network.network)} | _further_outputs(*network.linear.shape),
        lambda settings, size: Residual(
            jnp.zeros((size * settings.get("outputs", 1), size)), rebuild_network(settings["network"], size)
        ),
    ),
    "Sum": _Kind(
        Sum,
        lambda network: {"networks": [describe_network(part) for part in network.networks]},
        lambda settings, dimension: Sum(tuple(rebuild_network(part, dimension) for part in settings["networks"])),
    ),
    "OnGrid": _Kind(
        OnGrid,
        lambda network: {"shape": list(network.values.shape[:-1]), "periods": list(network.periods)},
        lambda settings, dimension: OnGrid(jnp.zeros((*settings["shape"], dimension)), settings["periods"]),
    ),
    "OnCircles": _Kind(
        OnCircles,
        lambda network: {"network": describe_network(network.network), "periods": list(network.periods)},
        _rebuild_on_circles,
    ),
}
