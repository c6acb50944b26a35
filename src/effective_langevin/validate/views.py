"""How a comparison is looked at: every variable on its own, or fields pooled over the points of a periodic grid.

A view computes all curves of a validation, each once and when it is first asked for. Both views name them alike.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.ndimage import gaussian_filter

from .._core.format import short
from .._core.types import Matrix, Samples
from ..data import TimeSeries
from ..model import LangevinModel
from ..statistics.basins import basin_shares
from ..statistics.densities import BINS, INCREMENT_LAGS, SeriesStatistics, pair_histogram
from ..statistics.distances import pdf_kl
from ..statistics.resampling import GROUPS, jackknife
from ..statistics.return_times import return_times
from ..statistics.spectra import power_spectra, window_length
from ..statistics.step_profiles import StateBins, step_profiles
from .curves import Curve, LazyCurves, basin_name
from .sides import OriginalVariables, Sides
from .state_fields import field_arrows, field_profiles

if TYPE_CHECKING:
    from .validation import Validation

Coords = dict[str, tuple[tuple[str, ...], Any]]

MOST_PANELS = 12
WINDOW = 15.0  # of a sample path, in integral times of the slowest variable
_LEVELS = 41
_MOST_ROWS = 6
_MOST_PAIRS = 6
_MOST_ENTRIES = 9
_MOST_RARE = 6
_RARE = (0.01, 0.99)
_CROSS_DIMENSIONS = 4
_SHORTEST_WINDOW = 16  # samples
_STEP_TIME = 0.1  # of the shortest integral time
# Bins are joined for the eye until they hold enough samples; joint densities need more of them.
_BIN_GROUPS, _BIN_SAMPLES = (2, 4, 5, 8, 10), 100
_PAIR_GROUPS, _PAIR_SAMPLES = (5, 10), 20_000


def worst(errors: np.ndarray, most: int) -> list[int]:
    """Return the places of the largest errors, in their own order."""
    return sorted(np.argsort(errors)[::-1][:most].tolist())


def with_errors(of: Callable[[Any], Callable[[np.ndarray], np.ndarray]], sides: Sequence[Any]) -> dict[str, Any]:
    """Return a statistic of data and model, each with its leave-one-group-out error."""
    (data, data_error), (model, model_error) = (jackknife(of(side), GROUPS) for side in sides)
    return {"data": data, "model": model, "data_error": data_error, "model_error": model_error}


class View(abc.ABC):
    """How data and model are compared: what is pooled over how many points, and which sentences describe it.

    A view of saved curves has no `sides` to compute them from.
    """

    density_metric: str
    what: str
    points = 1

    def __init__(self, model: LangevinModel, sides: Sides | None = None):
        self.model, self.sides, self.time_unit = model, cast(Sides, sides), model.time_unit

    def curves(self) -> LazyCurves:
        """Return all curves, each computed when it is first asked for."""
        shared = {
            "mean": lambda: self._pooled(*(s.mean(axis=(0, 2)) for s in self.samples)),
            "std": lambda: self._pooled(*(s.std(axis=(0, 2)) for s in self.samples)),
            "return_time": lambda: self.return_times(self.edges[:, :: BINS // (_LEVELS - 1)], MOST_PANELS),
            "rare_return_time": self._rare_return_times,
            "increment": self._increments,
        }
        return LazyCurves({**shared, **self.makers()})

    @cached_property
    def samples(self) -> list[np.ndarray]:
        """All states of data and model, (sample, variable or field, point)."""
        return [s.stacked().reshape(-1, s.dimension // self.points, self.points) for s in self.sides.series]

    def _pooled(self, data: np.ndarray, model: np.ndarray, unit: str = "") -> Curve:
        return Curve(("variable",), data, model, coords=self.labels(), units={"value": unit})

    def return_times(self, levels: np.ndarray, most: int) -> Curve:
        """Return the mean times between upward crossings of levels, of what has the largest KL divergence."""
        shown = worst(self.kl, most)
        return return_time_curve(*self.chosen(shown), levels[shown], self.labels(shown), self.points)

    def _increments(self) -> Curve:
        """Mean squared increments over a few sampling intervals."""
        steps = {"interval": (("interval",), self.sides.data.dt * INCREMENT_LAGS)}
        found = with_errors(lambda s: partial(s.increments, points=self.points), self.sides.statistics)
        coords = {**steps, **self.labels()}
        return Curve(("interval", "variable"), **found, coords=coords, units={"interval": self.time_unit})

    def _rare_return_times(self) -> Curve:
        pooled = np.moveaxis(self.samples[0], 1, 0)
        return self.return_times(np.quantile(pooled.reshape(len(pooled), -1), _RARE, axis=1).T, _MOST_RARE)

    def chosen(self, shown: Sequence[int]) -> tuple[TimeSeries, TimeSeries]:
        """Return data and paths of some variables or fields."""
        kept = [v * self.points + k for v in shown for k in range(self.points)]
        return self.sides.data.map(lambda s: s[:, kept]), self.sides.paths.map(lambda s: s[:, kept])

    @abc.abstractmethod
    def makers(self) -> dict[str, Callable[[], Curve | None]]:
        """Return a function for each curve that the views compute differently."""

    @abc.abstractmethod
    def labels(self, shown: Sequence[int] | None = None) -> Coords:
        """Return names and units of variables or fields."""

    @property
    @abc.abstractmethod
    def kl(self) -> np.ndarray:
        """KL(data || model) of each variable or field."""

    @property
    @abc.abstractmethod
    def edges(self) -> np.ndarray:
        """Bins of each variable or field."""

    @abc.abstractmethod
    def subject(self) -> str:
        """Say in a few words what the variables are."""

    @abc.abstractmethod
    def density_words(self, validation: "Validation") -> str:
        """Say which density is compared."""

    @abc.abstractmethod
    def time_scale_words(self, validation: "Validation") -> tuple[str, str]:
        """Say which autocorrelation differs most, and which integral time."""

    def range(self, samples: Samples) -> np.ndarray:
        """Return the smallest and the largest value of each variable."""
        return np.array([samples.min(axis=0), samples.max(axis=0)])

    def mean_times(self, times: np.ndarray) -> np.ndarray:
        """Return the integral times of what is independent of each other."""
        return times

    def standard_mobility(self, phi: np.ndarray | None = None) -> np.ndarray:
        """Return the mobility in units of the standard deviations, where entries are comparable."""
        return self.model.standardizer.mobility_to_standard(self.model.mobility.matrix if phi is None else phi)


class VariablesView(View):
    """Every variable on its own; of many, figures show those that differ most."""

    density_metric, what = "pdf_kl_max", "Variable"

    def subject(self) -> str:
        """Name the variables, or count them."""
        model = self.model
        return ", ".join(model.names) if model.dimension <= _MOST_ROWS else f"{model.dimension} variables"

    def density_words(self, validation: "Validation") -> str:
        """Name the density that is reproduced worst."""
        pdf = validation.curves["pdf"]
        name = pdf.labels[int(np.argmax(pdf["kl"]))]
        return f"the density of {name}" + (" is the worst reproduced: it" if self.model.dimension > 1 else "")

    def time_scale_words(self, validation: "Validation") -> tuple[str, str]:
        """Name the variables whose autocorrelation and whose integral time differ most."""
        acf, times = validation.curves["acf"], validation.curves["integral_time"]
        names, errors, ratio = acf.labels, acf["rmse"], times.model / times.data
        most, off = int(np.argmax(errors)), int(np.argmax(np.abs(np.log(ratio))))
        if len(names) == 1:
            return "", f"The integral time is {ratio[0]:.2f} times that of the data."
        words = f"The integral time of {names[off]} differs most: it is {ratio[off]:.2f} times that of the data."
        return f", most in {names[most]} ({short(errors[most])})", words

    def makers(self) -> dict[str, Callable[[], Curve | None]]:
        """Return a function for each curve."""
        sides, original = self.sides, self.sides.original
        found: dict[str, Callable[[], Curve | None]] = {
            "integral_time": lambda: self._pooled(*(s.integral_times() for s in sides.statistics), unit=self.time_unit),
            "pdf": lambda: pdf_curve(sides.data, sides.statistics, self.kl),
            "pair_density": self._pair_density,
            "acf": self._acf,
            "cross_correlation": self._cross_correlation,
            "spectrum": self._spectrum,
            "step_size": lambda: step_curve(*self._standard(), sides.integral_times.min()),
            "sample_path": self._sample_path,
            "mobility_by_horizon": self._mobility_by_horizon,
        }
        if original:
            statistics = (original.data_statistics, original.model_statistics)
            found["original_pdf"] = lambda: pdf_curve(original.data, statistics, original.kl_by_variable())
        if self.model.fields is not None:
            own = sides.data if not self.model.space.angles else original and original.data
            found |= {
                "field_profiles": lambda: field_profiles(self.model, own),
                "field_arrows": lambda: field_arrows(self.model, own),
            }
        if original and self.model.space.angles:
            found |= {basin_name(name): partial(self._basins, name) for name in self._angles(original)}
        return found

    @cached_property
    def kl(self) -> np.ndarray:
        """KL(data || model) of each variable."""
        return pdf_kl(*(s.histogram(np.ones(GROUPS)) for s in self.sides.statistics))

    @cached_property
    def rmse(self) -> np.ndarray:
        """Root mean square over lags of the difference of autocorrelations, of each variable."""
        data, model = (s.acf(np.ones(GROUPS)) for s in self.sides.statistics)
        return np.sqrt(np.mean((data - model) ** 2, axis=0))

    @property
    def edges(self) -> np.ndarray:
        """Bins of each variable."""
        return self.sides.data_statistics.edges

    def labels(self, shown: Sequence[int] | None = None) -> Coords:
        """Return names and units of the variables shown, by default all."""
        return variable_coords(self.sides.data, range(self.sides.data.dimension) if shown is None else shown)

    def _standard(self) -> tuple[TimeSeries, TimeSeries]:
        return self.sides.data.map(self.sides.standard), self.sides.paths.map(self.sides.standard)

    def _lags(self) -> dict[str, Any]:
        lags = {"lag": (("lag",), self.sides.data_statistics.tau)}
        return {"coords": {**lags, **self.labels()}, "units": {"lag": self.sides.data.time_unit}}

    def _acf(self) -> Curve:
        found = self._lags()
        found["coords"]["rmse"] = (("variable",), self.rmse)
        return Curve(("lag", "variable"), **with_errors(lambda s: s.acf, self.sides.statistics), **found)

    def _cross_correlation(self) -> Curve | None:
        if not 1 < self.sides.data.dimension <= _CROSS_DIMENSIONS:
            return None
        found = self._lags()
        found["coords"]["earlier"] = (("earlier",), list(self.sides.data.names))
        curves = with_errors(lambda s: s.correlation, self.sides.statistics)
        return Curve(("lag", "variable", "earlier"), **curves, **found)

    def _spectrum(self) -> Curve | None:
        shown = worst(self.rmse, MOST_PANELS)
        return spectrum_curve(*self.chosen(shown), self.sides.integral_times.max(), self.labels(shown))

    def _sample_path(self) -> Curve:
        data, paths = self.sides.series
        shown = worst(self.rmse, _MOST_ROWS)
        longest = min(max(len(s) for s in series.segments) - 1 for series in (data, paths)) * data.dt
        frames = round(min(WINDOW * float(self.sides.integral_times.max()), longest) / data.dt) + 1
        pieces = (max(series.segments, key=len)[:frames, shown] for series in (data, paths))
        coords = {"time": (("time",), data.dt * np.arange(frames)), **self.labels(shown)}
        return Curve(("time", "variable"), *pieces, coords=coords, units={"time": data.time_unit})

    def _pair_density(self) -> Curve | None:
        model, original = self.model, self.sides.original
        # Pairs of angles are shown, not pairs of their cos and sin.
        shown = original if model.space.angles and original else self.sides
        phi = np.abs(self.standard_mobility())
        rows, columns = np.triu_indices(len(phi), 1)
        pairs = [(int(rows[k]), int(columns[k])) for k in worst((phi + phi.T)[rows, columns], _MOST_PAIRS)]
        if not pairs:
            return None
        edges, group = shown.data_statistics.edges, _PAIR_GROUPS[self.sides.data.n_samples < _PAIR_SAMPLES]
        data, paths = (
            [gaussian_filter(pair_histogram(s.stacked(), edges, i, j, group), 1.0) for i, j in pairs]
            for s in (shown.data, shown.paths)
        )
        return pair_curve(data, paths, edges[:, ::group], pairs, shown.data.names, shown.data.units)

    def _mobility_by_horizon(self) -> Curve | None:
        model, found = self.model, self.model.mobility.evidence.horizon
        if found is None or found.phi is None:
            return None
        # Beside a current that depends on the state, what was inferred by horizon is the diffusion.
        matrix, symbol = (model.mobility.matrix, "Φ") if model.fields is None else (model.mobility.symmetric, "D")
        size = np.abs(self.standard_mobility(matrix))
        rows, columns = np.divmod(worst(size.ravel(), _MOST_ENTRIES), len(size))
        curves = found.phi[:, rows, columns]
        used = np.broadcast_to(matrix[rows, columns], curves.shape)
        chosen = np.nan if found.chosen is None else found.chosen[0]
        coords = {
            "horizon": (("horizon",), found.horizons),
            "entry": (("entry",), [f"{model.names[i]}, {model.names[j]}" for i, j in zip(rows, columns)]),
            "row": (("entry",), [model.names[i] for i in rows]),
            "column": (("entry",), [model.names[j] for j in columns]),
            "chosen": (("entry",), np.full(len(rows), chosen, float)),
            "symbol": ((), symbol),
        }
        error = None if found.standard_error is None else found.standard_error[:, rows, columns]
        errors = (None, None) if error is None else (error, np.zeros(curves.shape))
        return Curve(("horizon", "entry"), curves, used, *errors, coords, {"horizon": model.time_unit})

    def _angles(self, original: OriginalVariables) -> list[str]:
        names = [self.model.names[column] for column in self.model.space.angles]
        return [name for name in names if name in original.data.names]

    def _basins(self, name: str) -> Curve | None:
        space, original = self.model.space, self.sides.original
        if original is None:
            return None
        column, place = self.model.names.index(name), original.data.names.index(name)
        lowest, period = space.lowest[column], float(space.periods[column] or 0.0)
        one, other = (series.stacked()[:, place] for series in (original.data, original.paths))
        centres, (data, data_error), (model, model_error) = basin_shares(one, other, lowest, period)
        coords = {"centre": (("basin",), centres), "angle": ((), name)}
        return Curve(("basin",), data, model, data_error, model_error, coords, {"centre": self.model.units[column]})


def variable_coords(series: TimeSeries, shown: Sequence[int]) -> Coords:
    """Return names and units of the variables shown."""
    names, units = ([labels[v] for v in shown] for labels in (series.names, series.units))
    return {"variable": (("variable",), names), "unit": (("variable",), units)}


def pdf_curve(data: TimeSeries, statistics: Sequence[SeriesStatistics], kl: np.ndarray) -> Curve:
    """Return the density of each variable, bins joined until they hold enough samples."""
    bins = next((g for g in _BIN_GROUPS if data.n_samples * g >= BINS * _BIN_SAMPLES), _BIN_GROUPS[-1])

    def density(side: SeriesStatistics) -> Callable[[np.ndarray], np.ndarray]:
        def of(weights: np.ndarray) -> np.ndarray:
            counts = side.histogram(weights)
            density = counts / counts.sum(axis=1, keepdims=True) / np.diff(side.edges, axis=1)
            return density.reshape(len(density), -1, bins).mean(axis=-1)

        return of

    coords = variable_coords(data, range(data.dimension))
    coords |= {"edges": (("variable", "edge"), statistics[0].edges[:, ::bins]), "kl": (("variable",), kl)}
    return Curve(("variable", "bin"), **with_errors(density, statistics), coords=coords)


def pair_curve(
    data: Sequence[Matrix],
    model: Sequence[Matrix],
    edges: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    units: Sequence[str],
) -> Curve:
    """Return the joint densities of pairs (i, j) of what has these edges, names and units."""
    coords: dict[str, Any] = {"pair": (("pair",), [f"{names[i]}, {names[j]}" for i, j in pairs])}
    for axis, places in zip("xy", zip(*pairs)):
        coords[f"{axis}_edges"] = (("pair", f"{axis}_edge"), np.asarray(edges)[list(places)])
        coords[f"{axis}_name"] = (("pair",), [names[k] for k in places])
        coords[f"{axis}_unit"] = (("pair",), [units[k] for k in places])
    return Curve(("pair", "x", "y"), np.array(data), np.array(model), coords=coords)


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


def step_curve(data: TimeSeries, paths: TimeSeries, shortest: float) -> Curve:
    """Return the mean squared steps of standardised series by state, relative to their mean.

    They are taken over a tenth of the `shortest` integral time, which is mostly noise.
    """
    lag = min(max(1, round(_STEP_TIME * shortest / data.dt)), min(len(s) for s in paths.segments) - 1)
    bins = StateBins.from_samples(data.stacked())
    one, other = (step_profiles(s.segments, lag, bins) for s in (data, paths))
    labels = variable_coords(data, range(data.dimension))
    coords = {"by": (("by",), ["value", "radius"]), **labels, "tau": ((), lag * data.dt)}
    return Curve(("by", "variable", "fifth"), one[0], other[0], one[1], other[1], coords, {"tau": data.time_unit})
