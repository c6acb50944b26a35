"""The commands: parse, call, write; no mathematics."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core import checks, progress
from .._core.errors import ArgumentError, DataError, ModelFileError
from . import options as o
from .output import complain, console, say, show_table, show_validation, tell

if TYPE_CHECKING:
    from ..data import TimeSeries
    from ..model import LangevinModel
    from ..validate import Validation
    from .run_folder import RunFolder
    from .settings import Settings

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"effective-langevin {version('effective-langevin')}")
        raise typer.Exit


@app.callback()
def effective_langevin(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Effective Langevin equations from one stationary time series."""


@app.command()
def demo(
    system: Annotated[str, typer.Argument(help="wells, scalar, lorenz63 or kuramoto-sivashinsky")] = "wells",
    out: o.Out = None,
    seed: o.Seed = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the samples, fixed noise level.")] = False,
    paper_scale: Annotated[bool, typer.Option("--paper-scale", help="The size of the paper; for a GPU.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run --paper-scale on a CPU all the same.")] = False,
    settle: o.Settle = None,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
) -> None:
    """Simulate a reference system, learn a Langevin model from the series alone, and report how good it is."""
    from .demo import chosen, estimated_hours, run_demo
    from .settings import Settings

    size = {"quick": quick, "paper_scale": paper_scale}
    checks.at_most_one_of(size)
    demo = chosen(system, **size)
    checks.integer_at_least("seed", seed, 0)
    if paper_scale and not yes and (hours := estimated_hours(demo)):
        raise ArgumentError(
            f"At paper scale this will take about {hours:.1f} hours on this CPU (minutes on a GPU). "
            "Pass --yes to run it all the same, or leave out --paper-scale."
        )
    source = {"system": system, **size, "seed": seed}
    validation = {"seed": seed + 2, **demo.validation}
    settings = Settings([], demo=source, seed=seed + 1, settle=bool(settle), validation=validation)
    with _run_folder(out, system, overwrite, as_json) as (folder, done):
        run = run_demo(
            system,
            seed=seed,
            **size,
            settle=settings.settle,
            checkpoint=folder.checkpoints,
            keep=lambda model: folder.keep_model(model, settings.record()),
        )
        done(run.validation, run.seconds)


@app.command()
def diagnose(
    data: o.Data,
    variables: o.Variables = None,
    dt: o.Interval = None,
    time: o.Time = None,
    member: o.Member = None,
    resample: o.Resample = None,
    join: o.Join = None,
    time_unit: o.TimeUnit = None,
    as_json: o.Json = False,
) -> None:
    """Say what a series can support before anything is fitted: stationary, finely sampled, noisy, long enough?"""
    from ..diagnose import diagnose as examine
    from .settings import READING, resolved

    flags = {key: value for key, value in locals().items() if key in READING or key == "data"}
    found = examine(resolved(flags, None).series())
    if as_json:
        tell(found.to_dict())
    else:
        say(found.summary())


@app.command()
def fit(
    data: o.OptionalData = None,
    config: o.Config = None,
    variables: o.Variables = None,
    dt: o.Interval = None,
    time: o.Time = None,
    member: o.Member = None,
    resample: o.Resample = None,
    join: o.Join = None,
    time_unit: o.TimeUnit = None,
    log: o.LogOf = None,
    box_cox: o.BoxCoxOf = None,
    detrend: o.Detrend = None,
    deseason: o.Deseason = None,
    periodic: o.Periodic = None,
    pca: o.Components = None,
    delay: o.Delay = None,
    phase: o.Phase = None,
    score: o.Score = None,
    mobility: o.MobilityBy = None,
    symmetry: o.SymmetryOf = None,
    seed: o.OptionalSeed = None,
    force: o.Force = None,
    settle: o.Settle = None,
    out: o.Out = None,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
) -> None:
    """Learn a Langevin model from a file, validate it, and report how good it is."""
    flags = {key: v for key, v in locals().items() if key not in ("config", "out", "overwrite", "as_json")}
    from ..fit import fit as learn
    from ..validate import validate
    from .settings import resolved

    settings = resolved({key: v or None if key == "data" else v for key, v in flags.items()}, config)
    series = settings.series()
    unsteady = _unsteady(series, settings)
    name = Path(settings.data[0]).stem if settings.data else settings.demo["system"]
    with _run_folder(out, name, overwrite, as_json) as (folder, done):
        model = learn(
            series,
            preprocess=settings.preprocess,
            **settings.strategies,
            seed=settings.seed,
            checkpoint=folder.checkpoints,
        )
        if unsteady:
            model = replace(model, provenance={**model.provenance, "forced": unsteady})
        folder.keep_model(model, settings.record())
        if settings.settle:
            model = model.settled(members=settings.validation.get("members", 1024), seed=settings.seed + 2)
            folder.keep_model(model, settings.record())
        done(validate(model, series, **settings.validating()), {})


