"""Tables: pandas DataFrames, Parquet files and text (.csv, .tsv, .txt, .dat)."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from ..._core import checks
from ..._core.errors import DataError
from .codes import is_number
from .dates import from_parts, is_ambiguous, parse_dates
from .records import ReadOptions, Record, find_time, is_time_name, needs, unit_in_name
from .times import Stamps

_MEMBER_COLUMNS = ("member", "ensemble", "realization", "trajectory")
_MISSING = ["nan", "NAN", "+nan", "+NaN", "-nan", "na", "Na", "NA", "n/a", "N/A", "null", "Null", "none", "NONE"]
_FEWEST_ROWS = 20  # that tell a header of numbers from a sample
_DATE = re.compile(r"\d{4}-\d\d")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_SPLIT_DECIMAL = re.compile(r"\s*[-+]?\d+,\d+\s*")  # 0,0412, which may be two whole numbers
_SURE_DECIMAL = re.compile(r"\s*(?:[-+]?0,\d\d\d|[-+]?\d+,0\d)")  # it cannot be
_UNIT = re.compile(r"^(?P<name>.*\S)\s*\[(?P<unit>[^\]]*)\]$")

Lines = list[tuple[int, str]]


def from_dataframe(frame: Any, where: str, options: ReadOptions) -> list[Record]:
    """Return the records of a DataFrame: one, or one for each value of the member column.

    An index of dates, durations or floats, or one named like a time, is the time; so are columns year, month, day, and
    the only column of dates. Columns of text are left out unless they are asked for.
    """
    frame = _index_as_column(frame)
    frame.columns = names = [str(name) for name in frame.columns]
    _refuse_repeated(names, where)
    units = {str(name): str(unit) for name, unit in dict(frame.attrs.get("units") or {}).items()}
    time, member = find_time(options, names, where), options.member
    if time is None and options.stamps is None:
        frame = frame if set(options.variables or ()) & {"year", "month", "day"} else from_parts(frame)
        names, dated = list(frame.columns), list(frame.select_dtypes(["datetime", "datetimetz"]).columns)
        time = dated[0] if len(dated) == 1 else None
    if member is not None:
        checks.known_names("member", member, names, where)
    else:
        free = [name for name in names if name not in (options.variables or ())]
        member = next((name for name in free if name.lower() in _MEMBER_COLUMNS), None)
    known = [name for name in names if name not in (time, member)]
    kinds = dict(zip(frame.columns, frame.dtypes))
    numbers = [name for name in known if is_numeric_dtype(kinds[name])] or known
    wanted = checks.known_names("variables", options.variables or numbers, known, where)
    if not wanted:
        raise DataError(f"{where} holds no variable besides its time stamps.")
    plain = all(isinstance(kinds[name], np.dtype) and kinds[name].kind in "fiub" for name in wanted)
    columns = frame[list(wanted)]
    values = columns.to_numpy(float) if plain else np.column_stack([_to_array(c, where) for _, c in columns.items()])
    stamps = options.stamps
    if stamps is None and time is not None:
        stamps = Stamps(_to_array(frame[time]), time, units.get(time) or unit_in_name(time))
    whole = Record(values, where, [(name, units.get(name, ""), None) for name in wanted], stamps)
    if member is None:
        return [whole]
    groups = frame.groupby(member, sort=False, dropna=False).indices
    return [whole.rows(rows, f" ({member} {label})") for label, rows in groups.items()]


def as_pandas(frame: Any) -> Any:
    """Return a table of another library as a DataFrame, with its names and dates."""
    frame = frame.collect() if hasattr(frame, "collect") else frame
    if hasattr(frame, "get_column"):  # polars, without the need for pyarrow
        return pd.DataFrame({name: frame.get_column(name).to_numpy() for name in frame.columns})
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame.to_frame()


def _index_as_column(frame: Any) -> pd.DataFrame:
    """Return a new DataFrame with an index that is a time, or has a name, as a column."""
    if isinstance(frame, pd.Series):
        frame = frame.to_frame(frame.name if frame.name is not None else "x1")
    if isinstance(frame.index, pd.PeriodIndex):
        frame = frame.set_axis(frame.index.to_timestamp(), axis=0)
    index = frame.index
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex) or (index.name is None and index.dtype.kind == "f"):
        frame = frame.rename_axis(index.name or "time")
    return frame.reset_index(drop=all(name is None for name in frame.index.names))


def _to_array(column: Any, where: str = "") -> np.ndarray:
    """Return a column: nullable numbers with NaN, dates in UTC; with a `where`, refuse what is not a number."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    array = column.to_numpy()
    if where:
        raise DataError(
            f"Column {column.name!r} of {where} holds {array.dtype.name} values where numbers are needed, for example "
            f"{array[0]!r}. Leave it out: variables=[...]."
        )
    return array


