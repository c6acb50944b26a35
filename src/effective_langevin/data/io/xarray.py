"""Labelled arrays, both ways: xarray objects in memory, NetCDF files and Zarr stores."""

import inspect
import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from ..._core import checks, timeunits
from ..._core.errors import DataError
from ..fields import Field, find_fields, name_point
from ..preprocess.base import FittedTransform
from ..series import Label, TimeSeries
from .arrays import find_datasets
from .by_blocks import by_blocks, clock_of, dataset_rows, unit_of
from .dates import count_dates
from .records import ReadOptions, Record, is_time_name, needs
from .times import Stamps

NOTES = {"source": f"effective-langevin {version('effective-langevin')}", "Conventions": "CF-1.11"}  # of every file
UNFINISHED = "unfinished.npz"  # in a store that a simulation has not filled yet
_MEMBER_DIMENSIONS = ("member", "ensemble", "realization", "number")

_SPREAD_ROWS = 64
_LATITUDE = {"units": "degrees_north", "standard_name": "latitude", "long_name": "latitude"}
_LONGITUDE = {"units": "degrees_east", "standard_name": "longitude", "long_name": "longitude"}
_CF = {"lat": _LATITUDE, "latitude": _LATITUDE, "lon": _LONGITUDE, "longitude": _LONGITUDE}

# The first bytes of a file, the engine of xarray for such files, and the package that brings it.
_ENGINES = {
    b"\x89HDF": ("h5netcdf", "h5netcdf"),
    b"CDF\x01": ("scipy", "scipy"),
    b"CDF\x02": ("scipy", "scipy"),
    b"CDF\x05": ("netcdf4", "netCDF4"),
}


def read_netcdf(path: Path, options: ReadOptions) -> list[Record]:
    """Read a NetCDF file, with CF conventions."""
    if options.chunks is not None:  # the file stays open for as long as the series lives
        return from_xarray(open_labelled(path, by_blocks=True), str(path), options)
    with open_labelled(path) as data:
        return from_xarray(data, str(path), options)


def open_labelled(path: Path, by_blocks: bool = False) -> xr.Dataset:
    """Open a NetCDF file or a Zarr store; values are read where they are asked for."""
    if path.is_dir():
        needs("zarr", "zarr", path)
        return _open(path, "zarr")
    with path.open("rb") as file:
        engine, module = _ENGINES.get(file.read(4), ("", ""))
    if not engine:
        raise DataError(f"{path} is not a readable NetCDF file (damaged, truncated or of another kind).")
    needs(module, "", path)
    if engine == "h5netcdf":
        with h5py.File(path, "r") as file:
            find_datasets(file)
    return _open(path, engine, by_blocks)


def read_zarr(path: Path, options: ReadOptions) -> list[Record]:
    """Read a Zarr store, with CF conventions."""
    needs("zarr", "zarr", path)
    if (path / UNFINISHED).exists():
        raise DataError(f"{path} is not complete: its simulation was interrupted. The same call, or command, goes on.")
    with _open(path, "zarr", options.chunks is not None) as data:
        lost = [p.name for p in path.iterdir() if p.is_dir() and p.name not in data.variables and not _is_group(p)]
        if lost:
            raise DataError(f"{path} is damaged: its array {lost[0]!r} has no readable description.")
        data = data[sorted(data.data_vars, key=str)]  # a folder lists its variables in any order
        return from_xarray(data, str(path), options)


def _is_group(folder: Path) -> bool:
    """Tell whether a folder in a Zarr store is a group, not an array."""
    try:
        return (folder / ".zgroup").exists() or '"group"' in (folder / "zarr.json").read_text()
    except (OSError, UnicodeDecodeError):
        return folder.name.startswith((".", "__"))


