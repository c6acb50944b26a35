"""From time stamps to a uniform grid: numbers, dates of any calendar, gaps, months, and what is refused."""

import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..._core import checks, timeunits
from ..._core.errors import DataError, EstimateWarning
from .dates import as_index, count_months, count_ticks, from_numbers

_JITTER = 0.05
_MOST_DIGITS = 9
_FEW, _RARE = 5, 0.02  # steps that differ, from which on rounding explains them
_MANY = 100  # stamps from which on rounding explains repeated ones
_AGE = re.compile(r"(?i)\bage\b|\bb2k\b|\bbp\b|before present")


@dataclass(frozen=True, eq=False)
class Stamps:
    """Time stamps as they were found: numbers, dates or durations, and the unit noted beside them."""

    values: np.ndarray
    name: str = "time"
    unit: str = ""


@dataclass(frozen=True, eq=False)
class Grid:
    """Samples at `start + dt * rows`, in `unit`; `times` are the stamps, counted from the first.

    The complaint says why the stamps are not uniform; it is empty if they are. Times of a `calendar` are counted from
    1970-01-01.
    """

    start: float
    dt: float
    unit: str
    rows: np.ndarray
    times: np.ndarray
    complaint: str = ""
    calendar: str = ""


def put_in_order(stamps: Stamps) -> tuple[Stamps, slice]:
    """Return the stamps in the order of time, and the rows in that order; ages become negative times."""
    values = stamps.values
    if values.dtype.kind in "iuf" and _AGE.search(f"{stamps.name} {stamps.unit}"):
        warnings.warn(
            f"`{stamps.name}` is an age, which counts backwards: times are negative ages, and rows go from old to "
            "young. Pass time=False if the rows are in the order of time.",
            EstimateWarning,
            stacklevel=2,
        )
        values = -values
    backwards = values.ndim == 1 and len(values) > 1 and bool(np.all(values[1:] < values[:-1]))
    order = slice(None, None, -1 if backwards else 1)
    return replace(stamps, values=values[order]), order


def to_grid(stamps: Stamps, where: str, unit: str = "") -> Grid:
    """Find the uniform grid of the stamps, to a twentieth of a step, with whole steps missing at gaps.

    `unit` is the unit of time asked for. Without it, months and years are counted where the stamps keep their place in
    the month (28 to 31 days apart); otherwise the unit noted in the file is used, or the largest that a step fills.
    """
    what = f"The time coordinate `{stamps.name}` of {where}"
    missing = np.flatnonzero(pd.isna(stamps.values))
    if len(missing):
        raise DataError(f"{what} is missing (NaN or NaT) in row {missing[0]}. Drop that row.")
    if len(stamps.values) < 2:
        raise DataError(f"{where} has a single time stamp, so the sampling interval is unknown. Pass `dt`.")
    stamps = replace(stamps, values=from_numbers(stamps.values, stamps.name, stamps.unit))
    if stamps.values.dtype.kind not in "OUSTMm":
        return _fit_numbers(stamps, what, unit)
    return _fit_dates(as_index(stamps.values, what), stamps, what, unit)


def _fit_numbers(stamps: Stamps, what: str, unit: str) -> Grid:
    values = checks.real_samples(stamps.values, what)
    has, wants = timeunits.canonical(stamps.unit), timeunits.canonical(unit)
    if has and unit and not wants:
        checks.one_of("time_unit", unit, timeunits.SECONDS)
    scale = timeunits.ratio(timeunits.SECONDS[has], timeunits.SECONDS[wants]) if has and wants else 1.0
    whole = stamps.values.dtype.kind == "i"  # exact also where float64 is not
    times = ((stamps.values - stamps.values[0]).astype(float) if whole else values - values[0]) * scale
    if not np.isfinite(times).all():
        raise DataError(f"{what} goes from {values[0]:g} to {values[-1]:g}: such numbers cannot be subtracted.")
    epsilon = float(np.finfo(stamps.values.dtype).eps) if stamps.values.dtype.kind == "f" else 0.0
    resolution = 2 * epsilon * float(np.abs(values).max()) * scale
    label = unit or timeunits.label(stamps.unit)
    rounded = _fit_rounded(float(values[0]) * scale, times, label, scale * _rounding(values))
    if rounded is not None and len(times) >= _MANY and (np.diff(times) <= 0).any():
        return rounded
    _check_increasing(times, stamps.name, what)
    grid = _fit_grid(float(values[0]) * scale, times, label, what, resolution)
    return grid if rounded is None or not grid.complaint else rounded


