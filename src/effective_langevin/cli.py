"""The command line: parse, call, write."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ._core import checks, progress
from ._core.errors import ArgumentError, EffectiveLangevinError

if TYPE_CHECKING:
    from .data import TimeSeries
    from .runs import RunFolder
    from .validate import Validation

app = typer.Typer(
    add_completion=True, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Effective Langevin equations from one stationary time series.",
)  # fmt: skip
console = Console()

Seed = Annotated[int, typer.Option(help="Seed of all random numbers: same seed, same result.")]
Data = Annotated[list[str], typer.Argument(help="File(s) or pattern: nc, zarr, h5, npz, npy, csv, parquet.")]
Variables = Annotated[str | None, typer.Option(help="Variables to use, separated by commas.")]
Interval = Annotated[float | None, typer.Option(help="Sampling interval, where the file has no time.")]
Resample = Annotated[float | None, typer.Option(help="Interpolate irregular times to this interval.")]
Out = Annotated[Path | None, typer.Option(help="Run folder to create. Default: langevin-NAME, numbered if taken.")]


@app.command()
def demo(
    system: Annotated[str, typer.Argument(help="wells, scalar, lorenz63 or kuramoto-sivashinsky")] = "wells",
    out: Out = None,
    seed: Seed = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the samples, fixed noise level.")] = False,
    paper_scale: Annotated[bool, typer.Option("--paper-scale", help="The size of the paper; for a GPU.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run --paper-scale on a CPU all the same.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run folder.")] = False,
) -> None:
    """Simulate a reference system, learn a Langevin model from the series alone, and report how good it is."""
    from ._core.compilation import keep_compiled_programs
    from .demo import chosen, estimated_hours, run_demo
    from .runs import RunFolder, unused_folder

    keep_compiled_programs()
    size = {"quick": quick, "paper_scale": paper_scale}
    checks.at_most_one_of(size)
    demo = chosen(system, **size)
    if paper_scale and not yes and (hours := estimated_hours(demo)):
        raise ArgumentError(
            f"At paper scale this will take about {hours:.1f} hours on this CPU (minutes on a GPU). "
            "Pass --yes to run it all the same, or leave out --paper-scale."
        )
    settings = {"demo": system, **size, "demo_seed": seed, "dt": demo.dt}
    folder = RunFolder(out or unused_folder(f"langevin-{system}"), overwrite)
    with _reported(folder) as done:
        run = run_demo(
            system,
            seed=seed,
            **size,
            checkpoint=folder.checkpoints,
            keep=lambda model: folder.keep_model(model, settings),
        )
        done(run.validation, run.seconds)


@app.command()
def diagnose(
    data: Data,
    variables: Variables = None,
    dt: Interval = None,
    resample: Resample = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what a series can support before anything is fitted: stationary, finely sampled, noisy, long enough?"""
    from .diagnose import diagnose as examine

    found = examine(_read(data, variables, dt, resample))
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        console.print(found.summary(), soft_wrap=True, highlight=False, markup=False)


@app.command()
def fit(
    data: Data,
    variables: Variables = None,
    dt: Interval = None,
    resample: Resample = None,
    out: Out = None,
    seed: Seed = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run folder.")] = False,
) -> None:
    """Learn a Langevin model from a file, validate it, and report how good it is."""
    from ._core.compilation import keep_compiled_programs
    from .fit import fit as learn
    from .runs import RunFolder, unused_folder
    from .validate import validate

    keep_compiled_programs()
    series = _read(data, variables, dt, resample)
    settings = {"data": data, "variables": list(series.names), "dt": series.dt, "fit_seed": seed}
    folder = RunFolder(out or unused_folder(f"langevin-{Path(data[0]).stem}"), overwrite)
    with _reported(folder) as done:
        model = learn(series, seed=seed, checkpoint=folder.checkpoints)
        folder.keep_model(model, settings)
        done(validate(model, series, seed=seed + 1), {})


@app.command()
def info() -> None:
    """Versions, devices and the reference systems that can be demonstrated."""
    import jax

    from .demo import DEMOS

    console.print(
        f"effective-langevin {version('effective-langevin')}, jax {jax.__version__}, python {sys.version.split()[0]}"
    )
    console.print("devices: " + ", ".join(str(d) for d in jax.devices()))
    console.print("demos:   " + ", ".join(DEMOS))


def _read(data: list[str], variables: str | None, dt: float | None, resample: float | None) -> "TimeSeries":
    from .data.readers import read

    wanted = None if variables is None else [name.strip() for name in variables.split(",")]
    return read(data if len(data) > 1 else data[0], variables=wanted, dt=dt, resample=resample)


@contextmanager
def _reported(folder: "RunFolder") -> Iterator[Callable[["Validation", dict[str, float]], None]]:
    """Run inside a folder with progress shown; what is handed to the yielded function is kept and printed."""
    finished = []
    try:
        with folder, progress.shown():
            yield lambda validation, seconds: finished.append((validation, folder.keep_validation(validation, seconds)))
    except KeyboardInterrupt:
        console.print(f"Interrupted. {folder.left_behind()}", soft_wrap=True)
        raise typer.Exit(130) from None
    for validation, metrics in finished:
        console.print(validation.summary().split("\n\n")[0])
        console.print(_metrics_table(metrics))
        console.print(
            f"Model, metrics, figures: {folder.path}\nOpen {folder.path / 'report.html'} in a browser.", soft_wrap=True
        )


def _metrics_table(metrics: dict[str, float]) -> Table:
    table = Table("metric", "value", "± s.e.", "data against data")
    for name, value in metrics.items():
        if name.endswith(("_se", "_floor")):
            continue
        extra = [metrics.get(f"{name}_se"), metrics.get(f"{name}_floor")]
        table.add_row(name, f"{value:.4g}", *("" if e is None else f"{e:.2g}" for e in extra))
    return table


def main() -> None:
    """Entry point: one line of error and exit code 2 for anything that is the user's to repair."""
    try:
        app()
    except EffectiveLangevinError as error:
        Console(stderr=True).print(f"[bold red]Error:[/] {error}", soft_wrap=True, highlight=False)
        sys.exit(2)
