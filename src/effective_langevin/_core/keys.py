"""Random keys: `seed` (an int) outside, a named stream of keys inside."""

import hashlib
import os

import jax
import numpy as np

from . import checks
from .errors import EffectiveLangevinError

_state = {"used": False, "forked": False}


def key_from_seed(seed: int) -> jax.Array:
    """Turn the public `seed` into a random key; all 63 bits count. Refuse to work where JAX would wait for ever."""
    if _state["forked"]:
        raise EffectiveLangevinError(
            "This process was forked from one that had used JAX, whose threads do not survive a fork. Start processes "
            'with multiprocessing.get_context("spawn"), or fork before the first fit.'
        )
    _state["used"] = True
    seed = checks.integer_at_least("seed", seed, 0)
    if seed >> 63:
        raise checks.refused("seed", "an integer below 2**63", seed)
    key = jax.random.key(seed & 0xFFFFFFFF)
    return jax.random.fold_in(key, np.uint32(seed >> 32)) if seed >> 32 else key


def named(key: jax.Array, name: str) -> jax.Array:
    """Return a separate stream for each named use, so that a new use changes no other."""
    digest = hashlib.blake2s(name.encode(), digest_size=4).digest()
    return jax.random.fold_in(key, int.from_bytes(digest, "little") & 0x7FFFFFFF)


if os.name == "posix":
    os.register_at_fork(after_in_child=lambda: _state.update(forked=_state["used"]))