def _rounding(values: np.ndarray) -> np.ndarray:
    """Return half a unit of the last digit with which each number was written; zero for numbers of many digits."""
    size = np.abs(values)
    close = 1e-12 * size.max()
    decimals = (d for d in range(_MOST_DIGITS) if (np.abs(np.round(values, d) - values) <= close).all())
    half = 0.5 * 10.0 ** -next(decimals, np.inf)
    tens = 10.0 ** np.floor(np.log10(np.where(size > 0, size, 1.0)))
    figures = (f for f in range(_MOST_DIGITS) if (np.abs(np.round(values / tens, f) - values / tens) <= 1e-11).all())
    return np.maximum(half, 0.5 * tens * 10.0 ** -next(figures, np.inf))


def _fit_rounded(start: float, times: np.ndarray, unit: str, rounding: np.ndarray) -> Grid | None:
    """Return the grid without gaps to which the stamps are rounded, or None if they are not."""
    rows, steps = np.arange(len(times)), np.diff(times)
    unusual = np.abs(steps - np.median(steps)) > rounding[1:]
    if not rounding.any() or unusual.sum() < max(_FEW, _RARE * len(steps)):
        return None
    dt, offset = np.polyfit(rows, times, 1, w=1 / rounding)
    if dt <= 0 or (np.abs(times - offset - dt * rows) > 1.1 * rounding + _JITTER * dt).any():
        return None
    dt = _shorten(float(dt), float(rounding.max()) / len(rows))
    return Grid(start, dt, unit, rows, dt * rows)


def _fit_dates(index: Any, stamps: Stamps, what: str, unit: str) -> Grid:
    """Count dates in months or years where they keep their place in the month, otherwise in units of fixed length."""
    ticks, tick = count_ticks(index)
    calendar = "" if isinstance(index, pd.TimedeltaIndex) else str(getattr(index, "calendar", "standard"))
    _check_increasing(ticks, stamps.name, what)
    step = float(np.quantile(np.diff(ticks), 0.5, method="lower")) * tick
    wanted = timeunits.canonical(unit)
    if not unit or wanted in timeunits.CALENDAR:
        months = count_months(index, step)
        if months is not None:
            name = wanted or ("month" if (np.diff(months) % 12).any() else "year")
            per = 12 if name == "year" else 1
            grid = _fit_grid(float(months[0] / per), (months - months[0]) / per, name, what)
            return replace(grid, calendar=calendar)
    fixed = [u for u in timeunits.SECONDS if u not in timeunits.CALENDAR]
    if unit:
        checks.one_of("time_unit", wanted or unit, fixed)
    noted = timeunits.canonical(stamps.unit)
    largest = next((u for u in ("day", "hour", "min", "s", "ms", "us") if step >= timeunits.SECONDS[u]), "ns")
    name = wanted or (noted if noted in fixed else largest)
    scale = timeunits.ratio(timeunits.SECONDS[name], tick)
    grid = _fit_grid(float(ticks[0] / scale), (ticks - ticks[0]) / scale, unit or name, what)
    return replace(grid, calendar=calendar)


