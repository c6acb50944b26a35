"""How a comparison is looked at: every variable on its own, or fields pooled over the points of a periodic grid.

A view knows what makes each curve of a validation: a function that computes it, or returns None where there is nothing
to show. Each runs once, when the curve is first asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from .._core.timeunits import SECONDS, canonical
from .._core.types import Matrix, Samples
from ..data import TimeSeries
from ..model import LangevinModel
from ..statistics.densities import BINS, INCREMENT_LAGS
from ..statistics.integral_time import integral_time
from ..statistics.passage import return_times
from ..statistics.resampling import GROUPS, jackknife
from ..statistics.spectra import power_spectra, window_length
from .curves import Curve
from .sides import Sides

Coords = dict[str, tuple[tuple[str, ...], Any]]
OfWeights = Callable[[np.ndarray], np.ndarray]  # a statistic for any weighting of the groups
Maker = Callable[[], Curve | None]

MOST_PANELS = 12
WINDOW = 15.0  # of a sample path, in integral times of the slowest variable
_LEVELS = 41
_MOST_RARE = 6
_RARE = (0.01, 0.99)
_SHORTEST_WINDOW = 16  # samples
_TAIL_BINS, _BEYOND = 60, 0.25  # bins of the tails; how far they may reach beyond the data, in ranges of the data


def worst(errors: np.ndarray, most: int) -> list[int]:
    """Return the places of the largest errors, in their own order."""
    return sorted(np.argsort(errors)[::-1][:most].tolist())


def with_errors(of: Callable[[Any], OfWeights], sides: Sequence[Any]) -> dict[str, Any]:
    """Return a statistic of data and model, each with its leave-one-group-out error."""
    (data, data_error), (model, model_error) = (jackknife(of(side), GROUPS) for side in sides)
    return {"data": data, "model": model, "data_error": data_error, "model_error": model_error}


class View:
    """How data and model are compared: what is pooled over how many points.

    A subclass has the autocorrelations `acfs` of data and model, KL(data || model) and the `edges` of the bins of each
    variable or field, and their names and units, `labels`. A view of saved curves has no `sides` to compute them from.
    """

    what: str
    points = 1
    acfs: Sequence[OfWeights]
    kl: np.ndarray
    edges: np.ndarray
    labels: Callable[..., Coords]
    pdf: Maker
    pair_density: Maker
    sample_path: Maker
    mobility_by_horizon: Maker

    def __init__(self, model: LangevinModel, sides: Sides | None):
        self.model, self.sides, self.time_unit = model, cast(Sides, sides), model.time_unit

    def makers(self) -> dict[str, Maker]:
        """Return what makes each curve."""
        return {
            "mean": lambda: self._of_moments(lambda centre, first, second: centre + first),
            "std": lambda: self._of_moments(lambda centre, first, second: np.sqrt(second - first**2)),
            "return_time": lambda: self._return_times(self.edges[:, :: BINS // (_LEVELS - 1)], MOST_PANELS),
            "rare_return_time": self.rare_return_time,
            "increment": self.increment,
            "integral_time": self.integral_time,
            "pdf": self.pdf,
            "tails": self.tails,
            "pair_density": self.pair_density,
            "acf": self.acf,
            "spectrum": self.spectrum,
            "sample_path": self.sample_path,
            "mobility_by_horizon": self.mobility_by_horizon,
        }

    @cached_property
    def samples(self) -> list[np.ndarray]:
        """All states of data and model, (sample, variable or field, point)."""
        return [self._by_point(s) for s in self.sides.series]

    def _by_point(self, series: TimeSeries) -> np.ndarray:
        return series.stacked().reshape(-1, series.dimension // self.points, self.points)

    @cached_property
    def rmse(self) -> np.ndarray:
        """Root mean square over lags of the difference of autocorrelations, of each variable or field."""
        data, model = (acf(np.ones(GROUPS)) for acf in self.acfs)
        return np.sqrt(np.mean((data - model) ** 2, axis=0))

    def range(self) -> np.ndarray:
        """Return the smallest and the largest value of each variable in the data, of a field at any point."""
        data = self._by_point(self.sides.data)
        return np.repeat([data.min(axis=(0, 2)), data.max(axis=(0, 2))], self.points, axis=1)

    def standard_mobility(self, phi: np.ndarray | None = None) -> np.ndarray:
        """Return the mobility in units of the standard deviations, where entries are comparable."""
        return self.model.standardizer.mobility_to_standard(self.model.mobility.matrix if phi is None else phi)

    def _of_moments(self, of: Callable[..., np.ndarray]) -> Curve:
        """Return a function of the mean of all samples and of the first two moments about it."""

        def in_groups(samples: np.ndarray) -> OfWeights:
            centre = samples.mean(axis=(0, 2))
            parts = np.array_split(samples - centre[:, None], GROUPS)
            sums = np.array([[(part**power).mean(axis=2).sum(axis=0) for power in (1, 2)] for part in parts])
            sizes = np.array([len(part) for part in parts])
            return lambda weights: of(centre, *np.tensordot(weights, sums, 1) / (weights @ sizes))

        return self._pooled(with_errors(in_groups, self.samples))

    def _pooled(self, values: Mapping[str, Any], unit: str = "") -> Curve:
        return Curve(("variable",), **values, coords=self.labels(), units={"value": unit})

    def acf(self) -> Curve:
        coords = {**self.lags(), **self.labels(), "rmse": (("variable",), self.rmse)}
        found = with_errors(lambda acf: acf, self.acfs)
        return Curve(("lag", "variable"), **found, coords=coords, units={"lag": self.time_unit})

    def lags(self) -> Coords:
        return {"lag": (("lag",), self.sides.data_statistics.tau)}

    def integral_time(self) -> Curve:
        """Return the integral times over the lags at hand."""
        tau = self.sides.data_statistics.tau
        return self._pooled(with_errors(lambda acf: lambda w: integral_time(acf(w), tau), self.acfs), self.time_unit)

    def increment(self) -> Curve:
        """Return the mean squared increments over a few sampling intervals."""
        coords = {"interval": (("interval",), self.sides.data.dt * INCREMENT_LAGS), **self.labels()}
        found = with_errors(lambda s: partial(s.increments, points=self.points), self.sides.statistics)
        return Curve(("interval", "variable"), **found, coords=coords, units={"interval": self.time_unit})

    def tails(self) -> Curve:
        """Return the densities over the whole range of the data, and where the model goes beyond it."""
        shown = worst(self.kl, MOST_PANELS)
        return tail_curve([s[:, shown] for s in self.samples], self.labels(shown))

    def spectrum(self) -> Curve | None:
        """Return the power spectra of what has the autocorrelations that differ most."""
        shown = worst(self.rmse, MOST_PANELS)
        return spectrum_curve(*self.chosen(shown), self.sides.integral_times.max(), self.labels(shown), self.points)

    def rare_return_time(self) -> Curve:
        """Return the mean times between crossings of the levels that 1 % of the data lie beyond."""
        pooled = np.moveaxis(self.samples[0], 1, 0)
        return self._return_times(np.quantile(pooled.reshape(len(pooled), -1), _RARE, axis=1).T, _MOST_RARE)

    def _return_times(self, levels: np.ndarray, most: int) -> Curve:
        shown = worst(self.kl, most)
        return return_time_curve(*self.chosen(shown), levels[shown], self.labels(shown), self.points)

    def chosen(self, shown: Sequence[int]) -> tuple[TimeSeries, TimeSeries]:
        """Return data and paths of some variables or fields."""
        kept = [v * self.points + k for v in shown for k in range(self.points)]
        return self.sides.data.map(lambda s: s[:, kept]), self.sides.paths.map(lambda s: s[:, kept])

    def stretches(self, most: int | None = None) -> tuple[list[Samples], Coords]:
        """Return the beginnings of the longest segments of data and model, with their times, and dates where known."""
        data, paths = self.sides.series
        places = [max(range(len(s.segments)), key=lambda k, s=s: len(s.segments[k])) for s in (data, paths)]
        longest = [s.segments[k] for s, k in zip((data, paths), places)]
        window = round(WINDOW * float(self.sides.integral_times.max()) / data.dt) + 1
        frames = min(window, *(len(piece) for piece in longest), *([most] if most else []))
        coords: Coords = {"time": (("time",), data.dt * np.arange(frames))}
        if data.calendar and (unit := canonical(data.time_unit)) in SECONDS:
            from ..data.io.dates import count_dates  # needs pandas, which takes a second to import

            dates = count_dates(data.times[places[0]][:frames], unit, "1970-01-01", data.calendar)
            if dates.dtype.kind == "M":  # of the usual calendar
                coords["date"] = (("time",), dates)
        return [piece[:frames] for piece in longest], coords


def variable_coords(series: TimeSeries, shown: Sequence[int] | None = None) -> Coords:
    """Return names and units of the variables shown, by default all."""
    places = range(series.dimension) if shown is None else shown
    names, units = ([labels[v] for v in places] for labels in (series.names, series.units))
    return {"variable": (("variable",), names), "unit": (("variable",), units)}


def tail_curve(sides: Sequence[np.ndarray], labels: Mapping[str, Any]) -> Curve:
    """Return densities of (sample, variable, point), pooled over points, from the least to the largest sample."""
    ends = np.array([[side.min(axis=(0, 2)), side.max(axis=(0, 2))] for side in sides])
    room = _BEYOND * (ends[0, 1] - ends[0, 0])
    low = np.maximum(ends[:, 0].min(axis=0), ends[0, 0] - room)
    high = np.minimum(ends[:, 1].max(axis=0), ends[0, 1] + room)
    edges = np.linspace(low, high, _TAIL_BINS + 1).T

    def density(side: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        parts = np.array_split(side, GROUPS)
        counts = np.array([[np.histogram(p[:, v], edges[v])[0] for v in range(len(edges))] for p in parts], float)
        sizes = np.array([len(p) * side.shape[2] for p in parts])
        return lambda w: np.tensordot(w, counts, 1) / (w @ sizes) / np.diff(edges, axis=1)

    coords = {**labels, "edges": (("variable", "edge"), edges)}
    return Curve(("variable", "bin"), **with_errors(density, sides), coords=coords)


def pair_curve(
    sides: Sequence[Sequence[Matrix]], edges: np.ndarray, pairs: Sequence[tuple[int, int]], names: Sequence[str], units
) -> Curve:
    """Return the joint densities of pairs (i, j) of what has these edges, names and units, on both sides."""
    coords: dict[str, Any] = {"pair": (("pair",), [f"{names[i]}, {names[j]}" for i, j in pairs])}
    for axis, places in zip("xy", zip(*pairs)):
        coords[f"{axis}_edges"] = (("pair", f"{axis}_edge"), np.asarray(edges)[list(places)])
        coords[f"{axis}_name"] = (("pair",), [names[k] for k in places])
        coords[f"{axis}_unit"] = (("pair",), [units[k] for k in places])
    return Curve(("pair", "x", "y"), *map(np.array, sides), coords=coords)


def spectrum_curve(
    data: TimeSeries, paths: TimeSeries, slowest: float, labels: Mapping[str, Any], points: int = 1
) -> Curve | None:
    """Return power spectra, each the mean over `points` neighbouring variables; None for records that are too short.

    Both sides are cut into windows of the same length, of 30 of the slowest integral times where the records allow it.
    """
    length = min(window_length(s.segments, s.dt, slowest) for s in (data, paths))
    if length < _SHORTEST_WINDOW:
        return None
    mean = data.stacked().mean(axis=0)
    one, other = (power_spectra(s.segments, s.dt, length, mean, points) for s in (data, paths))
    errors = (None, None) if one.error is None or other.error is None else (one.error, other.error)
    coords = {"frequency": (("frequency",), one.frequency), **labels}
    unit = {"frequency": f"1/{data.time_unit}" if data.time_unit else ""}
    return Curve(("frequency", "variable"), one.power, other.power, *errors, coords, unit)


def return_time_curve(
    data: TimeSeries, paths: TimeSeries, levels: np.ndarray, labels: Mapping[str, Any], points: int = 1
) -> Curve:
    """Return the mean times between upward crossings of levels, pooled over `points` neighbouring variables."""
    one, other = (return_times(s.segments, s.dt, levels, points) for s in (data, paths))
    coords = {**labels, "levels": (("variable", "level"), levels)}
    return Curve(("variable", "level"), one[0], other[0], one[1], other[1], coords, {"value": data.time_unit})
