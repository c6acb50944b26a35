"""How programs are compiled, and kept on disk: a second run starts at once and repeats the first to the last bit.

Only front ends set that up: a library that is imported changes no global setting.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import equinox as eqx
import jax

F = TypeVar("F", bound=Callable)


def soon_compiled(function: F) -> F:
    """`filter_jit` that on a GPU does not try many kernels for every matrix product: that takes more than it saves."""
    options: dict[str, Any] = {"compiler_options": {"xla_gpu_enable_triton_gemm": False}}
    return cast(F, eqx.filter_jit(function, **options))


def set_up_front_end() -> None:
    """Keep programs on disk, and choose their kernels without timing them, so that runs agree to the last bit.

    What the user has chosen for JAX stays as it is. To be called before the first array is made.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "effective-langevin" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_gpu_autotune_level" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_autotune_level=0".strip()
