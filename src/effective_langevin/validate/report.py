"""The report: verdict, model, comparison, evidence and provenance in one HTML file that needs nothing else."""

import base64
import io
import os
import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

from .._core import files
from .._core.errors import ArgumentError
from .._core.resampling import jackknife
from .._core.types import Matrix
from ..data import TimeSeries
from . import plots
from .comparison import METRICS, Validation
from .regime import forced, horizon_words, unresolved
from .ring_comparison import RingComparison
from .ring_report import field_rows, mode_rows, ring_figures
from .statistics import BINS, GROUPS, SeriesStatistics, pair_histogram
from .verdict import (
    acf_rmse_by_variable,
    integral_times,
    judge,
    kl_by_variable,
    metric_level,
    overall_level,
    part_error,
    verdict,
)
from .wording import count, digits, plus_minus, rows_of, short, typeset

RESOLUTION = 192
CSS_PIXELS = 96
WINDOW = 15.0
MOST_PANELS = 12
MOST_ROWS = 6
MOST_PAIRS = 6
MOST_ENTRIES = 9
CROSS_DIMENSIONS = 4
OPEN_TABLES, MOST_TABLES = 6, 12
MOST_TABLE_ROWS = 20
LONGEST_OPENING = 30
# On a ring, where points are alike, these are drawn pooled or by mode instead.
_BY_VARIABLE = ("pdfs", "pairs", "acfs", "cross_correlations", "trajectories", "phi_by_horizon")
# Bins are joined for the eye until they hold enough samples; joint densities need more of them.
_BIN_GROUPS = (2, 4, 5, 8, 10)
_BIN_SAMPLES = 100
_PAIR_GROUPS, _PAIR_SAMPLES = (5, 10), 20_000

MEANING = {
    "mobility_error": "distance of Φ from the exact mobility, relative",
    "stein_error": "violation of Stein's identity ⟨s xᵀ⟩ = −1 on held-out samples",
    "pdf_kl_mean": "KL divergence of one-variable densities, data from model, mean over variables (nats)",
    "pdf_kl_max": "the same, worst variable (nats)",
    "acf_rmse": "difference of autocorrelations, rms over variables and lags",
    "covariance_error": "distance of the covariance matrices, relative",
    "pdf_kl_original": "KL divergence of densities in the variables of the series, transforms undone, worst (nats)",
}


