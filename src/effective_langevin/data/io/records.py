"""What every reader delivers, and how records become one `TimeSeries`."""

import importlib
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks, timeunits
from ..._core.errors import ArgumentError, DataError, EstimateWarning
from ..lazy import Rows
from ..series import Label, Periods, TimeSeries
from .codes import mark_missing, refuse_clocks, refuse_codes
from .dates import as_index
from .times import Grid, Stamps, agree, put_in_order, resample, to_grid

# "t" is a time, "T" a temperature; a unit may follow: time_s, time (s), t/ms.
_TIME_NAME = re.compile(r"^(?:t|(?i:time|date|datetime|timestamp))(?:\s*[\[(/_ ]\s*(?P<unit>[^\W\d]+)\s*[\])]?)?$")
_MOST_MISSING = 20_000_000  # numbers with which gaps may be filled, or 20 times as many as there are
_SHORT, _MANY = 8, 10  # stretches between gaps: rows, and how many of them look like weeks


_CODES = "Give the codes for missing samples as a number or a list: missing=[999, 1e36]."


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
    missing: Any = None
    begin: Any = None
    end: Any = None
    calendar: str | None = None
    records_in_columns: bool = False
    chunks: int | str | None = None

    def __post_init__(self):
        if self.variables is not None:
            wanted = (self.variables,) if isinstance(self.variables, str) else tuple(self.variables)
            checks.not_empty("variables", wanted, "one name or more")
            object.__setattr__(self, "variables", checks.distinct("variables", wanted))
        if self.missing is not None:
            one = isinstance(self.missing, str | float | int)
            codes = [self.missing] if one else list(checks.instance_of("missing", self.missing, (list, tuple), _CODES))
            object.__setattr__(self, "missing", tuple(codes))
        checks.one_of("calendar", self.calendar, (None, "rows"))
        checks.optional_positive_number("dt", self.dt)
        if not isinstance(self.resample, bool):
            checks.optional_positive_number("resample", self.resample)
        checks.instance_of("join", self.join, (bool,))
        if self.chunks not in (None, "auto"):
            checks.integer_at_least("chunks", self.chunks, 1)

    @property
    def stamps(self) -> Stamps | None:
        """The time stamps, where `time` gives these rather than a name."""
        given = not isinstance(self.time, str | bool) and np.ndim(self.time) == 1
        return Stamps(np.asarray(self.time)) if given else None


@dataclass(frozen=True, eq=False)
class Record:
    """One record as found: (time, var) values, labels where there are any, and time stamps or a noted dt.

    Values that are read by blocks come with the first time stamps only, and a `clock` from which all are read.
    """

    values: Any
    where: str
    labels: Sequence[Label] = ()
    stamps: Stamps | None = None
    dt: float | None = None
    dt_unit: str = ""
    clock: Rows | None = None

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
    """Tell whether a column or key is named like a time, with or without its unit."""
    match = _TIME_NAME.match(str(name).strip())
    return bool(match and (match["unit"] is None or timeunits.canonical(match["unit"])))


def unit_in_name(name: str) -> str:
    """Return the unit of time in the name of a time column: "s" in "time_s"."""
    match = _TIME_NAME.match(name.strip()) if is_time_name(name) else None
    return (match and match["unit"]) or ""


def find_time(options: ReadOptions, available: Iterable[str], where: str) -> str | None:
    """Find the column or key that holds the time: the one asked for, or one that is named like a time.

    The beginning of a name that no other name shares is enough.
    """
    available = [str(name) for name in available]
    if isinstance(options.time, str):
        meant = [name for name in available if name.lower().startswith(options.time.lower())]
        exact = options.time in available or len(meant) != 1
        return checks.known_names("time", options.time if exact else meant[0], available, where)[0]
    free = [name for name in available if name not in (options.variables or ())]
    return next((name for name in free if is_time_name(name)), None)


