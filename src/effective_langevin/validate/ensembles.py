"""The model's side of a validation: paths simulated for it, or paths in a store that may be larger than memory.

Both have an `excerpt` in memory, in the variables of the model, the `statistics` of all paths, and say how the ensemble
came to rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import checks, progress
from .._core.errors import ArgumentError
from ..data import TimeSeries
from ..data.lazy import MOST_NUMBERS
from ..model import LangevinModel
from ..statistics.densities import SeriesStatistics, add_up, series_statistics
from ..statistics.resampling import GROUPS
from .settle import Settling, change_of

if TYPE_CHECKING:
    from ..data.io.store import StoredPaths

_AT_ONCE = 1 << 21  # numbers of the members that are looked at together


@dataclass(frozen=True, eq=False)
class SimulatedEnsemble:
    """Paths in memory: the excerpt is all of them."""

    excerpt: TimeSeries
    settling: Settling | None
    members: int
    observed: Callable[[TimeSeries], TimeSeries]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of samples, of members, and of those that diverged."""
        kept = len(self.excerpt.segments)
        return self.excerpt.n_samples, kept, self.members - kept

    def statistics(self, dt: float, edges: np.ndarray, lags: np.ndarray) -> SeriesStatistics:
        """Return the statistics of the paths."""
        return series_statistics(self.observed(self.excerpt).segments, dt, edges, lags)


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
