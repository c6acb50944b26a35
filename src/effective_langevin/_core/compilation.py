"""Compiled programs kept on disk, so that a second run starts at once and repeats the first to the last bit.

Only front ends call this: a library that is imported changes no global setting.
"""

import os
from pathlib import Path

import jax


def keep_compiled_programs() -> None:
    """Use a persistent compilation cache, unless the user has chosen one (or has switched it off) for JAX."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "effective-langevin" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
