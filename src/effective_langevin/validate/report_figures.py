"""The figures of the report: what each shows of a validation, computed here and drawn by `plots`."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

from .._core import progress
from .._core.types import Matrix
from ..data import TimeSeries
from ..statistics.densities import BINS, SeriesStatistics, pair_histogram
from ..statistics.resampling import GROUPS, jackknife
from . import plots
from .extremes import LEVELS, compare_return_times
from .fields_comparison import FieldsComparison
from .fields_report import ring_figures
from .findings.verdict import acf_rmse_by_variable, kl_by_variable, worst
from .spectra import compare_spectra
from .validation import Validation

WINDOW = 15.0
MOST_PANELS = 12
MOST_ROWS = 6
MOST_PAIRS = 6
MOST_ENTRIES = 9
CROSS_DIMENSIONS = 4
ANNOTATED = 6
# On a ring, where points are alike, these are drawn pooled or by mode instead.
_BY_VARIABLE = ("pdfs", "pairs", "acfs", "cross_correlations", "trajectories", "phi_by_horizon", "spectra")
_BY_VARIABLE += ("return_times",)
# Bins are joined for the eye until they hold enough samples; joint densities need more of them.
_BIN_GROUPS = (2, 4, 5, 8, 10)
_BIN_SAMPLES = 100
_PAIR_GROUPS, _PAIR_SAMPLES = (5, 10), 20_000


def figures(validation: Validation) -> dict[str, Figure]:
    """Every figure that this validation has something to show for, by name."""
    makers: dict[str, Callable[[Validation], Any]] = {
        "mobility": _mobility_figure,
        "pdfs": _pdf_figure,
        "original_pdfs": _original_pdf_figure,
        "pairs": _pair_figure,
        "acfs": _acf_figure,
        "cross_correlations": _cross_figure,
        "spectra": _spectrum_figure,
        "return_times": _return_time_figure,
        "trajectories": _trajectory_figure,
        "phi_by_horizon": _horizon_figure,
        "noise_level": _noise_level_figure,
        "training": _training_figure,
        "stein": _stein_figure,
    }
    ring = FieldsComparison.of(validation)
    wanted = {name: make for name, make in makers.items() if not (ring and name in _BY_VARIABLE)}
    drawn: dict[str, Any] = {}
    with progress.task("Drawing the figures", len(wanted) + 1) as tick:
        for name, make in wanted.items():
            drawn[name] = make(validation)
            tick(1)
        drawn |= ring_figures(ring) if ring else {}
        tick(1)
    return {name: np.ravel(np.asarray(axes))[0].figure for name, axes in drawn.items() if axes is not None}


def _mobility_figure(validation: Validation):
    model = validation.model
    if model.dimension == 1:
        return None
    return plots.plot_mobility(model.mobility, names=model.names, std=model.standardizer.std, time_unit=model.time_unit)


def _pdf_figure(validation: Validation):
    statistics = (validation.data_statistics, validation.model_statistics)
    return _densities(validation.data, statistics, kl_by_variable(validation))


def _original_pdf_figure(validation: Validation):
    original = validation.original
    if original is None:
        return None
    return _densities(original.data, (original.data_statistics, original.model_statistics), original.kl_by_variable())


def _densities(data: TimeSeries, statistics: tuple[SeriesStatistics, SeriesStatistics], kl: np.ndarray):
    """Data and model, of the variables that differ most."""
    shown = worst(kl, MOST_PANELS)
    group = next((g for g in _BIN_GROUPS if data.n_samples * g >= BINS * _BIN_SAMPLES), _BIN_GROUPS[-1])
    densities = [_coarse(s.density()[shown], group) for s in statistics]
    names, units = ([labels[v] for v in shown] for labels in (data.names, data.units))
    return plots.plot_pdfs(statistics[0].edges[shown][:, ::group], *densities, names=names, units=units)


def _pair_figure(validation: Validation):
    pairs = _pairs(validation)
    if not pairs:
        return None
    # Of angles it is these that belong together, not their cos and sin.
    shown = validation.original if validation.model.circles and validation.original else validation
    edges = shown.data_statistics.edges
    group = _PAIR_GROUPS[validation.data.n_samples < _PAIR_SAMPLES]

    def densities(samples: np.ndarray) -> dict[tuple[int, int], Matrix]:
        return {(i, j): gaussian_filter(pair_histogram(samples, edges, i, j, group), 1.0) for i, j in pairs}

    data, model = densities(shown.data.stacked()), densities(shown.paths.stacked())
    return plots.plot_pair_densities(edges[:, ::group], data, model, names=shown.data.names, units=shown.data.units)


def _acf_figure(validation: Validation):
    shown = worst(acf_rmse_by_variable(validation), MOST_PANELS)
    curves = _with_errors(validation, lambda statistics: lambda w: statistics.acf(w)[:, shown])
    return plots.plot_acfs(
        validation.data_statistics.tau,
        **curves,
        names=[validation.data.names[v] for v in shown],
        time_unit=validation.data.time_unit,
    )


def _cross_figure(validation: Validation):
    if not 1 < validation.model.dimension <= CROSS_DIMENSIONS:
        return None
    curves = _with_errors(validation, lambda statistics: statistics.correlation)
    return plots.plot_cross_correlations(
        validation.data_statistics.tau, **curves, names=validation.data.names, time_unit=validation.data.time_unit
    )


def _spectrum_figure(validation: Validation):
    shown = worst(acf_rmse_by_variable(validation), MOST_PANELS)
    data, paths = (series.map(lambda s: s[:, shown]) for series in (validation.data, validation.paths))
    found = compare_spectra(data, paths, float(validation.integral_times.max()))
    if found is None:
        return None
    errors = {"data_error": found.data_error, "model_error": found.model_error}
    return plots.plot_spectra(found.x, found.data, found.model, **errors, **_labels(validation.data, shown))


def _return_time_figure(validation: Validation):
    shown, edges = worst(kl_by_variable(validation), MOST_PANELS), validation.data_statistics.edges
    data, paths = (series.map(lambda s: s[:, shown]) for series in (validation.data, validation.paths))
    found = compare_return_times(data, paths, edges[shown][:, :: (edges.shape[1] - 1) // (LEVELS - 1)])
    return plots.plot_return_times(**vars(found), **_labels(validation.data, shown))


def _labels(data: TimeSeries, shown: list[int]) -> dict[str, Any]:
    names, units = ([labels[v] for v in shown] for labels in (data.names, data.units))
    return {"names": names, "units": units, "time_unit": data.time_unit}


def _trajectory_figure(validation: Validation):
    data, paths = validation.data, validation.paths
    longest = min(max(len(s) for s in series.segments) - 1 for series in (data, paths)) * data.dt
    window = min(WINDOW * float(validation.integral_times.max()), longest)
    return plots.plot_trajectories(data, paths, window, variables=worst(acf_rmse_by_variable(validation), MOST_ROWS))


def _horizon_figure(validation: Validation):
    model, found = validation.model, validation.model.mobility.diagnostics
    if "phi_by_horizon" not in found:
        return None
    return plots.plot_phi_by_horizon(
        np.asarray(found["horizon"]),
        np.asarray(found["phi_by_horizon"]),
        np.asarray(found["sampling_error_by_horizon"]) if "sampling_error_by_horizon" in found else None,
        model.mobility.matrix,
        chosen=found["chosen_horizon"][0] if "chosen_horizon" in found else None,
        entries=_largest_entries(validation),
        names=model.names,
        time_unit=model.time_unit,
    )


def _noise_level_figure(validation: Validation):
    score = validation.model.score
    choice = score.evidence.noise_level_choice
    return None if choice is None else plots.plot_noise_level_choice(asdict(choice), score.learned_level)


def _training_figure(validation: Validation):
    found = validation.model.score.evidence
    if not found.loss_curve:
        return None
    return plots.plot_training(found.loss_curve, found.held_out_loss_curve or (), found.training_steps)


def _stein_figure(validation: Validation):
    if validation.model.dimension <= ANNOTATED:
        return None
    return plots.plot_stein(validation.model.score.stein, names=validation.model.names)


def _pairs(validation: Validation) -> list[tuple[int, int]]:
    """The pairs of variables that Phi couples most strongly."""
    phi = np.abs(validation.model.standardizer.mobility_to_standard(validation.model.mobility.matrix))
    rows, columns = np.triu_indices(len(phi), 1)
    kept = worst((phi + phi.T)[rows, columns], MOST_PAIRS)
    return [(int(rows[k]), int(columns[k])) for k in kept]


def _largest_entries(validation: Validation) -> list[tuple[int, int]]:
    """All entries of Phi where they fit, else the largest in standardised units."""
    phi = np.abs(validation.model.standardizer.mobility_to_standard(validation.model.mobility.matrix))
    return [divmod(k, len(phi)) for k in worst(phi.ravel(), MOST_ENTRIES)]


def _with_errors(validation: Validation, of: Callable[[SeriesStatistics], Callable[[np.ndarray], np.ndarray]]):
    """A statistic of data and model, each with its leave-one-group-out error."""
    data, data_error = jackknife(of(validation.data_statistics), GROUPS)
    model, model_error = jackknife(of(validation.model_statistics), GROUPS)
    return {"data": data, "model": model, "data_error": data_error, "model_error": model_error}


def _coarse(density: np.ndarray, group: int) -> np.ndarray:
    """Densities averaged over groups of neighbouring bins."""
    return density.reshape(len(density), -1, group).mean(axis=2)
