"""Functions of one state applied to many."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float

_CACHED = 256


def over_members(function: Callable, x: Float[Array, "member var"]) -> Float[Array, "member out"]:
    """The function of every member; on one CPU so many at a time that what happens in between stays in its cache."""
    if len(x) < 2 * _CACHED or jax.default_backend() != "cpu" or jax.local_device_count() > 1:
        return jax.vmap(function)(x)
    return jax.lax.map(function, x, batch_size=_CACHED)