def _open(path: Path, engine: Any, by_blocks: bool = False) -> xr.Dataset:
    """Open a dataset; times in a unit or calendar that cannot be decoded stay plain numbers.

    To be read by blocks, it is opened without an index, which would hold all times.
    """
    known = by_blocks and "create_default_indexes" in inspect.signature(xr.open_dataset).parameters
    how: dict[str, Any] = {"engine": engine, "cache": False} if by_blocks else {"engine": engine}
    how |= {"create_default_indexes": False} if known else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Failed to open Zarr store with consolidated metadata")
        try:
            return xr.open_dataset(path, decode_timedelta=False, **how)
        except (ValueError, OverflowError, ImportError):
            return xr.open_dataset(path, decode_times=False, **how)


def from_xarray(data: Any, where: str, options: ReadOptions) -> list[Record]:
    """Return every variable along time; dimensions other than time and member become variables."""
    if isinstance(data, xr.DataArray):
        data = data.to_dataset(name=data.name if data.name is not None else "x")
    time = _find_time_dimension(data, where, options)
    bounds = {v.attrs.get("bounds") or v.encoding.get("bounds") for v in data.variables.values()}
    numbers = [n for n, v in data.data_vars.items() if time in v.dims and v.dtype.kind in "fiub" and n not in bounds]
    along = [str(n) for n in numbers if not (str(n).endswith(("_bnds", "_bounds")) and data[n].shape[-1] == 2)]
    if options.variables is None:
        _refuse_twin_of_time(data, time, where)
    by_array = options.variables is not None and set(options.variables) <= set(along)
    picked = list(options.variables or ()) if by_array else along
    if not picked:
        raise DataError(f"{where} has no variable of numbers along its dimension {time!r}.")
    dims = [str(d) for d in data.dims if any(d in data[n].dims for n in picked)]
    member = next((d for d in dims if d.lower() in _MEMBER_DIMENSIONS), None)
    if options.member is not None:
        member = checks.known_names("member", options.member, sorted(dims), where)[0]
    if by_blocks(options, [data[n] for n in picked]):
        checks.not_given("variables", None if by_array else options.variables, "name arrays to read them by blocks.")
        return _records_by_blocks(data, picked, time, member, where, options)
    checks.fits_in_memory(8.0 * sum(data[n].size for n in picked), f"The variables of {where}")
    blocks = [_flatten(data[n], time, member, int(data.sizes[member]) if member else 1) for n in picked]
    values = np.concatenate([values for values, _ in blocks], axis=-1)
    whole = Record(values, where, [label for _, labels in blocks for label in labels])
    if options.variables is not None and not by_array:
        whole = whole.pick(options.variables)
    stamps, name = options.stamps, options.time if isinstance(options.time, str) else time
    if stamps is None and name in data.coords:
        stamps = Stamps(data[name].values, name, unit_of(data[name]))
    whole = replace(whole, stamps=stamps)
    return _split_members(whole, data, member) if member else [replace(whole, values=whole.values[0])]


def _records_by_blocks(
    data: xr.Dataset, picked: list[str], time: str, member: str | None, where: str, options: ReadOptions
) -> list[Record]:
    """Return a record per member whose values stay in the file."""
    name = options.time if isinstance(options.time, str) else time
    clock, stamps = None, None
    if name in data.coords and options.time is not False:
        clock, stamps = clock_of(data[name], where, options)
    # Land, which is missing at all times, is told by rows spread over all of them.
    some = data.isel({time: np.unique(np.linspace(0, data.sizes[time] - 1, _SPREAD_ROWS).astype(int))})
    records, labels, members = [], [], int(data.sizes[member]) if member else 1
    for n in picked:
        values, found = _flatten(some[n], time, member, members, whole=True)
        there = np.atleast_1d(~np.isnan(values).all(axis=(0, 1))) if len(found) > 1 else np.ones(1, bool)
        labels.append([(k, label) for k, label in enumerate(found) if there[k]])
    for i in range(members):
        arrays = [data[n].isel({member: i}) if member and member in data[n].dims else data[n] for n in picked]
        rows, names = dataset_rows(arrays, time, labels, options)
        place = f"{where} ({member} {i})" if member else where
        records.append(Record(rows, place, names, stamps, clock=clock))
    return records


