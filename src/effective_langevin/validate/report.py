"""The report: verdict, model, comparison, evidence and provenance in one HTML file that needs nothing else."""

import base64
import io
import os
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from .._core import files
from .._core.errors import ArgumentError
from .._core.format import rows_of
from ..diagnose import Finding
from . import report_tables as tables
from .fields_comparison import FieldsComparison
from .fields_report import field_rows, mode_rows
from .findings.describe_model import Portrait
from .findings.notes import forced, horizon_words, unresolved
from .findings.verdict import judge, overall_level, verdict
from .report_figures import figures
from .validation import Validation

__all__ = ["figures", "render", "write_report"]

RESOLUTION = 192
CSS_PIXELS = 96
MOST_FIELDS = 6
OPEN_TABLES = 6
LONGEST_OPENING = 30
TOO_LITTLE = 0.5


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
    model, data, ring = validation.model, validation.data, FieldsComparison.of(validation)
    portrait, diagnosis = Portrait(model), validation.diagnosis
    return _template().render(
        who=_who(validation),
        dimension=model.dimension,
        ring=ring,
        modes=mode_rows(ring) if ring else [],
        level="poor" if forced(validation) else ("good", "care", "poor")[overall_level(judge(validation))],
        verdict=[_sentence(text, model.names) for text in verdict(validation)],
        portrait=portrait,
        words=[_sentence(text, model.names) for text in portrait.sentences() if text],
        diagnosis=diagnosis,
        findings=[_finding(f, model.names) for f in diagnosis.findings] if diagnosis else [],
        matrices=tables.matrices(validation) if model.dimension <= tables.MOST_TABLES else [],
        stein=tables.table(model.score.stein, None, model.names, write="{:.3f}".format),
        metrics=tables.metric_rows(validation),
        variables=field_rows(ring) if ring else tables.variable_rows(validation),
        rare=tables.rare_rows(validation),
        agreement=tables.agreement(validation),
        most_rows=tables.MOST_TABLE_ROWS,
        figures={name: _embedded(figure) for name, figure in drawn.items()},
        facts=tables.facts(validation),
        provenance=rows_of(model.provenance),
        time_unit=data.time_unit,
        reach=f"{validation.data_statistics.tau[-1]:.3g} {data.time_unit}".strip(),
        score=model.score,
        mobility=model.mobility,
        horizon_rule=model.mobility.diagnostics.get("horizon_rule", "mean"),
        horizons_used=_horizons_used(model.mobility.diagnostics.get("horizons_used", 0)),
        held_out=_held_out(model.mobility.diagnostics),
        learned_level=model.score.learned_level,
        gaussian_used=model.score.gaussian_used,
        horizons=horizon_words(validation) if "chosen_horizon" in model.mobility.diagnostics else "",
        unresolved=unresolved(validation),
        wide=model.dimension > OPEN_TABLES,
        version=version("effective-langevin"),
    )


def _embedded(figure: Figure) -> dict[str, Any]:
    """A figure as a data address, with its size in CSS pixels."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=RESOLUTION)
    width, height = (round(CSS_PIXELS * inches) for inches in figure.get_size_inches())
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"source": source, "width": width, "height": height}


def _sentence(text: str, names: tuple[str, ...], opening: bool = True) -> Markup:
    """A sentence of the verdict with its opening in bold, minus signs, and Greek unless a variable is called Phi."""
    first, colon, _ = text.partition(": ")
    html = escape(re.sub(r"(?<![\w-])-(?=\d)", "−", text))
    if opening and colon and len(first) <= LONGEST_OPENING:
        html = Markup("<strong>{}:</strong>").format(first) + html[len(escape(first)) + 1 :]
    if not any("Phi" in name for name in names):
        html = re.sub(r"Phi_([AS])", r"Φ<sub>\1</sub>", str(html)).replace("Phi", "Φ")
    html = re.sub(r"\^[-−]1\b", "<sup>−1</sup>", str(html)).replace("-&gt;", "→")
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    html = re.sub(r"\bh\^(\d+(?:\.\d+)?)", r"<i>h</i><sup>\1</sup>", str(html)).replace("T = ", "T\u00a0=\u00a0")
    return Markup(str(html).replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%"))


def _finding(finding: Finding, names: tuple[str, ...]) -> dict[str, Any]:
    """A finding of the diagnosis as a sentence that opens with its name."""
    words = f"{finding.name[:1].upper()}{finding.name[1:]}: {finding.meaning}"
    advice = _sentence(finding.advice, names, opening=False) if finding.advice else ""
    return {"level": finding.level, "name": finding.name, "words": _sentence(words, names), "advice": advice}


def _horizons_used(count: int) -> str:
    return "horizon" if count == 1 else f"{count} horizons"


def _held_out(found: dict[str, Any]) -> str:
    """The cross-validation of the mobility in words; nothing where a fifth of the series is too little to tell."""
    if found.get("held_out_expected", 1.0) > TOO_LITTLE:
        return ""
    off, expected = (f"{100 * found[key]:.2g} %" for key in ("held_out_error", "held_out_expected"))
    return (
        f" Cross-validated: what four fifths of the series give differs from what the fifth held out gives by {off} of "
        f"|Φ|, where {expected} is to be expected from the stated errors."
    )


def _who(validation: Validation) -> str:
    """The variables in a few words."""
    model, ring = validation.model, FieldsComparison.of(validation)
    if ring:
        fields = "" if ring.channels == 1 else f"{ring.channels} fields on "
        return f"{', '.join(ring.fields[:MOST_FIELDS])}: {fields}{ring.points} points on a ring"
    return ", ".join(model.names) if model.dimension <= OPEN_TABLES else f"{model.dimension} variables"


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
