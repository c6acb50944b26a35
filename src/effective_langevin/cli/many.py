"""`fit --by`: one model for each of many series."""

import os
from pathlib import Path

import typer

from .._core.errors import ArgumentError
from ..many import ManyFits, fit_many
from .output import complain
from .settings import Settings


def run_many(
    settings: Settings,
    by: str,
    out: Path | None,
    *,
    workers: int | None,
    report: str | None,
    checked: str | None,
    again: bool,
) -> ManyFits:
    """Fit every series of the data of a run; the same command continues what was interrupted."""
    if not settings.data:
        raise ArgumentError("There is no series: name its file(s) or its folder before --by.")
    if settings.settle:
        raise ArgumentError("The options --settle and --by exclude each other.")
    source = settings.data if len(settings.data) > 1 else settings.data[0]
    folder = out or Path(f"langevin-{Path(os.path.commonpath(settings.data)).stem or 'series'}-by-{by}")
    wanted = False if report is None else True if report == "all" else [name.strip() for name in report.split(",")]
    try:
        return fit_many(
            source,
            by=by,
            out=folder,
            workers=workers,
            seed=settings.seed,
            preprocess=settings.preprocess or None,
            **settings.strategies,
            check="off" if checked is None else settings.check,
            report=wanted,
            reading=settings.reading,
            overwrite=again,
        )
    except KeyboardInterrupt:
        complain("Interrupted", f"What is done stays in {folder}; the same command continues.")
        raise typer.Exit(130) from None
