"""Columns that are not what they seem: codes for missing values, and clocks among the variables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.errors import DataError

if TYPE_CHECKING:
    from .records import ReadOptions, Record

_FAR, _APART = 20, 10  # robust standard deviations from the median, and from the next value
_MOST_CODES = 5
_USUAL = (999.0, 999.9, 9999.0, 9999.9, 99999.0, 1e20, 1e30, 1e36)  # codes also where they occur once
_FEWEST_ROWS = 20  # from which on two equal values far out are no accident
_FEWEST_TICKS = 32


def mark_missing(values: np.ndarray, codes: Sequence[float | str] | None) -> np.ndarray:
    """Return the values with NaN in place of the codes, which are compared to the precision of float32."""
    numbers = [float(code) for code in codes or () if is_number(code)]
    if not numbers or values.dtype.kind not in "fiu":
        return values
    values = values.astype(float)
    for code in numbers:
        values[np.isclose(values, code, rtol=1e-6, atol=0)] = np.nan
    return values


def is_number(text: Any) -> bool:
    """Tell whether a code is a number and not a text."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def find_codes(column: np.ndarray) -> list[tuple[float, int]]:
    """Find values that repeat exactly, more than 20 robust standard deviations from the median and alone out there."""
    rest, found = column[np.isfinite(column)], []
    while len(rest) > 2 and len(found) < _MOST_CODES:
        median = np.median(rest)
        far = max((rest.max(), rest.min()), key=lambda x: abs(x - median))
        others = rest[rest != far]
        repeats = len(rest) - len(others) > 1 and len(rest) >= _FEWEST_ROWS
        if not len(others) or not (repeats or abs(far) in _USUAL):
            return found
        spread = 1.4826 * np.median(np.abs(others - np.median(others))) or others.std()
        nearest = np.abs(others - far).min()
        if not spread > 0 or abs(far - np.median(others)) <= _FAR * spread or nearest <= _APART * spread:
            return found
        found.append((float(far), len(rest) - len(others)))
        rest = others
    return found


def describe_codes(codes: list[tuple[float, int]]) -> str:
    """Say which values look like codes."""
    shown = ", ".join(f"{code:g} ({count} times)" for code, count in codes)
    return f"holds {shown}, far from all other values: a code for missing samples?"


def refuse_codes(records: "Sequence[Record]", options: "ReadOptions") -> None:
    """Refuse values that look like codes for missing ones, unless `missing` is empty."""
    if options.missing is not None and not len(options.missing):
        return
    for record in records:
        for name, column in _columns(record):
            codes = find_codes(column)
            if codes:
                given = [*(options.missing or ()), *(code for code, _ in codes)]
                listed = ",".join(f"{code:g}" if is_number(code) else str(code) for code in given)
                raise DataError(
                    f"Variable {name!r} of {record.where} {describe_codes(codes)} Pass missing=[{listed}], or "
                    "missing=[] if they are samples."
                )


def refuse_clocks(records: "Sequence[Record]", options: "ReadOptions") -> None:
    """Refuse a column that grows evenly from row to row, unless it was asked for."""
    if options.variables is not None:
        return
    for record in records:
        for name, column in _columns(record):
            steps = np.diff(column)
            if len(steps) < _FEWEST_TICKS or not ((steps > 0).all() or (steps < 0).all()):
                continue
            line = column[0] + (column[-1] - column[0]) / len(steps) * np.arange(len(column))
            if np.abs(column - line).max() <= 0.5 * np.abs(steps).mean():
                asked = f"time={name!r} to use it as the time, or " if record.stamps is None else ""
                raise DataError(
                    f"Column {name!r} of {record.where} grows evenly from row to row: a clock or a counter, not a "
                    f"variable. Pass {asked}variables=[...] to name the variables."
                )


def _columns(record: "Record") -> list[tuple[str, np.ndarray]]:
    values = record.values
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        return []
    names = [label[0] for label in record.labels] or [f"x{i + 1}" for i in range(values.shape[1])]
    return list(zip(names, values.T))
