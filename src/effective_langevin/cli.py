"""The command line: parse, call, write."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ._core import checks, progress
from ._core.errors import ArgumentError, EffectiveLangevinError

app = typer.Typer(
    add_completion=True, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Effective Langevin equations from one stationary time series.",
)  # fmt: skip
console = Console()

Seed = Annotated[int, typer.Option(help="Seed of all random numbers: same seed, same result.")]
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
    try:
        with folder, progress.shown():
            run = run_demo(
                system,
                seed=seed,
                **size,
                checkpoint=folder.checkpoints,
                keep=lambda model: folder.keep_model(model, settings),
            )
            metrics = folder.keep_validation(run.validation, run.seconds)
    except KeyboardInterrupt:
        console.print(f"Interrupted. {folder.left_behind()}", soft_wrap=True)
        raise typer.Exit(130) from None
    console.print(run.validation.summary().split("\n\n")[0])
    console.print(_metrics_table(metrics))
    console.print(
        f"Model, metrics, figures: {folder.path}\nOpen {folder.path / 'report.html'} in a browser.", soft_wrap=True
    )


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
