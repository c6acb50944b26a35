"""Let an ensemble forget the data: the steady state that is judged is the model's own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.types import Samples
from ..data import TimeSeries
from ..model import LangevinModel
from ..statistics.joint_tests import Grouped, ResampledNull
from ..statistics.resampling import GROUPS

_FIRST = 4.0  # integral times; each round is twice as long as the one before
_ROUNDS = 3
_FRAMES = 64
_LEVELS = np.linspace(0.1, 0.9, 9)
_CHANCE = 0.01  # of one more round for an ensemble at rest
_LEAST = 0.02  # change of a probability that matters
_FEWEST = 8  # members
_AFFORDABLE = 1 << 24  # numbers saved on the way to rest
_MORE_STEPS = 1.5


@dataclass(frozen=True)
class Settling:
    """How long the ensemble ran before it was looked at, and by how much its law moved in the last half of that.

    `change` is the largest change of a probability, `p` its chance in an ensemble at rest.
    """

    time: float
    change: float = 0.0
    p: float = 1.0

    @property
    def moving(self) -> bool:
        """Whether the law still moves."""
        return self.p < _CHANCE and self.change > _LEAST


def simulate_steadily(
    model: LangevinModel, duration: float, slowest: float, *, members: int, seed: int, **options: Any
) -> tuple[TimeSeries, Settling | None]:
    """Simulate in the model's variables after the ensemble came to rest; at once from states that are given."""
    if {"initial", "noise"} & set(options):
        return model.simulate(duration, members=members, seed=seed, **options), None
    own = replace(model, transform=None)
    states, found = settle(own, slowest, members=members, seed=seed, options=options)
    return own.simulate(duration, members=len(states), seed=seed, initial=states, **options), found


def settle(
    model: LangevinModel, slowest: float, *, members: int, seed: int, options: Mapping[str, Any]
) -> tuple[Samples, Settling]:
    """Run an ensemble of a model without transform from states of the data until its law stands still.

    That is for at most 28 integral times. Returns the last states of the members that did not diverge.
    """
    states, found, length = None, Settling(0.0), _FIRST * slowest
    for turn in range(_ROUNDS):
        stride = max(1, round(length / _FRAMES / options["dt"]))
        count = members if states is None else len(states)
        often = _interval(model, stride, count, options)
        paths = model.simulate(
            stride * _FRAMES * options["dt"],
            members=count,
            seed=seed + 7919 * (turn + 1),
            initial=states,
            **{**options, "dt": often * options["dt"]},
        )
        values = np.array([path[:: stride // often] for path in paths.segments])
        states = values[:, -1]
        found = Settling(found.time + stride * _FRAMES * options["dt"], *change_of(values))
        if found.p >= _CHANCE:
            break
        length *= 2
    assert states is not None
    return states, found


def _interval(model: LangevinModel, stride: int, members: int, options: Mapping[str, Any]) -> int:
    """Return how often to save: every sample, as the run that follows, or every `stride`-th.

    One compiled program then serves both runs. It may not need much more memory, or more steps: states that are saved
    less often allow longer steps.
    """
    if stride * _FRAMES * members * model.dimension > _AFFORDABLE:
        return stride
    dt, stepper = options["dt"], options.get("stepper")
    steps = [options.get("step") or model.automatic_step(stepper, dt * n) for n in (1, stride)]
    return 1 if min(steps[0], dt) * _MORE_STEPS >= min(steps[1], stride * dt) else stride


def change_of(paths: np.ndarray) -> tuple[float, float]:
    """Compare the two halves of (member, time, var): the largest change of a probability, and its chance at rest."""
    if len(paths) < _FEWEST:
        return 0.0, 1.0
    levels = np.quantile(paths.reshape(-1, paths.shape[-1]), _LEVELS, axis=0)
    half = paths.shape[1] // 2 + 1
    below = [(part[..., None] <= levels.T).mean(axis=1) for part in (paths[:, 1:half], paths[:, half:])]
    moved = (below[1] - below[0]).reshape(len(paths), -1)
    groups = np.array([part.mean(axis=0) for part in np.array_split(moved, min(GROUPS, len(paths)))])
    found = Grouped(moved.mean(axis=0), groups - groups.mean(axis=0))
    size = np.max(np.abs(found.value) / np.maximum(found.error, 1e-9))
    return float(np.abs(found.value).max()), ResampledNull.of([found.influence], draws=1000).chance(float(size))
