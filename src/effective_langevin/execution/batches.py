"""Functions of one state applied to many."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_CACHED = 1 << 11
_FEWEST, _MOST = 64, 256
_FEW = 8


def one_cpu() -> bool:
    """Whether everything is computed on the cores of one CPU."""
    return jax.default_backend() == "cpu" and jax.local_device_count() == 1


def on_all_cores(function: Callable, *arguments: Sequence) -> list[Any]:
    """The function of each argument, in order; on one CPU by as many threads as it has cores.

    A compiled program of moderate size runs on one core and lets other threads run meanwhile.
    """
    threads = min(len(arguments[0]), os.cpu_count() or 1) if one_cpu() else 1
    if threads < 2:
        return list(map(function, *arguments))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, *arguments))


def for_batches(function: Callable) -> Callable:
    """The function of one state as one of many: its own form for batches, `in_batch`, if it has one."""
    return getattr(function, "in_batch", None) or jax.vmap(function)


def times(matrix: Float[Array, "out var"], vectors: Float[Array, "member var"]) -> Float[Array, "member out"]:
    """Matrix times each vector, without the shortened numbers that a GPU uses for products by default.

    For a few variables it is written as a sum, which is computed together with what is around it.
    """
    if max(matrix.shape) <= _FEW:
        return jnp.sum(matrix * vectors[:, None], axis=-1)
    return jnp.matmul(vectors, matrix.T, precision=jax.lax.Precision.HIGHEST)


def over_members(function: Callable, x: Float[Array, "member var"]) -> Float[Array, "member out"]:
    """The function of every member; on one CPU so many at a time that what happens in between stays in its cache."""
    many = for_batches(function)
    together = min(max(_CACHED // x.shape[1], _FEWEST), _MOST)
    if len(x) < 2 * together or not one_cpu():
        return many(x)
    blocks = -(-len(x) // together)
    size = -(-len(x) // blocks)
    padded = jnp.pad(x, ((0, blocks * size - len(x)), (0, 0)))
    values = jax.lax.map(many, padded.reshape(blocks, size, -1))
    return values.reshape(blocks * size, -1)[: len(x)]
