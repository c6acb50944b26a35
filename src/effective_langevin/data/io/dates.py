"""Dates in every form that files have: texts, numbers such as 20000115, calendars of models, year-month-day columns."""

import re
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..._core import checks, timeunits
from ..._core.errors import DataError
from .codes import is_number

_STANDARD = ("standard", "gregorian", "proleptic_gregorian")
_MONTH_JITTER = 0.15
_FEWEST_DAYS_OF_A_MONTH = 27.5
_YEAR_LAST = re.compile(r"^(\d{1,2})([/.])(\d{1,2})[/.](\d{4})(.*)$")
_PARTS = {
    "year": ("year", "yr", "yyyy"),
    "month": ("month", "mon", "mo", "mm"),
    "day": ("day", "dy", "dd"),
    "hour": ("hour", "hr", "hh"),
    "minute": ("minute", "min"),
    "second": ("second", "sec"),
}


def from_parts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the columns year, month, day (hour, minute, second) as one column of dates, `time`."""
    by_name = {str(name).lower(): name for name in frame.columns}
    found = {part: by_name[n] for part, names in _PARTS.items() for n in names if n in by_name}
    if not {"year", "month"} <= set(found) or (set(found) - {"year", "month"} and "day" not in found):
        return frame
    parts = frame[list(found.values())].set_axis(list(found), axis=1)
    dates = pd.to_datetime(parts.assign(**({} if "day" in found else {"day": 1})), errors="coerce")
    if dates.isna().any():
        return frame
    rest = frame.drop(columns=list(found.values()))
    rest.insert(0, "time", dates)
    return rest


def from_numbers(values: np.ndarray, name: str, unit: str) -> np.ndarray:
    """Return dates for numbers that are dates: 20000115, 200001 or 2000.01; other numbers as they are.

    They are dates if they are all valid ones, and their name or unit says so or they skip from month to month.
    """
    numbers = values.astype(float) if values.dtype.kind in "iuf" and values.ndim == 1 else np.array([])
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        return values
    low, high = float(numbers.min()), float(numbers.max())
    forms = ((1e7, 1e8, 1), (1e5, 1e6, 100), (1e3, 1e4, 10_000))  # of 20000115, 200001 and 2000.01
    factor = next((factor for least, most, factor in forms if least <= low and high < most), 0)
    compact = np.round(numbers * factor, 6) + (factor > 1)
    days = np.floor(compact)
    year, month, day, rest = days // 10000, days // 100 % 100, days % 100, compact - days
    if not factor or (factor > 1 and (day != 1).any()) or (rest.any() and "%f" not in unit):
        return values
    dates = pd.to_datetime(pd.DataFrame({"year": year, "month": month, "day": day}), errors="coerce")
    said = "date" in name.lower() or "%Y" in unit
    if dates.isna().any() or not (said or np.ptp(np.diff(numbers)) > 1e-6):
        return values
    return (dates + pd.to_timedelta(rest, unit="D")).to_numpy()


def parse_dates(texts: Any) -> np.ndarray:
    """Parse dates such as "2024-01-31T06:00Z" (ISO 8601), "01/31/2024" or "31.01.2024" to UTC; others become NaT."""
    cells = _reorder(pd.Series(texts, dtype=object).astype(str).str.strip())
    dated = cells.where(cells.str.match(r"\d{4}-\d\d"))
    dates = pd.to_datetime(dated, utc=True, format="ISO8601", errors="coerce")
    return dates.dt.tz_localize(None).dt.as_unit("us").to_numpy()


def is_ambiguous(text: str) -> bool:
    """Tell whether a text that was not parsed looks like a date whose day may be its month."""
    return bool(_YEAR_LAST.match(text))


def _reorder(cells: pd.Series) -> pd.Series:
    """Write dates with slashes or points in the order of ISO 8601.

    Whether the day or the month stands first is told by numbers above twelve; without any, they stay as they are.
    """
    last = cells.str.extract(_YEAR_LAST) if len(cells) and _YEAR_LAST.match(cells.iloc[0]) else None
    if last is not None and not last.isna().any(axis=None):
        first, sign, second, year, rest = (last[column] for column in last)
        day_first = (sign == ".").all() or (first.astype(int) > 12).any()
        if not day_first and not (second.astype(int) > 12).any():
            return cells
        day, month = (first, second) if day_first else (second, first)
        return year + "-" + month.str.zfill(2) + "-" + day.str.zfill(2) + rest
    return cells.str.replace(r"^(\d{4})/(\d\d)/(\d\d)", r"\1-\2-\3", regex=True)


def as_index(values: np.ndarray, what: str) -> Any:
    """Return a pandas index of dates or durations, or one of xarray for dates of a model calendar."""
    if values.dtype.kind == "m":
        return pd.TimedeltaIndex(values)
    if values.dtype.kind == "O" and hasattr(values[0], "calendar"):
        return xr.CFTimeIndex(values)
    if values.dtype.kind == "M":
        return pd.DatetimeIndex(values)
    parsed = parse_dates(values)
    bad = np.flatnonzero(np.isnat(parsed))
    if len(bad):
        raise DataError(
            f"{what} holds {str(values[bad[0]])!r} in row {bad[0]}, neither a number nor a date such as "
            "2024-01-31T06:00."
        )
    return pd.DatetimeIndex(parsed)


def count_ticks(index: Any) -> tuple[np.ndarray, float]:
    """Return whole ticks since 1970-01-01, in the calendar of the dates, and the seconds of a tick."""
    if isinstance(index, xr.CFTimeIndex):
        import cftime

        ticks = cftime.date2num(index.values, "microseconds since 1970-01-01", calendar=index.calendar)
        return np.asarray(ticks).astype(np.int64), 1e-6
    unit = "ns" if index.unit == "ns" else "us"
    return index.as_unit(unit).asi8, timeunits.SECONDS[unit]


def count_months(index: Any, step: float) -> np.ndarray | None:
    """Return months since January 1970, if there is at most one stamp a month, at the same place in it (to 0.15)."""
    if isinstance(index, pd.TimedeltaIndex) or step < _FEWEST_DAYS_OF_A_MONTH * timeunits.SECONDS["day"]:
        return None
    months = 12 * (np.asarray(index.year, np.int64) - 1970) + np.asarray(index.month) - 1
    days = np.asarray(index.day) - 1 + np.asarray(index.hour) / 24 + np.asarray(index.minute) / 1440
    place = days / np.asarray(index.days_in_month)
    return months if (np.diff(months) > 0).all() and np.ptp(place) <= _MONTH_JITTER else None


def count_dates(times: np.ndarray, unit: str, origin: str, calendar: str) -> np.ndarray:
    """Return the dates at which times since `origin` lie; months and years are counted from its month."""
    months = np.rint(times * (12 if unit == "year" else 1)).astype(np.int64) if unit in timeunits.CALENDAR else None
    ticks = np.rint(times * (timeunits.SECONDS[unit] * 1e6)).astype(np.int64)
    if calendar in _STANDARD:
        if months is not None:
            return (np.datetime64(origin, "M") + months.astype("timedelta64[M]")).astype("datetime64[us]")
        return np.datetime64(origin, "us") + ticks.astype("timedelta64[us]")
    import cftime

    if months is None:
        dates = cftime.num2date(ticks, f"microseconds since {origin}", calendar, only_use_cftime_datetimes=True)
    else:
        months += 12 * int(origin[:4]) + int(origin[5:7]) - 1
        dates = [cftime.datetime(m // 12, m % 12 + 1, 1, calendar=calendar) for m in months.tolist()]
    return np.array(dates)


def count_time(date: Any, unit: str, calendar: str) -> float:
    """Return a number as it is, and a date as the time since 1970-01-01 in the calendar of a series."""
    if is_number(date):
        return float(date)
    unit, moment = timeunits.canonical(unit), pd.to_datetime(str(date), errors="coerce")
    if pd.isna(moment) or not (unit and calendar):
        raise checks.refused("start", "a number" + (", or a date such as 2020-01-31" if calendar else ""), date)
    if unit in timeunits.CALENDAR:
        return (12 * (moment.year - 1970) + moment.month - 1) / (12 if unit == "year" else 1)
    index: Any = pd.DatetimeIndex([moment])
    if calendar not in _STANDARD:
        index = xr.date_range(moment.isoformat(timespec="seconds"), periods=1, calendar=calendar, use_cftime=True)
    ticks, tick = count_ticks(index)
    return float(ticks[0]) / timeunits.ratio(timeunits.SECONDS[unit], tick)
