"""From what a user hands in to gap-free segments, in memory or read by blocks."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._core import checks
from .._core.errors import DataError
from .._core.types import Samples, Segment
from . import lazy
from .lazy import Rows


@runtime_checkable
class Stored(Protocol):
    """An array in blocks: of dask, zarr or h5py."""

    chunks: Any
    dtype: Any
    shape: Any

    def __getitem__(self, rows: Any, /) -> Any: ...


@runtime_checkable
class Computed(Protocol):
    """An array of dask, which computes itself."""

    def compute(self, **options: Any) -> Any: ...


def as_records(values: Any) -> list[Any]:
    """Return what the user handed in as (time, var) segments of one width; what is large and stored stays there."""
    if isinstance(values, list | tuple) and len(values) and all(np.ndim(v) == 2 for v in values):
        named = ((v, f"Record {i} of the series") for i, v in enumerate(values))
        records = [as_rows(v) if stays_stored(v) else checks.real_samples(v, name) for v, name in named]
        widths = [r.shape[1] for r in records]
        if len(set(widths)) > 1:
            raise DataError(
                f"The records have differing numbers of variables, {widths}: each must be (time, var) "
                "with the same variables in the same order."
            )
        return records
    stored = stays_stored(values)
    array: Any = values if stored else checks.real_samples(values)
    if array.ndim not in (1, 2, 3):
        raise DataError(
            f"The series has {array.ndim} axes; it must be (time, var), (member, time, var) or a list of (time, var)."
        )
    if stored:
        return [as_rows(array, member) for member in range(array.shape[0])] if array.ndim == 3 else [as_rows(array)]
    return list(array) if array.ndim == 3 else [array[:, None] if array.ndim == 1 else array]


def stays_stored(values: Any) -> bool:
    """Tell whether values are read by blocks: in a file or a graph of dask, and too many to load them unasked."""
    if isinstance(values, Rows) or not isinstance(values, np.memmap | Stored):
        return isinstance(values, Rows)
    return values.dtype.kind in "fiub" and int(np.prod(values.shape)) > lazy.MOST_NUMBERS


def as_rows(values: Any, member: int | None = None) -> Rows:
    """Return rows of a stored array (time,), (time, var) or (member, time, var), read by blocks of the stored ones."""
    if isinstance(values, Rows):
        return values
    length, *rest = values.shape if member is None else values.shape[1:]
    stored: Any = values.chunks if isinstance(values, Stored) else None
    rows = None if stored is None else stored[0 if member is None else 1]

    def read(first: int, stop: int) -> Samples:
        part = values[first:stop] if member is None else values[member, first:stop]
        return to_float(part).reshape(stop - first, -1)

    width = int(np.prod(rest, dtype=int))
    return Rows(read, (length, width), lazy.block_of(rows, width))


def to_float(part: Any) -> np.ndarray:
    """Return a part of a stored array as float64; that of dask is computed here, not on a cluster."""
    part = part.compute(scheduler="synchronous") if isinstance(part, Computed) else part
    return np.array(checks.unmasked(part), float)


def split_at_gaps(records: Sequence[Segment]) -> tuple[tuple[Any, ...], list[tuple[int, int]]]:
    """Split every record at rows with a NaN; return the pieces with the record and the row at which each begins."""
    pieces, places = [], []
    for number, record in enumerate(records):
        for first, stop in _gap_free(record):
            pieces.append(lazy.window(record, first, stop))
            places.append((number, first))
    if not pieces:
        raise DataError(
            f"All {sum(len(r) for r in records)} rows of the series hold a NaN: no complete sample is left. "
            "Drop the variables that are missing throughout."
        )
    return tuple(pieces), places


def _gap_free(record: Segment) -> list[tuple[int, int]]:
    """Return the first row of each stretch without a NaN, and that after its last; rows are looked at by blocks."""
    edges, row, bad = [], 0, True
    for block in lazy.blocks_of([record]):
        missing = np.atleast_1d(np.isnan(block).any(axis=1))
        if lazy.is_lazy(record) and np.isinf(block).any():
            first = row + int(np.argmax(np.isinf(block).any(axis=1)))
            raise DataError(
                f"The series holds infinite values, the first in row {first}. Mark missing samples as NaN or correct "
                "them."
            )
        edges += (row + np.diff(missing, prepend=bad).nonzero()[0]).tolist()
        row, bad = row + len(block), bool(missing[-1]) if len(block) else bad
    edges += [] if bad else [row]
    return list(zip(edges[::2], edges[1::2]))


def part_at(series: Any, cuts: np.ndarray) -> tuple[tuple[list[Any], list[Any]], ...]:
    """Cut the samples of a series at some rows; return segments and places of every other piece, and of the rest."""
    cuts = np.sort(cuts).astype(int)
    parts: tuple[tuple[list, list], ...] = (([], []), ([], []))
    first = 0
    for segment, record, start in zip(series.segments, series.records, series.starts):
        inner = cuts[(cuts > first) & (cuts < first + len(segment))] - first
        for row, stop in zip([0, *inner], [*inner, len(segment)]):
            pieces, places = parts[np.searchsorted(cuts, first + row, side="right") % 2]
            pieces.append(lazy.window(segment, int(row), int(stop)))
            places.append((record, start + row * series.dt))
        first += len(segment)
    return parts


def check_orientation(records: Sequence[Segment], named: bool) -> None:
    """Refuse one record with more variables than samples; several records, or names, say which axis is which."""
    checks.enough_samples(sum(len(r) for r in records), 2, "a time series")
    length, width = records[0].shape
    if width == 0:
        raise DataError("The series has no variables (its last axis has length 0).")
    if len(records) == 1 and width > length and not named:
        raise DataError(
            f"The series has more variables ({width}) than samples ({length}): the axes look transposed. "
            "Time comes before variable, so pass `values.T`."
        )
