"""Ensembles: all members, all steps, one compiled loop; a diverged member is marked and the rest goes on."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core import progress
from .._core.errors import ArgumentError, DivergenceError, EstimateWarning
from .._core.types import Paths
from ..execution.batches import on_all_cores, one_cpu
from ..execution.compilation import note_shape
from ..execution.devices import spread
from .steppers import StepMap

_FRAMES_PER_CALL = 64
_NORMALS_AT_ONCE = 1 << 22
_BLOCK = 256
_SHARES = 64
_AT_ONCE_ON_A_GPU = 2


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """Saved states of all members; a diverged member is NaN from the frame in which it left the finite numbers."""

    paths: Paths
    diverged: np.ndarray

    def __repr__(self) -> str:
        members, times, variables = self.paths.shape
        return f"Ensemble({members} members, {times} times, {variables} variables; {int(self.diverged.sum())} diverged)"

    def survivors(self, step: float) -> Paths:
        """Return the paths of the members that stayed finite; warn about the others, or raise if none is left."""
        members, lost = len(self.diverged), int(self.diverged.sum())
        if lost == members:
            raise DivergenceError(
                f"All {members} members diverged at step {step:g}. Give a smaller `step`, or refit with a "
                "larger smoothing width: the learned score may point outwards beyond the data."
            )
        if lost:
            text = f"{lost} of {members} members diverged at step {step:g} and were left out. Give a smaller `step`."
            warnings.warn(text, EstimateWarning, stacklevel=3)
        return self.paths[~self.diverged]


def integrate(
    advance: StepMap,
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
    """Step every member `frames * save_every` times with a `StepMap`, saving every `save_every`-th state.

    `noise`, if given, holds the Brownian increments (member, step, brownian); otherwise they are drawn from `key`,
    frame by frame, so that the memory needed does not grow with the number of steps, and the members are shared out
    over all devices or, on a CPU, its cores; which noise drives which member does not depend on how many there are.
    """
    state = jnp.asarray(initial, jnp.float32)
    note_shape("ensemble", state.shape, frames, save_every)
    saved = [np.asarray(state)[None]] if keep_initial else []
    with progress.task(label, frames) as tick:
        if noise is not None:
            if advance.draws > 1:
                raise ArgumentError(
                    "This stepper also draws noise itself. With given `noise` use StochasticHeun or EulerMaruyama."
                )
            increments = jnp.asarray(noise, jnp.float32).reshape(len(state), frames, save_every, -1)
            increments = increments.transpose(1, 2, 0, 3)
            saved.append(np.asarray(_run_given(advance, state, increments[0, 0], increments, jnp.float32(bound))[1]))
            tick(frames)
        else:
            calls = -(-frames // _FRAMES_PER_CALL)
            each, size = -(-frames // calls), advance.draws * (brownian or state.shape[1])
            parts = _drawn(advance, state, key, jnp.float32(step), jnp.float32(bound), calls, (each, save_every, size))
            for call, part in enumerate(parts):
                saved.append(part[: frames - call * each])
                tick(len(saved[-1]))
    paths = np.concatenate(saved).transpose(1, 0, 2)
    return Ensemble(paths, ~np.all(np.isfinite(paths[:, -1]), axis=1))


def _drawn(advance, state, key, step, bound, calls: int, counts: tuple[int, int, int]) -> Iterator[Paths]:
    """Yield call after call, (frame, member, var): blocks of members, each with one key, shared out over the cores.

    Blocks and shares depend on the number of members alone, so that the paths do not depend on the cores.
    """
    members, (frames, save_every, size) = len(state), counts
    room = 1 << (frames - 1).bit_length() if one_cpu() else frames  # few sizes, so that few programs are compiled
    blocks = -(-members // _BLOCK)
    block = -(-members // blocks)
    share = -(-blocks // _SHARES) if one_cpu() else blocks
    batch = max(1, min(save_every, _NORMALS_AT_ONCE // (members * size)))
    shares = -(-blocks // share)
    last, keys = _first_noise(key, step, blocks, block, size)
    carries = [
        [spread(jnp.asarray(part)) for part in parts]
        for parts in zip(*(np.split(_filled(rows, shares * share * block), shares) for rows in (state, last)))
    ]
    places = np.split(_filled(np.arange(blocks), shares * share), shares)

    def run(carry, places, call):
        sizes = (block, batch, room, save_every, size)
        carry, part = _run_drawn(advance, carry, keys, places, call, np.int32(frames), step, bound, sizes)
        return carry, np.asarray(part)[:frames, : share * block]

    for call in range(calls):
        carries, parts = zip(*on_all_cores(run, carries, places, [np.uint32(call)] * shares))
        yield np.concatenate(parts, axis=1)[:, :members]


@partial(jax.jit, static_argnames=("blocks", "block", "size"))
def _first_noise(key, step, blocks: int, block: int, size: int):
    """Return an increment before the first, and the key of every block."""
    last = jnp.sqrt(step) * jax.random.normal(key, (blocks * block, size), jnp.float32)
    return last, jax.random.split(key, blocks) if blocks > 1 else key[None]


def _filled(rows: Any, count: int) -> np.ndarray:
    """Return as many rows as wanted, the last one repeated."""
    return np.asarray(rows)[np.minimum(np.arange(count), len(rows) - 1)]


@eqx.filter_jit
def _run_drawn(advance, carry, keys, places, call, frames, step, bound, sizes: tuple[int, int, int, int, int]):
    """Run frames with noise drawn on the way, in batches that bound the memory; `last` is the newest increment drawn.

    The key in each of the `places` draws for a block of members; states beyond only fill up the devices: no noise.
    There is room for more frames than are run: one program serves runs of several lengths.
    """
    block, batch, room, save_every, size = sizes
    keys = jax.vmap(jax.random.fold_in, (0, None))(keys[places], call)
    extra = carry[0].shape[0] - len(keys) * block
    whole, rest = divmod(save_every, batch)

    def split(keys, count):
        return jax.vmap(lambda key: jax.random.split(key, count), out_axes=1)(keys)

    def steps(carry, keys, count):
        drawn = jax.vmap(lambda key: jax.random.normal(key, (count, block, size), jnp.float32), out_axes=1)(keys)
        drawn = jnp.sqrt(step) * drawn.reshape(count, -1, size)
        return _driven(advance, carry, jnp.pad(drawn, ((0, 0), (0, extra), (0, 0))) if extra else drawn)

    def frame(carry, keys):
        keys = split(keys, whole + 1)
        carry = jax.lax.scan(lambda c, k: (steps(c, k, batch), None), carry, keys[:whole])[0]
        return _mark_diverged(*(steps(carry, keys[whole], rest) if rest else carry), bound)

    def save(index, run):
        carry, state = frame(run[0], drawing[index])
        return carry, run[1].at[index].set(state)

    drawing = split(keys, room)
    return jax.lax.fori_loop(0, frames, save, (tuple(carry), jnp.broadcast_to(carry[0], (room, *carry[0].shape))))


@eqx.filter_jit
def _run_given(advance, state, last, increments, bound):
    """Run frames driven by supplied increments, (frame, step, member, brownian)."""

    def frame(carry, increments):
        return _mark_diverged(*_driven(advance, carry, increments), bound)

    return jax.lax.scan(frame, (state, last), increments)


def _driven(advance, carry, drawn):
    """Step with the increments drawn, or by the mean of each with the one before, as the stepper asks."""
    (state, last), used = carry, drawn
    if advance.averages_noise:
        used = 0.5 * (drawn + jnp.concatenate([last[None], drawn[:-1]]))
    unroll = 1 if one_cpu() else _AT_ONCE_ON_A_GPU
    return jax.lax.scan(lambda x, dw: (advance(x, dw), None), state, used, unroll=unroll)[0], drawn[-1]


def _mark_diverged(state, last, bound):
    """Set a member whose state left [-bound, bound] to NaN, where it stays; return the carry and what is saved."""
    finite = jnp.all(jnp.isfinite(state) & (jnp.abs(state) < bound), axis=1, keepdims=True)
    state = jnp.where(finite, state, jnp.nan)
    return (state, last), state
