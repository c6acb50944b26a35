"""How each network runs over many states and many steps, is scaled, and is frozen after training.

Registered here by class, so that a network is read as its definition.
"""

from collections.abc import Callable
from functools import reduce, singledispatch
from operator import add
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Float

from ...execution.batches import evaluate_batch, one_cpu
from ...execution.convolution import SHORT_GRID
from ...execution.devices import computed_on_host
from ...execution.flat import FlatUNet
from ...execution.grid import OnCorners
from ...execution.lowering import absorb_matrix, lower
from ...execution.modal import ModalUNet
from .mlp import Layers
from .network import OnCircles, OnGrid, Residual, Sum
from .unet import UNet

Batch = Float[Array, "batch var"]

evaluate_batch.register(UNet, UNet.map_batch)


@evaluate_batch.register
def _(network: Residual, x: Batch, low_precision: bool = False) -> Batch:
    linear = jnp.matmul(x, network.linear.T, precision=Precision.HIGHEST)
    return linear + evaluate_batch(network.network, x, low_precision)


@evaluate_batch.register
def _(network: Sum, x: Batch, low_precision: bool = False) -> Batch:
    return reduce(add, (evaluate_batch(part, x) for part in network.networks))


@lower.register
def _(network: UNet, dimension: int, low_precision: bool = False) -> Any:
    if not one_cpu():
        return convert(FlatUNet, network, dimension, jnp.bfloat16 if low_precision else jnp.float32)
    short = dimension // network.description.channels <= SHORT_GRID
    return convert(ModalUNet, network, dimension, jnp.float32) if short else network


def convert(form: type[FlatUNet] | type[ModalUNet], network: UNet, dimension: int, dtype: Any) -> Any:
    """Convert a U-Net, on the host: to compile this program takes a GPU 15 s, and a CPU less than one."""
    return computed_on_host(_write_out, form, network, dimension, dtype)


@eqx.filter_jit
def _write_out(form: type[FlatUNet] | type[ModalUNet], network: UNet, dimension: int, dtype: Any) -> Any:
    """All in one program: its many small steps would each be compiled on their own."""
    return jax.tree.map(lambda array: array.astype(dtype), form.of(network, dimension))


lower.register(OnGrid, lambda network, size, low=False: OnCorners.of(network.values, network.periods))
lower.register(Residual, lambda network, size, low=False: Residual(network.linear, lower(network.network, size, low)))
lower.register(Sum, lambda network, size, low=False: Sum(tuple(lower(part, size, low) for part in network.networks)))


@absorb_matrix.register
def _(network: Residual, matrix: Float[Array, "var var"]) -> Residual | None:
    inner = absorb_matrix(network.network, matrix)
    linear = jnp.matmul(matrix, network.linear, precision=Precision.HIGHEST)
    return None if inner is None else Residual(linear, inner)


@singledispatch
def scale(network: Any, factor: float) -> Any:
    """Return the network times a number, absorbed in its last layer."""
    raise TypeError(f"No `scale` is registered for networks of class {type(network).__name__}.")


def _scale_layer(layer: Callable[[Any], Any]) -> Callable[[Any, float], Any]:
    """Return the function that multiplies weight and bias of one layer."""

    def ends(network: Any) -> tuple[Any, Any]:
        return layer(network).weight, layer(network).bias

    return lambda network, factor: eqx.tree_at(ends, network, tuple(factor * end for end in ends(network)))


scale.register(Layers, _scale_layer(lambda network: network.layers[-1]))
scale.register(UNet, _scale_layer(lambda network: network.out))
scale.register(Residual, lambda network, by: Residual(by * network.linear, scale(network.network, by)))
scale.register(OnCircles, lambda network, by: OnCircles(scale(network.network, by), network.periods))


@singledispatch
def freeze(network: Any, x: Batch) -> Any:
    """Return the network as used after training, any normalisation frozen at its statistics over `x`."""
    return network


freeze.register(UNet, UNet.freeze)
freeze.register(Residual, lambda network, x: Residual(network.linear, freeze(network.network, x)))
