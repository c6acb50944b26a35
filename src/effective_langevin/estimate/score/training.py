"""The one compiled training loop, shared by all networks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from ..._core import checkpoints, progress
from ...execution.compilation import soon_compiled
from ...execution.devices import on_every_device, on_one_device, shared_out


class Objective(Protocol):
    """What is minimised: a frozen description, so that one compilation serves every call with arrays of one shape."""

    def batches(self, data: Any, steps: int, *, key: jax.Array) -> Any:
        """Return what each of the `steps` of an epoch sees, stacked along the first axis."""
        ...

    def loss(self, network: Any, data: Any, batch: Any) -> jax.Array:
        """Return the loss of one batch."""
        ...

    def held_out_loss(self, network: Any, held_out: Any) -> jax.Array:
        """Return the loss on data set aside, with nothing random about it."""
        ...


class Streamed(ABC):
    """Data that come in pieces: those of some steps at a time, every sample of them in one batch."""

    most_steps: int

    @property
    @abstractmethod
    def identity(self) -> tuple[Any, Any]:
        """Settings and arrays that say what comes; arrays may be read by `blocks`."""

    @abstractmethod
    def piece(self, first: int, stop: int) -> Any:
        """Return the data of the steps first ... stop - 1, counted from the beginning of the training."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast: Adam with a linear warm-up and a cosine decay that ends with the last step.

    The weights kept are an exponential moving average over the last 1 / (1 - average) steps. If the held-out loss has
    not improved for `patience` epochs, training stops.
    """

    epochs: int
    steps_per_epoch: int
    learning_rate: float
    final_rate: float = 0.01
    average: float = 0.99
    patience: int | None = None

    @property
    def steps(self) -> int:
        """Total number of steps."""
        return self.epochs * self.steps_per_epoch

    def rate(self) -> Callable:
        """Return the learning rate as a function of the step."""
        rise = max(1, self.steps // 20)
        last = self.final_rate * self.learning_rate
        return optax.warmup_cosine_decay_schedule(0.0, self.learning_rate, rise, max(self.steps, rise + 1), last)

    def optimiser(self) -> optax.GradientTransformation:
        """Return Adam at that rate, with no gradient longer than 1: one bad batch must not undo what was learned."""
        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(self.rate()))

    def is_stalled(self, held_out: list[float]) -> bool:
        """Tell whether the held-out loss has not improved for too long."""
        return self.patience is not None and len(held_out) - 1 - int(np.argmin(held_out or [0.0])) >= self.patience


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network and its history: loss of every step, held-out loss of every epoch."""

    network: Any
    losses: np.ndarray
    held_out: np.ndarray

    def history(self, points: int = 200) -> dict[str, Any]:
        """Return fields of `ScoreEvidence`: curves, thinned by means over equal stretches, and number of steps."""
        parts = np.array_split(self.losses, min(points, len(self.losses)))
        return {
            "loss_curve": tuple(float(p.mean()) for p in parts),
            "held_out_loss_curve": tuple(self.held_out.tolist()),
            "training_steps": len(self.losses),
        }


