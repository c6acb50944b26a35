"""Ensembles: all members, all steps, one compiled loop; a diverged member is marked and the rest goes on."""

import warnings
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core import progress
from .._core.errors import ArgumentError, DivergenceError, EstimateWarning
from .._core.types import Paths
from ..execution.batches import on_all_cores, one_cpu
from ..execution.compilation import note_shape
from ..execution.devices import place
from .steppers import StepMap

_FRAMES_PER_CALL = 64
_NORMALS_AT_ONCE = 1 << 22
_BLOCK = 256
_SHARES = 64
_AT_ONCE_ON_A_GPU = 2

Carry = tuple[jax.Array, jax.Array]


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
            warnings.warn(text, EstimateWarning, stacklevel=4)
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
    label: str = "Simulating",
) -> Ensemble:
    """Step every member `frames * save_every` times with a `StepMap`, saving every `save_every`-th state.

    `noise`, if given, holds the Brownian increments (member, step, brownian); otherwise they are drawn from `key`,
    frame by frame, so that the memory needed does not grow with the number of steps, and the members are shared out
    over all devices or, on a CPU, its cores; which noise drives which member does not depend on how many there are.
    """
    state = jnp.asarray(initial, jnp.float32)
    note_shape("ensemble", state.shape, frames, save_every)
    saved = [np.asarray(state)[None]]
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
            units = Units(advance, state, key, Sizes(frames, save_every, step, brownian or state.shape[1], bound))
            carries = [units.start(unit) for unit in range(units.count)]
            for call in range(units.calls):
                carries, parts = zip(*on_all_cores(units.run, range(units.count), carries, [call] * units.count))
                saved.append(np.concatenate(parts, axis=1)[: frames - call * units.per_call])
                tick(len(saved[-1]))
    paths = np.concatenate(saved).transpose(1, 0, 2)
    return Ensemble(paths, ~np.all(np.isfinite(paths[:, -1]), axis=1))


@dataclass(frozen=True)
class Sizes:
    """How far and how finely an ensemble is stepped."""

    frames: int
    save_every: int
    step: float
    brownian: int
    bound: float = 1e6


class Units:
    """The members in units of whole blocks: each block has one key, each unit is stepped by one program.

    Blocks and units depend on the number of members alone (on GPUs also on `most`, the bytes of one call), so that the
    paths depend neither on cores and devices nor on the order in which units are run.
    """

    def __init__(
        self, advance: StepMap, state: np.ndarray | jax.Array, key: jax.Array, sizes: Sizes, most: float = float("inf")
    ):
        self.advance, self.state, self.members = advance, np.asarray(state, np.float32), len(state)
        self.calls = -(-sizes.frames // _FRAMES_PER_CALL)
        self.per_call = -(-sizes.frames // self.calls)
        size = advance.draws * sizes.brownian
        self.blocks = -(-self.members // _BLOCK)
        self.block = -(-self.members // self.blocks)
        at_once = max(1, int(min(most / (4.0 * self.per_call * self.block * state.shape[1]), self.blocks)))
        self.share = -(-self.blocks // _SHARES) if one_cpu() else at_once
        self.count = -(-self.blocks // self.share)
        batch = max(1, min(sizes.save_every, _NORMALS_AT_ONCE // (self.members * size)))
        room = 1 << (self.per_call - 1).bit_length()  # few sizes, so that few programs are compiled
        self.counts = (self.block, batch, room, sizes.save_every, size)
        self.step, self.bound = jnp.float32(sizes.step), jnp.float32(sizes.bound)
        last, self.keys = _first_noise(key, self.step, self.blocks, self.block, size)
        self.last = np.asarray(last)

    @property
    def size(self) -> int:
        """Members of a unit; the last one may have fewer."""
        return self.share * self.block

    def range(self, unit: int) -> tuple[int, int]:
        """Return the first member of a unit, and that of the next."""
        return unit * self.size, min((unit + 1) * self.size, self.members)

    def start(self, unit: int) -> Carry:
        """Return the state of a unit before the first step, and the increment before the first."""
        rows = np.arange(unit * self.size, (unit + 1) * self.size)
        return self.place(unit, *(part[np.minimum(rows, len(part) - 1)] for part in (self.state, self.last)))

    def place(self, unit: int, *carry: np.ndarray) -> Carry:
        """Return such arrays on the device of the unit."""
        state, last = (place(jnp.asarray(part), unit) for part in carry)
        return state, last

    def run(self, unit: int, carry: Carry, call: int) -> tuple[Carry, Paths]:
        """Step a unit through one call; return where it is then, and the states saved, (frame, member, var)."""
        places = np.minimum(np.arange(unit * self.share, (unit + 1) * self.share), self.blocks - 1)
        frames = np.int32(self.per_call)
        given = (self.keys, places, np.uint32(call), frames, self.step, self.bound, self.counts)
        carry, part = _run_drawn(self.advance, carry, *given)
        first, stop = self.range(unit)
        return carry, np.asarray(part)[: self.per_call, : stop - first]


@partial(jax.jit, static_argnames=("blocks", "block", "size"))
def _first_noise(key, step, blocks: int, block: int, size: int):
    """Return an increment before the first, and the key of every block."""
    last = jnp.sqrt(step) * jax.random.normal(key, (blocks * block, size), jnp.float32)
    return last, jax.random.split(key, blocks) if blocks > 1 else key[None]


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