def _refuse_twin_of_time(data: xr.Dataset, time: str, where: str) -> None:
    """Refuse a variable that would be left out though its only dimension is as long as time and has no coordinate."""
    for name, variable in data.data_vars.items():
        (dimension, *others) = variable.dims or (time,)
        if not others and dimension not in (time, *data.coords) and variable.size == data.sizes[time]:
            raise DataError(
                f"{name} of {where} lies along {dimension!r}, which is as long as {time!r}. Pick with variables=[...]."
            )


def _split_members(whole: Record, data: xr.Dataset, member: str) -> list[Record]:
    """Return a record per member; it begins at its `start` where the file notes that."""
    has_starts = "start" in data.coords and data["start"].dims == (member,)
    records = []
    for i, number in enumerate(data[member].values):
        record = replace(whole, values=whole.values[i], where=f"{whole.where} ({member} {number})")
        if record.stamps is not None:
            shift = float(data["start"].values[i]) if has_starts else 0.0
            stamps = replace(record.stamps, values=record.stamps.values + shift) if shift else record.stamps
            # Empty rows before and after a member only fill up the array.
            there = np.flatnonzero(~np.isnan(record.values).all(axis=1))
            record = replace(record, stamps=stamps).rows(slice(there[0], there[-1] + 1) if len(there) else slice(None))
        records.append(record)
    return records


def _find_time_dimension(data: xr.Dataset, where: str, options: ReadOptions) -> str:
    """Find the dimension of time: the one asked for, or one named so, marked so or with dates, or the only one."""
    if isinstance(options.time, str):
        checks.known_names("time", options.time, [*map(str, data.dims), *map(str, data.coords)], where)
        return str(data[options.time].dims[0]) if options.time in data.coords else options.time
    marks = {d: data[d].attrs if d in data.coords else {} for d in data.dims}
    tests = (
        is_time_name,
        lambda d: d in data.coords and (data[d].dtype.kind == "M" or marks[d].get("axis") == "T"),
        lambda d: marks[d].get("standard_name") == "time",
        lambda d: len(data.dims) == 1,
    )
    for test in tests:
        found = [d for d in data.dims if test(d)]
        if len(found) == 1:
            return str(found[0])
    dims = ", ".join(f"{d} ({n})" for d, n in data.sizes.items())
    raise DataError(f"It is not clear which dimension of {where} is time, among {dims or 'none'}. Pass time=NAME.")


def _flatten(
    array: xr.DataArray, time: str, member: str | None, members: int, whole: bool = False
) -> tuple[np.ndarray, list[Label]]:
    """Return (member, time, var) values of one variable, and the label of each column.

    Grid points that are missing at all times, such as land in an ocean field, are left out unless the `whole` is asked
    for.
    """
    rest = [d for d in array.dims if d not in (time, member)]
    if member is not None and member not in array.dims:
        array = array.expand_dims({member: members})
    axes = (time, *rest) if member is None else (member, time, *rest)
    values = array.transpose(*axes).values
    values = values.reshape(members, array.sizes[time], -1).astype(float)
    units = _find_notes(array, rest, "units", "")
    periods = _find_notes(array, rest, "angle_period", np.nan)
    labels = [(n, str(u), float(p) if np.isfinite(p) else None) for n, u, p in zip(_name(array, rest), units, periods)]
    if rest and not whole and np.isnan(values).any():
        there = np.flatnonzero(~np.isnan(values).all(axis=(0, 1)))
        return values[..., there], [labels[i] for i in there]
    return values, labels


def _find_notes(array: xr.DataArray, rest: Sequence[Hashable], name: str, default: Any) -> np.ndarray:
    """Return what is noted on each column: a coordinate along the only other dimension, or one attribute for all."""
    if len(rest) == 1 and name in array.coords and array[name].dims == (rest[0],):
        return array[name].values
    return np.full(int(np.prod([array.sizes[d] for d in rest])), array.attrs.get(name, default))


