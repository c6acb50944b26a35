"""The options that several commands share, with their words of help."""

from pathlib import Path
from typing import Annotated

import typer

_READING, _TRANSFORMS, _MODEL = (
    "Reading the file",
    "Before the fit (in this order; another: preprocess in TOML)",
    "Model",
)


def _option(text: str, panel: str, *names: str, metavar: str | None = None):
    return typer.Option(*names, help=text, rich_help_panel=panel, metavar=metavar)


DATA_HELP = "File(s) or pattern: nc, zarr, h5, npz, npy, csv, parquet."
Data = Annotated[list[str], typer.Argument(help=DATA_HELP)]
OptionalData = Annotated[list[str] | None, typer.Argument(help=DATA_HELP)]
Run = Annotated[Path, typer.Argument(help="Run folder, or a model file.")]
Out = Annotated[Path | None, typer.Option(help="Run folder to create. Default: langevin-NAME, numbered if taken.")]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers: same seed, same result.")]
OptionalSeed = Annotated[
    int | None, typer.Option(help="Seed of all random numbers: same seed, same result. [default: 0]")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Config = Annotated[Path | None, typer.Option(help="TOML file with the same keys; flags override it.")]
Force = Annotated[bool | None, typer.Option("--force", help="Fit a series that the diagnosis calls not stationary.")]
Settle = Annotated[bool | None, typer.Option("--settle", help="Put the variances of the model right by simulating it.")]
Members = Annotated[int | None, typer.Option(help="Members to simulate.")]
Duration = Annotated[float | None, typer.Option(help="Time to simulate, in the unit of the series.")]

Variables = Annotated[str | None, _option("Variables to use, separated by commas.", _READING)]
Interval = Annotated[float | None, _option("Sampling interval, where the file has no time.", _READING)]
Time = Annotated[str | None, _option("Name of the time coordinate, where it has an unusual one.", _READING)]
Member = Annotated[str | None, _option("Dimension or column that tells records apart.", _READING)]
Resample = Annotated[float | None, _option("Interpolate irregular times to this interval.", _READING)]
Join = Annotated[bool | None, _option("Files continue one another in time.", _READING, "--join")]
TimeUnit = Annotated[str | None, _option("Unit of time to convert to, such as day.", _READING)]

LogOf = Annotated[str | None, _option("Take the logarithm of these (or: all).", _TRANSFORMS, "--log", metavar="A,B")]
BoxCoxOf = Annotated[
    str | None, _option("Make these more Gaussian (or: all).", _TRANSFORMS, "--box-cox", metavar="A,B")
]
Detrend = Annotated[bool | None, _option("Remove a linear trend.", _TRANSFORMS, "--detrend")]
Deseason = Annotated[str | None, _option("Remove the mean cycle.", _TRANSFORMS, metavar="PERIOD[:HARMONICS]")]
Periodic = Annotated[str | None, _option("Variables that are angles (or: all).", _TRANSFORMS, metavar="A,B[:PERIOD]")]
Components = Annotated[str | None, _option("Leading principal components.", _TRANSFORMS, "--pca", metavar="N|SHARE")]
Delay = Annotated[str | None, _option("Add N delayed copies, LAG steps apart.", _TRANSFORMS, metavar="N[:LAG]")]
Phase = Annotated[str | None, _option("Add cos and sin of the phase.", _TRANSFORMS, metavar="PERIOD")]

Score = Annotated[
    str | None,
    _option("kgmm, denoising or gaussian; with settings: kgmm:noise_level=0.05,cells=500.", _MODEL),
]
MobilityBy = Annotated[
    str | None,
    _option(
        "integrated-response, finite-volume, quadratic-variation, correlation-fit or log-correlation.",
        _MODEL,
        "--mobility",
    ),
]
SymmetryOf = Annotated[str | None, _option("translations or translations-and-reflections.", _MODEL, "--symmetry")]
