"""Labelled arrays, both ways: xarray objects in memory, NetCDF files and Zarr stores."""

import warnings
from collections.abc import Hashable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks, timeunits
from ..._core.errors import DataError, EffectiveLangevinError
from ..series import TimeSeries
from .clock import Stamps, is_stamp_like
from .records import ReadOptions, Record, is_time_name, needs

MEMBER_DIMENSIONS = ("member", "ensemble", "realization", "number")


# The first bytes of a file, the library that reads such files, and the package that brings it.
_ENGINES = {
    b"\x89HDF": ("h5netcdf", "h5netcdf"),
    b"CDF\x01": ("scipy", "scipy"),
    b"CDF\x02": ("scipy", "scipy"),
    b"CDF\x05": ("netcdf4", "netCDF4"),
}


def read_netcdf(path: Path, options: ReadOptions) -> list[Record]:
    """A NetCDF file, CF conventions applied."""
    with path.open("rb") as file:
        engine, module = _ENGINES.get(file.read(4), (None, None))
    if engine is None or module is None:
        raise DataError(f"{path} is not a readable NetCDF file (damaged, truncated or of another kind).")
    needs(module, "", path)
    return _opened(path, options, "NetCDF file", engine)


def read_zarr(path: Path, options: ReadOptions) -> list[Record]:
    """A Zarr store, CF conventions applied."""
    needs("zarr", "zarr", path)
    return _opened(path, options, "Zarr store", engine="zarr")


def _opened(path: Path, options: ReadOptions, kind: str, engine: str) -> list[Record]:
    import xarray as xr

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Failed to open Zarr store with consolidated metadata")
            raw = xr.open_dataset(path, engine=engine, decode_times=False)
        with raw:
            if engine == "zarr":
                raw = raw[sorted(raw.data_vars, key=str)]  # a folder lists its variables in any order
            return from_dataset(_with_dates(raw), str(path), options)
    except EffectiveLangevinError:
        raise
    except Exception as error:  # every backend raises its own kind, on opening or when the numbers are read
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"{path} is not a readable {kind} (damaged, truncated or of another kind): {reason}") from error


def _with_dates(raw: Any) -> Any:
    """Coordinates in CF time decoded; a unit or calendar that cannot be decoded leaves plain numbers."""
    import xarray as xr

    for name in list(raw.coords):
        if " since " in str(raw[name].attrs.get("units", "")):
            try:
                raw[name] = xr.decode_cf(raw[[name]].reset_coords())[name]
            except (ValueError, OverflowError, ImportError):
                continue
    return raw


def from_xarray(source: Any, where: str, options: ReadOptions) -> list[Record]:
    """Records of a Dataset or DataArray in memory."""
    import xarray as xr

    if isinstance(source, xr.DataArray):
        source = source.to_dataset(name=source.name if source.name is not None else "x")
    return from_dataset(source, where, options)


def from_dataset(data: Any, where: str, options: ReadOptions) -> list[Record]:
    """Every variable along the time dimension; other dimensions than time and member become variables of their own."""
    time = _time_dimension(data, where, options)
    along = [str(n) for n in data.data_vars if time in data[n].dims and _is_plain(data, n)]
    picked = along
    if options.variables is not None and set(options.variables) <= set(along):
        picked = list(options.variables)
    if not picked:
        raise DataError(f"{where} has no variable of numbers along its dimension {time!r}.")
    member = _member_dimension(data, picked, where, options)
    blocks = [_flattened(data[n], time, member, int(data.sizes[member]) if member else 1) for n in picked]
    values = np.concatenate([b for b, _ in blocks], axis=-1)
    labels = [label for _, block in blocks for label in block]
    if options.variables is not None and picked is along:
        known = [name for name, _, _ in labels]
        columns = [known.index(v) for v in checks.known_names("variables", options.variables, known, where)]
        values, labels = values[..., columns], [labels[c] for c in columns]
    names, units, periods = zip(*labels)
    stamps = _stamps(data, time, options)
    starts = _starts(data, member)
    places = ["" if member is None else f" ({member} {v})" for v in (data[member].values if member else [0])]
    return [
        _unpadded(Record(block, where + place, names, units, periods, _shifted(stamps, start)), member is not None)
        for block, place, start in zip(values, places, starts)
    ]


