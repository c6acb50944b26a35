"""Validation: simulate a model, compare it with the data, and give every distance an error and a sampling error."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import checks, files, html
from .._core.errors import ArgumentError, DataError
from .._core.format import plus_minus, short, typeset
from .._core.types import Matrix
from ..data import Standardizer, TimeSeries
from ..data.provenance import hash_samples
from ..diagnose import Diagnosis, diagnose
from ..model import LangevinModel, load
from ..statistics import distances
from ..statistics.densities import SeriesStatistics, comparison_lags, histogram_edges, series_statistics
from ..statistics.integral_time import integral_times
from .curves import Curve, LazyCurves, from_dataset, to_dataset
from .ensembles import Settling, StoredEnsemble, simulate_steadily
from .fields import FieldsView
from .findings import aspects
from .findings.aspects import Aspect
from .findings.notes import relative_error
from .findings.verdict import Verdict, judge
from .sides import Comparison, OriginalVariables, Sides, compare_sizes, with_sampling_errors
from .variables_view import VariablesView
from .views import View

if TYPE_CHECKING:
    import xarray as xr

_MEMBERS = 512
_MODEL_SAMPLES = (100_000, 600_000)  # fewest and most, where the data have fewer or more
_OF_THE_LINE = ("edges", "tails")
_REACH = 2 / 3  # of a simulated path: longer lags would have few pairs in it, or none

DISTANCES = ("pdf_kl_mean", "pdf_kl_max", "acf_rmse", "covariance_error", "increment_error")
METRICS = ("mobility_error", "stein_error", *DISTANCES, "pdf_kl_original")


def metric_rows(metrics: Mapping[str, float]) -> list[tuple[str, float, float, float | None]]:
    """List the metrics: name, value, standard error, and sampling error of the data."""
    return [(n, metrics[n], metrics[f"{n}_se"], metrics.get(f"{n}_floor")) for n in METRICS if n in metrics]


@dataclass(frozen=True, eq=False, repr=False)
class Validation:
    """What a model got right and wrong.

    Made by `el.validate`, or read back with `Validation.load`.

    Parameters
    ----------
    metrics : dict of str to float
        Each distance between data and model under its name, with `NAME_se`, its standard error, and `NAME_floor`, the
        same distance between two halves of the data (mean over several halvings). No model can be expected to go below
        that sampling error.
    model : LangevinModel
        The model that was compared.
    curves : mapping of str to Curve
        Every curve of the report, data and model side by side, each computed when it is first asked for: `pdf`,
        `pair_density`, `acf`, `spectrum`, `return_time`, `sample_path`, ... `list(result.curves)` names them all.
    comparison : Comparison
        Sizes of what was compared.
    view : VariablesView or FieldsView
        How data and model are looked at: variable by variable, or pooled over the points of a periodic grid.
    exact_mobility : array of shape (var, var), optional
        The true mobility, if it is known.
    sides : Sides, optional
        Data, simulated paths and their statistics; None if the validation was read from a file.
    stated_diagnosis : Diagnosis, optional
        What was already found out about the data; otherwise they are diagnosed for the verdict.
    tests : tuple of Aspect
        Joint tests of steady state and time scales, on which the verdict rests.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, members=4, seed=0)
    >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
    >>> result = el.validate(model, series, members=32, duration=50.0)
    >>> result.verdict.level
    'good'
    >>> result.curves["acf"].data.shape == result.curves["acf"].model.shape
    True
    """

    metrics: dict[str, float]
    model: LangevinModel
    curves: Mapping[str, Curve]
    comparison: Comparison
    view: View
    exact_mobility: Matrix | None = None
    sides: Sides | None = None
    stated_diagnosis: Diagnosis | None = None
    tests: tuple[Aspect, ...] = ()

    @property
    def data(self) -> TimeSeries:
        """The data in the observed ones of the model's variables, cos and sin in place of angles."""
        return self._sides.data

    @property
    def paths(self) -> TimeSeries:
        """The simulated paths in the same variables."""
        return self._sides.paths

    @property
    def data_statistics(self) -> SeriesStatistics:
        """Histograms and lagged covariances of the data, in groups of consecutive samples."""
        return self._sides.data_statistics

    @property
    def model_statistics(self) -> SeriesStatistics:
        """Histograms and lagged covariances of the simulated paths, in groups."""
        return self._sides.model_statistics

    @property
    def original(self) -> OriginalVariables | None:
        """The comparison in the variables of the series, for a model that was fitted with `preprocess`."""
        return self._sides.original

    @property
    def _sides(self) -> Sides:
        if self.sides is None:
            raise DataError(
                "This validation was read from a file, which keeps curves and metrics but no series. "
                "Call el.validate(model, series) for data, paths and their statistics."
            )
        return self.sides

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """What `diagnose` says about the data in the model's variables; None if they are too few for it."""
        found = self.stated_diagnosis
        if found is None and self.sides is not None:
            try:
                found = diagnose(self.data)
            except DataError:
                return None
        if found is None or not self.model.space.angles:
            return found
        # cos and sin of an angle are bounded by construction: this says nothing about the angle.
        return replace(found, findings=tuple(f for f in found.findings if f.name not in _OF_THE_LINE))

    @cached_property
    def verdict(self) -> Verdict:
        """The overall level and a sentence on each aspect of the model."""
        return judge(self)

    def summary(self) -> str:
        """Return the verdict and the metrics as text."""
        lines = [*self.verdict.sentences, "", *self.verdict.details(), ""]
        for name, value, error, sampling in metric_rows(self.metrics):
            against = "" if sampling is None else f"   (data against data: {sampling:.4f})"
            lines.append(f"{name:18s} {value:.4f} ± {error:.4f}{against}")
        return "\n".join(lines)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML report.

        Parameters
        ----------
        path : str or Path
            The file to write; it is replaced once the new one is complete.
        """
        from .report import write_report

        write_report(self, path)

    def to_xarray(self) -> "xr.Dataset":
        """Return all curves as one dataset.

        Returns
        -------
        xarray.Dataset
            Each curve under its name with the dimension `source` (data, model) first, its standard errors as
            `NAME_se`, units in the attributes; metrics and sizes as JSON in the attributes of the dataset.
        """
        diagnosis = None if self.diagnosis is None else self.diagnosis.to_dict()
        exact = None if self.exact_mobility is None else np.asarray(self.exact_mobility).tolist()
        told = {"metrics": self.metrics, "comparison": asdict(self.comparison), "diagnosis": diagnosis}
        told["tests"] = [asdict(test) for test in self.tests]
        attributes = {name: json.dumps(value) for name, value in {**told, "exact_mobility": exact}.items()}
        return to_dataset(self.curves, {"effective_langevin": version("effective-langevin"), **attributes})

    def save(self, path: str | Path) -> None:
        """Write curves, metrics and diagnosis to a NetCDF file, so that the report can be drawn without simulating.

        Parameters
        ----------
        path : str or Path
            The file, such as "curves.nc". The model is saved apart, with `model.save`.
        """
        with files.replaced(path) as temporary:
            files.write_netcdf(self.to_xarray(), temporary)

    @classmethod
    def load(cls, path: str | Path, model: LangevinModel | str | Path) -> "Validation":
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file of curves.
        model : LangevinModel, str or Path
            The model that was compared, or its file.

        Returns
        -------
        Validation
            With metrics, curves, verdict and report; without series and paths.
        """
        import xarray as xr

        model = model if isinstance(model, LangevinModel) else load(model)
        if not Path(path).is_file():
            raise ArgumentError(f"There is no file {path}.")
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            curves, told = from_dataset(dataset), dataset.attrs
        metrics, sizes, diagnosis, exact = (
            json.loads(told[name]) for name in ("metrics", "comparison", "diagnosis", "exact_mobility")
        )
        listed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in sizes.items()}
        settling = sizes.get("settling")
        listed["settling"] = Settling(**settling) if settling else None
        return cls(
            metrics,
            model,
            curves,
            Comparison(**listed),
            _view(model, None),
            None if exact is None else np.array(exact),
            stated_diagnosis=None if diagnosis is None else Diagnosis.from_dict(diagnosis),
            tests=tuple(Aspect.from_dict(test) for test in json.loads(told.get("tests", "[]"))),
        )

    def __repr__(self) -> str:
        sizes = f"{self.comparison.samples:,} samples, {self.comparison.members} members"
        return f"Validation({self.verdict.level}; {sizes}; acf_rmse {self.metrics['acf_rmse']:.3g})"

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, the metrics with errors and sampling errors, and where to find more."""
        opening, *rest = self.verdict.sentences
        rows = [
            [name, typeset(plus_minus(value, error)), "–" if sampling is None else short(sampling)]
            for name, value, error, sampling in metric_rows(self.metrics)
        ]
        table = html.table(["metric", "value ± s.e.", "data against data"], rows)
        facts = [(name, words) for name, _, words in (sentence.partition(": ") for sentence in rest)]
        return html.card(opening, facts, table, note='More: .summary(), .report("report.html")')


def validate(
    model: LangevinModel,
    series: TimeSeries,
    *,
    seed: int = 0,
    members: int | None = None,
    duration: float | None = None,
    exact_mobility: Matrix | None = None,
    simulation: Mapping[str, Any] | None = None,
    diagnosis: Diagnosis | None = None,
    paths: Any = None,
) -> Validation:
    """Simulate a model and compare its statistics with those of a series.

    The ensemble starts at states of the data and runs until its law stands still, before it is compared.

    Parameters
    ----------
    model : LangevinModel
        The model, as `fit` returns it.
    series : TimeSeries
        A series like the one given to `fit`. For a model with `preprocess` both are compared in the model's variables,
        after the transforms, and their densities also in the variables of the series. Of a series that is read by
        blocks an excerpt is compared (`TimeSeries.excerpt`).
    seed : int, default 0
        Seed of the simulation.
    members : int, optional
        Number of simulated paths, by default 512.
    duration : float, optional
        Length of each path. By default the paths together have as many samples as the data, 1e5 to 6e5.
    exact_mobility : array of shape (var, var), optional
        The true mobility; adds the metric `mobility_error`.
    simulation : mapping, optional
        Further options of `LangevinModel.simulate`, such as `stepper` or `step`.
    diagnosis : Diagnosis, optional
        What `diagnose` found in the data, for the report. By default they are diagnosed for the verdict.
    paths : StoredPaths or path, optional
        Paths that `simulate(..., out="paths.zarr")` wrote, instead of new ones: metrics are those of all of them, read
        by blocks; tests and figures see an excerpt.

    Returns
    -------
    Validation
        Metrics with errors, curves, verdict, summary and report.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, members=4, seed=0)
    >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
    >>> result = el.validate(model, series, members=32, duration=50.0)
    >>> result.metrics["acf_rmse"] < 0.1
    True
    """
    checks.instance_of("series", series, (TimeSeries,))
    if diagnosis is None and model.provenance.get("sha256") == hash_samples(series):
        diagnosis = model.diagnosis
    own = model.to_model_variables(series.excerpt())
    observed = model.space.embed_observed
    series = observed(own)
    units = Standardizer.from_series(series) if model.space.angles else model.standardizer.of_first(series.dimension)
    times = integral_times(series.map(units.to_standard).segments, series.dt)
    lags = comparison_lags(times, series.segments, series.dt)
    asked = {"members": members, "duration": duration, "simulation": simulation}
    stored = None if paths is None else StoredEnsemble.of(paths, model, series.dt, observed, **asked)
    if stored is None:
        excerpt, settling, sizes = _simulate(model, series, float(times.max()), int(lags[-1]), seed=seed, **asked)
    else:
        excerpt, settling, sizes = stored.excerpt, stored.settling, stored.sizes
    simulated = observed(excerpt)
    lags = lags[lags <= _REACH * min(len(s) for s in simulated.segments)]
    given = series.dt, histogram_edges(series.stacked()), lags
    data_statistics = series_statistics(series.segments, *given)
    model_statistics = stored.statistics(*given) if stored else series_statistics(simulated.segments, *given)
    metrics = _stein_and_mobility(model, exact_mobility) | with_sampling_errors(
        DISTANCES, partial(_distances, _view(model, None)), data_statistics, model_statistics
    )
    original = OriginalVariables.of(model, own, excerpt)
    metrics |= original.metrics() if original else {}
    sides = Sides(series, simulated, data_statistics, model_statistics, times, units.to_standard, original)
    view = _view(model, sides)
    compared = compare_sizes(sides, view.range(), *sizes, settling)
    result = Validation(metrics, model, LazyCurves(view.makers), compared, view, exact_mobility, sides, diagnosis)
    return replace(result, tests=aspects.of_samples(sides, view, compared.groups, relative_error(result)))


def _view(model: LangevinModel, sides: Sides | None) -> View:
    return VariablesView(model, sides) if model.space.channels is None else FieldsView(model, sides)


def _simulate(
    model: LangevinModel, series: TimeSeries, slowest: float, longest: int, *, members, duration, simulation, seed: int
) -> tuple[TimeSeries, Settling | None, tuple[int, int, int]]:
    """Simulate twice the `longest` lag in each path, together as many samples as the data.

    Returns the paths, how they came to rest, and numbers of samples, of members, and of those that diverged.
    """
    members = _MEMBERS if members is None else checks.integer_at_least("members", members, 1)
    frames = max(2 * longest, int(np.clip(series.n_samples, *_MODEL_SAMPLES)) // members, 100)
    options = {"members": members, "seed": seed, "dt": series.dt, "transformed": True, **(simulation or {})}
    paths, settling = simulate_steadily(model, duration or frames * series.dt, slowest, **options)
    kept = len(paths.segments)
    return paths, settling, (paths.n_samples, kept, members - kept)


def _distances(
    view: View, data: SeriesStatistics, model: SeriesStatistics, data_weights: np.ndarray, model_weights: np.ndarray
) -> np.ndarray:
    """Return the distances between two series, for any weighting of their groups; covariances averaged over a group."""
    sides, project = ((data, data_weights), (model, model_weights)), view.model.space.symmetry.project
    kl = distances.pdf_kl(*(s.histogram(w) for s, w in sides))
    acf = distances.acf_rmse(*(s.acf(w) for s, w in sides))
    covariance = distances.matrix_error(*(project(s.covariance(w)) for s, w in sides[::-1]))
    increments = distances.increment_error(*(s.increments(w, view.points) for s, w in sides))
    return np.array([kl.mean(), kl.max(), acf, covariance, increments])


def _stein_and_mobility(model: LangevinModel, exact: Matrix | None) -> dict[str, float]:
    metrics = {"stein_error": model.score.stein_error, "stein_error_se": model.score.stein_standard_error}
    if exact is not None:
        exact = checks.shaped_array("exact_mobility", exact, (model.dimension,) * 2, "(var, var)")
        metrics |= {
            "mobility_error": distances.matrix_error(model.mobility.matrix, exact),
            "mobility_error_se": float(np.linalg.norm(model.mobility.standard_error) / np.linalg.norm(exact)),
        }
    return metrics
