"""Ensembles: all members, all steps, one compiled loop; a diverged member is marked and the rest goes on."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core import progress
from .._core.types import Paths
from .devices import spread

_FRAMES_PER_CALL = 64
_NORMALS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Ensemble:
    """Saved states of all members; a diverged member is NaN from the frame in which it left the finite numbers."""

    paths: Paths
    diverged: np.ndarray

    @property
    def alive(self) -> np.ndarray:
        """Mask of the members that stayed finite throughout."""
        return ~self.diverged


def integrate(
    advance: Callable,
    initial: np.ndarray,
    *,
    frames: int,
    save_every: int,
    step: float,
    key: jax.Array,
    brownian: int | None = None,
    noise: np.ndarray | None = None,
    bound: float = 1e6,
    keep_initial: bool = True,
    label: str = "Simulating",
) -> Ensemble:
    """Step every member `frames * save_every` times with the map `advance`, saving every `save_every`-th state.

    `noise`, if given, holds the Brownian increments (member, step, brownian); otherwise they are drawn from `key`,
    frame by frame, so that the memory needed does not grow with the number of steps, and the members are shared out
    over all devices; which noise drives which member does not depend on how many devices there are.
    """
    members, state = len(initial), jnp.asarray(initial, jnp.float32)
    size, bound = brownian or state.shape[1], jnp.float32(bound)
    saved = [np.asarray(state)[None]] if keep_initial else []
    with progress.task(label, frames) as tick:
        if noise is not None:
            increments = jnp.asarray(noise, jnp.float32).reshape(members, frames, save_every, size)
            increments = increments.transpose(1, 2, 0, 3)
            saved.append(np.asarray(_run_given(advance, state, increments[0, 0], increments, bound)[1]))
            tick(frames)
        else:
            calls = -(-frames // _FRAMES_PER_CALL)
            count = -(-frames // calls)
            last = jnp.sqrt(jnp.float32(step)) * jax.random.normal(key, (members, size))
            carry, counts = (spread(state), spread(last)), (members, count, save_every, size)
            for call in range(calls):
                now = jax.random.fold_in(key, call)
                carry, part = _run_drawn(advance, *carry, now, jnp.float32(step), bound, *counts)
                saved.append(np.asarray(part)[: frames - call * count, :members])
                tick(len(saved[-1]))
    paths = np.concatenate(saved).transpose(1, 0, 2)
    return Ensemble(paths, ~np.all(np.isfinite(paths[:, -1]), axis=1))


@eqx.filter_jit
def _run_drawn(advance, state, last, key, step, bound, members: int, frames: int, save_every: int, size: int):
    """Frames with noise drawn on the way, in batches that bound the memory; `last` is the newest increment drawn.

    States beyond `members` only fill up the devices; they get no noise.
    """
    extra = state.shape[0] - members
    batch = max(1, min(save_every, _NORMALS_AT_ONCE // (members * size)))
    whole, rest = divmod(save_every, batch)

    def steps(carry, key, count):
        drawn = jnp.sqrt(step) * jax.random.normal(key, (count, members, size))
        return _driven(advance, carry, jnp.pad(drawn, ((0, 0), (0, extra), (0, 0))) if extra else drawn)

    def frame(carry, key):
        keys = jax.random.split(key, whole + 1)
        carry = jax.lax.scan(lambda c, k: (steps(c, k, batch), None), carry, keys[:whole])[0]
        state, last = steps(carry, keys[whole], rest) if rest else carry
        state = _mark_diverged(state, bound)
        return (state, last), state

    return jax.lax.scan(frame, (state, last), jax.random.split(key, frames))


@eqx.filter_jit
def _run_given(advance, state, last, increments, bound):
    """Frames driven by supplied increments, (frame, step, member, brownian)."""

    def frame(carry, increments):
        state, last = _driven(advance, carry, increments)
        state = _mark_diverged(state, bound)
        return (state, last), state

    return jax.lax.scan(frame, (state, last), increments)


def _driven(advance, carry, drawn):
    """Steps driven by the increments drawn, or by the mean of each with the one before, as the stepper asks."""
    (state, last), used = carry, drawn
    if getattr(advance, "averages_noise", False):
        used = 0.5 * (drawn + jnp.concatenate([last[None], drawn[:-1]]))
    return jax.lax.scan(lambda x, dw: (advance(x, dw), None), state, used)[0], drawn[-1]


def _mark_diverged(state, bound):
    """A member whose state left [-bound, bound] becomes NaN and stays so."""
    finite = jnp.all(jnp.isfinite(state) & (jnp.abs(state) < bound), axis=1, keepdims=True)
    return jnp.where(finite, state, jnp.nan)
