"""Random keys: `seed` (an int) outside, a named stream of keys inside."""

import hashlib

import jax

from . import checks


def key_from_seed(seed: int) -> jax.Array:
    """Turn the public `seed` into a random key."""
    return jax.random.key(checks.integer_at_least("seed", seed, 0))


def named(key: jax.Array, name: str) -> jax.Array:
    """Return a separate stream for each named use, so that a new use changes no other."""
    digest = hashlib.blake2s(name.encode(), digest_size=4).digest()
    return jax.random.fold_in(key, int.from_bytes(digest, "little") & 0x7FFFFFFF)