def _fit_grid(start: float, times: np.ndarray, unit: str, what: str, resolution: float = 0.0) -> Grid:
    """Find dt and the row of every stamp; at least half of the steps must be a single dt."""
    steps = np.diff(times)
    typical = step = float(np.quantile(steps, 0.5, method="lower"))
    for _ in range(2):
        widths = np.maximum(np.rint(steps / step), 1)
        step = float(steps[widths == 1].mean())
    rows = np.concatenate([[0], np.cumsum(np.maximum(np.rint(steps / step), 1))]).astype(np.int64)
    dt = float(times[-1] / rows[-1])
    deviation = float(np.ptp(times - dt * rows) / 2)
    if deviation <= min(max(_JITTER * dt, 2 * resolution), 0.25 * dt):
        dt = _shorten(dt, min(max(deviation, resolution) / rows[-1], 1e-6 * dt))
        return Grid(start, dt, unit, rows, times)
    worst = int(np.argmax(np.abs(steps - typical * np.maximum(np.rint(steps / typical), 1))))
    after = f" {unit}" if unit else ""
    complaint = (
        f"{what} is not uniform: the typical step is {typical:.6g}{after}, but between rows {worst} and {worst + 1} "
        f"it is {steps[worst]:.6g}{after}, and stamps lie off a uniform grid by up to {deviation:.3g}{after}. "
        f"Pass resample={typical:.6g} to interpolate linearly onto such steps, or time=False with `dt` to ignore the "
        "stamps."
    )
    return Grid(start, _shorten(typical, 1e-6 * typical), unit, rows, times, complaint)


def _shorten(dt: float, slack: float) -> float:
    """Return the decimal number with fewest digits within `slack` of dt: 0.05, not 0.05000000000000002."""
    candidates = (float(f"{dt:.{digits}g}") for digits in range(1, 16))
    return next((c for c in candidates if abs(c - dt) <= slack), dt)


def _check_increasing(times: np.ndarray, name: str, what: str) -> None:
    back = np.flatnonzero(np.diff(times) <= 0)
    if len(back):
        row = int(back[0])
        happens = "repeats itself" if times[row + 1] == times[row] else "goes back"
        raise DataError(
            f"{what} {happens} at row {row + 1}. Sort the rows and drop repeated ones; where several records are "
            "mixed, name with `member` what tells them apart; to ignore the stamps, pass time=False; if "
            f"`{name}` is a variable, name it in `variables`."
        )


def resample(values: np.ndarray, grid: Grid, dt: float | None) -> tuple[np.ndarray, Grid]:
    """Interpolate linearly onto a uniform grid of step `dt` (None: the typical step).

    Where the stamps are further apart than three typical steps and than `dt`, the rows between them stay missing.
    """
    dt = dt or grid.dt
    checks.fits_in_memory(8.0 * values.shape[1] * grid.times[-1] / dt, f"The series at steps of {dt:g}")
    rows = np.arange(int(np.floor(grid.times[-1] / dt * (1 + 1e-12))) + 1)
    times = np.minimum(dt * rows, grid.times[-1])
    after = np.clip(np.searchsorted(grid.times, times), 1, len(grid.times) - 1)
    wide = np.diff(grid.times)[after - 1]
    weight = ((times - grid.times[after - 1]) / wide)[:, None]
    mixed = np.where(weight > 0, values[after] * weight, 0) + np.where(weight < 1, values[after - 1] * (1 - weight), 0)
    mixed[(wide > max(3 * grid.dt, dt)) & (weight[:, 0] > 0) & (weight[:, 0] < 1)] = np.nan
    return mixed, Grid(grid.start, dt, grid.unit, rows, times, calendar=grid.calendar)


def agree(given: float, given_unit: str, grid: Grid) -> bool:
    """Tell whether a stated sampling interval is that of the stamps, to a part in a thousand (months: 2 %)."""
    has, noted = timeunits.canonical(grid.unit), timeunits.canonical(given_unit)
    scale = timeunits.SECONDS[noted] / timeunits.SECONDS[has] if has and noted else 1.0
    loose = scale != 1 and (has in timeunits.CALENDAR or noted in timeunits.CALENDAR)
    return abs(given * scale / grid.dt - 1) <= (2e-2 if loose else 1e-3)
