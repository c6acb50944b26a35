"""The model's side of a validation: an ensemble that has forgotten the data, simulated for it or kept in a store."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import checks, progress
from .._core.errors import ArgumentError
from .._core.types import Samples
from ..data import TimeSeries
from ..data.lazy import MOST_NUMBERS
from ..model import LangevinModel
from ..statistics.densities import SeriesStatistics, add_up, series_statistics
from ..statistics.joint_tests import Grouped, ResampledNull
from ..statistics.resampling import GROUPS

if TYPE_CHECKING:
    from ..data.io.store import StoredPaths

_FIRST = 4.0  # integral times; each round is twice as long as the one before
_ROUNDS = 3
_FRAMES = 64
_LEVELS = np.linspace(0.1, 0.9, 9)
_CHANCE = 0.01  # of one more round for an ensemble at rest
_LEAST = 0.02  # change of a probability that matters
_FEWEST = 8  # members
_AFFORDABLE = 1 << 24  # numbers saved on the way to rest
_MORE_STEPS = 1.5
_AT_ONCE = 1 << 21  # numbers of the members that are looked at together


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


@dataclass(frozen=True, eq=False)
class StoredEnsemble:
    """Statistics of all paths of a store, by blocks of whole members, and an excerpt of them in memory.

    `observed` are the variables in which a series is compared.
    """

    paths: "StoredPaths"
    observed: Callable[[TimeSeries], TimeSeries]

    @classmethod
    def of(
        cls, given: Any, model: LangevinModel, dt: float, observed: Callable[[TimeSeries], TimeSeries], **unused: Any
    ) -> "StoredEnsemble":
        """Refuse paths in other variables than the model's, at other intervals than the data's, or too few of them.

        `unused` are arguments of the simulation, which takes no place.
        """
        from ..data.io.store import StoredPaths

        for name, value in unused.items():
            checks.not_given(name, value, "nothing is simulated where `paths` are given.")
        paths = given if isinstance(given, StoredPaths) else StoredPaths.at(given)
        if paths.members - paths.diverged < GROUPS:
            raise ArgumentError(f"Argument `paths` must hold at least {GROUPS} paths that did not diverge.")
        found = cls(replace(paths, names=model.names), observed)
        first = found.paths.load(found._survivors[:1])
        if first.names != model.names:
            raise ArgumentError(
                f"Argument `paths` must hold the variables of the model, {model.names}, but has {first.names}. "
                "Simulate with transformed=True."
            )
        if not np.isclose(first.dt, dt, rtol=1e-6):
            words = f"Argument `paths` must have the sampling interval of the series, {dt:g}, but has {first.dt:g}."
            raise ArgumentError(f"{words} Simulate with dt={dt:g}.")
        return found

    @cached_property
    def excerpt(self) -> TimeSeries:
        """Members spread evenly over the store, in the variables of the model."""
        alive = self._survivors
        few = max(GROUPS, MOST_NUMBERS // 4 // (self.paths.samples * len(self.paths.names)))
        return self.paths.load([alive[i] for i in np.linspace(0, len(alive) - 1, min(few, len(alive))).astype(int)])

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of samples, of members, and of those that diverged."""
        kept = len(self._survivors)
        return kept * self.paths.samples, kept, self.paths.members - kept

    @cached_property
    def settling(self) -> Settling:
        """How far the law moved between the two halves of the excerpt."""
        return Settling(0.0, *change_of(np.stack(self.excerpt.segments)))

    def statistics(self, dt: float, edges: np.ndarray, lags: np.ndarray) -> SeriesStatistics:
        """Return the statistics of all paths; they are read twice, for their mean and for what varies about it."""
        total, count = 0.0, 0
        for _, block in self._blocks("Reading the mean of the paths"):
            total, count = total + block.stacked().sum(axis=0), count + block.n_samples
        mean = np.asarray(total / count)
        return add_up(
            (group, series_statistics(block.segments, dt, edges, lags, 1, mean))
            for group, block in self._blocks("Reading the paths")
        )

    def _blocks(self, label: str) -> Iterator[tuple[int, TimeSeries]]:
        """Yield the number of a group of members, and some of its paths."""
        most = max(1, _AT_ONCE // (self.paths.samples * len(self.paths.names)))
        groups = np.array_split(self._survivors, GROUPS)
        with progress.task(label, len(self._survivors)) as tick:
            for number, group in enumerate(groups):
                for first in range(0, len(group), most):
                    some = group[first : first + most].tolist()
                    yield number, self.observed(self.paths.load(some))
                    tick(len(some))

    @cached_property
    def _survivors(self) -> list[int]:
        """Numbers of the members that did not diverge."""
        lost = set(self.paths.lost)
        return [member for member in range(self.paths.members) if member not in lost]
