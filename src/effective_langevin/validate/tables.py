"""The tables of the report, as texts ready to be shown."""

from typing import Any

import numpy as np
from markupsafe import Markup

from .._core.format import after_number, count, digits, listed, plus_minus, short, typeset, with_unit
from .._core.types import Matrix
from ..estimate.mobility.evidence import Estimate
from ..model import LangevinModel
from ..statistics.integral_time import integral_time
from .validation import Validation
from .validation import metric_rows as listed_metrics
from .views import worst

MOST_MATRIX = 12
MOST_ROWS = 20
_MOST_FIELDS = 3
_ALL_ENTRIES = 2

# The test that judges each metric.
_JUDGED_BY = {
    "stein_error": "score",
    "pdf_kl_mean": "steady state",
    "pdf_kl_max": "steady state",
    "covariance_error": "steady state",
    "acf_rmse": "time scales",
    "increment_error": "increments",
    "pdf_kl_original": "original variables",
}
_READING = {"ok": "good", "note": "undecided", "warning": "care", "stop": "poor"}

MEANING = {
    "mobility_error": "distance of Φ from the exact mobility, relative",
    "stein_error": "violation of Stein's identity ⟨s xᵀ⟩ = −1 on held-out samples",
    "pdf_kl_mean": "KL divergence of one-variable densities, data from model, mean over variables (nats)",
    "pdf_kl_max": "the same, worst variable (nats)",
    "acf_rmse": "difference of autocorrelations, rms over variables and lags",
    "covariance_error": "distance of the covariance matrices, relative",
    "increment_error": "largest relative difference of mean squared increments over 1, 2, 4 and 8 sampling intervals",
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
    """Write a matrix as rows of texts, with its errors and, in smaller letters, intervals."""
    spread = np.zeros_like(matrix) if error is None else error
    rows = []
    for i, name in enumerate(names):
        cells = [write(v) if write else plus_minus(v, e) for v, e in zip(matrix[i], spread[i])]
        ends = [""] * len(names)
        if interval is not None:  # with as many digits as the error has
            ends = [" … ".join(digits(end[i, j], spread[i, j])[0] for end in interval) for j in range(len(names))]
        rows.append((name, [(typeset(cell), typeset(end)) for cell, end in zip(cells, ends)]))
    return {"names": names, "rows": rows}


def stein(validation: Validation) -> dict[str, Any]:
    """The Stein matrix on held-out samples."""
    return table(validation.model.score.stein, None, validation.model.names, write="{:.3f}".format)


def metric_rows(validation: Validation) -> list[dict[str, str]]:
    """List every metric with its error, its sampling error, what it means and how its aspect was judged."""
    judged = {f.name: _READING[f.level] for f in validation.verdict.findings if f.p is not None}
    return [
        {
            "name": name,
            "meaning": MEANING[name],
            "value": typeset(plus_minus(value, error)),
            "floor": "" if sampling is None else typeset(short(sampling)),
            "level": judged.get(_JUDGED_BY.get(name, ""), "–"),
        }
        for name, value, error, sampling in listed_metrics(validation.metrics)
    ]


def variable_rows(validation: Validation) -> list[dict[str, Any]]:
    """Give moments and integral times of data and model, variable by variable or field by field."""
    curves = validation.curves
    acf, kl, spread, times = (curves["acf"], curves["pdf"]["kl"], curves["std"].data, curves["integral_time"].data)
    columns = {"mean": spread, "std": spread, "integral_time": times}  # the size that sets the digits of each
    return [
        {
            "name": acf.labels[v],
            "unit": str(acf["unit"][v]),
            "kl": typeset(short(float(kl[v]))),
            "acf": typeset(short(float(acf["rmse"][v]))),
            "sides": [
                typeset(digits(float(side[v]), 0.1 * float(size[v]))[0])
                for key, size in columns.items()
                for side in (curves[key].data, curves[key].model)
            ],
        }
        for v in worst(acf["rmse"], MOST_ROWS)
    ]


def mode_rows(validation: Validation) -> list[dict[str, Any]]:
    """Give share of variance, variances, integral times, ACF difference, Phi and its horizon of each leading mode."""
    acf, variance = validation.curves.get("mode_acf"), validation.curves.get("mode_variance")
    if acf is None or variance is None:
        return []
    found = validation.model.mobility.evidence.horizon
    chosen = None if found is None or found.phi_by_mode is None else found.chosen
    several, rows = len(variance.labels) > 1, []
    for p, (c, k) in enumerate(zip(acf["channel"], acf["mode"])):
        if c >= _MOST_FIELDS:
            continue
        data, model = acf.data[:, p], acf.model[:, p]
        times = [float(integral_time(side, acf["lag"])) for side in (data, model)]
        rows.append(
            {
                "name": f"{acf['field'][p]}, {k}" if several else str(k),
                "share": f"{100 * acf['share'][p]:.0f} %",
                "variance": [typeset(digits(float(side[c, k]))[0]) for side in (variance.data, variance.model)],
                "time": [digits(value, 0.1 * times[0])[0] for value in times],
                "acf": short(float(np.sqrt(np.mean((data - model) ** 2)))),
                "phi": typeset(digits(float(variance["mobility"][c, k]))[0]),
                "horizon": "" if chosen is None else short(float(chosen[k])),
            }
        )
    return rows


def rare_rows(validation: Validation) -> list[dict[str, str]]:
    """Give the levels that 1 % of the data lie beyond, and the mean time from one crossing of them to the next."""
    curve = validation.curves["rare_return_time"]

    def time(values: np.ndarray, errors: np.ndarray | None, place: tuple[int, int]) -> str:
        value, error = float(values[place]), None if errors is None else float(errors[place])
        return typeset(plus_minus(value, error)) if np.isfinite(value) else "–"

    return [
        {
            "name": name,
            "level": f"{('below', 'above')[k]} {typeset(short(float(curve['levels'][v, k])))}"
            f"{after_number(str(curve['unit'][v]))}",
            "data": time(*curve.sides[0], (v, k)),
            "model": time(*curve.sides[1], (v, k)),
        }
        for v, name in enumerate(curve.labels)
        for k in (1, 0)
    ]


def agreement(validation: Validation) -> dict[str, Any]:
    """Give what every estimator says at dt, 2 dt, 4 dt: entries of Phi if they are few, and distances from that used.

    The one used comes first; there are no rows if there is nothing beside it.
    """
    model, found = validation.model, validation.model.mobility.evidence.agreement
    names = model.names if model.dimension <= _ALL_ENTRIES else ()
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names))]
    estimates = found.estimates if found else ()
    rows = [_agreement_row(model, estimate, pairs) for estimate in estimates] if len(estimates) > 1 else []
    if rows:
        rows[0]["distance"] = "used"
    headings = [f"Φ({names[i]}, {names[j]})" for i, j in pairs]
    return {"names": headings, "rows": rows, "disagreement": found.disagreement if found else ""}