def write_report(validation: Validation, path: str | os.PathLike, *, drawn: dict[str, Figure] | None = None) -> None:
    """Write the report (figures `drawn` are used if given); the file is replaced once the new one is complete."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ArgumentError(f"Cannot write the report to {path}: the folder {path.parent} does not exist.")
    page = render(validation, figures(validation) if drawn is None else drawn)
    with files.replaced(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(validation: Validation, drawn: dict[str, Figure]) -> str:
    """The report as HTML text."""
    model, data, ring = validation.model, validation.data, RingComparison.of(validation)
    return _template().render(
        who=_who(validation),
        dimension=model.dimension,
        ring=ring,
        modes=mode_rows(ring) if ring else [],
        level="poor" if forced(validation) else ("good", "care", "poor")[overall_level(judge(validation))],
        verdict=[_sentence(text, model.names) for text in verdict(validation)],
        matrices=_matrices(validation) if model.dimension <= MOST_TABLES else [],
        stein=_table(model.score.stein, None, model.names, "{:.3f}".format),
        metrics=_metric_rows(validation),
        variables=field_rows(ring) if ring else _variable_rows(validation),
        most_rows=MOST_TABLE_ROWS,
        figures={name: _embedded(figure) for name, figure in drawn.items()},
        facts=_facts(validation),
        provenance=rows_of(model.provenance),
        time_unit=data.time_unit,
        reach=f"{validation.data_statistics.tau[-1]:.3g} {data.time_unit}".strip(),
        score=model.score,
        mobility=model.mobility,
        horizon_rule=model.mobility.diagnostics.get("horizon_rule", "mean"),
        horizons=horizon_words(validation) if "chosen_horizon" in model.mobility.diagnostics else "",
        unresolved=unresolved(validation),
        wide=model.dimension > OPEN_TABLES,
        version=version("effective-langevin"),
    )


def figures(validation: Validation) -> dict[str, Figure]:
    """Every figure that this validation has something to show for, by name."""
    makers: dict[str, Callable[[Validation], Any]] = {
        "mobility": _mobility_figure,
        "pdfs": _pdf_figure,
        "original_pdfs": _original_pdf_figure,
        "pairs": _pair_figure,
        "acfs": _acf_figure,
        "cross_correlations": _cross_figure,
        "trajectories": _trajectory_figure,
        "phi_by_horizon": _horizon_figure,
        "noise_level": _noise_level_figure,
        "training": _training_figure,
        "stein": _stein_figure,
    }
    ring = RingComparison.of(validation)
    drawn = {name: make(validation) for name, make in makers.items() if not (ring and name in _BY_VARIABLE)}
    drawn |= ring_figures(ring) if ring else {}
    return {name: np.ravel(np.asarray(axes))[0].figure for name, axes in drawn.items() if axes is not None}


def _mobility_figure(validation: Validation):
    model = validation.model
    if model.dimension == 1:
        return None
    return plots.plot_mobility(model.mobility, names=model.names, std=model.units.std, time_unit=model.time_unit)


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
    shown = _worst(kl, MOST_PANELS)
    group = next((g for g in _BIN_GROUPS if data.n_samples * g >= BINS * _BIN_SAMPLES), _BIN_GROUPS[-1])
    densities = [_coarse(s.density()[shown], group) for s in statistics]
    names, units = ([labels[v] for v in shown] for labels in (data.names, data.units))
    return plots.plot_pdfs(statistics[0].edges[shown][:, ::group], *densities, names=names, units=units)


def _pair_figure(validation: Validation):
    pairs = _pairs(validation)
    if not pairs:
        return None
    edges = validation.data_statistics.edges
    group = _PAIR_GROUPS[validation.data.n_samples < _PAIR_SAMPLES]

    def densities(samples: np.ndarray) -> dict[tuple[int, int], Matrix]:
        return {(i, j): gaussian_filter(pair_histogram(samples, edges, i, j, group), 1.0) for i, j in pairs}

    data, model = densities(validation.data.stacked()), densities(validation.paths.stacked())
    return plots.plot_pair_densities(
        edges[:, ::group], data, model, names=validation.data.names, units=validation.data.units
    )


def _acf_figure(validation: Validation):
    shown = _worst(acf_rmse_by_variable(validation), MOST_PANELS)
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


def _trajectory_figure(validation: Validation):
    data, paths = validation.data, validation.paths
    longest = min(max(len(s) for s in series.segments) - 1 for series in (data, paths)) * data.dt
    window = min(WINDOW * float(validation.integral_times.max()), longest)
    return plots.plot_trajectories(data, paths, window, variables=_worst(acf_rmse_by_variable(validation), MOST_ROWS))


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
    choice = validation.model.diagnostics["score"].get("noise_level_choice")
    return None if choice is None else plots.plot_noise_level_choice(choice)


def _training_figure(validation: Validation):
    found = validation.model.diagnostics["score"]
    if not found.get("loss_curve"):
        return None
    return plots.plot_training(found["loss_curve"], found.get("held_out_loss_curve", ()), found.get("training_steps"))


def _stein_figure(validation: Validation):
    if validation.model.dimension <= OPEN_TABLES:
        return None
    return plots.plot_stein(validation.model.score.stein, names=validation.model.names)


def _worst(errors: np.ndarray, most: int) -> list[int]:
    """The variables with the largest errors, in their own order."""
    return sorted(np.argsort(errors)[::-1][:most].tolist())


def _pairs(validation: Validation) -> list[tuple[int, int]]:
    """The pairs of variables that Phi couples most strongly."""
    phi = np.abs(validation.model.units.mobility_to_standard(validation.model.mobility.matrix))
    rows, columns = np.triu_indices(len(phi), 1)
    kept = _worst((phi + phi.T)[rows, columns], MOST_PAIRS)
    return [(int(rows[k]), int(columns[k])) for k in kept]


def _largest_entries(validation: Validation) -> list[tuple[int, int]]:
    """All entries of Phi where they fit, else the largest in standardised units."""
    phi = np.abs(validation.model.units.mobility_to_standard(validation.model.mobility.matrix))
    return [divmod(k, len(phi)) for k in _worst(phi.ravel(), MOST_ENTRIES)]


def _with_errors(validation: Validation, of: Callable[[SeriesStatistics], Callable[[np.ndarray], np.ndarray]]):
    """A statistic of data and model, each with its leave-one-group-out error."""
    data, data_error = jackknife(of(validation.data_statistics), GROUPS)
    model, model_error = jackknife(of(validation.model_statistics), GROUPS)
    return {"data": data, "model": model, "data_error": data_error, "model_error": model_error}


def _coarse(density: np.ndarray, group: int) -> np.ndarray:
    """Densities averaged over groups of neighbouring bins."""
    return density.reshape(len(density), -1, group).mean(axis=2)


def _matrices(validation: Validation) -> list[dict[str, Any]]:
    mobility, names = validation.model.mobility, validation.model.names
    part = part_error(mobility.standard_error)
    tables: list[tuple[str, Matrix, Matrix | None]] = [("Mobility Φ", mobility.matrix, mobility.standard_error)]
    if validation.exact_mobility is not None:
        tables.append(("Exact mobility", validation.exact_mobility, None))
    if len(names) > 1:
        tables.append((Markup("Diffusion Φ<sub>S</sub>"), mobility.symmetric, part))
        off_diagonal = part * (1 - np.eye(len(names)))
        tables.append((Markup("Circulation Φ<sub>A</sub>"), mobility.antisymmetric, off_diagonal))
    tables.append(("Noise factor Σ", mobility.noise_factor, None))
    return [{"title": title, **_table(matrix, error, names)} for title, matrix, error in tables]


def _table(matrix: Matrix, error: Matrix | None, names: tuple[str, ...], write=None) -> dict[str, Any]:
    spread = np.zeros_like(matrix) if error is None else error
    cells = [
        [typeset(write(v) if write else plus_minus(v, e)) for v, e in zip(values, errors)]
        for values, errors in zip(matrix, spread)
    ]
    return {"names": names, "rows": list(zip(names, cells))}


def _metric_rows(validation: Validation) -> list[dict[str, str]]:
    metrics = validation.metrics
    return [
        {
            "name": name,
            "meaning": MEANING[name],
            "value": typeset(plus_minus(metrics[name], metrics[f"{name}_se"])),
            "floor": typeset(short(metrics[f"{name}_floor"])) if f"{name}_floor" in metrics else "",
            "level": ("good", "care", "poor")[metric_level(name, validation)],
        }
        for name in METRICS
        if name in metrics
    ]


def _variable_rows(validation: Validation) -> list[dict[str, Any]]:
    data = validation.data
    samples, simulated = data.stacked(), validation.paths.stacked()
    times = [integral_times(s) for s in (validation.data_statistics, validation.model_statistics)]
    columns = {  # each pair with the size that sets its digits
        "mean": (samples.mean(axis=0), simulated.mean(axis=0), samples.std(axis=0)),
        "std": (samples.std(axis=0), simulated.std(axis=0), samples.std(axis=0)),
        "time": (*times, times[0]),
    }
    kl, acf = kl_by_variable(validation), acf_rmse_by_variable(validation)
    labels = list(zip(data.names, data.units))
    return [
        {"name": name, "unit": unit, "kl": typeset(short(kl[v])), "acf": typeset(short(acf[v]))}
        | {
            key: [typeset(digits(side[v], 0.1 * size[v])[0]) for side in sides]
            for key, (*sides, size) in columns.items()
        }
        for v, (name, unit) in ((v, labels[v]) for v in _worst(acf, MOST_TABLE_ROWS))
    ]


def _facts(validation: Validation) -> list[tuple[str, str]]:
    """What was fitted and compared, as rows of a table."""
    model, data, paths = validation.model, validation.data, validation.paths
    unit, pieces = f" {data.time_unit}" if data.time_unit else "", count(len(data.segments), "segment")
    return [
        ("Variables", _listed([_label(n, u) for n, u in zip(data.names, data.units)])),
        ("Data", f"{count(data.n_samples, 'sample')} in {pieces}, {count(data.dropped, 'row')} dropped"),
        ("Sampling interval", f"{data.dt:g}{unit}"),
        ("Time covered", f"{data.duration:,.6g}{unit}"),
        ("Simulation", f"{count(paths.n_samples, 'sample')} in {count(len(paths.segments), 'member')}"),
        (
            "Integrator",
            f"{type(model.default_stepper).__name__}, by default in steps of {model.automatic_step():.3g}{unit}",
        ),
        (
            "Score",
            f"{model.provenance.get('score', {}).get('kind', 'unknown')}, noise level {model.score.noise_level:g}",
        ),
        ("Mobility", model.mobility.method),
    ]


def _embedded(figure: Figure) -> dict[str, Any]:
    """A figure as a data address, with its size in CSS pixels."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=RESOLUTION)
    width, height = (round(CSS_PIXELS * inches) for inches in figure.get_size_inches())
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"source": source, "width": width, "height": height}


