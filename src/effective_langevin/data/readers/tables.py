"""Tables: named columns of one length, from text files, Parquet files and pandas."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from .clock import Stamps, is_stamp_like
from .extras import needs
from .records import Record, Wishes, time_name

MEMBER_COLUMNS = ("member", "ensemble", "realization", "trajectory")


def from_columns(
    columns: Mapping[str, np.ndarray], where: str, wishes: Wishes, units: Mapping[str, str]
) -> list[Record]:
    """Records of a table: one, or one for each value of the member column."""
    time = time_name(wishes, list(columns), where)
    member = _member_column(columns, wishes, where)
    known = [n for n in columns if n not in (time, member)]
    names = checks.known_names("variables", wishes.variables, known, where) if wishes.variables else tuple(known)
    if not names:
        raise DataError(f"{where} holds no variable besides its time stamps.")
    values = np.column_stack([_numbers(columns[n], n, where) for n in names])
    stamps = Stamps(np.asarray(wishes.time)) if is_stamp_like(wishes.time) else None
    if time is not None:
        stamps = Stamps(columns[time], time, units.get(time, ""))
    whole = Record(values, where, names, tuple(units.get(n, "") for n in names), stamps)
    return [whole] if member is None else _by_member(whole, columns[member], member)


def _member_column(columns: Iterable[str], wishes: Wishes, where: str) -> str | None:
    if wishes.member is not None:
        return checks.known_names("member", wishes.member, columns, where)[0]
    return next((n for n in columns if str(n).lower() in MEMBER_COLUMNS and n not in (wishes.variables or ())), None)


def _by_member(whole: Record, labels: np.ndarray, member: str) -> list[Record]:
    """One record for each label, in the order in which they appear."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    records = []
    for label in np.argsort(first):
        rows = np.flatnonzero(number == label)
        stamps = whole.stamps and Stamps(whole.stamps.values[rows], whole.stamps.name, whole.stamps.unit)
        where = f"{whole.where} ({member} {labels[rows[0]]})"
        records.append(Record(whole.values[rows], where, whole.names, whole.units, stamps))
    return records


def _numbers(column: np.ndarray, name: str, where: str) -> np.ndarray:
    """A column as float64; text, dates and objects are refused by name."""
    if column.dtype.kind not in "fiub":
        raise DataError(
            f"Column {name!r} of {where} holds {column.dtype.name} values where numbers are needed, for example "
            f"{column[0]!r}. Leave it out: variables=[...]."
        )
    return column.astype(float)


def from_dataframe(frame: Any, where: str, wishes: Wishes) -> list[Record]:
    """Records of a pandas DataFrame: an index of dates, durations or floats, or one called like a time, is the time."""
    import pandas as pd

    if isinstance(frame, pd.Series):
        frame = frame.to_frame(frame.name if frame.name is not None else "x1")
    if isinstance(frame.index, pd.PeriodIndex):
        frame = frame.set_axis(frame.index.to_timestamp(), axis=0)
    index = frame.index
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex) or (index.name is None and index.dtype.kind == "f"):
        frame = frame.rename_axis(index.name or "time").reset_index()
    elif any(name is not None for name in index.names):
        frame = frame.reset_index()
    units = {str(k): str(v) for k, v in dict(frame.attrs.get("units") or {}).items()}
    return from_columns({str(n): _column(frame[n]) for n in frame.columns}, where, wishes, units)


def _column(column: Any) -> np.ndarray:
    """A pandas column as a numpy array: nullable numbers with NaN, dates in UTC."""
    import pandas as pd

    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    return column.to_numpy()


def read_parquet(path: Path, wishes: Wishes) -> list[Record]:
    """A Parquet file, through pandas and pyarrow."""
    pandas = needs("pandas", "parquet", path)
    needs("pyarrow", "parquet", path)
    try:
        frame = pandas.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable Parquet file: {_first_line(error)}") from error
    return from_dataframe(frame, str(path), wishes)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