def read_parquet(path: Path, options: ReadOptions) -> list[Record]:
    """Read a Parquet file."""
    needs("pyarrow", "parquet", path)
    return from_dataframe(pd.read_parquet(path, engine="pyarrow"), str(path), options)


# Text -----------------------------------------------------------------------------------------------------------------


def read_text(path: Path, options: ReadOptions) -> list[Record]:
    """Read a text table: numbers, with dates in the time column; the header may be missing or behind a #."""
    return from_dataframe(load_text(path, options), str(path), options)


def load_text(path: Path, options: ReadOptions) -> pd.DataFrame:
    """Return a text table with its names and units.

    The last rows say what the columns are: the first rows that do not agree with them are the header.
    """
    lines, comment = _read_lines(path)
    last = [line for _, line in lines[max(1, len(lines) - 3) :]] or [lines[0][1]]
    delimiter = next((d for d in "\t;," if any(d in line for line in last)), None)
    if delimiter == ",":
        rows = [line for _, line in lines[1:]]
        if all(map(_SPLIT_DECIMAL.fullmatch, rows)) and any(map(_SURE_DECIMAL.match, rows)):
            raise DataError(f"{path} looks like one column with decimal commas ({lines[-1][1]!r}). Use decimal points.")
    if delimiter in ("\t", ";") and any(_DECIMAL_COMMA.search(line) for line in last):
        lines = [(number, _DECIMAL_COMMA.sub(".", line)) for number, line in lines]
        last = [_DECIMAL_COMMA.sub(".", line) for line in last]
    kinds = [_is_value(cell) for cell in max((_split(line, delimiter) for line in last), key=len)]
    header, units = _take_header(lines, comment, delimiter, kinds, path)
    width = len(kinds)
    matches = {cell: _UNIT.match(cell) for cell in header or []}  # "T [K]" is the variable T in K
    names = [match["name"] if (match := matches[cell]) else cell for cell in header or []]
    names += [f"x{i + 1}" for i in range(len(names), width)]
    _refuse_repeated(names, str(path))
    frame = _parse_table(lines, width, delimiter, path).set_axis(names, axis=1)
    missing = {"", *_MISSING, *(str(code).lower() for code in options.missing or () if not is_number(code))}
    for name in frame.columns[[kind.kind not in "fiu" for kind in frame.dtypes]]:
        frame[name] = _parse_column(frame[name], name, lines, path, missing)
    if names[-1] in ("", f"x{width}") and frame.iloc[:, -1].isna().all():  # a separator at the end of every row
        frame = frame.iloc[:, :-1]
    if not header:
        _refuse_numbers_as_names(frame, lines[0][1], path)
    frame = _name_index(frame)
    noted = {match["name"]: match["unit"] for match in matches.values() if match}
    frame.attrs["units"] = {**dict(zip(names, units)), **noted}
    return frame


def _read_lines(path: Path) -> tuple[Lines, str]:
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
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"The line that begins with {line[:40]!r} is not one of a table: {error}.") from None


def _is_value(cell: str) -> bool:
    """Tell whether a cell is a number, a date or missing."""
    return is_number(cell) or cell.lower() in {"", *_MISSING} or bool(_DATE.match(cell))


def _take_header(
    lines: Lines, comment: str, delimiter: str | None, kinds: list[bool], path: Path
) -> tuple[list[str], list[str]]:
    """Return names and units of the columns and take their lines off `lines`.

    The header may have another separator than the rows, and no name for columns of text at the end.
    """
    width = len(kinds)
    named = width - next((i for i, value in enumerate(reversed(kinds)) if value), 0)

    def is_row(line: str) -> bool:
        cells = _split(line, delimiter)
        return len(cells) == width and all(_is_value(c) for c, value in zip(cells, kinds) if value)

    def names_in(line: str) -> list[str]:
        ways = (_split(line, way) for way in (delimiter or ",", *"\t;,", None) if not way or way in line)
        fits = (cells for cells in ways if len(cells) in (width, named) and not all(_is_value(c) for c in cells))
        return next(fits, [])

    first = next((i for i, (_, line) in enumerate(lines) if is_row(line)), len(lines))
    top = [line for _, line in lines[:first]]
    if first == len(lines) or not any(kinds):
        raise DataError(f"{path} has a header but no rows.")
    if not top:
        return names_in(comment), []
    header, above = names_in(top[-1]), names_in(top[-2]) if len(top) > 1 else []
    if above and not header:
        raise DataError(f"{path}, line {lines[first - 1][0]}: it is neither a header nor a row of {width} cells.")
    if not header:
        raise DataError(f"The header of {path} has {len(_split(top[-1], delimiter))} cells, the first row {width}.")
    if above and any(_is_value(cell) for cell in header):
        header, above, first = above, [], first - 1  # a row with a cell that is wrong, named below
    del lines[:first]
    return (above, header) if above else (header, [])