def assemble(records: Sequence[Record], options: ReadOptions) -> TimeSeries:
    """Put every record on a uniform grid, with missing stamps as rows of NaN, and make one series of them."""
    _check_same_variables(records)
    if all(isinstance(r.values, Rows) for r in records):
        from .by_blocks import assemble_rows

        return assemble_rows(records, options)
    if options.join:
        records = [_join(records)]
    records = [replace(r, values=mark_missing(r.values, options.missing)) for r in records]
    refuse_clocks(records, options)
    refuse_codes(records, options)
    if options.records_in_columns:
        records = [part for record in records for part in _split_columns(record, options)]
    values, grids, unit = [], [], options.time_unit or ""
    for record in records:
        placed, grid = _place(record, options, unit)
        if grids and abs(grid.dt / grids[0].dt - 1) > 1e-6:
            raise DataError(
                f"{record.where} has dt = {grid.dt:g}, {records[0].where} has {grids[0].dt:g}: records of one series "
                "share the sampling interval. Pass resample=STEP to bring them to one."
            )
        unit = unit or grid.unit
        values.append(placed)
        grids.append(grid)
    steps = np.diff(grids[0].rows)
    gaps = int((steps > 1).sum())
    if grids[0].calendar and gaps >= _MANY and len(steps) < _SHORT * gaps:
        warnings.warn(
            f"The dates have a gap after every {round(len(steps) / gaps)} rows (weekends?), and no lag crosses a gap. "
            'Pass calendar="rows" to count time in rows, or resample=STEP to interpolate.',
            EstimateWarning,
            stacklevel=3,
        )
    return make_series(values, [grid.start for grid in grids], grids[0], records[0].labels, options, unit)


def make_series(
    values: list, starts: list[float], grid: Grid, labels: Sequence[Label], options: ReadOptions, unit: str
) -> TimeSeries:
    """Return records that begin at some times as a series, with the labels found or those asked for."""
    names, units, periods = zip(*labels) if labels else (None, None, None)
    return TimeSeries(
        values,
        grid.dt,
        names=options.names or names,
        units=options.units or units,
        periods=periods if options.periods is None else options.periods,
        time_unit=unit,
        start=starts,
        calendar=grid.calendar,
    )


def _split_columns(record: Record, options: ReadOptions) -> list[Record]:
    """Return a record of one variable for each column, named by the letters with which the first begins."""
    names, units, periods = zip(*record.labels) if record.labels else (("x",), ("",), (None,))
    letters = re.match(r"[^\W\d_]*", names[0])
    label = (options.names[0] if options.names else (letters and letters[0]) or "x", units[0], periods[0])
    parts = enumerate(np.split(record.values, record.values.shape[1], axis=1), 1)
    return [replace(record, values=v, labels=[label], where=f"{record.where} (column {i})") for i, v in parts]


def _place(record: Record, options: ReadOptions, unit: str) -> tuple[np.ndarray, Grid]:
    """Return the values of one record on its grid, and the grid."""
    values = checks.real_samples(record.values, f"The data of {record.where}")
    if not len(values):
        raise DataError(f"{record.where[0].upper()}{record.where[1:]} has no rows.")
    stamps = None if options.time is False else record.stamps
    if stamps is not None:
        _check_stamps(stamps, values, record.where)
    if stamps is None:
        grid = count_rows(record, options, unit)
        values, stamps = _cut(values, Stamps(grid.times), options, record.where)
        return values, replace(grid, start=float(stamps.values[0]), rows=grid.rows[: len(values)])
    values, stamps = _cut(values, stamps, options, record.where)
    stamps, order = put_in_order(replace(stamps, unit=stamps.unit or record.dt_unit))
    values = values[order]
    if options.calendar == "rows":
        return values, Grid(0.0, options.dt or 1.0, unit or "row", np.arange(len(values)), np.arange(len(values)))
    grid = to_grid(stamps, record.where, unit)
    if options.resample:
        step = None if options.resample is True else float(options.resample)
        if grid.complaint or step not in (None, grid.dt) or int(grid.rows[-1]) >= len(values):
            values, grid = resample(values, grid, step)
    if grid.complaint:
        raise DataError(grid.complaint)
    _check_stated_dt(record, options, grid)
    return _fill_gaps(values, grid.rows, record.where), grid


def _check_stamps(stamps: Stamps, values: np.ndarray, where: str) -> None:
    """Refuse stamps that are not one for each row."""
    if stamps.values.ndim != 1:
        raise DataError(
            f"The time coordinate `{stamps.name}` of {where} has {stamps.values.ndim} axes; it must have one."
        )
    if len(stamps.values) != len(values):
        raise DataError(f"{where} has {len(stamps.values)} time stamps for {len(values)} rows.")