def _name(array: xr.DataArray, rest: Sequence[Hashable]) -> list[str]:
    """Name each column: T, or the labels of its only other dimension, or T(lat=10, lon=20)."""
    if not rest:
        return [str(array.name)]
    labels = [array[d].values if d in array.coords else np.arange(array.sizes[d]) for d in rest]
    if len(rest) == 1 and labels[0].dtype.kind in "UOT":
        return [str(v) for v in labels[0]]
    points = zip(*(grid.ravel() for grid in np.meshgrid(*labels, indexing="ij")))
    return [name_point(str(array.name), dict(zip(map(str, rest), point))) for point in points]


# The other way --------------------------------------------------------------------------------------------------------


def to_xarray(series: TimeSeries, *, dataset: bool = False, origin: str | None = None, fields: bool = True) -> Any:
    """Return a DataArray (member, time, variable), or a Dataset of one (member, time) variable per name.

    A member is a record; gaps and the ends of shorter records are NaN. Where records begin at times too far apart for
    one axis, `time` counts from the start of each and the coordinate `start` says when that was. In a Dataset the
    points of a field are one variable (member, time, ...) again, unless `fields` is False.
    """
    values, times, starts = _on_one_axis(series)
    if starts is not None and origin is not None:
        raise DataError("The records begin too far apart for one axis of dates. Leave `origin` out.")
    coords = member_axes(series, len(values), times, starts, origin)
    if dataset:
        return xr.Dataset(as_variables(series, values, ("member", "time"), coords, fields), coords, NOTES)
    coords["variable"] = ("variable", list(series.names), {"long_name": "variable"})
    coords["units"] = ("variable", list(series.units), {"long_name": "units of the variable"})
    if any(series.periods):
        periods = [np.nan if period is None else period for period in series.periods]
        coords["angle_period"] = ("variable", periods, {"long_name": "period of an angle, NaN otherwise"})
    shared = {"units": series.units[0]} if len(set(series.units)) == 1 and series.units[0] else {}
    notes = {"long_name": "state", **shared, **NOTES}
    return xr.DataArray(values, coords, ("member", "time", "variable"), "state", notes)


def member_axes(
    series: TimeSeries, members: int, times: np.ndarray, starts: np.ndarray | None, origin: str | None
) -> dict[str, Any]:
    """Return the coordinates of members and times; with `starts`, times are counted from the start of each member."""
    member = {"standard_name": "realization", "long_name": "member"}
    axes: dict[str, Any] = {"member": ("member", np.arange(members), member)}
    calendar = "" if starts is not None else series.calendar
    axes["time"] = time_coordinate(times, series.time_unit, origin, calendar)
    if starts is not None:
        axes["start"] = ("member", starts, {"long_name": "time at which the member begins"})
    return axes


def label_forecast(forecast: Any, *, dataset: bool = False) -> Any:
    """Return a DataArray (start, member, lead, variable), or a Dataset of one (start, member, lead) variable per name.

    `time` (start, lead) is what is forecast; starts and times are dates where the forecast has a calendar.
    """
    starts, leads, unit = forecast.starts, forecast.leads, forecast.time_unit
    times = (starts[:, None] + leads).ravel()
    begin, ahead = (time_coordinate(t, unit, None, forecast.calendar) for t in (starts, times))
    lead = {"long_name": "time ahead", "units": unit} if unit else {"long_name": "time ahead"}
    dims = ("start", "member", "lead")
    coords: dict[str, Any] = {
        "start": ("start", begin.values, {"long_name": "start of the forecast"}, begin.encoding),
        "member": ("member", np.arange(forecast.values.shape[1]), {"standard_name": "realization"}),
        "lead": ("lead", leads, lead),
        "time": (("start", "lead"), ahead.values.reshape(len(starts), -1), {"long_name": "time"}, ahead.encoding),
    }
    if dataset:
        return xr.Dataset(as_variables(forecast, forecast.values, dims, coords, True), coords, NOTES)
    coords["variable"] = ("variable", list(forecast.names), {"long_name": "variable"})
    coords["units"] = ("variable", list(forecast.units), {"long_name": "units of the variable"})
    return xr.DataArray(forecast.values, coords, (*dims, "variable"), "forecast", NOTES)


