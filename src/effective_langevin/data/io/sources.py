"""Which reader for which source."""

import glob
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..._core import checks
from ..._core.errors import DataError, EffectiveLangevinError
from ..series import TimeSeries, is_labelled
from .arrays import from_array, from_mapping, read_hdf5, read_numpy
from .records import ReadOptions, Record
from .tables import as_pandas, from_dataframe, read_parquet, read_text
from .xarray import from_xarray, read_netcdf, read_zarr

Reader = Callable[[Path, ReadOptions], list[Record]]
FORMATS: dict[str, tuple[str, Reader]] = {
    **dict.fromkeys((".nc", ".nc4", ".cdf"), ("NetCDF file", read_netcdf)),
    ".zarr": ("Zarr store", read_zarr),
    **dict.fromkeys((".h5", ".hdf5"), ("HDF5 file", read_hdf5)),
    **dict.fromkeys((".npz", ".npy"), ("numpy file", read_numpy)),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat"), ("text table", read_text)),
    **dict.fromkeys((".parquet", ".pq"), ("Parquet file", read_parquet)),
}
_LABELLED = (xr.Dataset, xr.DataArray, pd.DataFrame, pd.Series)


def read_records(source: Any, options: ReadOptions, number: str = "") -> list[Record]:
    """Read the records of one source; `number` tells the entries of a list apart in messages."""
    if isinstance(source, str | os.PathLike):
        matches = _match(source)
        if not matches:
            fault = "No file matches" if glob.has_magic(str(source)) else "There is no file or folder at"
            raise DataError(f"{fault} {source}.")
        return [record for path in matches for record in _read_file(path, options)]
    if isinstance(source, _LABELLED):
        convert = from_xarray if isinstance(source, xr.Dataset | xr.DataArray) else from_dataframe
        return convert(source, f"the {type(source).__name__}{number}", options)
    if is_labelled(source):
        return from_dataframe(as_pandas(source), f"the {type(source).__name__}{number}", options)
    if isinstance(source, Mapping):
        arrays = {str(k): v if hasattr(v, "dtype") else np.asarray(v) for k, v in source.items()}
        return from_mapping(arrays, f"the dictionary{number}", options)
    if isinstance(source, list | tuple) and len(source):
        kinds = (str, os.PathLike, Mapping)
        if all(isinstance(e, kinds) or is_labelled(e) or np.ndim(e) == 2 for e in source):  # otherwise rows of numbers
            return [record for i, entry in enumerate(source) for record in read_records(entry, options, f" {i}")]
    if isinstance(source, TimeSeries) or not (hasattr(source, "__iter__") or hasattr(source, "__array__")):
        checks.instance_of("source", source, (Path, np.ndarray, list), "Or an xarray or pandas object.")
    return from_array(source, f"the array{number}", options)


def describe_source(source: Any) -> dict[str, Any]:
    """Return the names of the files of a source and the day of their last change; nothing for data in memory."""
    entries = source if isinstance(source, list | tuple) else [source]
    files = [path for entry in entries if isinstance(entry, str | os.PathLike) for path in _match(entry)]
    if not files:
        return {}
    newest = datetime.fromtimestamp(max(path.stat().st_mtime for path in files), UTC)
    return {"files": [path.name for path in files], "modified": newest.date().isoformat()}


def _match(source: str | os.PathLike) -> list[Path]:
    """Return a file, or those that match a pattern, in alphabetical order."""
    found = [str(source)] if os.path.exists(source) else sorted(glob.glob(str(source), recursive=True))
    return [Path(path) for path in found]


def _read_file(path: Path, options: ReadOptions) -> list[Record]:
    """Read one file: the border at which every error of a library becomes one sentence."""
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"The format of {path} cannot be told from its suffix. Known are: {', '.join(FORMATS)}.")
    kind, reader = FORMATS[path.suffix.lower()]
    if path.is_dir() and reader is not read_zarr:
        raise DataError(f"{path} is a folder; name the files in it, for example {path}/*{path.suffix}.")
    if not (path.is_dir() or path.is_file()):
        raise DataError(f"{path} is a pipe or a device, not a file. Write its contents into a file first.")
    if options.chunks is not None and reader in (read_text, read_parquet):
        raise DataError(f"{path} cannot be read by blocks: `chunks` is for Zarr, NetCDF, HDF5 and .npy files.")
    try:
        return reader(path, options)
    except EffectiveLangevinError:
        raise
    except Exception as error:  # the libraries raise errors of many kinds for damaged files, each its own
        reason = (str(error).strip() or type(error).__name__).split("\n")[0].rstrip(".")
        if isinstance(error, PermissionError | MemoryError):
            raise DataError(f"{path} cannot be read: {reason}.") from error
        fault = f"{path} is not a readable {kind} (damaged, truncated or of another kind)"
        raise DataError(f"{fault}: {reason}.") from error
