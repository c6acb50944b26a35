"""The tables of the report: headings and rows of texts, ready to be shown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from .._core.format import (
    after_number,
    brief_unit,
    count,
    digits,
    listed,
    plus_minus,
    rounded,
    rows_of,
    short,
    typeset,
    with_unit,
)
from .._core.types import Matrix
from ..estimate.closure.evidence import Choice
from ..statistics.integral_time import integral_time
from .curves import Curve
from .findings import aspects, verdict
from .findings.describe_model import ModelDescription
from .validation import Validation, metric_rows
from .views import worst

MOST_MATRIX = 12
MOST_ROWS = 20
_MOST_FIELDS = 3
_ALL_ENTRIES = 2
_TWO = 2
_BENEATH = ("data", "model", "difference in s.e.")

# The test that judges each metric, and what the metric is.
_METRICS = {
    "mobility_error": ("", "distance of Φ from the exact mobility, relative"),
    "stein_error": ("score", "violation of Stein's identity ⟨s xᵀ⟩ = −1, held-out samples"),
    "pdf_kl_mean": ("steady state", "KL divergence of densities, mean over variables (nats)"),
    "pdf_kl_max": ("steady state", "the same, worst variable (nats)"),
    "acf_rmse": ("time scales", "difference of autocorrelations, rms over variables and lags"),
    "covariance_error": ("steady state", "distance of the covariance matrices, relative"),
    "increment_error": ("increments", "largest relative difference of mean squared increments"),
    "pdf_kl_original": ("original variables", "KL divergence in the variables of the series, worst (nats)"),
}
_READING = {"ok": "good", "note": "undecided", "warning": "care", "stop": "poor"}


@dataclass(frozen=True)
class Table:
    """A table: the first cell of a row is its heading, cells at `left` are words, the others numbers.

    `columns` are headings of single columns, or (heading, headings beneath it).
    """

    title: str
    columns: Sequence[str | tuple[str, Sequence[str]]]
    rows: Sequence[Sequence[Any]]
    left: tuple[int, ...] = ()
    kind: str = "wide"
    captioned: bool = False

    @property
    def beneath(self) -> list[str]:
        return [heading for column in self.columns if isinstance(column, tuple) for heading in column[1]]


def matrices(validation: Validation) -> list[Table]:
    """Phi with errors and 95 % intervals, its parts and Sigma with errors; the exact Phi where it is known."""
    mobility, names = validation.model.mobility, validation.model.names
    tables = [_matrix("Mobility Φ", mobility.matrix, names, mobility.standard_error, mobility.interval())]
    if validation.exact_mobility is not None:
        tables.append(_matrix("Exact mobility", validation.exact_mobility, names))
    parts = [
        (Markup("Diffusion Φ<sub>S</sub>"), mobility.symmetric, mobility.symmetric_error),
        (Markup("Circulation Φ<sub>A</sub>"), mobility.antisymmetric, mobility.antisymmetric_error),
        ("Noise factor Σ", mobility.noise_factor, mobility.noise_factor_error),
    ]
    shown = parts if len(names) > 1 else parts[-1:]
    return tables + [_matrix(title, matrix, names, error) for title, matrix, error in shown]


def _matrix(
    title: str, matrix: Matrix, names: Sequence[str], error: Matrix | None = None, interval: Sequence[Matrix] = ()
) -> Table:
    """Write a matrix with its errors and, in smaller letters and with as many digits, intervals."""
    spread = np.zeros_like(matrix) if error is None else error

    def cell(i: int, j: int) -> str:
        text = typeset(plus_minus(matrix[i, j], spread[i, j]))
        if not interval:
            return text
        ends = typeset(" … ".join(digits(end[i, j], spread[i, j])[0] for end in interval))
        return Markup("{}<br><small>{}</small>").format(text, ends)

    rows = [[name, *(cell(i, j) for j in range(len(names)))] for i, name in enumerate(names)]
    return Table(title, ["", *names], rows, kind="matrix", captioned=True)


def stein(validation: Validation) -> Table:
    """The Stein matrix on held-out samples."""
    names, matrix = validation.model.names, validation.model.score.stein
    rows = [[name, *(typeset(f"{v:.3f}") for v in row)] for name, row in zip(names, matrix)]
    return Table("⟨s xᵀ⟩", ["", *names], rows, kind="matrix", captioned=True)


def metrics(validation: Validation) -> Table:
    """List every metric with its error, its sampling error, how far beyond that it is, and its reading."""
    judged = {f.name: _READING[f.level] for f in validation.verdict.findings if f.p is not None}
    rows = []
    for name, value, error, sampling in metric_rows(validation.metrics):
        test, meaning = _METRICS[name]
        reading = judged.get(test, "–")
        rows.append(
            [
                Markup("<code>{}</code><br><small>{}</small>").format(name, meaning),
                typeset(plus_minus(value, error)),
                "–" if sampling is None else typeset(short(sampling)),
                _beyond(value - (sampling or 0.0), error),
                _rating(reading),
            ]
        )
    columns = ["Metric", "Value ± s.e.", "Sampling error", "Beyond it, in s.e.", "Reading"]
    return Table("Metrics", columns, rows, left=(4,), kind="wide metrics")


def outcomes(validation: Validation) -> Table:
    """List every test: the difference nearest to a limit, the limits, the chance of it, and the reading."""
    findings, rows = {f.name: f for f in validation.verdict.findings}, []
    for test in verdict.all_tests(validation):
        found = findings[test.name]
        ratio, stein = test.kind in aspects.RATIOS, test.kind == "Stein's identity"
        size = np.exp(test.gap) if ratio else 1.0
        gap = plus_minus(100 * (size - 1), 100 * size * test.error) if ratio else plus_minus(test.gap, test.error)
        sides = (
            ""
            if ratio or stein
            else " ({} → {})".format(*(digits(side, test.error)[0] for side in (test.data, test.model)))
        )
        limits = [aspects.size_words(test.kind, limit) for limit in test.limits if np.isfinite(limit)]
        advice = "" if found.advice in ("", validation.verdict.next_step) else found.advice.replace("`", "")
        label = re.sub(r"(?<![\w-])-(?=\d)", "−", test.label.removeprefix("the ") + sides)
        rows.append(
            [
                test.name[:1].upper() + test.name[1:],
                Markup("{}<br><small>→ {}</small>").format(label, advice) if advice else label,
                typeset(gap) + "\u00a0%" * ratio,
                " … ".join(limits).replace(" ", "\u00a0"),
                f"{test.p:.2g}" if test.p >= 0.001 else "< 0.001",
                _rating(_READING[found.level]),
            ]
        )
    columns = ["Test", "Nearest to a limit (data → model)", "Difference ± s.e.", "Limits", "p", "Reading"]
    return Table("Tests", columns, rows, left=(1, 5), kind="wide tests")


def _beyond(excess: float, error: float) -> str:
    """Write how far a distance lies beyond its sampling error."""
    return "–" if error <= 0 else "no" if excess <= 0 else f"{excess / error:.1f}"


def _rating(reading: str) -> Markup:
    return Markup('<span class="rating {0}">{0}</span>').format(reading)


def _difference(curve: Curve, place: Any) -> str:
    """Write model minus data in standard errors of the difference."""
    if curve.data_error is None or curve.model_error is None:
        return "–"
    gap, error = curve.model[place] - curve.data[place], np.hypot(curve.data_error[place], curve.model_error[place])
    return typeset(f"{gap / error:+z.1f}") if np.isfinite(gap) and error > 0 else "–"


def variables(validation: Validation) -> Table:
    """Give moments and integral times of data and model, variable by variable or field by field."""
    curves = validation.curves
    acf, kl, spread, times = (curves["acf"], curves["pdf"]["kl"], curves["std"].data, curves["integral_time"].data)
    sizes = {"mean": spread, "std": spread, "integral_time": times}  # what sets the digits of each
    rows = []
    for v in worst(acf["rmse"], MOST_ROWS):
        row: list[str] = [with_unit(acf.labels[v], brief_unit(str(acf["unit"][v])))]
        for key, size in sizes.items():
            sides = (curves[key].data, curves[key].model)
            row += [typeset(digits(float(side[v]), 0.1 * float(size[v]))[0]) for side in sides]
            row.append(_difference(curves[key], v))
        rows.append([*row, *(typeset(short(float(x[v]))) for x in (kl, acf["rmse"]))])
    time = with_unit("Integral time", validation.comparison.time_unit)
    columns = [validation.view.what, ("Mean", _BENEATH), ("Standard deviation", _BENEATH), (time, _BENEATH)]
    return Table("Variable by variable", [*columns, "KL", "ACF rms"], rows, kind="wide dense")


def modes(validation: Validation) -> Table | None:
    """Give share of variance, variances, integral times, ACF difference, Phi and its horizon of each leading mode."""
    acf, variance = validation.curves.get("mode_acf"), validation.curves.get("mode_variance")
    if acf is None or variance is None:
        return None
    found, unit = validation.model.mobility.evidence.horizon, validation.comparison.time_unit
    chosen = None if found is None or found.phi_by_mode is None else found.chosen
    rows = []
    for p, (c, k) in enumerate(zip(acf["channel"], acf["mode"])):
        if c >= _MOST_FIELDS:
            continue
        data, model = acf.data[:, p], acf.model[:, p]
        times = [float(integral_time(side, acf["lag"])) for side in (data, model)]
        row = [f"{acf['field'][p]}, {k}" if len(variance.labels) > 1 else str(k), f"{100 * acf['share'][p]:.0f} %"]
        row += [typeset(digits(float(side[c, k]))[0]) for side in (variance.data, variance.model)]
        row += [_difference(variance, (c, k)), *(digits(value, 0.1 * times[0])[0] for value in times)]
        row += [
            short(float(np.sqrt(np.mean((data - model) ** 2)))),
            typeset(digits(float(variance["mobility"][c, k]))[0]),
        ]
        rows.append(row if chosen is None else [*row, short(float(chosen[k]))])
    time, per = with_unit("Integral time", unit), Markup("Φ<sub>k</sub> [1/{}]").format(unit or "time")
    columns = ["Mode", "Share", ("Variance", _BENEATH), (time, ("data", "model")), "ACF rms", per]
    return Table("Mode by mode", columns if chosen is None else [*columns, "Horizon"], rows)


def rare(validation: Validation) -> Table:
    """Give the levels that 1 % of the data lie beyond, and the mean time from one crossing of them to the next."""
    curve, rows = validation.curves["rare_return_time"], []
    for v, name in enumerate(curve.labels):
        for k, side in ((1, "above"), (0, "below")):
            unit, level = brief_unit(str(curve["unit"][v])), typeset(short(float(curve["levels"][v, k])))
            rows.append([name, f"{side} {level}{after_number(unit)}", *_compared(curve, (v, k))])
    times = (with_unit("Return time", validation.comparison.time_unit), _BENEATH)
    return Table("Return times", [validation.view.what, "Level", times], rows, left=(1,))


def basins(validation: Validation) -> list[Table]:
    """Give the basins with their shares, and the mean times from each to every other and to any other."""
    shares, times = validation.curves.get("basin_share"), validation.curves.get("passage_time")
    if shares is None or times is None:
        return []
    number, unit = len(shares.data), validation.comparison.time_unit
    rows, passages = [], []
    for i, centre in enumerate(shares["centre"]):
        place = typeset(", ".join(short(float(x)) for x in centre)).replace(" ", "\u00a0")
        rows.append([str(i), place, *_compared(shares, i, 100.0)])
        others = [j for j in range(number) if j != i]
        for j in others if number == _TWO else [i, *others]:  # of two, any other is the other
            equation = typeset(rounded(float(times["equation"][i, j])))
            passages.append([f"{i} → {j if j != i else 'any other'}", *_compared(times, (i, j)), equation])
    bottom = "Bottom: " + ", ".join(with_unit(str(n), str(u)) for n, u in zip(shares["axis"], shares["axis_unit"]))
    found = Table("Basins", ["Basin", bottom, ("Share [%]", _BENEATH)], rows, left=(1,))
    columns = ["From → to", (with_unit("Mean time", unit), (*_BENEATH, "equation"))]
    return [found, Table("Times between basins", columns, passages)]


def _compared(curve: Curve, place: Any, unit: float = 1.0) -> list[str]:
    """Write data and model with their errors, a dash where nothing was seen, and their difference."""
    cells = []
    for values, errors in curve.sides:
        value, error = unit * float(values[place]), None if errors is None else unit * float(errors[place])
        cells.append(typeset(plus_minus(value, error)) if np.isfinite(value) else "–")
    return [*cells, _difference(curve, place)]


def agreement(validation: Validation) -> Table:
    """Give what every estimator says at dt, 2 dt, 4 dt: distances from the Phi used, and its entries if they are few.

    The one used comes first; there are no rows if there is nothing beside it.
    """
    model, found = validation.model, validation.model.mobility.evidence.agreement
    names = model.names if model.dimension <= _ALL_ENTRIES else ()
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names))]
    used, standard, rows = model.mobility.matrix, model.standardizer.mobility_to_standard, []
    for row in found.estimates if found and len(found.estimates) > 1 else ():
        errors = np.hypot(row.standard_error, row.discretisation_error)
        gap, noise, size = (float(np.linalg.norm(standard(m))) for m in (row.phi - used, errors, used))
        distance = f"{plus_minus(100 * gap / size, 100 * noise / size)} %" if rows else "used"
        entries = [typeset(plus_minus(float(row.phi[p]), float(row.standard_error[p]))) for p in pairs]
        rows.append([row.estimator, f"{row.dt:g}{after_number(model.time_unit)}", distance, *entries])
    headings = [f"Φ({names[i]}, {names[j]})" for i, j in pairs]
    return Table(
        "Agreement of estimators", ["Estimator", "Sampling", "Distance", *headings], rows, kind="wide agreement"
    )


def held_out_scores(choice: Choice | None, what: str) -> Table | None:
    """Give the held-out score of each closure or memory that was tried."""
    if choice is None or not choice.candidates:
        return None
    headings = [what.capitalize(), "Energy score", "Above the best"]
    return Table(f"Choice of the {what}", headings, [list(row) for row in choice.rows()])


def forecasts(validation: Validation) -> Table | None:
    """Give the skill of forecasts of stretches that the mobility was inferred without, at each lead."""
    found = validation.model.mobility.evidence.held_out
    if found is None or not found.of_climatology:
        return None
    ratios = (found.of_climatology, found.of_climatology_error), (found.of_persistence, found.of_persistence_error)
    columns = [[typeset(plus_minus(*pair)) for pair in zip(*ratio)] for ratio in ratios]
    shares = [f"{100 * share:.0f}" for share in found.shares]
    rows = list(zip([f"{lag:.3g}" for lag in found.lags], *columns, shares))
    lead = with_unit("Lead", validation.comparison.time_unit)
    headings = [lead, "Error / climatology", "Error / persistence", "Within the range [%]"]
    return Table("Forecasts of held-out stretches", headings, rows)


def relaxation(validation: Validation, description: ModelDescription) -> list[Table]:
    """Give relaxation times, and rotations where there are some."""
    unit, place = validation.comparison.time_unit, "Where" if validation.model.space.channels else "Variables"
    rows, turns = description.timescale_rows(), description.rotation_rows()
    swings = any(row[2] != "–" for row in rows)
    columns = [place, "Time", "Period"] if swings else [place, "Time"]
    rows = rows if swings else [row[:2] for row in rows]
    tables = [Table(with_unit("Relaxation", unit), columns, rows, captioned=True)]
    columns = ["Plane", f"Frequency [rad/{unit or 'time'}]", with_unit("Period", unit)]
    title = Markup("Rotations by Φ<sub>A</sub>")
    return [*tables, Table(title, columns, turns, captioned=True)] if turns else tables


def facts(validation: Validation) -> Table:
    """Say what was fitted and compared."""
    model, sizes = validation.model, validation.comparison
    unit, pieces = after_number(sizes.time_unit), count(sizes.segments, "segment")
    stepper, step = type(model.default_stepper).__name__, f"{min(model.automatic_step(), sizes.dt):.3g}{unit}"
    kind = model.provenance.get("score", {}).get("kind", "unknown")
    learned = f"{kind}, smoothing width {model.score.noise_level:g}"
    independent = sizes.duration / (2 * max(sizes.integral_times))
    diverged = f"; {count(sizes.diverged, 'more member')} diverged and were left out" if sizes.diverged else ""
    rows = {
        "Variables": listed([with_unit(n, u) for n, u in zip(sizes.names, sizes.units)]),
        "Data": f"{count(sizes.samples, 'sample')} in {pieces}, {count(sizes.dropped, 'row')} dropped",
        "Sampling interval": f"{sizes.dt:g}{unit}",
        **({"Regime": validation.diagnosis.regime} if validation.diagnosis else {}),
        "Time covered": f"{sizes.duration:,.6g}{unit}",
        "Independent samples": f"about {independent:,.0f} of the slowest variable",
        "Simulation": f"{count(sizes.model_samples, 'sample')} in {count(sizes.members, 'member')}{diverged}",
        "Integrator": f"{stepper}, by default in steps of {step}",
        "Score": "Gaussian, as good as the learned one" if model.score.gaussian_used else learned,
        "Mobility": model.mobility.method,
    }
    return Table("What was compared", (), list(rows.items()), left=(1,), kind="facts")


def provenance(validation: Validation) -> Table:
    """Say how the model was fitted."""
    return Table("How the model was fitted", (), rows_of(validation.model.provenance), left=(1,), kind="facts")