def _sentence(text: str, names: tuple[str, ...]) -> Markup:
    """A sentence of the verdict with its opening in bold, minus signs, and Greek unless a variable is called Phi."""
    opening, colon, _ = text.partition(": ")
    html = escape(re.sub(r"(?<![\w-])-(?=\d)", "−", text))
    if colon and len(opening) <= LONGEST_OPENING:
        html = Markup("<strong>{}:</strong>").format(opening) + html[len(escape(opening)) + 1 :]
    if not any("Phi" in name for name in names):
        html = re.sub(r"Phi_([AS])", r"Φ<sub>\1</sub>", str(html)).replace("Phi", "Φ")
    html = re.sub(r"\bh\^(\d+(?:\.\d+)?)", r"<i>h</i><sup>\1</sup>", str(html)).replace("T = ", "T\u00a0=\u00a0")
    return Markup(str(html).replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%"))


def _who(validation: Validation) -> str:
    """The variables in a few words."""
    model, ring = validation.model, RingComparison.of(validation)
    if ring:
        fields = "" if ring.channels == 1 else f"{ring.channels} fields on "
        return f"{', '.join(ring.fields[:MOST_ROWS])}: {fields}{ring.points} points on a ring"
    return ", ".join(model.names) if model.dimension <= OPEN_TABLES else f"{model.dimension} variables"


def _listed(names: list[str]) -> str:
    """All names where they are few, else the first, the last and their number."""
    return ", ".join(names) if len(names) <= MOST_TABLES else f"{names[0]} … {names[-1]} ({len(names)})"


def _label(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("effective_langevin.validate", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.jinja")
