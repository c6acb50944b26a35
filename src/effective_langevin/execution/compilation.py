"""How programs are compiled, and kept on disk: a second run starts at once and repeats the first to the last bit.

Only front ends keep programs: a library that is imported changes no global setting.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import numpy as np

F = TypeVar("F", bound=Callable)


def soon_compiled(function: F) -> F:
    """`filter_jit` without GPU autotuning: compiles sooner and picks the same kernels every run.

    Hardly slower in a fit. (What steps a model is compiled with autotuning, which for products in bfloat16 makes it
    several times faster.)
    """
    kernels = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
    options: dict[str, Any] = {"compiler_options": kernels}
    return cast(F, eqx.filter_jit(function, **options))


def with_room(length: int) -> int:
    """Return the least of a few lengths, eight from one power of two to the next, that `length` rows fit into.

    Programs for arrays of these lengths serve series of every length.
    """
    unit = 1 << max(length.bit_length() - 4, 0)
    return -(-length // unit) * unit


def pad_rows(rows: np.ndarray) -> np.ndarray:
    """Repeat the last row up to a length that other arrays share."""
    return np.pad(rows, ((0, with_room(len(rows)) - len(rows)), *[(0, 0)] * (rows.ndim - 1)), mode="edge")


_MOST_SHAPES = 12
_shapes: set[Any] = set()


def note_shape(*shape: Any) -> None:
    """Note that programs are about to be compiled for arrays of these sizes; drop all programs after many sizes.

    JAX keeps every program that it has compiled: a process that fits series of ever other lengths would grow for ever.
    Their memory is given back to the system: the allocator of Linux would keep it.
    """
    _shapes.add(shape)
    if len(_shapes) > _MOST_SHAPES:
        _shapes.clear()
        jax.clear_caches()
        gc.collect()
        if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
            trim(0)


def keep_compiled_programs() -> None:
    """Use a persistent compilation cache, unless the user has chosen one (or has switched it off) for JAX."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        try:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        except RuntimeError:  # a user without a home, as in some containers
            return
        jax.config.update("jax_compilation_cache_dir", str(base / "effective-langevin" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
