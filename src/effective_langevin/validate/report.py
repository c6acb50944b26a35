"""The report: verdict, physics, agreement, evidence and settings in one HTML file that needs nothing else."""

import base64
import io
import os
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jinja2
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from .._core import files, progress
from .._core.errors import ArgumentError
from ..diagnose import Finding
from ..estimate.mobility.evidence import HorizonEvidence
from . import plots, tables
from .findings import notes, verdict
from .findings.describe_model import ModelDescription
from .pattern_plots import find_patterns
from .validation import Validation

__all__ = ["SECTIONS", "figures", "render", "save_figures", "write_report"]

RESOLUTION = 192
CSS_PIXELS = 96
OPEN_TABLES = 6  # variables up to which matrices stand open
LONGEST_OPENING = 30
_SERIOUS = ("warning", "stop")
_ENOUGH_HELD_OUT = 0.5  # relative error expected of a held-out fifth, beyond which it is not mentioned

# What draws each figure, and the curve (or the condition) that it needs.
FIGURES: dict[str, tuple[Callable[..., Any], str | Callable[[Validation], Any]]] = {
    "overview": (plots.plot_overview, "sample_path"),
    "fields": (plots.plot_fields, "field_profiles"),
    "push": (plots.plot_push, "response"),
    "patterns": (plots.plot_patterns, lambda v: find_patterns(v.model)),
    "mobility": (plots.plot_mobility, lambda v: v.model.dimension > OPEN_TABLES),
    "pdfs": (plots.plot_pdf, "pdf"),
    "original_pdfs": (plots.plot_original_pdf, "original_pdf"),
    "pairs": (plots.plot_pair_density, "pair_density"),
    "acfs": (plots.plot_acf, "acf"),
    "cross_correlations": (plots.plot_cross_correlation, "cross_correlation"),
    "spectra": (plots.plot_spectrum, "spectrum"),
    "return_times": (plots.plot_return_time, "return_time"),
    "sample_paths": (plots.plot_sample_path, lambda v: v.model.dimension > 1),  # else they are in the overview
    "mode_variances": (plots.plot_mode_variance, "mode_variance"),
    "mode_acfs": (plots.plot_mode_acf, "mode_acf"),
    "phi_by_horizon": (plots.plot_mobility_by_horizon, "mobility_by_horizon"),
    "noise_level": (plots.plot_noise_level, lambda v: v.model.score.evidence.noise_level_choice),
    "training": (plots.plot_training, lambda v: v.model.score.evidence.loss_curve),
    "stein": (plots.plot_stein, lambda v: v.model.dimension > OPEN_TABLES),
}


