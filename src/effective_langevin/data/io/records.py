"""What every reader delivers, and how records become one `TimeSeries`."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from ..series import Periods, TimeSeries
from .clock import Grid, Stamps, agree, resampled, to_grid

TIME_NAMES = ("time", "date", "datetime", "timestamp")
_MOST_MISSING = 1_000_000


@dataclass(frozen=True)
class ReadOptions:
    """What the caller of `read` asked for, apart from the source."""

    variables: str | Sequence[str] | None = None
    dt: float | None = None
    time: Any = None
    member: str | None = None
    resample: bool | float | None = None
    join: bool = False
    names: Sequence[str] | None = None
    units: Sequence[str] | None = None
    time_unit: str | None = None
    periods: Periods | None = None

    def __post_init__(self):
        if self.variables is not None:
            listed = (self.variables,) if isinstance(self.variables, str) else tuple(self.variables)
            checks.not_empty("variables", listed, "one name or more")
            object.__setattr__(self, "variables", listed)
        checks.optional_positive_number("dt", self.dt)
        object.__setattr__(self, "resample", checks.switch_or_positive("resample", self.resample))
        checks.instance_of("join", self.join, (bool,))


@dataclass(frozen=True)
class Record:
    """One stretch of data as found: (time, var) values, their labels, and time stamps or a stated dt."""

    values: np.ndarray
    where: str
    names: tuple[str, ...] | None = None
    units: tuple[str, ...] | None = None
    periods: tuple[float | None, ...] | None = None
    stamps: Stamps | None = None
    dt: float | None = None
    dt_unit: str = ""

    def rows(self, rows: Any, place: str = "") -> "Record":
        """Return some of the rows; `place` is added to the name of the source."""
        stamps = self.stamps and replace(self.stamps, values=self.stamps.values[rows])
        return replace(self, values=self.values[rows], stamps=stamps, where=self.where + place)


def needs(module: str, extra: str, path: Path) -> None:
    """Refuse a file whose library is missing, and say how to install it: an extra of this package, or a package."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        package = f"'effective-langevin[{extra}]'" if extra else module
        raise DataError(f"{path} needs {module}, which is not installed: pip install {package}.") from error


def is_time_name(name: Any) -> bool:
    """Whether a column or key is called like a time; "t" is one, "T" is a temperature."""
    return name == "t" or str(name).lower() in TIME_NAMES


def find_time(options: ReadOptions, available: Sequence[str], where: str) -> str | None:
    """The column or key that holds the time: the one asked for, or one that is called so, or none."""
    if isinstance(options.time, str):
        return checks.known_names("time", options.time, available, where)[0]
    taken = options.variables or ()
    return next((n for n in available if is_time_name(n) and n not in taken), None)


def assemble(records: Sequence[Record], options: ReadOptions) -> TimeSeries:
    """Put every record on a uniform grid, missing stamps as rows of NaN, and hand them over as one series."""
    _check_same_variables(records)
    if options.join:
        records = [_joined(records)]
    values, starts, dt, unit = [], [], None, options.time_unit or ""
    for record in records:
        placed = _place(record, options, unit)
        if dt is not None and abs(placed.dt / dt - 1) > 1e-6:
            raise DataError(
                f"{record.where} has dt = {placed.dt:g}, {records[0].where} has {dt:g}: records of one series share "
                "the sampling interval. Pass resample=STEP to bring them to one."
            )
        dt, unit = dt or placed.dt, unit or placed.unit
        values.append(placed.values)
        starts.append(placed.start)
    return TimeSeries(
        values,
        dt,
        names=options.names or records[0].names,
        units=options.units or records[0].units,
        periods=records[0].periods if options.periods is None else options.periods,
        time_unit=unit,
        start=starts,
    )


@dataclass(frozen=True)
class _Placed:
    values: np.ndarray
    start: float
    dt: float
    unit: str


