"""Files and labelled arrays in: `read` makes a `TimeSeries` of whatever holds the data."""

import glob
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from ..series import Periods, TimeSeries
from .arrays import from_array, from_mapping, read_hdf5, read_numpy
from .records import ReadOptions, Record, assemble
from .tables import from_dataframe, read_parquet, read_text
from .xarray import from_xarray, read_netcdf, read_zarr

__all__ = ["read"]

FORMATS: dict[str, Callable[[Path, ReadOptions], list[Record]]] = {
    **dict.fromkeys((".nc", ".nc4", ".cdf"), read_netcdf),
    ".zarr": read_zarr,
    **dict.fromkeys((".h5", ".hdf5"), read_hdf5),
    **dict.fromkeys((".npz", ".npy"), read_numpy),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat"), read_text),
    **dict.fromkeys((".parquet", ".pq"), read_parquet),
}


def read(
    source: Any,
    *,
    variables: str | Sequence[str] | None = None,
    dt: float | None = None,
    time: Any = None,
    member: str | None = None,
    resample: bool | float | None = None,
    join: bool = False,
    names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    time_unit: str | None = None,
    periods: Periods | None = None,
) -> TimeSeries:
    """Make a `TimeSeries` of a file, several files, or labelled data in memory.

    source: a path or pattern ("run_*.nc") of NetCDF, Zarr, HDF5, .npz, .npy, text (.csv, .tsv, .txt, .dat) or Parquet
        files; a DataArray, Dataset, DataFrame, dictionary of arrays or array; or a list of these. Each file and each
        entry of a list is a record of its own: no lag crosses to the next. With `join` they make one, ordered in time.
    variables: which variables, in this order. Default: all numbers that run along time, in the order of the file; HDF5
        and Zarr keep no order, so theirs is alphabetical.
    dt: the sampling interval. Needed only where there is no time coordinate, and refused where it contradicts one.
    time: the name of the time coordinate, the stamps themselves, or False to disregard the one there is. Default: the
        dimension, column, key or index called time, t, date, datetime or timestamp, or made of dates.
    member: the dimension or column that tells records apart. Default: the one called member, ensemble or realization
        (columns: also trajectory; dimensions: also number).
    resample: True, or a step, to interpolate linearly onto a uniform grid. This smooths: short lags then show straight
        lines, so choose no step shorter than the typical one. Intervals beyond three typical steps stay gaps.
    names, units, time_unit: labels that replace those found; times are converted to `time_unit`.
    periods: which variables are angles: a list of their periods, None on a line, or a dictionary of periods by name.

    Stamps must be uniform to a twentieth of a step; whole ones may be missing, they become gaps counted in `dropped`.
    Dates are counted from 1970-01-01 in the unit noted in the file, or the largest that one step fills. Stamps that
    keep their place in the month count as uniform in months, whatever the 28 to 31 days between, or in years.
    """
    options = ReadOptions(variables, dt, time, member, resample, join, names, units, time_unit, periods)
    return assemble(_records(source, options), options)


def _records(source: Any, options: ReadOptions, number: str = "") -> list[Record]:
    """The records of one source, by its kind; `number` tells the entries of a list apart in messages."""
    if isinstance(source, str | os.PathLike):
        return [record for path in _paths(source) for record in _reader(path)(path, options)]
    if _is_labelled(source):
        return from_xarray(source, f"the {type(source).__name__}{number}", options)
    if _is_frame(source):
        return from_dataframe(source, f"the {type(source).__name__}{number}", options)
    if isinstance(source, Mapping):
        arrays = {str(k): v if hasattr(v, "dtype") else np.asarray(v) for k, v in source.items()}
        return from_mapping(arrays, f"the dictionary{number}", options)
    if isinstance(source, list | tuple) and len(source) and all(_is_source(entry) for entry in source):
        return [record for i, entry in enumerate(source) for record in _records(entry, options, f" {i}")]
    if isinstance(source, TimeSeries) or not (hasattr(source, "__iter__") or hasattr(source, "__array__")):
        checks.instance_of("source", source, (Path, np.ndarray, list), "Or an xarray or pandas object.")
    return from_array(source, f"the array{number}", options)


def _is_source(entry: Any) -> bool:
    """Whether an entry of a list is a source of its own rather than a row of numbers."""
    if isinstance(entry, str | os.PathLike | Mapping):
        return True
    return _is_labelled(entry) or _is_frame(entry) or np.ndim(entry) == 2


def _is_labelled(source: Any) -> bool:
    """Whether this is an xarray object; who has one has imported xarray already."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(source, xarray.Dataset | xarray.DataArray)


def _is_frame(source: Any) -> bool:
    """Whether this is a pandas object; who has one has imported pandas already."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame | pandas.Series)


def _paths(source: str | os.PathLike) -> list[Path]:
    """The file, or the files that match the pattern, in alphabetical order."""
    path = Path(source)
    if path.exists():
        return [path]
    matches = [Path(p) for p in sorted(glob.glob(str(source), recursive=True))]
    if not matches:
        raise DataError(
            f"No file matches {source}." if glob.has_magic(str(source)) else f"There is no file or folder at {source}."
        )
    return matches


def _reader(path: Path) -> Callable[[Path, ReadOptions], list[Record]]:
    """The reader for a suffix."""
    reader = FORMATS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"The format of {path} cannot be told from its suffix. Known are: {', '.join(FORMATS)}.")
    if path.is_dir() and reader is not read_zarr:
        raise DataError(
            f"{path} is a folder; give the files in it, for example with the pattern {path}/*{path.suffix}."
        )
    return reader