def label_patterns(of: FittedTransform, patterns: np.ndarray, shares: np.ndarray) -> xr.Dataset:
    """Return patterns (component, var) as maps of the fields and values of the other variables, with their shares."""
    shared = ("component", shares, {"long_name": "share of the variance"})
    coords: dict[str, Any] = {"component": np.arange(1, len(shares) + 1), "explained_variance": shared}
    return xr.Dataset(as_variables(of, patterns, ("component",), coords, True), coords)


def as_variables(
    series: TimeSeries | FittedTransform,
    values: np.ndarray,
    dims: tuple[str, ...],
    coords: dict[str, Any],
    fields: bool,
) -> dict[str, Any]:
    """Return a variable (*dims, ...) for each field on its grid, and (*dims) for each other name."""
    taken = sorted(set(series.names) & set(coords))
    if taken:
        raise DataError(f"A variable called {taken[0]!r} cannot stand beside the coordinate {taken[0]!r}: rename it.")
    grids = [f for f in find_fields(series.names) if _fills_its_grid(f, series, coords)] if fields else []
    data: dict[str, Any] = {}
    for field in grids:
        notes = _note(field.name, series, field.columns[0])
        grid = {d: (d, points, _CF.get(d.lower(), {"long_name": d})) for d, points in field.coordinates.items()}
        on_grid = field.on_grid(values[..., list(field.columns)])
        data[field.name] = xr.DataArray(on_grid, grid, (*dims, *grid), attrs=notes)
    gridded = {column for field in grids for column in field.columns}
    for i, name in enumerate(series.names):
        if i not in gridded:
            data[name] = (dims, values[..., i], _note(name, series, i))
    return data


def _fills_its_grid(field: Field, series: TimeSeries | FittedTransform, coords: dict[str, Any]) -> bool:
    """Tell whether a field has several points, at least a quarter of its grid, and names that are free."""
    names = {field.name, *field.coordinates}
    known = names & {*coords, *series.names} or field.name in field.coordinates
    return not known and len(field.columns) > 1 and 4 * len(field.columns) >= math.prod(field.shape)


def _note(name: str, series: TimeSeries | FittedTransform, column: int) -> dict[str, Any]:
    notes = {"long_name": name, "units": series.units[column], "angle_period": series.periods[column]}
    return {key: note for key, note in notes.items() if note}


def _on_one_axis(series: TimeSeries) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return (member, time, var) values, the time axis, and the start of each member without a common axis."""
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


def time_coordinate(times: np.ndarray, unit: str, origin: str | None, calendar: str) -> xr.Variable:
    """Return numbers with their unit, or dates: counted from `origin`, or those that the series was read from."""
    attrs = {"long_name": "time", "axis": "T"}
    if origin is None and not calendar:
        return xr.Variable("time", times, {**attrs, "units": unit} if unit else attrs)
    name = checks.one_of("time_unit", timeunits.canonical(unit) or unit, timeunits.SECONDS)
    origin, calendar = (origin, "standard") if origin is not None else ("1970-01-01", calendar)
    try:
        np.datetime64(origin)
    except ValueError:
        raise checks.refused("origin", "a date such as 1970-01-01", origin) from None
    encoding = {"dtype": "float64"}
    if name not in timeunits.CALENDAR:
        encoding |= {"units": f"{timeunits.plural(name)} since {origin}", "calendar": calendar}
    dates = count_dates(times, name, origin, calendar)
    return xr.Variable("time", dates, {**attrs, "standard_name": "time"}, encoding)