def _place(record: Record, options: ReadOptions, unit: str) -> _Placed:
    """One record on its grid."""
    values = checks.real_samples(record.values, f"The data of {record.where}")
    stamps = None if options.time is False else record.stamps
    if stamps is None:
        checks.not_given("resample", options.resample or None, f"{record.where} has no time coordinate to go by.")
        hint = f"{record.where} has no time coordinate, so say how far apart its rows are, in your unit of time."
        dt = checks.positive_number("dt", options.dt if options.dt is not None else record.dt, hint)
        return _Placed(values, 0.0, dt, unit or record.dt_unit)
    if len(stamps.values) != len(values):
        raise DataError(f"{record.where} has {len(stamps.values)} time stamps for {len(values)} rows.")
    if record.dt_unit and not stamps.unit:
        stamps = replace(stamps, unit=record.dt_unit)
    grid = to_grid(stamps, record.where, unit)
    if options.resample:
        step = None if options.resample is True else float(options.resample)
        if not grid.uniform or step not in (None, grid.dt):
            values, grid = resampled(values, grid, step)
    if not grid.uniform:
        raise DataError(grid.complaint)
    _check_stated_dt(record, options, grid)
    return _Placed(_with_gaps(values, grid, record.where), grid.start, grid.dt, grid.unit)


def _check_stated_dt(record: Record, options: ReadOptions, grid: Grid) -> None:
    """A dt given by the caller, or noted in the file, must be that of the stamps."""
    says = f"{grid.dt:g} {grid.unit}".rstrip()
    if options.dt is not None:
        given = checks.positive_number("dt", options.dt)
        hint = f"Leave `dt` out, or pass time=False to disregard the time coordinate of {record.where}."
        checks.agrees("dt", given, says, agree(given, options.time_unit or "", grid), hint)
    elif record.dt is not None and not options.resample and not agree(record.dt, record.dt_unit, grid):
        raise DataError(
            f"{record.where} notes dt = {record.dt:g} {record.dt_unit}".rstrip() + f", but its time stamps are {says} "
            "apart. Pass time=False to go by the former, or repair the file."
        )


def _with_gaps(values: np.ndarray, grid: Grid, where: str) -> np.ndarray:
    """Values with a row of NaN for every stamp that is missing."""
    length = int(grid.rows[-1]) + 1
    if length == len(values):
        return values
    if length - len(values) > max(_MOST_MISSING, 20 * len(values)):
        raise DataError(
            f"{where} misses {length - len(values):,} time stamps of {length:,}. Read its parts as separate records: "
            "el.read([first, second])."
        )
    filled = np.full((length, values.shape[1]), np.nan)
    filled[grid.rows] = values
    return filled


def _check_same_variables(records: Sequence[Record]) -> None:
    first = records[0]
    for record in records[1:]:
        if record.names != first.names or record.values.shape[1:] != first.values.shape[1:]:
            raise DataError(
                f"{record.where} holds {_listed(record)}, {first.where} holds {_listed(first)}: records of one series "
                "have the same variables in the same order. Pick them with variables=[...]."
            )
        if record.units and first.units and record.units != first.units:
            raise DataError(f"{record.where} has the units {list(record.units)}, {first.where} {list(first.units)}.")


def _listed(record: Record) -> str:
    return f"{record.values.shape[1]} variables" if record.names is None else ", ".join(record.names)


def _joined(records: Sequence[Record]) -> Record:
    """Records that continue one another in time as one, in the order of their first stamps."""
    stamps = [r.stamps for r in records]
    if any(s is None for s in stamps):
        raise DataError("Records are joined by their time stamps, and there are none. Leave `join` out.")
    ordered = sorted(records, key=lambda r: r.stamps.values[0])  # pyright: ignore[reportOptionalMemberAccess]
    times = np.concatenate([r.stamps.values for r in ordered])  # pyright: ignore[reportOptionalMemberAccess]
    first = ordered[0]
    where = f"{first.where} to {ordered[-1].where}"
    values = np.concatenate([r.values for r in ordered])
    assert first.stamps is not None
    return replace(first, values=values, where=where, stamps=replace(first.stamps, values=times))
