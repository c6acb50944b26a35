"""The options that several commands share, with their words of help."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from .output import reporting

# What a shell completes, known before anything slow is imported; a test compares them with the tables.
VALUES: dict[str, tuple[str, ...]] = {
    "system": ("wells", "scalar", "lorenz63", "kuramoto-sivashinsky"),
    "score": ("kgmm", "denoising", "gaussian", "extrapolated"),
    "mobility": (
        "integrated-response", "finite-volume", "quadratic-variation", "correlation-fit", "log-correlation",
        "state-dependent",
    ),
    "symmetry": ("none", "translations", "translations-and-reflections"),
    "check": ("error", "warn", "off"),
}  # fmt: skip


def complete(name: str) -> Callable[[str], list[str]] | None:
    """Return the function that completes the value of an option or argument, if its values are known."""
    values = VALUES.get(name)
    return None if values is None else lambda incomplete: [value for value in values if value.startswith(incomplete)]


_DATA = typer.Argument(help="File(s) or pattern: nc, zarr, h5, npz, npy, csv, parquet.")
Data = Annotated[list[str], _DATA]
OptionalData = Annotated[list[str] | None, _DATA]
Run = Annotated[Path, typer.Argument(help="Run folder, or a model file.")]
Out = Annotated[Path | None, typer.Option(help="Run folder to create. Default: langevin-NAME, numbered if taken.")]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers: same seed, same result.")]
OptionalSeed = Annotated[int | None, typer.Option(help="Seed of all random numbers. Default: 0.")]
Dask = Annotated[
    str | None, typer.Option("--dask", help="Sum over large files on a dask cluster.", metavar="local:N|ADDRESS")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Config = Annotated[Path | None, typer.Option(help="TOML file with the same keys; flags override it.")]
System = Annotated[
    str, typer.Argument(help="wells, scalar, lorenz63 or kuramoto-sivashinsky", autocompletion=complete("system"))
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
LogFile = Annotated[
    Path | None, typer.Option("--log-file", help="Append messages and the time of each stage to this file.")
]
Settle = Annotated[bool | None, typer.Option("--settle", help="Match the variances of the model by simulating it.")]

# Flags that are also keys of a TOML file, by their name there: type, help, name of the value.
Table = Mapping[str, tuple[type, str, str | None]]
READING: Table = {
    "variables": (str, "Variables to use, separated by commas.", None),
    "dt": (float, "Sampling interval, where the file has no time.", None),
    "time": (str, "Name of the time coordinate, or its beginning, where it has an unusual one.", None),
    "no_time": (bool, "Ignore the time coordinate: --dt says how far apart rows are.", None),
    "missing": (str, "Codes for missing samples (none: there are none).", "999,1e36"),
    "begin": (str, "First date or time to read.", "DATE"),
    "end": (str, "Last date or time to read.", "DATE"),
    "thin": (int, "Keep every N-th sample.", "N"),
    "calendar": (str, "rows: count time in rows, such as trading days, not in dates.", "rows"),
    "records_in_columns": (bool, "Columns are records of one variable.", None),
    "member": (str, "Dimension or column that tells records apart.", None),
    "resample": (float, "Interpolate irregular times, and gaps of up to three steps, to this interval.", None),
    "join": (bool, "Files continue one another in time.", None),
    "time_unit": (str, "Unit of time to convert to, such as day.", None),
    "chunks": (str, "Leave large nc, zarr, h5 and npy files on disk, and read so many rows at once.", "auto|ROWS"),
}
TRANSFORMS: Table = {
    "log": (str, "Take the logarithm of these (or: all).", "A,B"),
    "box_cox": (str, "Make these more Gaussian (or: all).", "A,B"),
    "detrend": (bool, "Remove a linear trend.", None),
    "deseason": (str, "Remove the mean cycle.", "PERIOD[:HARMONICS]"),
    "periodic": (str, "Variables that are angles (or: all).", "A,B[:PERIOD]"),
    "pca": (str, "Leading principal components.", "N|SHARE"),
    "delay": (str, "Add N delayed copies, LAG steps apart.", "N[:LAG]"),
    "phase": (str, "Add cos and sin of the phase.", "PERIOD"),
}
MODEL: Table = {
    "score": (str, "kgmm, denoising or gaussian; with settings: kgmm:noise_level=0.05,cells=500.", None),
    "mobility": (
        str, "Default: chosen by held-out forecasts. integrated-response, state-dependent, log-correlation, ...", None
    ),
    "memory": (
        str, "Hidden variables from the past, chosen by held-out forecasts (auto) or as given.",
        "auto|velocity[:N]|delays:N[:LAG]"
    ),
    "symmetry": (str, "translations or translations-and-reflections.", None),
    "check": (str, "What to do with a series that is not stationary. Default: error.", "error|warn|off"),
    "force": (bool, "Fit a series that is not stationary: --check warn.", None),
}  # fmt: skip
FLAGS = {"begin": "--from", "end": "--to"}  # where the flag is another word than the key
PANELS = {
    "Reading the file": READING,
    "Before the fit (in this order; another: preprocess in TOML)": TRANSFORMS,
    "Model": MODEL,
}


def takes(*tables: Table) -> Callable[[Callable], Callable]:
    """Give a command that ends in `**flags` the flags of these tables; a flag that is not given is None."""

    def add(command: Callable) -> Callable:
        signature: Any = inspect.signature(command)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for panel, table in PANELS.items():
            for name, (kind, text, metavar) in table.items() if table in tables else ():
                flag = FLAGS.get(name, "--" + name.replace("_", "-"))
                option = typer.Option(
                    flag, help=text, rich_help_panel=panel, metavar=metavar, autocompletion=complete(name)
                )
                annotation = Annotated[kind | None, option]
                parameters.append(
                    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
                )
        vars(command)["__signature__"] = signature.replace(parameters=parameters)
        return command

    return add


def heard(command: Callable) -> Callable:
    """Give a command that works for long the flags `--quiet` and `--log-file`."""
    signature: Any = inspect.signature(command)
    more = {"quiet": (Quiet, False), "log_file": (LogFile, None)}

    @wraps(command)
    def run(*args: Any, quiet: bool = False, log_file: Path | None = None, **given: Any) -> Any:
        with reporting(quiet, log_file):
            return command(*args, **given)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in more.items()
    ]
    vars(run)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), *added])
    return run