@app.command()
def simulate(
    run: o.Run,
    duration: Annotated[float, typer.Option(help="Length of the paths, in the unit of time of the series.")],
    members: Annotated[int, typer.Option(help="Number of paths.")] = 1,
    seed: o.Seed = 0,
    dt: Annotated[float | None, typer.Option(help="Sampling interval. Default: that of the data.")] = None,
    step: Annotated[float | None, typer.Option(help="Step of the integrator. Default: from the stiffness.")] = None,
    start: Annotated[float | None, typer.Option(help="Time at which the paths begin. Default: as the record.")] = None,
    origin: Annotated[
        str | None, typer.Option(help="Date of time zero (1970-01-01 for dates read): write dates.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="nc, zarr, h5, npz, csv or parquet. Default: paths.nc in RUN.")
    ] = None,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
) -> None:
    """Simulate a learned model; paths come in the variables and units of the series it was learned from."""
    from ..data.io.write import check_target, write

    model, _, folder = _opened(run)
    path = out or folder / "paths.nc"
    check_target(path, overwrite)
    with _at_work(as_json):
        paths = model.simulate(duration, members=members, seed=seed, dt=dt, step=step, start=start)
    write(paths, path, origin=origin)
    if as_json:
        tell({"file": str(path), "members": len(paths.segments), "samples": paths.n_samples, "names": paths.names})
    else:
        say(f"{len(paths.segments)} path(s) of {len(paths.segments[0])} samples of {', '.join(paths.names)}: {path}")


@app.command()
def validate(
    run: o.Run,
    data: o.OptionalData = None,
    members: o.Members = None,
    duration: o.Duration = None,
    seed: o.OptionalSeed = None,
    report: Annotated[Path | None, typer.Option(help="Write the HTML report to this file.")] = None,
    as_json: o.Json = False,
) -> None:
    """Compare a learned model with the series it was learned from, or with another; the run folder stays as it is."""
    if report is not None and not report.parent.is_dir():
        raise ArgumentError(f"Cannot write the report to {report}: the folder {report.parent} does not exist.")
    model, settings, _ = _opened(run)
    asked = {"members": members, "duration": duration, "seed": seed}
    with _at_work(as_json):
        validation = _validated(model, settings, data or None, asked)
    if report is not None:
        validation.report(report)
    show_validation(validation, validation.metrics, None, as_json)


@app.command()
def report(run: o.Run, as_json: o.Json = False) -> None:
    """Draw the report and the figures of a run folder again from its curves, without simulating.

    A run folder of an earlier version has no curves: its model is compared with its data once more.
    """
    import json

    from ..validate import Validation
    from .run_folder import CURVES, METRICS, write_validation

    model, settings, folder = _opened(run)
    kept = folder / METRICS
    before = json.loads(kept.read_text()) if kept.is_file() else {}
    with _at_work(as_json):
        curves = folder / CURVES
        validation = Validation.load(curves, model) if curves.is_file() else _validated(model, settings, None, {})
    spent = {name: before[name] for name in before if name.endswith(("_seconds", "_mb"))}
    show_validation(validation, write_validation(validation, folder, spent), folder, as_json)


@app.command()
def systems(as_json: o.Json = False) -> None:
    """The reference systems: what they are and what is known of them exactly."""
    from ..systems import describe_all

    rows = describe_all()
    if as_json:
        tell(rows)
    else:
        head = ("system", "dimension", "exact", "equation")
        show_table(head, [(r["name"], str(r["dimension"]), ", ".join(r["exact"]) or "–", r["equation"]) for r in rows])


@app.command()
def info(as_json: o.Json = False) -> None:
    """Versions, devices, demonstrations, and the names that options and TOML files know."""
    import jax

    from .choices import CHOICES
    from .demo import DEMOS

    versions = {"effective-langevin": version("effective-langevin"), "jax": jax.__version__}
    content: dict[str, Any] = {
        "versions": {**versions, "python": sys.version.split()[0]},
        "devices": [str(d) for d in jax.devices()],
        "demos": list(DEMOS),
        "choices": {role: list(names) for role, names in CHOICES.items()},
    }
    if as_json:
        tell(content)
        return
    say(", ".join(f"{name} {number}" for name, number in content["versions"].items()))
    for name, entries in {"devices": content["devices"], "demos": content["demos"], **content["choices"]}.items():
        say(f"{name + ':':12s}{', '.join(entries)}")


def _opened(run: Path) -> "tuple[LangevinModel, Settings | None, Path]":
    """The model of a run folder or file, the settings of the run where they are kept, and its folder."""
    from ..model import load
    from .run_folder import CONFIG, MODEL
    from .settings import resolved

    if not run.exists():
        raise ModelFileError(f"There is no run folder or model file at {run}.")
    folder = run if run.is_dir() else run.parent
    model = load(run / MODEL if run.is_dir() else run)
    config = folder / CONFIG
    return model, resolved({}, config) if run.is_dir() and config.is_file() else None, folder


def _validated(
    model: "LangevinModel", settings: "Settings | None", data: list[str] | None, asked: dict[str, Any]
) -> "Validation":
    from ..validate import validate
    from .settings import Settings

    settings = settings or Settings([])
    arguments = {**settings.validating(), **{k: v for k, v in asked.items() if v is not None}}
    return validate(model, settings.series(data), **arguments)


def _unsteady(series: "TimeSeries", settings: "Settings") -> str:
    """What speaks against stationarity of what is to be fitted: an error, unless forced; nothing if nothing does."""
    from ..data.preprocess.chain import as_chain
    from ..diagnose import diagnose

    chain = as_chain(settings.preprocess)
    try:
        found = diagnose(chain.fit(series).apply(series) if chain else series)
    except DataError:
        return ""  # too short or too fragmented to be examined: the fit says what it needs
    finding = found.finding("stationarity")
    if finding.level == "stop" and not settings.force:
        raise DataError(f"{finding.meaning} {finding.advice} Pass --force to fit it all the same.")
    unsteady = finding.level == "stop"
    others = [f.name for f in found.findings if f.level in ("stop", "warning") and not (unsteady and f is finding)]
    if others:
        complain("Note", f"the diagnosis warns of {', '.join(others)}; `effective-langevin diagnose` says more.")
    return finding.meaning if unsteady else ""


@contextmanager
def _at_work(as_json: bool) -> Iterator[None]:
    """Compiled programs kept, progress shown to people."""
    from ..execution.compilation import keep_compiled_programs

    keep_compiled_programs()
    with nullcontext() if as_json else progress.shown():
        yield


@contextmanager
def _run_folder(
    out: Path | None, name: str, overwrite: bool, as_json: bool
) -> "Iterator[tuple[RunFolder, Callable[[Validation, dict[str, float]], None]]]":
    """Run inside a folder; what is handed to the yielded function is kept, and printed once the folder is complete."""
    from .run_folder import RunFolder, unused_folder

    folder = RunFolder(out or unused_folder(f"langevin-{name}"), overwrite)
    finished: list[tuple[Validation, dict[str, float]]] = []
    try:
        with folder, _at_work(as_json):
            yield folder, lambda v, seconds: finished.append((v, folder.keep_validation(v, seconds)))
    except KeyboardInterrupt:
        complain("Interrupted", folder.left_behind())
        raise typer.Exit(130) from None
    except OSError as error:
        reason = f"Cannot write {error.filename or folder.partial}: {error.strerror or error}."
        raise ArgumentError(f"{reason} {folder.left_behind()}") from error
    for validation, metrics in finished:
        show_validation(validation, metrics, folder.path, as_json)


__all__ = ["app", "console"]