def count_rows(record: Record, options: ReadOptions, unit: str) -> Grid:
    """Return the grid of a record without time stamps: the stated dt, converted where its unit is noted."""
    checks.not_given("resample", options.resample or None, f"{record.where} has no time coordinate.")
    hint = f"{record.where} has no time coordinate, so give its sampling interval, in your unit of time."
    dt = options.dt if options.dt is not None else 1.0 if options.calendar == "rows" else record.dt
    dt, rows = checks.positive_number("dt", dt, hint), np.arange(len(record.values))
    if options.dt is None and record.dt is not None and unit and record.dt_unit:
        has, wants = timeunits.canonical(record.dt_unit), timeunits.canonical(unit)
        if has != wants or not has:
            checks.one_of("time_unit", wants or unit, timeunits.SECONDS)
            checks.one_of(f"dt_unit of {record.where}", has or record.dt_unit, timeunits.SECONDS)
            dt *= timeunits.ratio(timeunits.SECONDS[has], timeunits.SECONDS[wants])
    grid = Grid(0.0, dt, unit or record.dt_unit or ("row" if options.calendar == "rows" else ""), rows, dt * rows)
    if options.dt is not None and options.time is not False:
        noted = options.time_unit or record.dt_unit
        if record.dt is not None and not agree(record.dt, record.dt_unit, replace(grid, unit=noted)):
            noted = f"{record.dt:g} {record.dt_unit}".rstrip()
            raise ArgumentError(
                f"Argument `dt` is {options.dt!r}, but {record.where} notes dt = {noted}. Leave `dt` out, or pass "
                "time=False to ignore what the file notes."
            )
    return grid


def _check_stated_dt(record: Record, options: ReadOptions, grid: Grid) -> None:
    """Refuse a dt, given or noted in the file, that contradicts the time stamps."""
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


def _cut(values: np.ndarray, stamps: Stamps, options: ReadOptions, where: str) -> tuple[np.ndarray, Stamps]:
    """Return the rows between `begin` and `end`: numbers as in the file, or dates, of which a part is enough."""
    if options.begin is None and options.end is None:
        return values, stamps
    if stamps.values.dtype.kind in "iuf":
        try:
            ends = [None if end is None else float(end) for end in (options.begin, options.end)]
        except ValueError:
            must = f"numbers, as the time coordinate `{stamps.name}` of {where}"
            raise checks.refused("begin and end", must, (options.begin, options.end)) from None
        low, high = (e if e is not None else limit for e, limit in zip(ends, (-np.inf, np.inf)))
        rows = np.flatnonzero((stamps.values >= low) & (stamps.values <= high))
    else:
        index = as_index(stamps.values, f"The time coordinate `{stamps.name}` of {where}")
        try:
            wanted = index.slice_indexer(*(e and str(e) for e in (options.begin, options.end)))
        except (KeyError, ValueError, TypeError):
            raise checks.refused("begin and end", "dates such as 1980-01", (options.begin, options.end)) from None
        rows = np.arange(len(index))[wanted]
    if len(rows) < 2:
        first, last = stamps.values[0], stamps.values[-1]
        wanted = f"{options.begin or 'its start'} to {options.end or 'its end'}"
        raise DataError(f"{where} goes from {first} to {last}, with {len(rows)} rows from {wanted}.")
    return values[rows], replace(stamps, values=stamps.values[rows])


def _fill_gaps(values: np.ndarray, rows: np.ndarray, where: str) -> np.ndarray:
    """Insert a row of NaN for every missing stamp."""
    length = int(rows[-1]) + 1
    missing = length - len(values)
    if not missing:
        return values
    if missing * values.shape[1] > max(_MOST_MISSING, 20 * values.size):
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
    for record in records:
        if record.stamps is not None:
            _check_stamps(record.stamps, record.values, record.where)
            checks.enough_samples(len(record.values), 1, "a record to join")
    stamped = sorted(((r.stamps, r) for r in records if r.stamps), key=lambda pair: pair[0].values[0])
    stamps, first, last = stamped[0][0], stamped[0][1], stamped[-1][1]
    times = np.concatenate([s.values for s, _ in stamped])
    values = np.concatenate([r.values for _, r in stamped])
    return replace(first, values=values, where=f"{first.where} to {last.where}", stamps=replace(stamps, values=times))
