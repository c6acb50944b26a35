"""From time stamps to a uniform grid: numbers, dates of any calendar, gaps, months, and what is refused."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import checks, timeunits
from ..._core.errors import DataError

_JITTER = 0.05
_MONTH_JITTER = 0.15
_FEWEST_DAYS_OF_A_MONTH = 27.5


@dataclass(frozen=True)
class Stamps:
    """Time stamps as they were found: numbers, dates or durations, and the unit noted beside them."""

    values: np.ndarray
    name: str = "time"
    unit: str = ""


@dataclass(frozen=True)
class Grid:
    """Samples at `start + dt * rows`, in `unit`; `times` are the stamps themselves, counted from the first."""

    start: float
    dt: float
    unit: str
    rows: np.ndarray
    times: np.ndarray
    uniform: bool
    complaint: str = ""


def to_grid(stamps: Stamps, where: str, unit: str = "") -> Grid:
    """Find the uniform grid that the stamps lie on, to a twentieth of a step, with whole steps missing at gaps.

    `unit` is the unit of time asked for. Without it, months and years are counted where the stamps keep their place in
    the month (28 to 31 days apart); otherwise the unit noted in the file is used, or the largest that a step fills.
    """
    dates = _as_dates(stamps, where)
    if len(stamps.values) < 2:
        raise DataError(f"{where} has a single time stamp: the sampling interval cannot be told. Pass `dt`.")
    if dates is None:
        return _numeric_grid(stamps, where, unit)
    _check_increasing(dates.ticks - dates.ticks[0], stamps.name, where)
    wanted = timeunits.canonical(unit)
    if (not unit or wanted in timeunits.CALENDAR) and _is_monthly(dates):
        return _monthly_grid(dates.months, stamps, where, wanted)
    if unit:
        checks.one_of("time_unit", wanted or unit, [u for u in timeunits.SECONDS if u not in timeunits.CALENDAR])
    known = wanted or timeunits.canonical(stamps.unit)
    name = known if known and known not in timeunits.CALENDAR else _natural_unit(dates)
    scale = timeunits.ratio(timeunits.SECONDS[name], dates.tick_seconds)
    times = (dates.ticks - dates.ticks[0]) / scale
    return _fit_grid(float(dates.ticks[0] / scale), times, 0.0, unit or name, stamps.name, where)


def resampled(values: np.ndarray, grid: Grid, dt: float | None) -> tuple[np.ndarray, Grid]:
    """Linear interpolation onto a uniform grid of step `dt` (None: the typical step).

    Where the stamps are further apart than three typical steps and than `dt`, the rows between them stay missing.
    """
    dt = dt or grid.dt
    rows = np.arange(int(np.floor(grid.times[-1] / dt * (1 + 1e-12))) + 1)
    times = np.minimum(dt * rows, grid.times[-1])
    after = np.clip(np.searchsorted(grid.times, times), 1, len(grid.times) - 1)
    wide = np.diff(grid.times)[after - 1]
    weight = ((times - grid.times[after - 1]) / wide)[:, None]
    mixed = np.where(weight > 0, values[after] * weight, 0) + np.where(weight < 1, values[after - 1] * (1 - weight), 0)
    mixed[(wide > max(3 * grid.dt, dt)) & (weight[:, 0] > 0) & (weight[:, 0] < 1)] = np.nan
    return mixed, Grid(grid.start, dt, grid.unit, rows, times, True)


def _numeric_grid(stamps: Stamps, where: str, unit: str) -> Grid:
    values = checks.real_samples(stamps.values, f"The time coordinate `{stamps.name}` of {where}")
    if values.ndim != 1:
        raise DataError(f"The time coordinate `{stamps.name}` of {where} has {values.ndim} axes; it must have one.")
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise DataError(f"The time coordinate `{stamps.name}` of {where} is NaN in row {row}. Drop that row.")
    kind = stamps.values.dtype
    epsilon = float(np.finfo(kind).eps) if kind.kind == "f" else 0.0
    has, wants = timeunits.canonical(stamps.unit), timeunits.canonical(unit)
    if has and unit and not wants:
        checks.one_of("time_unit", unit, timeunits.SECONDS)
    scale = timeunits.ratio(timeunits.SECONDS[has], timeunits.SECONDS[wants]) if has and wants else 1.0
    times = (values - values[0]) * scale
    _check_increasing(times, stamps.name, where)
    resolution = 2 * epsilon * float(np.abs(values).max()) * scale
    label = unit or timeunits.label(stamps.unit)
    return _fit_grid(float(values[0]) * scale, times, resolution, label, stamps.name, where)


def _fit_grid(start: float, times: np.ndarray, resolution: float, unit: str, name: str, where: str) -> Grid:
    """Find dt and the row of every stamp; at least half of the steps must be a single dt."""
    steps = np.diff(times)
    step = float(np.quantile(steps, 0.5, method="lower"))
    for _ in range(2):
        widths = np.maximum(np.rint(steps / step), 1)
        step = float(steps[widths == 1].mean())
    rows = np.concatenate([[0], np.cumsum(np.maximum(np.rint(steps / step), 1))]).astype(np.int64)
    dt = float(times[-1] / rows[-1])
    off = times - dt * rows
    deviation = float(np.ptp(off) / 2)
    tolerance = min(max(_JITTER * dt, 2 * resolution), 0.25 * dt)
    if deviation > tolerance:
        typical = float(np.quantile(steps, 0.5, method="lower"))
        return Grid(start, _shortest(typical, 1e-6 * typical), unit, rows, times, False,
                    _complaint(steps, typical, deviation, unit, name, where))  # fmt: skip
    dt = _shortest(dt, min(max(deviation, resolution) / rows[-1], 1e-6 * dt))
    return Grid(start, dt, unit, rows, times, True)


def _complaint(steps: np.ndarray, typical: float, deviation: float, unit: str, name: str, where: str) -> str:
    """The sentence for stamps on no uniform grid."""
    worst = int(np.argmax(np.abs(steps - typical * np.maximum(np.rint(steps / typical), 1))))
    unit = f" {unit}" if unit else ""
    return (
        f"The time coordinate `{name}` of {where} is not uniform: the typical step is {typical:.6g}{unit}, but between "
        f"rows {worst} and {worst + 1} it is {steps[worst]:.6g}{unit}, and stamps lie off a uniform grid by up to "
        f"{deviation:.3g}{unit}. Pass resample=True to interpolate linearly onto steps of {typical:.6g}{unit}, "
        "resample=STEP for other steps, or time=False with `dt` to disregard the stamps."
    )


def _shortest(dt: float, slack: float) -> float:
    """The decimal number with fewest digits within `slack` of dt: 0.05, not 0.05000000000000002."""
    candidates = (float(f"{dt:.{digits}g}") for digits in range(1, 16))
    return next((c for c in candidates if abs(c - dt) <= slack), dt)


def _check_increasing(times: np.ndarray, name: str, where: str) -> None:
    back = np.flatnonzero(np.diff(times) <= 0)
    if len(back):
        row = int(back[0])
        what = "repeats itself" if times[row + 1] == times[row] else "goes back"
        raise DataError(
            f"The time coordinate `{name}` of {where} {what} at row {row + 1}. Sort the rows and drop repeated ones; "
            "where several records are mixed, say with `member` what tells them apart; to disregard the stamps, pass "
            f"time=False; if `{name}` is a variable, name it in `variables`."
        )


def agree(given: float, given_unit: str, grid: Grid) -> bool:
    """Whether a stated sampling interval is that of the stamps, to a part in a thousand (months: 2 %)."""
    has, noted = timeunits.canonical(grid.unit), timeunits.canonical(given_unit)
    scale = timeunits.SECONDS[noted] / timeunits.SECONDS[has] if has and noted else 1.0
    loose = scale != 1 and (has in timeunits.CALENDAR or noted in timeunits.CALENDAR)
    return abs(given * scale / grid.dt - 1) <= (2e-2 if loose else 1e-3)


def is_stamp_like(value: Any) -> bool:
    """Whether an argument `time` is the stamps themselves rather than the name of a coordinate."""
    return not isinstance(value, str | bool) and np.ndim(value) == 1


# Dates ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Dates:
    """Whole ticks since 1970-01-01 (exact integers), months since January 1970 and the place in the month, 0 to 1.

    Durations have no months.
    """

    ticks: np.ndarray
    tick_seconds: float
    months: np.ndarray
    place_in_month: np.ndarray

    @property
    def typical_step(self) -> float:
        """The median step, in seconds."""
        return float(np.quantile(np.diff(self.ticks), 0.5, method="lower")) * self.tick_seconds


def parse_dates(texts: Any) -> np.ndarray:
    """Parse ISO 8601 dates such as "2024-01-31T06:00Z"; times with a zone become UTC, what is no date becomes NaT."""
    import pandas as pd

    cells = pd.Series(texts, dtype=object).astype(str).str.strip()
    dated = cells.where(cells.str.match(r"\d{4}-\d\d"))
    dates = pd.to_datetime(dated, utc=True, format="ISO8601", errors="coerce")
    return dates.dt.tz_localize(None).dt.as_unit("us").to_numpy()


def _as_dates(stamps: Stamps, where: str) -> _Dates | None:
    """Return dates from datetime64, timedelta64, datetime, cftime or ISO texts; None if the stamps are numbers."""
    values, what = stamps.values, f"The time stamps `{stamps.name}` of {where}"
    if values.dtype.kind not in "OUSTMm":
        return None
    import pandas as pd

    if values.dtype.kind == "m":
        durations = pd.TimedeltaIndex(values)
        durations = durations if durations.unit == "ns" else durations.as_unit("us")
        return _Dates(durations.asi8, 1e-9 if durations.unit == "ns" else 1e-6, np.empty(0), np.empty(0))
    if values.dtype.kind == "O" and len(values) and hasattr(values[0], "calendar"):
        return _from_calendar(values)
    parsed = values if values.dtype.kind == "M" else parse_dates(values)
    missing = np.flatnonzero(np.isnat(parsed))
    if len(missing) and values.dtype.kind == "M":
        raise DataError(f"{what} hold no date in row {missing[0]}. Drop that row.")
    if len(missing):
        raise DataError(
            f"{what} hold {str(values[missing[0]])!r} in row {missing[0]}, neither a number nor a date such as "
            "2024-01-31T06:00."
        )
    index = pd.DatetimeIndex(parsed)
    index = index if index.unit == "ns" else index.as_unit("us")
    return _Dates(index.asi8, 1e-9 if index.unit == "ns" else 1e-6, *_months(index))


def _from_calendar(values: np.ndarray) -> _Dates:
    """Count dates of a model calendar (noleap, 360_day, ...) in that calendar."""
    import cftime
    from xarray import CFTimeIndex

    ticks = cftime.date2num(values, "microseconds since 1970-01-01", calendar=values[0].calendar)
    return _Dates(np.asarray(ticks).astype(np.int64), 1e-6, *_months(CFTimeIndex(values)))


def _months(index: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return months since January 1970, and the place in the month, 0 to 1."""
    months = 12 * (np.asarray(index.year, np.int64) - 1970) + np.asarray(index.month) - 1
    days = np.asarray(index.day) - 1 + np.asarray(index.hour) / 24 + np.asarray(index.minute) / 1440
    return months, days / np.asarray(index.days_in_month)


def _natural_unit(dates: _Dates) -> str:
    """Return the largest of day, hour, min, ... that one step fills."""
    units = ("day", "hour", "min", "s", "ms", "us")
    return next((unit for unit in units if dates.typical_step >= timeunits.SECONDS[unit]), "ns")


def _is_monthly(dates: _Dates) -> bool:
    """Tell whether there is at most one stamp a month, always at the same place in it (to 0.15 of a month)."""
    if not len(dates.months) or dates.typical_step < _FEWEST_DAYS_OF_A_MONTH * timeunits.SECONDS["day"]:
        return False
    return bool((np.diff(dates.months) > 0).all() and np.ptp(dates.place_in_month) <= _MONTH_JITTER)


def _monthly_grid(months: np.ndarray, stamps: Stamps, where: str, wanted: str) -> Grid:
    """Count months from January 1970, wherever in the month they are stamped; years if all are whole years apart."""
    whole_years = not (np.diff(months) % 12).any()
    unit = wanted or ("year" if whole_years else "month")
    per = 12 if unit == "year" else 1
    times = (months - months[0]) / per
    return _fit_grid(float(months[0] / per), times, 0.0, unit, stamps.name, where)