def _agreement_row(model: LangevinModel, row: Estimate, pairs: list[tuple[int, int]]) -> dict[str, Any]:
    """Write one estimate: its entries with sampling errors, its distance from the Phi used with all its errors."""
    used, errors = model.mobility.matrix, np.hypot(row.standard_error, row.discretisation_error)
    standard = model.standardizer.mobility_to_standard
    gap, noise, size = (float(np.linalg.norm(standard(m))) for m in (row.phi - used, errors, used))
    return {
        "estimator": row.estimator,
        "dt": f"{row.dt:g}{after_number(model.time_unit)}",
        "entries": [typeset(plus_minus(float(row.phi[p]), float(row.standard_error[p]))) for p in pairs],
        "distance": f"{plus_minus(100 * gap / size, 100 * noise / size)} %",
    }


def facts(validation: Validation) -> dict[str, str]:
    """Say what was fitted and compared, as rows of a table."""
    model, sizes = validation.model, validation.comparison
    unit, pieces = after_number(sizes.time_unit), count(sizes.segments, "segment")
    stepper, step = type(model.default_stepper).__name__, f"{model.automatic_step():.3g}{unit}"
    kind = model.provenance.get("score", {}).get("kind", "unknown")
    return {
        "Variables": listed([with_unit(n, u) for n, u in zip(sizes.names, sizes.units)]),
        "Data": f"{count(sizes.samples, 'sample')} in {pieces}, {count(sizes.dropped, 'row')} dropped",
        "Sampling interval": f"{sizes.dt:g}{unit}",
        "Time covered": f"{sizes.duration:,.6g}{unit}",
        "Simulation": f"{count(sizes.model_samples, 'sample')} in {count(sizes.members, 'member')}",
        "Integrator": f"{stepper}, by default in steps of {step}",
        "Score": "Gaussian, as good as the learned one"
        if model.score.gaussian_used
        else f"{kind}, smoothing width {model.score.noise_level:g}",
        "Mobility": model.mobility.method,
    }
