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

from .._core import files, progress
from .._core.errors import ArgumentError
from .._core.format import rows_of
from ..diagnose import Finding
from ..estimate.mobility.evidence import HorizonEvidence
from . import plots, tables
from .findings import notes
from .findings.describe_model import ModelDescription
from .validation import Validation

__all__ = ["figures", "render", "write_report"]

RESOLUTION = 192
CSS_PIXELS = 96
OPEN_TABLES = 6
LONGEST_OPENING = 30
_ENOUGH_HELD_OUT = 0.5  # relative error expected of a held-out fifth, beyond which it is not mentioned

# Figure, the curve that it needs, and what draws it.
_FIGURES: dict[str, tuple[str, Callable[..., Any]]] = {
    "pdfs": ("pdf", plots.plot_pdf),
    "original_pdfs": ("original_pdf", plots.plot_original_pdf),
    "pairs": ("pair_density", plots.plot_pair_density),
    "acfs": ("acf", plots.plot_acf),
    "cross_correlations": ("cross_correlation", plots.plot_cross_correlation),
    "spectra": ("spectrum", plots.plot_spectrum),
    "return_times": ("return_time", plots.plot_return_time),
    "sample_paths": ("sample_path", plots.plot_sample_path),
    "mode_variances": ("mode_variance", plots.plot_mode_variance),
    "mode_acfs": ("mode_acf", plots.plot_mode_acf),
    "phi_by_horizon": ("mobility_by_horizon", plots.plot_mobility_by_horizon),
}


def figures(validation: Validation) -> dict[str, Figure]:
    """Draw every figure that this validation has something to show for, by name."""
    model, found = validation.model, validation.model.score.evidence
    makers = {
        "mobility": plots.plot_mobility if model.dimension > 1 else None,
        "fields": plots.plot_fields if model.fields is not None and not model.space.channels else None,
        **{name: draw if curve in validation.curves else None for name, (curve, draw) in _FIGURES.items()},
        "noise_level": plots.plot_noise_level if found.noise_level_choice else None,
        "training": plots.plot_training if found.loss_curve else None,
        "stein": plots.plot_stein if model.dimension > OPEN_TABLES else None,
    }
    wanted, drawn = {name: draw for name, draw in makers.items() if draw}, {}
    with progress.task("Drawing the figures", len(wanted)) as tick:
        for name, draw in wanted.items():
            drawn[name] = np.ravel(draw(validation))[0].figure
            tick(1)
    return drawn


def write_report(validation: Validation, path: str | os.PathLike, *, drawn: dict[str, Figure] | None = None) -> None:
    """Write the report, with the figures `drawn` if given; the file is replaced once the new one is complete."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ArgumentError(f"Cannot write the report to {path}: the folder {path.parent} does not exist.")
    page = render(validation, figures(validation) if drawn is None else drawn)
    with files.replaced(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(validation: Validation, drawn: dict[str, Figure]) -> str:
    """Return the report as HTML text."""
    model = validation.model
    description = ModelDescription(model, validation.comparison.groups)
    findings = validation.diagnosis.findings if validation.diagnosis else ()
    unresolved, horizon = notes.unresolved_modes(validation), model.mobility.evidence.horizon
    headline, *sentences = (_sentence(text, model.names) for text in validation.verdict.sentences)
    return _template().render(
        validation=validation,
        model=model,
        tables=tables,
        headline=headline,
        verdict=sentences,
        judged=[_finding(f, model.names) for f in validation.verdict.findings],
        description=description,
        words=[_finding(f, model.names)["words"] for f in description.findings()],
        findings=[_finding(f, model.names) for f in findings],
        figures={name: _embedded(figure) for name, figure in drawn.items()},
        provenance=rows_of(model.provenance),
        horizon=horizon,
        horizons=notes.horizon_words(validation),
        held_out=_held_out(horizon) if horizon else "",
        unresolved=_finding(unresolved, model.names)["words"] if unresolved else "",
        wide=model.dimension > OPEN_TABLES,
        version=version("effective-langevin"),
    )


def _embedded(figure: Figure) -> dict[str, Any]:
    """Return a figure as a data address, with its size in CSS pixels."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=RESOLUTION)
    width, height = (round(CSS_PIXELS * inches) for inches in figure.get_size_inches())
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"source": source, "width": width, "height": height}


def _sentence(text: str, names: tuple[str, ...], opening: bool = True) -> Markup:
    """Set a sentence with its opening in bold, minus signs, and Greek unless a variable is called Phi."""
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
    """Write a finding as a sentence that opens with its name."""
    words = f"{finding.name[:1].upper()}{finding.name[1:]}: {finding.meaning}"
    advice = _sentence(finding.advice, names, opening=False) if finding.advice else ""
    return {"level": finding.level, "name": finding.name, "words": _sentence(words, names), "advice": advice}


def _held_out(found: HorizonEvidence) -> str:
    """Report the cross-validation of the mobility; nothing where a fifth of the series is too little to tell."""
    if found.held_out_error is None or found.held_out_expected is None or found.held_out_expected > _ENOUGH_HELD_OUT:
        return ""
    off, expected = (f"{100 * share:.2g} %" for share in (found.held_out_error, found.held_out_expected))
    return (
        f" Cross-validation: the mobility from four fifths of the series differs from that of the fifth held out by "
        f"{off} of |Φ|; the stated errors predict {expected}."
    )


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
