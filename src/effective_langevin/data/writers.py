"""Files out: a `TimeSeries` in the formats that `read` takes back."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._core import checks, files
from .._core.errors import ArgumentError, DataError
from .labelled import on_one_axis, to_xarray
from .series import TimeSeries


def check_target(path: Path, overwrite: bool = False) -> None:
    """Refuse a file that could not be written, before there is anything to write."""
    checks.one_of("out", path.suffix.lower(), WRITERS)
    if not path.parent.is_dir():
        raise ArgumentError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    if path.exists() and not overwrite:
        raise ArgumentError(f"{path} exists already. Choose another --out, or pass --overwrite.")


def write(series: TimeSeries, path: Path, *, origin: str | None = None) -> None:
    """Write a series in the format of the suffix: nc, zarr, h5, npz, csv or parquet; the file appears once complete.

    NetCDF and Zarr carry CF attributes and, with an `origin`, dates instead of numbers. Gaps are NaN.
    """
    check_target(path, overwrite=True)
    writer = WRITERS[path.suffix.lower()]
    if writer not in (_write_netcdf, _write_zarr):
        checks.not_given("origin", origin, f"dates are written to nc and zarr, not to {path.suffix}.")
    try:
        with files.replaced(path) as temporary:
            writer(series, temporary, origin)
    except OSError as error:
        raise ArgumentError(f"Cannot write {path}: {error.strerror or error}.") from error


def _dataset(series: TimeSeries, origin: str | None) -> Any:
    """One variable per name, or one for all where a name cannot be that of a variable in a file."""
    slashed = any("/" in name for name in series.names)
    labelled = to_xarray(series, dataset=not slashed, origin=origin)
    return labelled.to_dataset(name="state") if slashed else labelled


def _write_netcdf(series: TimeSeries, path: Path, origin: str | None) -> None:
    _dataset(series, origin).to_netcdf(path, engine="h5netcdf")


def _write_zarr(series: TimeSeries, path: Path, origin: str | None) -> None:
    from .readers.extras import needs

    needs("zarr", "zarr", path)
    _dataset(series, origin).to_zarr(path, consolidated=False)


def _arrays(series: TimeSeries) -> dict[str, Any]:
    values, times, starts = on_one_axis(series)
    if starts is not None:
        raise DataError("The records begin too far apart for one axis of time. Write nc or zarr.")
    labels: dict[str, Any] = {"variables": list(series.names), "units": list(series.units)}
    if any(series.periods):
        labels["angle_periods"] = [np.nan if period is None else period for period in series.periods]
    return {"x": values, "time": times, "dt": series.dt, "dt_unit": series.time_unit, **labels}


def _write_npz(series: TimeSeries, path: Path, origin: str | None) -> None:
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **_arrays(series))


def _write_hdf5(series: TimeSeries, path: Path, origin: str | None) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, value in _arrays(series).items():
            file[name] = value


def _columns(series: TimeSeries) -> dict[str, np.ndarray]:
    """Member, time and variables, row by row; rows that hold no sample are left out."""
    arrays = _arrays(series)
    members, length, width = arrays["x"].shape
    rows = arrays["x"].reshape(-1, width)
    there = ~np.isnan(rows).all(axis=1)
    index = {"member": np.repeat(np.arange(members), length), "time": np.tile(arrays["time"], members)}
    return {name: column[there] for name, column in {**index, **dict(zip(series.names, rows.T))}.items()}


def _write_csv(series: TimeSeries, path: Path, origin: str | None) -> None:
    columns, units = _columns(series), {"time": series.time_unit, **dict(zip(series.names, series.units))}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(f"{name} [{units[name]}]" if units.get(name) else name for name in columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values())))


def _write_parquet(series: TimeSeries, path: Path, origin: str | None) -> None:
    from .readers.extras import needs

    pandas = needs("pandas", "parquet", path)
    needs("pyarrow", "parquet", path)
    frame = pandas.DataFrame(_columns(series))
    frame.attrs["units"] = {"time": series.time_unit, **dict(zip(series.names, series.units))}
    frame.to_parquet(path)


WRITERS: dict[str, Callable[[TimeSeries, Path, str | None], None]] = {
    ".nc": _write_netcdf,
    ".zarr": _write_zarr,
    ".h5": _write_hdf5,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
