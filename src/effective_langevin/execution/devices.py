"""Members spread over all devices of this machine; samples of a training step over those of all processes.

Several processes that were joined by `jax.distributed.initialize` do the same work on the same data, each by itself,
but for the steps of a training, which they share.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float


def spread(states: Float[Array, "member var"]) -> Float[Array, "padded var"]:
    """Share the states out over the devices, repeating the last one so that all get equally many; one device: as is."""
    devices = jax.local_devices()
    if len(devices) == 1:
        return states
    padded = jnp.pad(states, ((0, -len(states) % len(devices)), (0, 0)), mode="edge")
    return jax.device_put(padded, NamedSharding(Mesh(devices, ("member",)), PartitionSpec("member")))


def place(states: Float[Array, "member var"], unit: int) -> Float[Array, "padded var"]:
    """Put a unit of members on one of the devices of a CPU, in turn, so that bits do not depend on how many there are.

    On GPUs, which need many members at a time, all of them share every unit.
    """
    devices = jax.local_devices()
    if len(devices) == 1 or devices[0].platform != "cpu":
        return spread(states)
    return jax.device_put(states, devices[unit % len(devices)])


def on_every_device(tree: Any) -> Any:
    """Copy arrays to every device of all processes, so that a program can run on all of them; one device: as they are.

    Every process must have the same arrays.
    """
    if len(jax.devices()) == 1:
        return tree
    everywhere = NamedSharding(_mesh(), PartitionSpec())
    if jax.process_count() == 1:
        return _move(tree, everywhere)

    def copy(x: Any) -> Any:
        if not isinstance(x, jax.Array):
            return x
        return jax.make_array_from_callback(x.shape, everywhere, np.asarray(x).__getitem__)

    return jax.tree.map(copy, tree)


def on_one_device(tree: Any) -> Any:
    """Undo `on_every_device`."""
    if len(jax.devices()) == 1:
        return tree
    here = jax.local_devices()[0]
    return jax.tree.map(lambda x: jax.device_put(np.asarray(x), here) if isinstance(x, jax.Array) else x, tree)


def _move(tree: Any, where: Any) -> Any:
    """Put the arrays of a tree on a device, or on several."""
    return jax.tree.map(lambda x: jax.device_put(x, where) if isinstance(x, jax.Array) else x, tree)


def shared_out(batch: Any) -> Any:
    """Share the samples of a batch out over the devices, in a program that runs on all of them.

    Arrays whose length is no multiple of the number of devices stay whole.
    """
    devices = len(jax.devices())
    if devices == 1:
        return batch
    parts = NamedSharding(_mesh(), PartitionSpec("batch"))

    def share(x: Any) -> Any:
        fits = isinstance(x, jax.Array) and x.ndim > 0 and len(x) % devices == 0
        return jax.lax.with_sharding_constraint(x, parts) if fits else x

    return jax.tree.map(share, batch)


def _mesh() -> Mesh:
    return Mesh(jax.devices(), ("batch",))


def computed_on_host(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on the CPU, and bring the arrays it returns to the default device.

    They are not bound to it: a program is compiled again for arrays that are, and what it returns would be.
    """
    if jax.default_backend() == "cpu" or any(isinstance(x, Tracer) for x in jax.tree.leaves(arguments)):
        return function(*arguments)
    try:
        host = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to use the accelerator alone
        return function(*arguments)
    with jax.default_device(host):
        found = function(*_move(arguments, host))
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)) if isinstance(x, jax.Array) else x, found)
