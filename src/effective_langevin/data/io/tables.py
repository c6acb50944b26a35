"""Tables: pandas DataFrames, Parquet files and text (.csv, .tsv, .txt, .dat)."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from .clock import Stamps, is_stamp_like, parse_dates
from .records import ReadOptions, Record, find_time, is_time_name, needs

_MEMBER_COLUMNS = ("member", "ensemble", "realization", "trajectory")
_MISSING = ["nan", "NAN", "+nan", "+NaN", "-nan", "na", "Na", "NA", "n/a", "N/A", "null", "Null", "none", "NONE"]
_UNIT = re.compile(r"^(?P<name>.*\S)\s*\[(?P<unit>[^\]]*)\]$")


def from_dataframe(frame: Any, where: str, options: ReadOptions) -> list[Record]:
    """Return the records of a DataFrame: one, or one for each value of the member column.

    An index of dates, durations or floats, or one called like a time, is the time.
    """
    frame = _with_index_as_column(frame)
    names = [str(name) for name in frame.columns]
    _refuse_repeated(names, f"The header of {where}")
    frame = frame.set_axis(names, axis=1)
    units = {str(name): str(unit) for name, unit in dict(frame.attrs.get("units") or {}).items()}
    time, member = find_time(options, names, where), _find_member(names, options, where)
    known = [name for name in names if name not in (time, member)]
    wanted = checks.known_names("variables", options.variables, known, where) if options.variables else tuple(known)
    if not wanted:
        raise DataError(f"{where} holds no variable besides its time stamps.")
    values = np.column_stack([_to_numbers(frame[name], where) for name in wanted])
    stamps = Stamps(np.asarray(options.time)) if is_stamp_like(options.time) else None
    if time is not None:
        stamps = Stamps(_to_array(frame[time]), time, units.get(time, ""))
    whole = Record(values, where, wanted, tuple(units.get(name, "") for name in wanted), stamps=stamps)
    if member is None:
        return [whole]
    groups = frame.groupby(member, sort=False, dropna=False).indices
    return [whole.rows(rows, f" ({member} {label})") for label, rows in groups.items()]


def _with_index_as_column(frame: Any) -> Any:
    import pandas as pd

    if isinstance(frame, pd.Series):
        frame = frame.to_frame(frame.name if frame.name is not None else "x1")
    if isinstance(frame.index, pd.PeriodIndex):
        frame = frame.set_axis(frame.index.to_timestamp(), axis=0)
    index = frame.index
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex) or (index.name is None and index.dtype.kind == "f"):
        return frame.rename_axis(index.name or "time").reset_index()
    return frame.reset_index() if any(name is not None for name in index.names) else frame


def _find_member(names: list[str], options: ReadOptions, where: str) -> str | None:
    if options.member is not None:
        return checks.known_names("member", options.member, names, where)[0]
    return next((n for n in names if n.lower() in _MEMBER_COLUMNS and n not in (options.variables or ())), None)


def _to_array(column: Any) -> np.ndarray:
    """Return a column as a numpy array: nullable numbers with NaN, dates in UTC."""
    import pandas as pd

    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    return column.to_numpy()


def _to_numbers(column: Any, where: str) -> np.ndarray:
    """Return a column as float64; refuse text, dates and objects."""
    array = _to_array(column)
    if array.dtype.kind != "f":
        raise DataError(
            f"Column {column.name!r} of {where} holds {array.dtype.name} values where numbers are needed, for example "
            f"{array[0]!r}. Leave it out: variables=[...]."
        )
    return array


def read_parquet(path: Path, options: ReadOptions) -> list[Record]:
    """Read a Parquet file."""
    import pandas as pd

    needs("pyarrow", "parquet", path)
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"{path} is not a readable Parquet file: {reason}") from error
    return from_dataframe(frame, str(path), options)


# Text -----------------------------------------------------------------------------------------------------------------


def read_text(path: Path, options: ReadOptions) -> list[Record]:
    """Read a text table: numbers, with dates in the time column; the header may be missing or behind a #."""
    lines, comment = _read_lines(path)
    delimiter = next((d for d in "\t;," if any(d in line for _, line in lines[:2])), None)
    header = _find_header(lines, comment, delimiter)
    if not lines:
        raise DataError(f"{path} has a header but no rows.")
    names, units = _read_labels(header, len(_split(lines[0][1], delimiter)), path)
    frame = _parse(lines, names, delimiter, path)
    frame = _without_counter(frame) if names[0] == "" else frame
    frame.attrs["units"] = units
    return from_dataframe(frame, str(path), options)


