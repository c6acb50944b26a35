"""Text tables (.csv, .tsv, .txt, .dat) with numpy alone: header, units in brackets, dates, missing cells."""

import csv
import re
from pathlib import Path

import numpy as np

from ..._core.errors import DataError
from .dates import parse_iso
from .records import Record, Wishes, is_time_name
from .tables import from_columns

_MISSING = {"", "nan", "+nan", "-nan", "na", "n/a", "null", "none"}
_UNIT = re.compile(r"^(?P<name>.*\S)\s*\[(?P<unit>[^\]]*)\]$")


def read_text(path: Path, wishes: Wishes) -> list[Record]:
    """A table of numbers, with dates allowed in the time column; the header may be missing or behind a #."""
    lines, comment = _content(path)
    delimiter = _delimiter([line for _, line in lines[:2]])
    header = _header(lines, comment, delimiter)
    if not lines:
        raise DataError(f"{path} has a header but no rows.")
    width = len(_cells(lines[0][1], delimiter))
    names, units = _labels(header, width, path)
    columns = _columns(lines, names, delimiter, path)
    if names[0] == "":
        columns = _without_index(columns)
    return from_columns(columns, str(path), wishes, units)


def _content(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Numbered lines without blank ones and comments, and the last comment before the data."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file: byte {error.start} is not UTF-8.") from error
    lines, comment = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            comment = comment if lines else line.lstrip().lstrip("#").strip()
        elif line.strip():
            lines.append((number, line))
    if not lines:
        raise DataError(f"{path} is empty.")
    return lines, comment


def _delimiter(lines: list[str]) -> str | None:
    """Tab, semicolon or comma, whichever the first two lines hold; otherwise any white space."""
    return next((d for d in "\t;," if any(d in line for line in lines)), None)


def _cells(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]


def _header(lines: list[tuple[int, str]], comment: str, delimiter: str | None) -> list[str] | None:
    """The cells of the header, taken off `lines`; a comment of as many cells as the first row is one too."""
    first = _cells(lines[0][1], delimiter)
    if not all(_is_value(cell) or _is_missing(cell) for cell in first):
        lines.pop(0)
        return first
    noted = _cells(comment, delimiter)
    return noted if len(noted) == len(first) and not any(_is_value(c) for c in noted) else None


def _labels(header: list[str] | None, width: int, path: Path) -> tuple[list[str], dict[str, str]]:
    """Names and units, "T [K]" being the variable T in K."""
    if header is None:
        return [f"x{i + 1}" for i in range(width)], {}
    if len(header) != width:
        raise DataError(f"The header of {path} has {len(header)} cells, the first row {width}.")
    matches = [_UNIT.match(cell) for cell in header]
    names = [m["name"] if m else cell for m, cell in zip(matches, header)]
    doubled = {n for n in names if names.count(n) > 1}
    if doubled:
        raise DataError(f"The header of {path} names {sorted(doubled)[0]!r} twice.")
    return names, {m["name"]: m["unit"] for m in matches if m}


def _columns(
    lines: list[tuple[int, str]], names: list[str], delimiter: str | None, path: Path
) -> dict[str, np.ndarray]:
    """All columns; numpy's parser does plain numbers, the slow way does dates, missing cells and errors."""
    try:
        block = np.loadtxt([line for _, line in lines], delimiter=delimiter, ndmin=2, comments=None, quotechar='"')
        if block.shape[1] == len(names):
            return dict(zip(names, block.T))
    except ValueError:
        pass
    rows = []
    for number, line in lines:
        cells = _cells(line, delimiter)
        if len(cells) != len(names):
            raise DataError(f"{path}, line {number}: {len(cells)} cells where {len(names)} are expected.")
        rows.append(cells)
    numbers = [number for number, _ in lines]
    return {name: _column(cells, name, numbers, path) for name, cells in zip(names, zip(*rows))}


def _column(cells: tuple[str, ...], name: str, numbers: list[int], path: Path) -> np.ndarray:
    """Numbers, or dates where the first cell is one."""
    if _is_date(cells[0]) and not _is_number(cells[0]):
        return _parsed(cells, name, numbers, path, parse_iso, "a date, as its first cell is", "datetime64[us]")
    return _parsed(
        cells, name, numbers, path, lambda c: np.nan if _is_missing(c) else float(c),
        "a number. Missing samples are left empty or written NaN; the decimal sign is a point", "float64",
    )  # fmt: skip


def _parsed(cells, name, numbers, path, parse, must, dtype) -> np.ndarray:
    out = np.empty(len(cells), dtype=dtype)
    for row, cell in enumerate(cells):
        try:
            out[row] = parse(cell)
        except ValueError:
            raise DataError(f"{path}, line {numbers[row]}, column {name!r}: {cell!r} is not {must}.") from None
    return out


def _without_index(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A first column without a name is the index of a table: dates are the time, 0, 1, 2, ... says nothing."""
    first = columns.pop("")
    if first.dtype.kind == "M" and not any(is_time_name(n) for n in columns):
        return {"time": first, **columns}
    counts = first.dtype.kind == "f" and np.array_equal(first, np.arange(len(first)))
    return columns if counts else {"index": first, **columns}


def _is_missing(cell: str) -> bool:
    return cell.lower() in _MISSING


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_date(cell: str) -> bool:
    try:
        parse_iso(cell)
    except ValueError:
        return False
    return True


def _is_value(cell: str) -> bool:
    return _is_number(cell) or _is_date(cell)
