"""Functions of one state applied to many."""

import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, reduce, singledispatch
from operator import add
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .blas import one_blas_thread

_CACHED = 1 << 11
_FEWEST, _MOST = 64, 256
_FEW = 8


def one_cpu() -> bool:
    """Return whether everything is computed on the cores of one CPU, which may pretend to be several devices."""
    return jax.default_backend() == "cpu"


def on_all_cores(function: Callable, *arguments: Sequence) -> list[Any]:
    """Map a function over its arguments, in order; on one CPU with as many threads as there are cores to use.

    A compiled program of moderate size runs on one core and lets other threads run meanwhile; so does linear algebra,
    which starts no further threads here. Each call sees the progress and the checkpoints of the caller.
    """
    threads = min(len(arguments[0]), count_threads()) if one_cpu() else 1
    if threads < 2:
        return list(map(function, *arguments))
    with one_blas_thread, ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(copy_context().run, function, *given) for given in zip(*arguments)]
        return [call.result() for call in calls]


def count_threads() -> int:
    """Return how many threads work side by side on one CPU: one per core.

    One where the environment asks for it, and where several processes share a training: all must start their programs
    in the same order.
    """
    return 1 if os.environ.get("OMP_NUM_THREADS") == "1" or jax.process_count() > 1 else count_cores()


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@singledispatch
def evaluate_batch(function: Callable, x: Float[Array, "batch var"], low_precision: bool = False) -> Array:
    """Evaluate a function of one state at each of many; classes with a faster way to do so register it.

    `low_precision` allows bfloat16 on a GPU, where a class knows that this is enough.
    """
    return jax.vmap(function)(x)


class Batched(eqx.Module):
    """A function of one state that is defined by its values at many."""

    @abstractmethod
    def in_batch(self, x: Float[Array, "batch var"]) -> Array:
        """Return the values at every state of a batch."""

    def __call__(self, x: Float[Array, " var"]) -> Array:
        return self.in_batch(x[None])[0]


@evaluate_batch.register
def _(function: Batched, x: Float[Array, "batch var"], low_precision: bool = False) -> Array:
    return function.in_batch(x)


def times(matrix: Float[Array, "out var"], vectors: Float[Array, "member var"]) -> Float[Array, "member out"]:
    """Multiply each vector by a matrix, in full float32 precision (no TF32).

    For a few variables it is written as a sum, which the compiler fuses with what is around it.
    """
    if max(matrix.shape) <= _FEW:
        return jnp.sum(matrix * vectors[:, None], axis=-1)
    return jnp.matmul(vectors, matrix.T, precision=jax.lax.Precision.HIGHEST)


def times_each(
    matrices: Float[Array, "member out var"], vectors: Float[Array, "member var"]
) -> Float[Array, "member out"]:
    """Multiply each vector by its own matrix; for a few variables entry by entry, which the compiler fuses better."""
    out, size = matrices.shape[1:]
    if max(out, size) > _FEW:
        return jnp.sum(matrices * vectors[:, None], axis=-1)
    rows = (reduce(add, (matrices[:, i, j] * vectors[:, j] for j in range(size))) for i in range(out))
    return jnp.stack(list(rows), axis=1)


def over_members(function: Callable, x: Float[Array, "member var"]) -> Float[Array, "member out"]:
    """Evaluate a function at every member; on one CPU in blocks whose intermediate values stay in its cache."""
    together = min(max(_CACHED // x.shape[1], _FEWEST), _MOST)
    if len(x) < 2 * together or not one_cpu():
        return evaluate_batch(function, x)
    blocks = -(-len(x) // together)
    size = -(-len(x) // blocks)
    padded = jnp.pad(x, ((0, blocks * size - len(x)), (0, 0)))
    values = jax.lax.map(partial(evaluate_batch, function), padded.reshape(blocks, size, -1))
    return values.reshape(blocks * size, -1)[: len(x)]
