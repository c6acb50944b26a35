"""Members spread over all devices of this machine."""

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