def train(
    network, objective: Objective, data, schedule: Schedule, *, key: jax.Array, label: str, held_out: Any = None
) -> Trained:
    """Minimise the objective; with `held_out` data the weights returned are those of the best epoch.

    An interrupted training continues from its checkpoint, if one is kept, and ends with the same bits. On several
    devices every step shares its samples out over all of them. `Streamed` data come by pieces; the number of losses in
    a checkpoint is the place in the stream.
    """
    weights, form = flatten_weights(network)
    state = (weights, weights, weights, schedule.optimiser().init(weights))
    stream, what = data.identity if isinstance(data, Streamed) else ((), data)
    work = ((label, objective, schedule, form.frame, *stream), (state, what, held_out, key))
    with progress.task(label, schedule.epochs) as tick, checkpoints.of(*work) as checkpoint:
        state, notes = checkpoint.restored(state)
        state, data, held_out = on_every_device((state, data, held_out))
        curve, scores = notes.get("curve", []), notes.get("scores", [])
        begun = sum(map(len, curve)) // schedule.steps_per_epoch
        tick(begun, "resumed" if curve else "")
        for epoch in range(begun, schedule.epochs):
            if schedule.is_stalled(scores):
                tick(schedule.epochs - epoch, f"held out {scores[-1]:.4g}: no better for {schedule.patience} epochs")
                break
            curve += [[]] if len(curve) == epoch else []  # lists in it are replaced: a checkpoint has those of its time
            for piece, steps, now in _pieces(data, schedule, epoch, len(curve[-1]), key=key):
                if curve[-1]:
                    checkpoint.keep(state, {"curve": list(curve), "scores": list(scores)})
                state, losses = _run_epoch(state, form, objective, piece, now, schedule, steps)
                curve[-1] = curve[-1] + np.asarray(losses, float).tolist()
            note = f"loss {np.mean(curve[-1]):.4g}"
            if held_out is not None:
                scores.append(float(_held_out_loss(state[1], form, objective, held_out)))
                note += f", held out {scores[-1]:.4g}"
                if scores[-1] <= min(scores):
                    state = (state[0], state[1], state[1], state[3])
            checkpoint.keep(state, {"curve": list(curve), "scores": list(scores)})
            tick(1, note)
    best = on_one_device(state[1] if held_out is None else state[2])
    return Trained(_with_weights(form, best), np.concatenate(curve), np.array(scores))


def _pieces(data: Any, schedule: Schedule, epoch: int, done: int, *, key: jax.Array) -> Iterator[tuple[Any, int, Any]]:
    """Yield data, number of steps and key for each compiled call of an epoch, of which some steps are done."""
    key, steps = jax.random.fold_in(key, epoch), schedule.steps_per_epoch
    if not isinstance(data, Streamed):
        yield data, steps, key
        return
    pieces = -(-steps // data.most_steps)
    for first, stop in pairwise(steps * i // pieces for i in range(pieces + 1)):
        if first >= done:
            piece = data.piece(epoch * steps + first, epoch * steps + stop)
            yield on_every_device(piece), stop - first, jax.random.fold_in(key, first)


class _Form(eqx.Module):
    """A network without its weights, which lie in one vector: an optimiser does all of them at once."""

    unravel: Callable[[jax.Array], Any] = eqx.field(static=True)
    frame: Any

    def network(self, weights: jax.Array) -> Any:
        """Return the network with these weights."""
        return eqx.combine(self.unravel(weights), self.frame)


@soon_compiled
def _with_weights(form: _Form, weights: jax.Array) -> Any:
    return form.network(weights)


def flatten_weights(network: Any) -> tuple[jax.Array, _Form]:
    """Return the weights of a network as one vector, and the rest of it."""
    weights, frame = eqx.partition(network, eqx.is_array)
    vector, unravel = ravel_pytree(weights)
    return vector, _Form(unravel, frame)


@soon_compiled
def _run_epoch(state, form: _Form, objective: Objective, data, key, schedule: Schedule, steps: int):
    optimiser = schedule.optimiser()

    def step(state, batch):
        weights, averaged, best, inner = state
        here = shared_out(batch)
        value, gradient = jax.value_and_grad(lambda w: objective.loss(form.network(w), data, here))(weights)
        updates, inner = optimiser.update(gradient, inner)
        weights = weights + updates
        averaged = averaged + (1 - schedule.average) * (weights - averaged)
        return (weights, averaged, best, inner), value

    return jax.lax.scan(step, state, objective.batches(data, steps, key=key))


@soon_compiled
def _held_out_loss(weights, form: _Form, objective: Objective, held_out):
    return objective.held_out_loss(form.network(weights), held_out)


def mean_square(residual: jax.Array) -> jax.Array:
    """1/2 |residual|^2 summed over variables, averaged over samples."""
    return 0.5 * jnp.mean(jnp.sum(residual**2, axis=-1))
