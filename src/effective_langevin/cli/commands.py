"""The commands: parse, call, write; no mathematics."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core import progress
from .._core.errors import ArgumentError, ModelFileError
from .._core.format import count, listed
from . import options as o
from .output import announce, complain, in_flags, is_quiet, say, show, show_table, show_validation, tell

if TYPE_CHECKING:
    from ..model import LangevinModel
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


@app.command(epilog="Example: effective-langevin demo wells --quick")
@o.heard
def demo(
    system: o.System = "wells",
    out: o.Out = None,
    seed: o.Seed = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the samples, fixed smoothing width.")] = False,
    paper_scale: Annotated[bool, typer.Option("--paper-scale", help="The size of the paper; for a GPU.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run --paper-scale on a CPU all the same.")] = False,
    settle: o.Settle = None,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
) -> None:
    """Simulate a reference system, learn a Langevin model from the series alone, and report how good it is."""
    announce(f"Simulating {system}")
    from .demo import choose_demo, estimate_hours
    from .settings import Settings

    size = {"quick": quick, "paper_scale": paper_scale}
    if quick and paper_scale:
        raise ArgumentError("The options --quick and --paper-scale exclude each other: give one.")
    settings = Settings.for_demo(system, seed=seed, settle=bool(settle), **size)
    if paper_scale and not yes and (hours := estimate_hours(choose_demo(system, **size))):
        raise ArgumentError(
            f"At paper scale this will take about {hours:.1f} hours on this CPU (minutes on a GPU). "
            "Pass --yes to run it all the same, or leave out --paper-scale."
        )
    _run(settings, out or f"langevin-{system}", overwrite, as_json)


@app.command(epilog="Example: effective-langevin diagnose run.nc --variables T,h --deseason 365.25")
@o.takes(o.READING, o.TRANSFORMS)
def diagnose(data: o.Data, as_json: o.Json = False, **flags: Any) -> None:
    """Say what a series can support before anything is fitted: stationary, finely sampled, noisy, long enough?

    With the flags of a fit it diagnoses the series that would be fitted.
    """
    announce(f"Reading {listed(data)}")
    from ..data.preprocess.chain import as_chain, transform_series
    from ..data.preprocess.pointwise import embed_angles
    from ..diagnose import diagnose as examine
    from .settings import resolve

    settings = resolve({"data": data, **flags}, None)
    _, series = transform_series(settings.series(), as_chain(settings.preprocess))
    found = examine(embed_angles(series))
    findings = tuple(replace(f, advice=in_flags(f.advice)) for f in found.findings)
    found = replace(found, findings=findings)
    show(found.to_dict(), found.summary(), as_json)


@app.command(epilog="Example: effective-langevin fit run.nc --variables T,h --deseason 365.25:3 --out run")
@o.heard
@o.takes(o.READING, o.TRANSFORMS, o.MODEL)
def fit(
    data: o.OptionalData = None,
    config: o.Config = None,
    seed: o.OptionalSeed = None,
    settle: o.Settle = None,
    by: Annotated[
        str | None, typer.Option(help="Fit many series: a dimension, a column, or file for one per file.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="With --by: processes. Default: one per core.")] = None,
    report: Annotated[str | None, typer.Option(help="With --by: series to report on, or all.", metavar="A,B")] = None,
    out: o.Out = None,
    dask: o.Dask = None,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
    **flags: Any,
) -> None:
    """Learn a Langevin model from a file, validate it, and report how good it is; with --by, one for each of many."""
    announce(f"Reading {listed(data or [str(config)])}")
    from ..execution.cluster import opened
    from .settings import resolve

    settings = resolve({"data": data or None, "seed": seed, "settle": settle, **flags}, config)
    if by is not None:
        with _at_work(as_json):
            checked = flags["check"] is not None
            many = settings.run_many(by, out, workers=workers, report=report, checked=checked, again=overwrite)
        content = {"folder": str(many.path), "models": len(many.models), "failures": many.failures}
        show(content, f"{many.summary()}\nModels, table.nc, index.html: {many.path}", as_json)
        return
    name = Path(settings.data[0]).stem if settings.data else settings.demo.get("system", "run")
    with opened(dask):
        _run(settings, out or f"langevin-{name}", overwrite, as_json)


@app.command(epilog="Example: effective-langevin simulate run --duration 1000 --members 20 --out paths.nc")
@o.heard
def simulate(
    run: o.Run,
    duration: Annotated[float, typer.Option(help="Length of the paths, in the unit of time of the series.")],
    members: Annotated[int, typer.Option(help="Number of paths.")] = 1,
    seed: o.Seed = 0,
    dt: Annotated[float | None, typer.Option(help="Sampling interval. Default: that of the data.")] = None,
    step: Annotated[float | None, typer.Option(help="Step of the integrator. Default: from the stiffness.")] = None,
    start: Annotated[str | None, typer.Option(help="Time or date at which they begin. Default: as the record.")] = None,
    origin: Annotated[str | None, typer.Option(help="Date of time zero. Default: dates if the data have them.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="nc, zarr, h5, npz, csv or parquet. Default: paths.nc in RUN.")
    ] = None,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
) -> None:
    """Simulate a learned model; paths come in the variables and units of the series it was learned from.

    A zarr store is written as the paths are simulated; after an interrupt, the same command goes on.
    """
    from ..data.fields import summarize
    from ..data.io.dates import count_time
    from ..data.io.write import check_target, write

    model, _, folder = _open(run)
    path = out or folder / "paths.nc"
    begin = None if start is None else count_time(start, model.time_unit, model.calendar)
    given: dict[str, Any] = {"members": members, "seed": seed, "dt": dt, "step": step, "start": begin}
    if path.suffix.lower() == ".zarr":  # block by block, and an interrupted one goes on
        with _at_work(as_json):
            stored = model.simulate(duration, out=path, origin=origin, overwrite=overwrite, **given)
        content = {"file": str(path), "members": stored.members, "samples": stored.members * stored.samples}
        show({**content, "names": stored.names, "diverged": stored.diverged}, stored.summary(), as_json)
        return
    check_target(path, overwrite)
    with _at_work(as_json):
        paths = model.simulate(duration, **given)
    write(paths, path, origin=origin)
    members, names = len(paths.segments), paths.names
    text = f"{count(members, 'path')} of {len(paths.segments[0])} samples of {listed(summarize(names))}: {path}"
    show({"file": str(path), "members": members, "samples": paths.n_samples, "names": names}, text, as_json)


@app.command(epilog="Example: effective-langevin forecast run --from 2021-06-30 --leads 30 --members 200 --out fc.nc")
@o.heard
def forecast(
    run: o.Run,
    leads: Annotated[float, typer.Option(help="Forecast up to this time ahead, in the unit of time of the series.")],
    begin: Annotated[
        str, typer.Option("--from", help="last, a date or time of the series, or a state such as x=0.5,y=-1.")
    ] = "last",
    members: Annotated[int, typer.Option(help="Members of the ensemble.")] = 100,
    data: Annotated[list[str] | None, typer.Option(help="Series to start from. Default: that of the run.")] = None,
    seed: o.Seed = 0,
    out: Annotated[Path | None, typer.Option(help="nc or zarr. Default: forecast.nc in RUN.")] = None,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
) -> None:
    """Forecast from the last state of the series, or from another: an ensemble at every interval up to --leads."""
    from ..data.io.write import check_target, write_forecast

    model, settings, folder = _open(run)
    path = out or folder / "forecast.nc"
    check_target(path, overwrite, (".nc", ".zarr"))
    states = settings.states(begin, model, data)
    with _at_work(as_json):
        found = model.forecast(states, leads, members=members, seed=seed)
    write_forecast(found, path)
    content = {"file": str(path), "leads": found.leads.tolist(), "names": found.names}
    content |= {"mean": found.mean[-1].tolist(), "spread": found.spread[-1].tolist()}
    show(content, f"{found.summary()}\n{path}", as_json)


@app.command(epilog="Example: effective-langevin validate run other.nc --report other.html")
@o.heard
def validate(
    run: o.Run,
    data: o.OptionalData = None,
    members: Annotated[int | None, typer.Option(help="Members to simulate.")] = None,
    duration: Annotated[float | None, typer.Option(help="Time to simulate, in the unit of the series.")] = None,
    seed: o.OptionalSeed = None,
    report: Annotated[Path | None, typer.Option(help="Write the HTML report to this file.")] = None,
    as_json: o.Json = False,
) -> None:
    """Compare a learned model with the series it was learned from, or with another; the run folder stays as it is."""
    if report is not None and not report.parent.is_dir():
        raise ArgumentError(f"Cannot write the report to {report}: the folder {report.parent} does not exist.")
    model, settings, _ = _open(run)
    with _at_work(as_json):
        validation = settings.validate(model, settings.series(data), members=members, duration=duration, seed=seed)
    if report is not None:
        validation.report(report)
    show_validation(validation, validation.metrics, None, as_json)


@app.command(epilog="Example: effective-langevin report run")
@o.heard
def report(run: o.Run, as_json: o.Json = False) -> None:
    """Draw the report and the figures of a run folder again from its curves, without simulating.

    A run folder of an earlier version has no curves: its model is compared with its data once more.
    """
    import json

    from ..validate import Validation
    from .run_folder import CURVES, METRICS, write_validation

    model, settings, folder = _open(run)
    kept, curves = folder / METRICS, folder / CURVES
    try:
        before = dict(json.loads(kept.read_text()))
    except (OSError, ValueError, TypeError):  # lost or damaged: it is written anew
        before = {}
    with _at_work(as_json):
        saved = curves.is_file()
        validation = Validation.load(curves, model) if saved else settings.validate(model, settings.series())
    spent = {name: before[name] for name in before if name.endswith(("_seconds", "_mb"))}
    show_validation(validation, write_validation(validation, folder, spent), folder, as_json)


@app.command(epilog="Example: effective-langevin systems --json")
def systems(as_json: o.Json = False) -> None:
    """List the reference systems: what they are and what is known of them exactly."""
    from ..systems import BY_NAME

    rows = []
    for name, made in BY_NAME.items():
        system = made()
        known = {"name": name, "class": type(system).__name__, "dimension": system.dimension}
        equation = (type(system).__doc__ or "").strip().split("\n")[0]
        rows.append({**known, "exact": list(system.exact), "equation": equation})
    if as_json:
        tell(rows)
    else:
        head = ("system", "dimension", "exact", "equation")
        show_table(head, [(r["name"], str(r["dimension"]), ", ".join(r["exact"]) or "–", r["equation"]) for r in rows])


@app.command(epilog="Example: effective-langevin info run")
def info(
    run: Annotated[Path | None, typer.Argument(help="Run folder, or a model file: say what it holds.")] = None,
    as_json: o.Json = False,
) -> None:
    """Say what a run folder holds; without one, print versions, devices and the names that options know."""
    if run is not None:
        return _describe(run, as_json)
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
    lists = {"devices": content["devices"], "demos": content["demos"], **content["choices"]}
    lines = [", ".join(f"{name} {number}" for name, number in content["versions"].items())]
    lines += [f"{name + ':':12s}{', '.join(entries)}" for name, entries in lists.items()]
    show(content, "\n".join(lines), as_json)


def _describe(run: Path, as_json: bool) -> None:
    """Print what a run folder or a model file holds: the verdict, the model, the data and the files."""
    from ..validate import Validation
    from .run_folder import CURVES

    model, settings, folder = _open(run)
    curves, known = folder / CURVES, model.provenance
    verdict = Validation.load(curves, model).verdict.sentences if run.is_dir() and curves.is_file() else ()
    source = settings.data or [f"demo {settings.demo['system']}"] if settings.demo or settings.data else []
    files = sorted(p.name for p in folder.iterdir()) if run.is_dir() else [run.name]
    data = f"{known.get('samples', '?')} samples of {listed(model.names)}, dt = {model.dt:g} {model.time_unit}".strip()
    text = {
        "verdict": verdict[0] if verdict else "not validated",
        "data": " ".join([f"{data};" if source else data, listed([str(file) for file in source])]).strip(),
        "files": ", ".join(files),
    }
    lines = [*(f"{name + ':':9s}{words}" for name, words in text.items()), "", model.summary()]
    content = {"verdict": list(verdict), "data": source, "samples": known.get("samples"), "dt": model.dt}
    content |= {"time_unit": model.time_unit, "names": model.names, "versions": known.get("versions", {})}
    show({**content, "files": files, "seed": known.get("seed")}, "\n".join(lines), as_json)


def _open(run: Path) -> "tuple[LangevinModel, Settings, Path]":
    """Load the model of a run folder or file, the settings of the run where they are kept, and name its folder."""
    announce(f"Reading {run}")
    from ..model import load
    from .run_folder import CONFIG, MODEL
    from .settings import Settings, resolve

    if not run.exists():
        raise ModelFileError(f"There is no run folder or model file at {run}.")
    folder = run if run.is_dir() else run.parent
    model = load(run / MODEL if run.is_dir() else run)
    known = run.is_dir() and (folder / CONFIG).is_file()
    return model, resolve({}, folder / CONFIG) if known else Settings(), folder


@contextmanager
def _at_work(as_json: bool) -> Iterator[None]:
    """Keep compiled programs, and show progress to people."""
    from ..execution.compilation import keep_compiled_programs

    keep_compiled_programs()
    with nullcontext() if as_json or is_quiet() else progress.shown():
        yield


def _run(settings: "Settings", out: Path | str, overwrite: bool, as_json: bool) -> None:
    """Run inside a folder, a new one where `out` is only a name, and print what came out once it is complete."""
    from .run_folder import RunFolder, find_unused_folder, measure_memory, write_validation

    folder = RunFolder(out if isinstance(out, Path) else find_unused_folder(out), overwrite)
    try:
        with folder, _at_work(as_json):
            validation, seconds = settings.run(folder)
            spent = {"wall_seconds": time.monotonic() - folder.started, **measure_memory()}
            metrics = write_validation(validation, folder.partial, {**seconds, **spent})
    except KeyboardInterrupt:
        complain("Interrupted", folder.left_behind())
        raise typer.Exit(130) from None
    except OSError as error:
        reason = f"{error.filename or folder.partial}: {error.strerror or error}."
        raise ArgumentError(f"{reason} {folder.left_behind()}") from error
    show_validation(validation, metrics, folder.path, as_json)
