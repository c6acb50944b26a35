"""Validation: simulate the model, compare with the data, attach errors and the data-against-data floor."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._core import checks, html
from .._core.errors import DataError
from .._core.format import plus_minus, short, typeset
from .._core.types import Matrix
from ..data import Standardizer, TimeSeries
from ..diagnose import Diagnosis, diagnose
from ..model import LangevinModel
from ..statistics import distances
from ..statistics.densities import SeriesStatistics, comparison_lags, floor, histogram_edges, series_statistics
from ..statistics.integral_time import integral_times
from ..statistics.resampling import GROUPS, jackknife
from .steps import StepSizes
from .untransformed import OriginalVariables

_MEMBERS = 512
_MODEL_SAMPLES = 600_000
_OF_THE_LINE = ("edges", "tails")
_REACH = 2 / 3  # of a simulated path: longer lags would have few pairs in it, or none


@dataclass(frozen=True)
class Validation:
    """What the model got right and wrong.

    `metrics` is flat: each name with `<name>_se`, its standard error, and `<name>_floor`, the same distance between two
    halves of the data (mean over several halvings). No model can be expected to go below the floor.

    `data` and `paths` are in the model's own variables. Where these are not those of the series, because the model was
    fitted with `preprocess`, `original` compares the densities of the latter; `pdf_kl_original` is the worst of them.
    """

    metrics: dict[str, float]
    model: LangevinModel
    data: TimeSeries
    paths: TimeSeries
    data_statistics: SeriesStatistics
    model_statistics: SeriesStatistics
    integral_times: np.ndarray
    exact_mobility: Matrix | None = None
    diverged: int = 0
    original: OriginalVariables | None = None
    steps: StepSizes | None = None

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """What `diagnose` says about the data in the model's own variables; None where they are too few for it."""
        try:
            found = diagnose(self.data)
        except DataError:
            return None
        if self.model.circles is None:
            return found
        # The cos and sin of an angle end at 1 and have no tails because they do: nothing to be said about the angle.
        return replace(found, findings=tuple(f for f in found.findings if f.name not in _OF_THE_LINE))

    def summary(self) -> str:
        """The verdict and the metrics as text."""
        from .findings.verdict import verdict

        lines = [*verdict(self), ""]
        for name in METRICS:
            if name in self.metrics:
                floor = self.metrics.get(f"{name}_floor")
                against = "" if floor is None else f"   (data against data: {floor:.4f})"
                lines.append(f"{name:18s} {self.metrics[name]:.4f} ± {self.metrics[f'{name}_se']:.4f}{against}")
        return "\n".join(lines)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML report."""
        from .report import write_report

        write_report(self, path)

    def __repr__(self) -> str:
        return f"Validation(\n{self.summary()}\n)"

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, the metrics with errors and floors, and where more is to be found."""
        from .findings.verdict import verdict

        opening, *rest = verdict(self)
        rows = [
            [
                name,
                typeset(plus_minus(self.metrics[name], self.metrics[f"{name}_se"])),
                short(self.metrics[f"{name}_floor"]) if f"{name}_floor" in self.metrics else "–",
            ]
            for name in METRICS
            if name in self.metrics
        ]
        listed = html.table(["metric", "value ± s.e.", "data against data"], rows)
        facts = [(name, words) for name, _, words in (sentence.partition(": ") for sentence in rest[:4])]
        return html.card(opening, facts, listed, note='More: .summary(), .report("report.html")')


DISTANCES = ("pdf_kl_mean", "pdf_kl_max", "acf_rmse", "covariance_error")
METRICS = ("mobility_error", "stein_error", *DISTANCES, "pdf_kl_original")


def validate(
    model: LangevinModel,
    series: TimeSeries,
    *,
    seed: int = 0,
    members: int | None = None,
    duration: float | None = None,
    exact_mobility: Matrix | None = None,
    simulation: Mapping[str, Any] | None = None,
) -> Validation:
    """Simulate `model` and compare its statistics with those of `series`.

    The series is one like that given to `fit`. For a model with `preprocess` both are compared in the model's own
    variables, after the transforms, and their densities also in the variables of the series.
    Without `members` and `duration` an ensemble of about as many samples as the data is run, at the data's interval.
    `exact_mobility`, where the truth is known, adds `mobility_error`. `simulation` holds further options of
    `LangevinModel.simulate`, such as the stepper.
    """
    checks.instance_of("series", series, (TimeSeries,))
    series = model.on_circles(model.transformed(series))
    standard = Standardizer.from_series(series).to_standard if model.circles else model.standardizer.to_standard
    times = integral_times(series.map(standard).segments, series.dt)
    lags = comparison_lags(times, series.segments, series.dt)
    members = _MEMBERS if members is None else checks.integer_at_least("members", members, 1)
    frames = max(2 * int(lags[-1]), min(series.n_samples, _MODEL_SAMPLES) // members, 100)
    options = {"dt": series.dt, "transformed": True, **(simulation or {})}
    paths = model.on_circles(model.simulate(duration or frames * series.dt, members=members, seed=seed, **options))
    lags = lags[lags <= _REACH * min(len(s) for s in paths.segments)]
    edges = histogram_edges(series.stacked())
    data_statistics, model_statistics = (series_statistics(s.segments, s.dt, edges, lags) for s in (series, paths))
    metrics = _stein_and_mobility(model, exact_mobility)
    metrics |= _compared(data_statistics, model_statistics)
    original = OriginalVariables.of(model, series, paths)
    metrics |= original.metrics() if original else {}
    return Validation(
        metrics,
        model,
        series,
        paths,
        data_statistics,
        model_statistics,
        times,
        exact_mobility,
        diverged=members - len(paths.segments),
        original=original,
        steps=StepSizes.of(series.map(standard), paths.map(standard), float(times.min())),
    )


def _distances(data: SeriesStatistics, model: SeriesStatistics, data_weights: np.ndarray, model_weights: np.ndarray):
    """The distances between two series, for any weighting of their groups."""
    kl = distances.pdf_kl(data.histogram(data_weights), model.histogram(model_weights))
    return np.array(
        [
            kl.mean(),
            kl.max(),
            distances.acf_rmse(data.acf(data_weights), model.acf(model_weights)),
            distances.covariance_error(model.covariance(model_weights), data.covariance(data_weights)),
        ]
    )


def _compared(data: SeriesStatistics, model: SeriesStatistics) -> dict[str, float]:
    """Distances, their leave-one-group-out errors, and the floor between halves of the data."""
    everything, names = np.ones(GROUPS), DISTANCES
    value, data_error = jackknife(lambda w: _distances(data, model, w, everything), GROUPS)
    model_error = jackknife(lambda w: _distances(data, model, everything, w), GROUPS)[1]
    return (
        {name: float(v) for name, v in zip(names, value)}
        | {f"{name}_se": float(v) for name, v in zip(names, np.hypot(data_error, model_error))}
        | {f"{name}_floor": float(v) for name, v in zip(names, floor(lambda a, b: _distances(data, data, a, b)))}
    )


def _stein_and_mobility(model: LangevinModel, exact: Matrix | None) -> dict[str, float]:
    metrics = {"stein_error": model.score.stein_error, "stein_error_se": model.score.stein_standard_error}
    if exact is not None:
        exact = checks.shaped_array("exact_mobility", exact, (model.dimension,) * 2, "(var, var)")
        metrics |= {
            "mobility_error": distances.mobility_error(model.mobility.matrix, exact),
            "mobility_error_se": float(np.linalg.norm(model.mobility.standard_error) / np.linalg.norm(exact)),
        }
    return metrics