def _time_dimension(data: Any, where: str, options: ReadOptions) -> str:
    """The dimension of time: the one asked for, or one called so, marked so or with dates, or the only one."""
    if isinstance(options.time, str):
        checks.known_names("time", options.time, [*data.dims, *data.coords], where)
        return str(data[options.time].dims[0]) if options.time in data.coords else options.time
    tests = (
        is_time_name,
        lambda d: d in data.coords and (data[d].dtype.kind == "M" or _mark(data[d], "axis") == "T"),
        lambda d: d in data.coords and _mark(data[d], "standard_name") == "time",
        lambda d: len(data.dims) == 1,
    )
    for test in tests:
        found = [d for d in data.dims if test(d)]
        if len(found) == 1:
            return str(found[0])
    dims = ", ".join(f"{d} ({n})" for d, n in data.sizes.items())
    raise DataError(f"It is not clear which dimension of {where} is time, among {dims or 'none'}. Pass time=NAME.")


def _mark(coordinate: Any, attribute: str) -> str:
    return str(coordinate.attrs.get(attribute, ""))


def _is_plain(data: Any, name: Hashable) -> bool:
    """Numbers that are not the bounds of a coordinate."""
    bounds = {v.attrs.get("bounds") or v.encoding.get("bounds") for v in data.variables.values()}
    return data[name].dtype.kind in "fiub" and name not in bounds and not str(name).endswith(("_bnds", "_bounds"))


def _member_dimension(data: Any, picked: Sequence[str], where: str, options: ReadOptions) -> str | None:
    dims = {d for n in picked for d in data[n].dims}
    if options.member is not None:
        return checks.known_names("member", options.member, sorted(str(d) for d in dims), where)[0]
    return next((str(d) for d in data.dims if d in dims and str(d).lower() in MEMBER_DIMENSIONS), None)


def _flattened(array: Any, time: str, member: str | None, members: int) -> tuple[np.ndarray, list[tuple]]:
    """(member, time, var) values of one variable with the name, unit and period of each column.

    Grid points that are missing at all times, such as land in an ocean field, are left out.
    """
    rest = [d for d in array.dims if d not in (time, member)]
    if member in array.dims:
        values = array.transpose(member, time, *rest).values
    else:
        values = np.broadcast_to(
            array.transpose(time, *rest).values, (members, *(array.sizes[d] for d in (time, *rest)))
        )
    values = values.reshape(*values.shape[:2], -1).astype(float)
    names = _names(array, rest)
    units = [str(u) for u in _notes(array, rest, "units", "")]
    periods = [float(p) if np.isfinite(p) else None for p in _notes(array, rest, "angle_period", np.nan)]
    labels = list(zip(names, units, periods))
    if rest and np.isnan(values).any():
        there = np.flatnonzero(~np.isnan(values).all(axis=(0, 1)))
        return values[..., there], [labels[i] for i in there]
    return values, labels


def _notes(array: Any, rest: Sequence[Hashable], name: str, default: Any) -> np.ndarray:
    """What is noted on each column: a coordinate along the only other dimension, or one attribute for all."""
    if len(rest) == 1 and name in array.coords and array[name].dims == (rest[0],):
        return array[name].values
    return np.full(int(np.prod([array.sizes[d] for d in rest])), array.attrs.get(name, default))


def _names(array: Any, rest: Sequence[Hashable]) -> list[str]:
    """One name per column: T, or the labels of its only other dimension, or T(lat=10, lon=20)."""
    if not rest:
        return [str(array.name)]
    labels = [array[d].values if d in array.coords else np.arange(array.sizes[d]) for d in rest]
    if len(rest) == 1 and labels[0].dtype.kind in "UOT":
        return [str(v) for v in labels[0]]
    grids = np.meshgrid(*labels, indexing="ij")
    points = zip(*(g.ravel() for g in grids))
    return [f"{array.name}(" + ", ".join(f"{d}={v}" for d, v in zip(rest, point)) + ")" for point in points]


def _stamps(data: Any, time: str, options: ReadOptions) -> Stamps | None:
    if is_stamp_like(options.time):
        return Stamps(np.asarray(options.time))
    name = options.time if isinstance(options.time, str) else time
    if name not in data.coords:
        return None
    unit = data[name].attrs.get("units") or data[name].encoding.get("units") or ""
    return Stamps(data[name].values, name, str(unit))


def _starts(data: Any, member: str | None) -> np.ndarray:
    """Where each member begins, if the file notes it (`TimeSeries.to_xarray` does)."""
    if member is not None and "start" in data.coords and data["start"].dims == (member,):
        return np.asarray(data["start"].values, dtype=float)
    return np.zeros(int(data.sizes[member]) if member else 1)


def _shifted(stamps: Stamps | None, start: float) -> Stamps | None:
    return stamps if stamps is None or not start else Stamps(stamps.values + start, stamps.name, stamps.unit)


