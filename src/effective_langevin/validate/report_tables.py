"""The tables of the report, as texts ready to be shown."""

from typing import Any

import numpy as np
from markupsafe import Markup

from .._core.format import after_number, count, digits, listed, plus_minus, short, typeset, with_unit
from .._core.types import Matrix
from ..model import LangevinModel
from .extremes import compare_return_times
from .fields_comparison import FieldsComparison
from .findings.verdict import acf_rmse_by_variable, integral_times, kl_by_variable, metric_level, worst
from .validation import METRICS, Validation

MOST_TABLES = 12
MOST_TABLE_ROWS = 20
_RARE = (0.01, 0.99)
_MOST_RARE = 6
_ALL_ENTRIES = 2

MEANING = {
    "mobility_error": "distance of Φ from the exact mobility, relative",
    "stein_error": "violation of Stein's identity ⟨s xᵀ⟩ = −1 on held-out samples",
    "pdf_kl_mean": "KL divergence of one-variable densities, data from model, mean over variables (nats)",
    "pdf_kl_max": "the same, worst variable (nats)",
    "acf_rmse": "difference of autocorrelations, rms over variables and lags",
    "covariance_error": "distance of the covariance matrices, relative",
    "pdf_kl_original": "KL divergence of densities in the variables of the series, transforms undone, worst (nats)",
}


def matrices(validation: Validation) -> list[dict[str, Any]]:
    """Phi with errors and 95 % intervals, its parts and Sigma with errors; the exact Phi where it is known."""
    mobility, names = validation.model.mobility, validation.model.names
    tables = [{"title": "Mobility Φ", **table(mobility.matrix, mobility.standard_error, names, mobility.interval())}]
    if validation.exact_mobility is not None:
        tables.append({"title": "Exact mobility", **table(validation.exact_mobility, None, names)})
    parts = [("Noise factor Σ", mobility.noise_factor, mobility.noise_factor_error)]
    if len(names) > 1:
        parts = [
            (Markup("Diffusion Φ<sub>S</sub>"), mobility.symmetric, mobility.symmetric_error),
            (Markup("Circulation Φ<sub>A</sub>"), mobility.antisymmetric, mobility.antisymmetric_error),
            *parts,
        ]
    return tables + [{"title": title, **table(matrix, error, names)} for title, matrix, error in parts]


def table(
    matrix: Matrix,
    error: Matrix | None,
    names: tuple[str, ...],
    interval: tuple[Matrix, Matrix] | None = None,
    write: Any = None,
) -> dict[str, Any]:
    """A matrix as rows of texts, with its errors and, in smaller letters, intervals."""
    spread = np.zeros_like(matrix) if error is None else error
    cells = [
        [typeset(write(v) if write else plus_minus(v, e)) for v, e in zip(values, errors)]
        for values, errors in zip(matrix, spread)
    ]
    ends = [[""] * len(names) for _ in names]
    if interval is not None:
        ends = [[_interval(low, high, e) for low, high, e in zip(*row)] for row in zip(*interval, spread)]
    return {"names": names, "rows": [(name, list(zip(*row))) for name, *row in zip(names, cells, ends)]}


def _interval(low: float, high: float, error: float) -> str:
    """The two ends with as many digits as the error has."""
    return f"{typeset(digits(low, error)[0])} … {typeset(digits(high, error)[0])}"


def rare_rows(validation: Validation) -> list[dict[str, str]]:
    """Levels that 1 % of the data lie beyond, and the mean time from one crossing of them to the next."""
    data, paths, ring = validation.data, validation.paths, FieldsComparison.of(validation)
    shown = worst(kl_by_variable(validation), _MOST_RARE)
    if ring:
        shown = [c * ring.points for c in range(ring.channels)]
    points = ring.points if ring else 1
    kept = [v + k for v in shown for k in range(points)]
    data, paths = (series.map(lambda s: s[:, kept]) for series in (data, paths))
    states = data.stacked().reshape(-1, len(shown), points)
    levels = np.quantile(np.moveaxis(states, 1, 0).reshape(len(shown), -1), _RARE, axis=1).T
    found = compare_return_times(data, paths, levels, points)
    return [
        {
            "name": ring.fields[p] if ring else validation.data.names[v],
            "level": f"{('below', 'above')[k]} {typeset(short(float(levels[p, k])))}"
            f"{after_number(validation.data.units[v])}",
            "data": _time(found.data[p, k], found.data_error[p, k]),
            "model": _time(found.model[p, k], found.model_error[p, k]),
        }
        for p, v in enumerate(shown)
        for k in (1, 0)
    ]


def _time(value: float, error: float) -> str:
    return typeset(plus_minus(float(value), float(error))) if np.isfinite(value) else "–"


def agreement(validation: Validation) -> dict[str, Any]:
    """What every estimator says at dt, 2 dt, 4 dt: entries of Phi where they are few, and distances from that used.

    From the diagnostics of the mobility, where the one used comes first; no rows where there is nothing beside it.
    """
    model, found = validation.model, validation.model.mobility.diagnostics
    names = model.names if model.dimension <= _ALL_ENTRIES else ()
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names))]
    listed = found.get("agreement") or []
    rows = [_agreement_row(model, row, pairs) for row in listed] if len(listed) > 1 else []
    if rows:
        rows[0]["distance"] = "used"
    return {
        "names": [f"Φ({names[i]}, {names[j]})" for i, j in pairs],
        "rows": rows,
        "disagreement": found.get("disagreement", ""),
    }


def _agreement_row(model: LangevinModel, row: dict[str, Any], pairs: list[tuple[int, int]]) -> dict[str, Any]:
    """One estimate: its entries with sampling errors, its distance from the Phi used with all its errors."""
    phi, error = (np.asarray(row[key], float) for key in ("phi", "standard_error"))
    bias = np.asarray(row.get("discretisation_error", np.zeros_like(phi)), float)
    standard = model.standardizer.mobility_to_standard
    gap, noise, size = (
        float(np.linalg.norm(standard(m)))
        for m in (phi - model.mobility.matrix, np.hypot(error, bias), model.mobility.matrix)
    )
    return {
        "estimator": row["estimator"],
        "dt": f"{row['dt']:g}{after_number(model.time_unit)}",
        "entries": [typeset(plus_minus(float(phi[p]), float(error[p]))) for p in pairs],
        "distance": f"{plus_minus(100 * gap / size, 100 * noise / size)} %",
    }


def metric_rows(validation: Validation) -> list[dict[str, str]]:
    """Every metric with its error, its floor and what it means."""
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


def variable_rows(validation: Validation) -> list[dict[str, Any]]:
    """Moments and integral times of data and model, variable by variable."""
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
        for v, (name, unit) in ((v, labels[v]) for v in worst(acf, MOST_TABLE_ROWS))
    ]


def facts(validation: Validation) -> list[tuple[str, str]]:
    """What was fitted and compared, as rows of a table."""
    model, data, paths = validation.model, validation.data, validation.paths
    unit, pieces = f" {data.time_unit}" if data.time_unit else "", count(len(data.segments), "segment")
    return [
        ("Variables", listed([with_unit(n, u) for n, u in zip(data.names, data.units)])),
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
            "Gaussian, as good as the learned one"
            if model.score.gaussian_used
            else f"{model.provenance.get('score', {}).get('kind', 'unknown')}, noise level {model.score.noise_level:g}",
        ),
        ("Mobility", model.mobility.method),
    ]