def _refuse_repeated(names: list[str], where: str) -> None:
    repeated = pd.Index(names)[pd.Index(names).duplicated()]
    if len(repeated):
        raise DataError(f"The header of {where} names {repeated[0]!r} twice.")


def _parse_table(lines: Lines, width: int, delimiter: str | None, path: Path) -> pd.DataFrame:
    """Parse the cells; name the line of a row with too many or too few."""
    # From pandas 3.1 on, numbers are exact to the last bit by default and this argument is deprecated.
    old = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    exact: dict[str, Any] = {"float_precision": "round_trip"} if old else {}
    text = io.StringIO("\n".join(line for _, line in lines))
    try:
        table = pd.read_csv(
            text, sep=delimiter or r"\s+", header=None, skipinitialspace=True, na_values=_MISSING, **exact
        )
    except pd.errors.ParserError:
        table = pd.DataFrame()
    if table.shape[1] != width or table.iloc[:, -1].isna().any():  # a row that is too short ends with NaN
        for number, line in lines:
            if (count := len(_split(line, delimiter))) != width:
                raise DataError(f"{path}, line {number}: {count} cells where {width} are expected.")
    if table.shape != (len(lines), width):
        raise DataError(f"{path} is not a table of {width} columns: look for quotes that are not closed.")
    return table


def _refuse_numbers_as_names(frame: pd.DataFrame, first: str, path: Path) -> None:
    """Refuse a first row of different whole numbers that lies far from all others: it is a header."""
    cells = re.split("[,;\\s]+", first.strip())
    rest = frame.iloc[1:].select_dtypes("number").to_numpy(float)
    if len(rest) < _FEWEST_ROWS or len(set(cells)) != rest.shape[1] or not all(cell.isdigit() for cell in cells):
        return
    low, high, top = np.nanmin(rest, axis=0), np.nanmax(rest, axis=0), np.array(cells, float)
    if (np.maximum(low - top, top - high) > 2 * (high - low)).all():
        raise DataError(
            f"The first row of {path}, {first.strip()[:60]!r}, lies far from all others: is it a header? Put a # "
            "before it, or name the columns by words."
        )


def _parse_column(column: Any, name: str, lines: Lines, path: Path, missing: set[str]) -> Any:
    """Return numbers, dates where the first cell is one, or text; name the line and column of a cell that is neither.

    A column is text where most cells hold a letter.
    """
    cells = column.fillna("").astype(str).str.strip()
    parsed: Any = pd.Series(parse_dates(cells))
    bad, must = parsed.isna(), "a date, as its first cell is"
    if bad[0]:
        absent = cells.str.lower().isin(missing)
        parsed = pd.to_numeric(cells.mask(absent), errors="coerce")
        bad = parsed.isna() & ~absent
        if (bad & cells.str.contains("[^\\W\\d_]")).sum() > 0.5 * (~absent).sum():
            return cells
        if is_ambiguous(cells[0]):
            raise DataError(
                f"{path}, column {name!r}: in {cells[0]!r} and all other cells the day may be the month. Write dates "
                "as 2024-01-31."
            )
        must = "a number. Name codes for missing samples in missing=[...]; the decimal sign is a point"
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise DataError(f"{path}, line {lines[row][0]}, column {name!r}: {cells[row]!r} is not {must}.")
    return parsed


def _name_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Treat a first column without a name as an index: dates are the time, 0, 1, 2, ... is left out."""
    if frame.columns[0] != "":
        return frame
    first = frame[""]
    if first.dtype.kind == "M" and not any(is_time_name(name) for name in frame.columns):
        return frame.rename(columns={"": "time"})
    counts = first.dtype.kind in "iuf" and np.array_equal(first, np.arange(len(first)))
    return frame.drop(columns="") if counts else frame.rename(columns={"": "index"})