def _read_lines(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Return numbered lines without blank ones and comments, and the last comment before them."""
    try:
        every = list(enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file: byte {error.start} is not UTF-8.") from error
    lines = [(number, line) for number, line in every if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise DataError(f"{path} is empty.")
    comments = [line.strip(" \t#") for _, line in every[: lines[0][0] - 1] if line.strip()]
    return lines, comments[-1] if comments else ""


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]


def _find_header(lines: list[tuple[int, str]], comment: str, delimiter: str | None) -> list[str] | None:
    """Return the cells of the header and take it off `lines`; a comment of as many cells as the first row is one."""
    first = _split(lines[0][1], delimiter)
    if not all(_is_value(cell) or cell.lower() in {"", *_MISSING} for cell in first):
        lines.pop(0)
        return first
    noted = _split(comment, delimiter) if comment else []
    return noted if len(noted) == len(first) and not any(_is_value(cell) for cell in noted) else None


def _is_value(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not np.isnat(parse_dates([cell])[0])
    return True


def _read_labels(header: list[str] | None, width: int, path: Path) -> tuple[list[str], dict[str, str]]:
    """Return names and units; "T [K]" is the variable T in K."""
    if header is None:
        return [f"x{i + 1}" for i in range(width)], {}
    if len(header) != width:
        raise DataError(f"The header of {path} has {len(header)} cells, the first row {width}.")
    matches = [_UNIT.match(cell) for cell in header]
    names = [match["name"] if match else cell for match, cell in zip(matches, header)]
    _refuse_repeated(names, f"The header of {path}")
    return names, {match["name"]: match["unit"] for match in matches if match}


def _refuse_repeated(names: list[str], what: str) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise DataError(f"{what} names {repeated[0]!r} twice.")


def _parse(lines: list[tuple[int, str]], names: list[str], delimiter: str | None, path: Path) -> Any:
    """Return the table as a DataFrame of numbers and dates; name the line and column of a cell that is neither."""
    import pandas as pd

    # From pandas 3.1 on, numbers are exact to the last bit by default and this argument is deprecated.
    old = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    options: dict[str, Any] = {"float_precision": "round_trip"} if old else {}
    text = io.StringIO("\n".join(line for _, line in lines))
    try:
        frame = pd.read_csv(
            text, sep=delimiter or r"\s+", header=None, skipinitialspace=True, na_values=_MISSING, **options
        )
    except pd.errors.ParserError:
        frame = pd.DataFrame()
    if frame.shape[1] != len(names) or frame.iloc[:, -1].isna().any():  # a row that is too short ends with NaN
        for number, line in lines:
            if (count := len(_split(line, delimiter))) != len(names):
                raise DataError(f"{path}, line {number}: {count} cells where {len(names)} are expected.")
    columns = (_parse_column(frame[i], name, lines, path) for i, name in enumerate(names))
    return pd.DataFrame(dict(zip(names, columns)))


def _parse_column(column: Any, name: str, lines: list[tuple[int, str]], path: Path) -> Any:
    """Return numbers, or dates where the first cell is one."""
    import pandas as pd

    if column.dtype.kind in "fiu":
        return column.astype(float)
    cells = column.fillna("").astype(str).str.strip()
    parsed = pd.Series(parse_dates(cells))
    bad, must = parsed.isna(), "a date, as its first cell is"
    if bad[0]:
        missing = cells.str.lower().isin(["", *_MISSING])
        parsed = pd.to_numeric(cells.mask(missing), errors="coerce")
        bad = parsed.isna() & ~missing
        must = "a number. Missing samples are left empty or written NaN; the decimal sign is a point"
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise DataError(f"{path}, line {lines[row][0]}, column {name!r}: {cells[row]!r} is not {must}.")
    return parsed


def _without_counter(frame: Any) -> Any:
    """Treat a first column without a name as an index: dates are the time, 0, 1, 2, ... is left out."""
    first = frame[""]
    if first.dtype.kind == "M" and not any(is_time_name(name) for name in frame.columns):
        return frame.rename(columns={"": "time"})
    counts = first.dtype.kind == "f" and np.array_equal(first, np.arange(len(first)))
    return frame.drop(columns="") if counts else frame.rename(columns={"": "index"})