_PAGE = jinja2.Environment(
    loader=jinja2.PackageLoader("effective_langevin.validate"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
).get_template("page.jinja")


class Section(NamedTuple):
    """A section of the report: its template is `templates/NAME.jinja`, its link `#NAME`."""

    name: str
    title: str


# To add a section, write its template and name it here. What the templates know is in `render`.
SECTIONS = (
    Section("physics", "The physics"),
    Section("agreement", "Data against model"),
    Section("data", "The data"),
    Section("evidence", "Evidence"),
    Section("settings", "Settings and provenance"),
)


def figures(validation: Validation) -> dict[str, Figure]:
    """Draw every figure that this validation has something to show for, by name."""

    def wanted(needs: str | Callable[[Validation], Any]) -> bool:
        return needs in validation.curves if isinstance(needs, str) else bool(needs(validation))

    shown, drawn = {name: draw for name, (draw, needs) in FIGURES.items() if wanted(needs)}, {}
    with progress.task("Drawing the figures", len(shown)) as tick:
        for name, draw in shown.items():
            drawn[name] = figure = np.ravel(draw(validation))[0].figure
            figure.draw_without_rendering()  # places the axes once, rather than for every file that is written
            figure.set_layout_engine("none")
            tick(1)
    return drawn


def write_report(validation: Validation, path: str | os.PathLike, *, drawn: dict[str, Figure] | None = None) -> None:
    """Write the report, with the figures `drawn` if given; the file is replaced once the new one is complete."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ArgumentError(f"Cannot write the report to {path}: the folder {path.parent} does not exist.")
    files.write_text(path, render(validation, figures(validation) if drawn is None else drawn))


def save_figures(drawn: dict[str, Figure], folder: Path) -> None:
    """Write each figure as NAME.png, the picture that is in the report, and NAME.pdf."""
    folder.mkdir(exist_ok=True)
    with progress.task("Writing the figures", len(drawn)) as tick:
        for name, figure in drawn.items():
            with files.replaced(folder / f"{name}.png") as temporary:
                temporary.write_bytes(_picture(figure))
            with files.replaced(folder / f"{name}.pdf") as temporary:
                figure.savefig(temporary, format="pdf", dpi=150)
            tick(1)


def render(validation: Validation, drawn: dict[str, Figure]) -> str:
    """Return the report as HTML text."""
    model = validation.model
    description = ModelDescription(model, validation.comparison.groups)
    findings = validation.diagnosis.findings if validation.diagnosis else ()
    findings = [f if f.level in _SERIOUS else _first_sentence(f) for f in findings]
    horizon = model.mobility.evidence.horizon
    headline, *sentences = (_sentence(text, model.names) for text in validation.verdict.sentences)
    return _PAGE.render(
        sections=SECTIONS,
        validation=validation,
        model=model,
        tables=tables,
        facts={row[0]: row[1] for row in tables.facts(validation).rows},
        headline=headline,
        verdict=sentences,
        noted=[_finding(f, model.names) for f in _notes(validation)],
        description=description,
        words=[_finding(f, model.names)["words"] for f in _described(validation, description)],
        findings=[_finding(f, model.names) for f in findings],
        figures={name: _embedded(figure) for name, figure in drawn.items()},
        horizon=horizon,
        horizons=notes.horizon_words(validation),
        held_out=_held_out(horizon) if horizon else "",
        wide=model.dimension > OPEN_TABLES,
        version=version("effective-langevin"),
    )


def _notes(validation: Validation) -> list[Finding]:
    """Return what the verdict adds to tests, physics, facts and diagnosis, which have their places on the page."""
    diagnosed = {f.name for f in validation.diagnosis.findings} if validation.diagnosis else set()
    tested = {test.name for test in verdict.all_tests(validation)}
    elsewhere = {"circulation", "data", *tested, *diagnosed}
    kept = [finding for finding in validation.verdict.findings if finding.name not in elsewhere]
    return [_first_sentence(finding) if finding.name == "forced" else finding for finding in kept]


def _first_sentence(finding: Finding) -> Finding:
    return replace(finding, meaning=finding.meaning.partition(". ")[0].rstrip(".") + ".", advice="")


def _described(validation: Validation, description: ModelDescription) -> list[Finding]:
    """Describe the model; the relaxation of several variables is a table, and one sentence tells of circulation."""
    tested = {f.name: f for f in validation.verdict.findings if f.name == "circulation"}
    found = {f.name: f for f in description.findings() if f.name != "relaxation" or validation.model.dimension == 1}
    order = ("relaxation", "noise", "circulation", "irreversibility")
    return [(found | tested)[name] for name in order if name in found or name in tested]


def _embedded(figure: Figure) -> dict[str, Any]:
    """Return a figure as a data address, with its size in CSS pixels."""
    width, height = (round(CSS_PIXELS * inches) for inches in figure.get_size_inches())
    source = "data:image/png;base64," + base64.b64encode(_picture(figure)).decode()
    return {"source": source, "width": width, "height": height}


def _picture(figure: Figure) -> bytes:
    """Return a finished figure as a PNG; one that was asked for before is not drawn again."""
    if figure not in _pictures:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=RESOLUTION)
        _pictures[figure] = buffer.getvalue()
    return _pictures[figure]


_pictures: WeakKeyDictionary[Figure, bytes] = WeakKeyDictionary()


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
    html = re.sub(r"\bh\^(\d+(?:\.\d+)?)", r"<i>h</i><sup>\1</sup>", str(html))
    html = re.sub(r"\b([Tp]) (=|&lt;) ", "\\1\u00a0\\2\u00a0", html)
    return Markup(str(html).replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%"))


def _finding(finding: Finding, names: tuple[str, ...]) -> dict[str, Any]:
    """Write a finding as a sentence that opens with its name."""
    words = f"{finding.name[:1].upper()}{finding.name[1:]}: {finding.meaning}"
    advice = _sentence(finding.advice, names, opening=False) if finding.advice else ""
    serious = finding.level in _SERIOUS
    return {"serious": serious, "level": finding.level, "words": _sentence(words, names), "advice": advice}


def _held_out(found: HorizonEvidence) -> str:
    """Report the cross-validation of the mobility; nothing where a fifth of the series is too little to tell."""
    if found.held_out_error is None or found.held_out_expected is None or found.held_out_expected > _ENOUGH_HELD_OUT:
        return ""
    off, expected = (f"{100 * share:.2g} %" for share in (found.held_out_error, found.held_out_expected))
    return f" Cross-validation: four fifths and the fifth held out differ by {off} of |Φ|, {expected} expected."
