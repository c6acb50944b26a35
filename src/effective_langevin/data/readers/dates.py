"""Dates of every kind as whole ticks since 1970, with their month and place in the month."""

import datetime
from dataclasses import dataclass

import numpy as np

from ..._core.errors import DataError

_DAY = 86400.0


@dataclass(frozen=True)
class Dates:
    """Whole ticks since 1970-01-01 (exact integers), months since January 1970 and the place in the month, 0 to 1."""

    ticks: np.ndarray
    tick_seconds: float
    months: np.ndarray
    place_in_month: np.ndarray


def as_dates(values: np.ndarray, what: str) -> Dates | None:
    """Dates from datetime64, timedelta64, datetime, cftime or ISO texts; None if these are numbers."""
    kind = values.dtype.kind
    if kind == "O" and len(values) and hasattr(values[0], "calendar") and hasattr(values[0], "daysinmonth"):
        return _from_cftime(values)
    if kind == "m":
        return _from_durations(values)
    if kind in "OUST":
        values = _parsed(values, what)
    elif kind != "M":
        return None
    if np.isnat(values).any():
        raise DataError(f"{what} hold no date in row {int(np.flatnonzero(np.isnat(values))[0])}. Drop that row.")
    return _from_datetime64(values)


def parse_iso(text: str) -> np.datetime64:
    """An ISO 8601 date, "2024-01-31", "2024-01", "2024-01-31T06:00Z"; with a time zone it is moved to UTC."""
    text = text.strip()
    if len(text) == 7 and text[4] == "-":
        text += "-01"
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(moment, "us")


def _parsed(values: np.ndarray, what: str) -> np.ndarray:
    """Texts and Python dates as datetime64."""
    out = np.empty(len(values), dtype="datetime64[us]")
    for row, value in enumerate(values):
        try:
            out[row] = parse_iso(value if isinstance(value, str) else value.isoformat())
        except (ValueError, AttributeError):
            raise DataError(
                f"{what} hold {str(value)!r} in row {row}, neither a number nor a date such as 2024-01-31T06:00."
            ) from None
    return out


def _from_datetime64(values: np.ndarray) -> Dates:
    fine = np.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as")
    values = values.astype("datetime64[ns]" if fine else "datetime64[us]")
    months = values.astype("datetime64[M]")
    first, following = (start.astype(values.dtype) for start in (months, months + np.timedelta64(1, "M")))
    return Dates(
        values.astype(np.int64), 1e-9 if fine else 1e-6, months.astype(np.int64), (values - first) / (following - first)
    )


def _from_durations(values: np.ndarray) -> Dates:
    """Durations have no month: their place in it grows without bound, so that they never count as monthly."""
    fine = np.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as")
    ticks = values.astype("timedelta64[ns]" if fine else "timedelta64[us]").astype(np.int64)
    return Dates(ticks, 1e-9 if fine else 1e-6, np.zeros(len(ticks), np.int64), np.arange(len(ticks), dtype=float))


def _from_cftime(values: np.ndarray) -> Dates:
    """Dates of a model calendar (noleap, 360_day, ...), counted in that calendar."""
    import cftime

    calendar = values[0].calendar
    ticks = np.asarray(cftime.date2num(values, "microseconds since 1970-01-01", calendar=calendar)).astype(np.int64)
    months = np.array([12 * (d.year - 1970) + d.month - 1 for d in values], dtype=np.int64)
    seconds = [((d.day - 1) * 24 + d.hour) * 3600 + d.minute * 60 + d.second for d in values]
    return Dates(ticks, 1e-6, months, np.array([s / (_DAY * d.daysinmonth) for s, d in zip(seconds, values)]))
