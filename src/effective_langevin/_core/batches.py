"""Functions of one state applied to many."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_CACHED = 64


def over_members(function: Callable, x: Float[Array, "member var"]) -> Float[Array, "member out"]:
    """The function of every member; on one CPU so many at a time that what happens in between stays in its cache.

    A function that has a form for batches, `in_batch`, is used in that form.
    """
    many = getattr(function, "in_batch", None) or jax.vmap(function)
    if len(x) < 2 * _CACHED or jax.default_backend() != "cpu" or jax.local_device_count() > 1:
        return many(x)
    blocks = -(-len(x) // _CACHED)
    size = -(-len(x) // blocks)
    padded = jnp.pad(x, ((0, blocks * size - len(x)), (0, 0)))
    values = jax.lax.map(many, padded.reshape(blocks, size, -1))
    return values.reshape(blocks * size, -1)[: len(x)]
