"""Write a `TimeSeries` to a file that `read` takes back."""

from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks, files
from ..._core.errors import ArgumentError, DataError
from ..series import TimeSeries
from .records import needs
from .xarray import on_one_axis, to_xarray

_SUFFIXES = (".nc", ".zarr", ".h5", ".npz", ".csv", ".parquet")


def check_target(path: Path, overwrite: bool = False) -> None:
    """Refuse a file that could not be written, before there is anything to write."""
    checks.one_of("out", path.suffix.lower(), _SUFFIXES)
    if not path.parent.is_dir():
        raise ArgumentError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    if path.exists() and not overwrite:
        raise ArgumentError(f"{path} exists already. Choose another --out, or pass --overwrite.")


def write(series: TimeSeries, path: Path, *, origin: str | None = None) -> None:
    """Write a series in the format of the suffix: nc, zarr, h5, npz, csv or parquet; the file appears once complete.

    NetCDF and Zarr carry CF attributes and, with an `origin`, dates instead of numbers. Gaps are NaN.
    """
    check_target(path, overwrite=True)
    suffix = path.suffix.lower()
    if suffix not in (".nc", ".zarr"):
        checks.not_given("origin", origin, f"dates are written to nc and zarr, not to {path.suffix}.")
    try:
        with files.replaced(path) as temporary:
            if suffix in (".nc", ".zarr"):
                _write_dataset(series, temporary, origin)
            elif suffix in (".h5", ".npz"):
                _write_arrays(series, temporary)
            else:
                _write_table(series, temporary)
    except OSError as error:
        raise ArgumentError(f"Cannot write {path}: {error.strerror or error}.") from error


def _write_dataset(series: TimeSeries, path: Path, origin: str | None) -> None:
    """Write one variable per name, or one for all where a name cannot be that of a variable in a file."""
    slashed = any("/" in name for name in series.names)
    labelled = to_xarray(series, dataset=not slashed, origin=origin)
    dataset = labelled.to_dataset(name="state") if slashed else labelled
    if path.suffix == ".nc":
        dataset.to_netcdf(path, engine="h5netcdf")
    else:
        needs("zarr", "zarr", path)
        dataset.to_zarr(path, consolidated=False)


def _write_arrays(series: TimeSeries, path: Path) -> None:
    values, times = _on_common_axis(series)
    arrays: dict[str, Any] = {"x": values, "time": times, "dt": series.dt, "dt_unit": series.time_unit}
    arrays |= {"variables": list(series.names), "units": list(series.units)}
    if any(series.periods):
        arrays["angle_periods"] = [np.nan if period is None else period for period in series.periods]
    if path.suffix == ".npz":
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        return
    import h5py

    with h5py.File(path, "w") as file:
        for name, value in arrays.items():
            file[name] = value


def _write_table(series: TimeSeries, path: Path) -> None:
    """Write member, time and variables, one row per sample."""
    import pandas as pd

    values, times = _on_common_axis(series)
    index = pd.MultiIndex.from_product([range(len(values)), times], names=["member", "time"])
    frame = pd.DataFrame(values.reshape(len(index), -1), index, list(series.names)).dropna(how="all").reset_index()
    units = {"time": series.time_unit, **dict(zip(series.names, series.units))}
    if path.suffix == ".csv":
        labels = [f"{name} [{units[name]}]" if units.get(name) else name for name in frame.columns]
        frame.to_csv(path, header=labels, index=False)
        return
    needs("pyarrow", "parquet", path)
    frame.attrs["units"] = units
    frame.to_parquet(path)


def _on_common_axis(series: TimeSeries) -> tuple[np.ndarray, np.ndarray]:
    values, times, starts = on_one_axis(series)
    if starts is not None:
        raise DataError("The records begin too far apart for one axis of time. Write nc or zarr.")
    return values, times
