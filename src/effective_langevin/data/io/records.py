"""What every reader delivers, and how records become one `TimeSeries`."""

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import ArgumentError, DataError
from ..series import Label, Periods, TimeSeries
from .times import Stamps, agree, resample, to_grid

TIME_NAMES = ("time", "date", "datetime", "timestamp")
_MOST_MISSING = 1_000_000


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of `read`, apart from the source."""

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
            wanted = (self.variables,) if isinstance(self.variables, str) else tuple(self.variables)
            checks.not_empty("variables", wanted, "one name or more")
            object.__setattr__(self, "variables", wanted)
        checks.optional_positive_number("dt", self.dt)
        if not isinstance(self.resample, bool):
            checks.optional_positive_number("resample", self.resample)
        checks.instance_of("join", self.join, (bool,))

    @property
    def stamps(self) -> Stamps | None:
        """The time stamps, where `time` gives these rather than a name."""
        given = not isinstance(self.time, str | bool) and np.ndim(self.time) == 1
        return Stamps(np.asarray(self.time)) if given else None


@dataclass(frozen=True, eq=False)
class Record:
    """One record as found: (time, var) values, labels where there are any, and time stamps or a noted dt."""

    values: np.ndarray
    where: str
    labels: Sequence[Label] = ()
    stamps: Stamps | None = None
    dt: float | None = None
    dt_unit: str = ""

    def pick(self, variables: Any) -> "Record":
        """Return the variables asked for, in that order."""
        names = [name for name, _, _ in self.labels]
        columns = [names.index(v) for v in checks.known_names("variables", variables, names, self.where)]
        return replace(self, values=self.values[..., columns], labels=[self.labels[c] for c in columns])

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
    """Tell whether a column or key is named like a time; "t" is one, "T" is a temperature."""
    return name == "t" or str(name).lower() in TIME_NAMES


def find_time(options: ReadOptions, available: Iterable[str], where: str) -> str | None:
    """Find the column or key that holds the time: the one asked for, or one that is named like a time."""
    if isinstance(options.time, str):
        return checks.known_names("time", options.time, available, where)[0]
    return next((n for n in available if is_time_name(n) and n not in (options.variables or ())), None)


def assemble(records: Sequence[Record], options: ReadOptions) -> TimeSeries:
    """Put every record on a uniform grid, with missing stamps as rows of NaN, and make one series of them."""
    _check_same_variables(records)
    if options.join:
        records = [_join(records)]
    values, starts, dt, unit = [], [], None, options.time_unit or ""
    for record in records:
        placed, start, step, step_unit = _place(record, options, unit)
        if dt is not None and abs(step / dt - 1) > 1e-6:
            raise DataError(
                f"{record.where} has dt = {step:g}, {records[0].where} has {dt:g}: records of one series share "
                "the sampling interval. Pass resample=STEP to bring them to one."
            )
        dt, unit = dt or step, unit or step_unit
        values.append(placed)
        starts.append(start)
    names, units, periods = zip(*records[0].labels) if records[0].labels else (None, None, None)
    return TimeSeries(
        values,
        dt,
        names=options.names or names,
        units=options.units or units,
        periods=periods if options.periods is None else options.periods,
        time_unit=unit,
        start=starts,
    )


def _place(record: Record, options: ReadOptions, unit: str) -> tuple[np.ndarray, float, float, str]:
    """Return the values of one record on its grid, their start, dt and unit of time."""
    values = checks.real_samples(record.values, f"The data of {record.where}")
    stamps = None if options.time is False else record.stamps
    if stamps is None:
        checks.not_given("resample", options.resample or None, f"{record.where} has no time coordinate.")
        hint = f"{record.where} has no time coordinate, so give its sampling interval, in your unit of time."
        dt = checks.positive_number("dt", options.dt if options.dt is not None else record.dt, hint)
        return values, 0.0, dt, unit or record.dt_unit
    if len(stamps.values) != len(values):
        raise DataError(f"{record.where} has {len(stamps.values)} time stamps for {len(values)} rows.")
    grid = to_grid(replace(stamps, unit=stamps.unit or record.dt_unit), record.where, unit)
    if options.resample:
        step = None if options.resample is True else float(options.resample)
        if grid.complaint or step not in (None, grid.dt):
            values, grid = resample(values, grid, step)
    if grid.complaint:
        raise DataError(grid.complaint)
    spacing = f"{grid.dt:g} {grid.unit}".rstrip()
    if options.dt is not None:
        if not agree(options.dt, options.time_unit or "", grid):
            raise ArgumentError(
                f"Argument `dt` is {options.dt!r}, but the time coordinate is spaced by {spacing}. Leave `dt` out, or "
                f"pass time=False to ignore the time coordinate of {record.where}."
            )
    elif record.dt is not None and not options.resample and not agree(record.dt, record.dt_unit, grid):
        raise DataError(
            f"{record.where} notes dt = {record.dt:g} {record.dt_unit}".rstrip() + f", but its time stamps are "
            f"{spacing} apart. Pass time=False to use the noted dt, or correct the file."
        )
    return _fill_gaps(values, grid.rows, record.where), grid.start, grid.dt, grid.unit


def _fill_gaps(values: np.ndarray, rows: np.ndarray, where: str) -> np.ndarray:
    """Insert a row of NaN for every missing stamp."""
    length = int(rows[-1]) + 1
    missing = length - len(values)
    if not missing:
        return values
    if missing > max(_MOST_MISSING, 20 * len(values)):
        raise DataError(
            f"{where} misses {missing:,} time stamps of {length:,}. Read its parts as separate records: "
            "el.read([first, second])."
        )
    filled = np.full((length, values.shape[1]), np.nan)
    filled[rows] = values
    return filled


def _check_same_variables(records: Sequence[Record]) -> None:
    first = records[0]
    names = [[name for name, _, _ in r.labels] for r in records]
    units = [[unit for _, unit, _ in r.labels] for r in records]
    held = [", ".join(n) or f"{r.values.shape[1]} variables" for n, r in zip(names, records)]
    for record, holds, unit in zip(records, held, units):
        if holds != held[0]:
            raise DataError(
                f"{record.where} holds {holds}, {first.where} holds {held[0]}: records of one series have the same "
                "variables in the same order. Pick them with variables=[...]."
            )
        if unit != units[0]:
            raise DataError(f"{record.where} has the units {unit}, {first.where} {units[0]}.")


def _join(records: Sequence[Record]) -> Record:
    """Join records that continue one another, in the order of their first stamps."""
    if any(r.stamps is None for r in records):
        raise DataError("Records are joined by their time stamps, and there are none. Leave `join` out.")
    stamped = sorted(((r.stamps, r) for r in records if r.stamps), key=lambda pair: pair[0].values[0])
    stamps, first, last = stamped[0][0], stamped[0][1], stamped[-1][1]
    times = np.concatenate([s.values for s, _ in stamped])
    values = np.concatenate([r.values for _, r in stamped])
    return replace(first, values=values, where=f"{first.where} to {last.where}", stamps=replace(stamps, values=times))
