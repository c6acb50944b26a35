"""Labelled arrays out: a `TimeSeries` as xarray objects with coordinates and CF attributes."""

from importlib.metadata import version
from typing import Any

import numpy as np

from .._core import checks, timeunits
from .._core.errors import DataError
from .series import TimeSeries


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
