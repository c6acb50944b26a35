"""Members shared out over all devices of this machine."""

import jax
import jax.numpy as jnp
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
