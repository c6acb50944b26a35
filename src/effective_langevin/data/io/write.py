"""Write a `TimeSeries` to a file that `read` takes back."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..._core import checks, files
from ..._core.errors import ArgumentError, DataError
from ..series import TimeSeries
from .records import needs
from .xarray import to_xarray

_FAILURES = (OSError, RuntimeError)  # h5py turns a full disk into a RuntimeError when it closes a file
_SUFFIXES = (".nc", ".zarr", ".h5", ".npz", ".csv", ".parquet")


def check_target(path: Path, overwrite: bool = False, suffixes: Sequence[str] = _SUFFIXES) -> None:
    """Refuse a file that could not be written, before there is anything to write."""
    checks.one_of("out", path.suffix.lower(), suffixes)
    if not path.parent.is_dir():
        raise ArgumentError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    if path.exists() and not overwrite:
        raise ArgumentError(f"{path} exists already. Choose another --out, or pass --overwrite.")


def write(series: TimeSeries, path: Path, *, origin: str | None = None) -> None:
    """Write a series in the format of the suffix: nc, zarr, h5, npz, csv or parquet; the file appears once complete.

    NetCDF and Zarr carry CF attributes and hold fields on their grid. Times are dates if the series was read from
    dates, or with an `origin`. Gaps are NaN.
    """
    check_target(path, overwrite=True)
    suffix = path.suffix.lower()
    labelled = suffix in (".nc", ".zarr")
    # A name with a slash, or of dots, cannot be that of a variable in a file: such names become labels of one array.
    one_array = suffix in (".h5", ".npz") or (labelled and any("/" in n or not n.strip(".") for n in series.names))
    data = to_xarray(series, dataset=not one_array, origin=origin, fields=labelled)
    if not labelled and "start" in data.coords:
        raise DataError("The records begin too far apart for one axis of time. Write nc or zarr.")
    way = _write_labelled if labelled else _write_arrays if one_array else _write_table
    _replace(path, partial(way, series, data))


def write_forecast(forecast: Any, path: Path) -> None:
    """Write a forecast to nc or zarr, one variable (start, member, lead) per name; the file appears once complete."""
    one_array = any("/" in name for name in forecast.names)
    _replace(path, partial(_write_labelled, forecast, forecast.to_xarray(dataset=not one_array)))


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file whole or not at all; say why it could not be written."""
    if path.suffix.lower() == ".zarr":
        needs("zarr", "zarr", path)
    try:
        with files.replaced(path) as temporary:
            write(temporary)
    except _FAILURES as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ArgumentError(f"Cannot write {path}: {reason}.") from error


def _write_labelled(_: Any, data: Any, path: Path) -> None:
    if path.suffix.lower() == ".nc":
        files.write_netcdf(data, path)
    else:
        data.to_zarr(path, consolidated=False)


def _write_arrays(series: TimeSeries, data: Any, path: Path) -> None:
    times = data.time.values
    if times.dtype.kind in "MO":
        times = [str(time).replace(" ", "T") for time in times]
    arrays: dict[str, Any] = {"x": data.values, "time": times, "dt": series.dt, "dt_unit": series.time_unit}
    arrays |= {"variables": list(series.names), "units": list(series.units)}
    if any(series.periods):
        arrays["angle_periods"] = [np.nan if period is None else period for period in series.periods]
    if path.suffix == ".npz":
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        return
    import h5py

    def fill(target: BinaryIO) -> None:
        with h5py.File(target, "w") as file:
            file.update(arrays)

    files.write_by_memory(path, fill)


def _write_table(series: TimeSeries, data: Any, path: Path) -> None:
    """Write member, time and variables, one row per sample."""
    frame = data.to_dataframe(dim_order=["member", "time"]).dropna(how="all").reset_index()
    numbers = data["time"].dtype.kind not in "MO"
    units = {"time": series.time_unit if numbers else "", **dict(zip(series.names, series.units))}
    if path.suffix == ".csv":
        labels = [f"{name} [{units[name]}]" if units.get(name) else name for name in frame.columns]
        frame.to_csv(path, header=labels, index=False)
        return
    needs("pyarrow", "parquet", path)
    frame.attrs["units"] = units
    frame.to_parquet(path)