def _unpadded(record: Record, is_member: bool) -> Record:
    """Rows without any value before and after a member fill up the array and are no gaps; with stamps they can go."""
    there = np.flatnonzero(~np.isnan(record.values).all(axis=1))
    if not is_member or record.stamps is None or not len(there):
        return record
    return record.rows(slice(there[0], there[-1] + 1))


# The other way --------------------------------------------------------------------------------------------------------


def to_xarray(series: TimeSeries, *, dataset: bool = False, origin: str | None = None) -> Any:
    """A DataArray (member, time, variable), or with `dataset` a Dataset of one (member, time) variable per name.

    A member is a record; gaps and the ends of shorter records are NaN. Where records begin at times too far apart for
    one axis, `time` counts from the start of each and the coordinate `start` says when that was. `origin` is the date
    that time zero stands for ("1970-01-01" for a series read from dates): times are then written as dates. What this
    returns, `effective_langevin.read` takes back.
    """
    import xarray as xr

    values, times, starts = on_one_axis(series)
    if starts is not None and origin is not None:
        raise DataError("The records begin too far apart for one axis of dates. Leave `origin` out.")
    coords: dict[str, Any] = {
        "member": ("member", np.arange(len(values)), {"standard_name": "realization", "long_name": "member"}),
        "time": ("time", *_time_coordinate(times, series.time_unit, origin)),
    }
    if starts is not None:
        coords["start"] = ("member", starts, {"long_name": "time at which the member begins"})
    attrs = {"source": f"effective-langevin {version('effective-langevin')}", "Conventions": "CF-1.11"}
    if dataset:
        columns = zip(series.names, series.units, series.periods, np.moveaxis(values, -1, 0))
        data = {
            name: (("member", "time"), v, {"long_name": name, **_units(unit), **_angle(period)})
            for name, unit, period, v in columns
        }
        return xr.Dataset(data, coords, attrs)
    coords["variable"] = ("variable", list(series.names), {"long_name": "variable"})
    coords["units"] = ("variable", list(series.units), {"long_name": "units of the variable"})
    if any(series.periods):
        periods = [np.nan if period is None else period for period in series.periods]
        coords["angle_period"] = ("variable", periods, {"long_name": "period of an angle, NaN otherwise"})
    shared = _units(series.units[0]) if len(set(series.units)) == 1 else {}
    return xr.DataArray(
        values, coords, ("member", "time", "variable"), "state", {"long_name": "state", **shared, **attrs}
    )


def on_one_axis(series: TimeSeries) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """(member, time, var) values, the time axis, and the start of each member where there is no common axis."""
    numbers = {record: i for i, record in enumerate(dict.fromkeys(series.records))}
    members = [numbers[r] for r in series.records]
    first = np.full(len(numbers), np.inf)
    np.minimum.at(first, members, series.starts)
    rows = np.rint((np.array(series.starts) - first[members]) / series.dt).astype(int)
    lengths = np.zeros(len(numbers), int)
    np.maximum.at(lengths, members, [row + len(s) for row, s in zip(rows, series.segments)])
    shift = (first - first.min()) / series.dt
    whole = np.rint(shift).astype(int)
    common = np.abs(shift - whole).max() < 1e-3 and (whole + lengths).max() <= 2 * lengths.max()
    if common:
        rows, lengths = rows + whole[members], lengths + whole
    values = np.full((len(numbers), lengths.max(), series.dimension), np.nan)
    for member, row, segment in zip(members, rows, series.segments):
        values[member, row : row + len(segment)] = segment
    start = first.min() if common else 0.0
    return values, start + series.dt * np.arange(lengths.max()), None if common else first


def _time_coordinate(times: np.ndarray, unit: str, origin: str | None) -> tuple[np.ndarray, dict[str, str]]:
    """Numbers with their unit, or dates counted from `origin`."""
    attrs = {"long_name": "time", "axis": "T"}
    if origin is None:
        return times, {**attrs, **_units(unit)}
    name = checks.one_of("time_unit", timeunits.canonical(unit) or unit, timeunits.SECONDS)
    try:
        np.datetime64(origin)
    except ValueError:
        raise checks.refused("origin", "a date such as 1970-01-01", origin) from None
    attrs["standard_name"] = "time"
    if name in timeunits.CALENDAR:
        months = np.rint(times * (12 if name == "year" else 1)).astype("timedelta64[M]")
        return (np.datetime64(origin, "M") + months).astype("datetime64[us]"), attrs
    ticks = np.rint(times * (timeunits.SECONDS[name] * 1e6)).astype("timedelta64[us]")
    return np.datetime64(origin, "us") + ticks, attrs


def _units(unit: str) -> dict[str, str]:
    return {"units": unit} if unit else {}


def _angle(period: float | None) -> dict[str, float]:
    return {} if period is None else {"angle_period": period}
