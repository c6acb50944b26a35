"""What a validation compares: data and simulated paths, in the model's variables and in those of the series."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._core.types import Samples
from ..data import TimeSeries
from ..data.preprocess.chain import FittedChain
from ..model import LangevinModel
from ..statistics import distances
from ..statistics.densities import SeriesStatistics, floor, histogram_edges, series_statistics
from ..statistics.integral_time import error_groups
from ..statistics.resampling import GROUPS, jackknife
from .ensembles import Settling


@dataclass(frozen=True, eq=False)
class Pair:
    """Data and simulated paths in the same variables, with their statistics."""

    data: TimeSeries
    paths: TimeSeries
    data_statistics: SeriesStatistics
    model_statistics: SeriesStatistics

    @property
    def series(self) -> tuple[TimeSeries, TimeSeries]:
        return self.data, self.paths

    @property
    def statistics(self) -> tuple[SeriesStatistics, SeriesStatistics]:
        return self.data_statistics, self.model_statistics

    def kl(self) -> np.ndarray:
        return _kl(*self.statistics, np.ones(GROUPS), np.ones(GROUPS))


@dataclass(frozen=True, eq=False)
class OriginalVariables(Pair):
    """One-variable densities of the series and of simulated paths, transforms undone on both.

    The data are what the transforms keep of them: without the components that a `PCA` left out. The simulated members
    begin at times spread evenly over the record, so that trend and season weigh as much in them as in the data.
    """

    @classmethod
    def of(cls, model: LangevinModel, data: TimeSeries, paths: TimeSeries) -> "OriginalVariables | None":
        """Compare `data` and `paths`, given in the model's variables, if these are transformed ones or angles."""
        steps = model.transform.steps if isinstance(model.transform, FittedChain) else ()
        remembers = model.space.hidden and len(steps) == 1  # this changes no observed variable
        if (model.transform is None or remembers) and not model.space.angles:
            return None
        data, paths = model.space.wrap(data), _spread_over(data, paths)
        if model.transform is not None:
            data, paths = model.transform.invert(data), model.transform.invert(paths)
        edges, lags = histogram_edges(data.stacked()), np.array([0])
        return cls(data, paths, *(series_statistics(s.segments, s.dt, edges, lags) for s in (data, paths)))

    def metrics(self) -> dict[str, float]:
        """Return the worst KL divergence, its error, and the same between halves of the data."""
        names = ("pdf_kl_original",)
        return with_sampling_errors(names, lambda *which: _kl(*which).max(keepdims=True), *self.statistics)


@dataclass(frozen=True, eq=False)
class Sides(Pair):
    """What a validation compares: data and paths in the model's variables, and in those of the series."""

    integral_times: np.ndarray
    standard: Callable[[Samples], Samples]
    original: OriginalVariables | None


def _kl(data: SeriesStatistics, model: SeriesStatistics, data_weights: np.ndarray, model_weights: np.ndarray):
    return distances.pdf_kl(data.histogram(data_weights), model.histogram(model_weights))


def with_sampling_errors(
    names: Sequence[str], distance: Callable[..., np.ndarray], data: SeriesStatistics, model: SeriesStatistics
) -> dict[str, float]:
    """Return distances between data and model, leave-one-group-out errors, and the same between halves of the data."""
    everything = np.ones(GROUPS)
    value, data_error = jackknife(lambda w: distance(data, model, w, everything), GROUPS)
    model_error = jackknife(lambda w: distance(data, model, everything, w), GROUPS)[1]
    halves = floor(lambda a, b: distance(data, data, a, b))
    numbers = {"": value, "_se": np.hypot(data_error, model_error), "_floor": halves}
    return {f"{name}{end}": float(v) for end, values in numbers.items() for name, v in zip(names, values)}


def _spread_over(data: TimeSeries, paths: TimeSeries) -> TimeSeries:
    """The paths, each moved as a whole so that together they cover the time of the data."""
    first, last = min(data.starts), max(times[-1] for times in data.times)
    span = (len(paths.segments[0]) - 1) * paths.dt
    starts = np.linspace(first, max(first, last - span), len(paths.segments))
    return paths.with_segments(paths.segments, places=list(enumerate(starts.tolist())))


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was compared with what: sizes of both sides, in the variables compared.

    `outside` is the share of simulated states beyond the range of the data, `groups` the number of independent parts of
    the record that errors can be taken from, `settling` how the ensemble came to rest before it was compared.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    time_unit: str
    dt: float
    samples: int
    segments: int
    dropped: int
    duration: float
    integral_times: tuple[float, ...]
    groups: int
    model_samples: int
    members: int
    diverged: int
    outside: float
    settling: Settling | None = None


def compare_sizes(
    sides: Sides, limits: np.ndarray, samples: int, members: int, diverged: int, settling: Settling | None
) -> Comparison:
    """Return the sizes of both sides; `samples`, `members` and `diverged` are those of the model."""
    data, (low, high), simulated = sides.data, limits, sides.paths.stacked()
    return Comparison(
        **{name: getattr(data, name) for name in ("names", "units", "time_unit", "dt", "dropped", "duration")},
        samples=data.n_samples,
        segments=len(data.segments),
        integral_times=tuple(sides.integral_times.tolist()),
        groups=error_groups(data.segments, data.dt, sides.integral_times),
        model_samples=samples,
        members=members,
        diverged=diverged,
        outside=float(np.mean(((simulated < low) | (simulated > high)).any(axis=1))),
        settling=settling,
    )
