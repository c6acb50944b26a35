"""Series that are read by blocks: records whose values stay in their file, and how they become a series."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from ..._core import checks
from ..._core.errors import DataError
from .. import lazy
from ..lazy import Rows, block_of, bounded
from ..segments import to_float
from ..series import Label, TimeSeries
from .codes import mark_missing, refuse_clocks, refuse_codes
from .records import ReadOptions, Record, count_rows, make_series
from .times import Stamps, to_grid

_FIRST = 1 << 10  # time stamps from which the sampling interval is found
_JITTER = 0.05  # of a step, as for time stamps in memory
_CHECKED = 1 << 16  # rows in which codes and clocks are looked for
_WHOLE = ("join", "resample", "calendar", "records_in_columns", "begin", "end")
_ROWS = "the series is read by blocks. Leave out `chunks`, or prepare the file first."


def by_blocks(options: ReadOptions, arrays: Sequence[Any]) -> bool:
    """Tell whether to read by blocks: as asked for, or arrays of dask that are too large to be loaded unasked.

    With "auto", arrays of up to 2^24 numbers are loaded.
    """
    large = sum(int(np.prod(a.shape)) for a in arrays) > lazy.MOST_NUMBERS
    if options.chunks is None:
        return large and any(getattr(a, "chunks", None) is not None for a in arrays)
    return large or options.chunks != "auto"


def block_rows(options: ReadOptions, stored: Any, width: int) -> int:
    """Return how many rows to read at once."""
    return options.chunks if isinstance(options.chunks, int) else block_of(stored, width)


@dataclass(frozen=True, eq=False)
class DatasetReader:
    """Rows of some variables of a dataset, of one member of it or of all there is; `columns` are kept."""

    arrays: tuple[xr.DataArray, ...]
    time: str
    columns: tuple[np.ndarray, ...]

    def __call__(self, first: int, stop: int) -> np.ndarray:
        parts = [
            to_float(array[{self.time: slice(first, stop)}].data).reshape(stop - first, -1)[:, columns]
            for array, columns in zip(self.arrays, self.columns)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def dataset_rows(
    arrays: Sequence[xr.DataArray], time: str, labels: Sequence[Sequence[tuple[int, Label]]], options: ReadOptions
) -> tuple[Rows, list[Label]]:
    """Return the rows of variables (time, ...) and the labels of their columns; of each the columns given are kept."""
    ordered = tuple(a.transpose(time, ...) for a in arrays)
    columns = tuple(np.array([column for column, _ in kept], int) for kept in labels)
    names = [label for kept in labels for _, label in kept]
    stored = [a.chunksizes.get(time) or a.encoding.get("preferred_chunks", {}).get(time) for a in arrays]
    block = block_rows(options, max((s for s in stored if s), default=None, key=np.max), len(names))
    return Rows(DatasetReader(ordered, time, columns), (arrays[0].sizes[time], len(names)), block), names


@dataclass(frozen=True)
class NumpyReader:
    """Rows of a .npy file, or of an array of an HDF5 file: opened for each block, so that workers can do so, too."""

    path: Path
    name: str
    member: int | None

    def __call__(self, first: int, stop: int) -> np.ndarray:
        where = (slice(first, stop),) if self.member is None else (self.member, slice(first, stop))
        if self.name:
            with h5py.File(self.path, "r") as file:
                part = file[self.name][where]  # pyright: ignore[reportIndexIssue]
        else:
            part = np.load(self.path, mmap_mode="r")[where]
        return np.array(part, float).reshape(stop - first, -1)


def stored_records(record: Record, path: Path, name: str, array: Any, options: ReadOptions) -> list[Record]:
    """Return the records of one array of a file, (time,), (time, var) or (member, time, var)."""
    members: list[int | None] = list(range(array.shape[0])) if len(array.shape) == 3 else [None]
    length, *rest = array.shape[len(array.shape) == 3 :]
    width = int(np.prod(rest, dtype=int))
    stored = getattr(array, "chunks", None)
    block = block_rows(options, stored[-2 if rest else 0] if stored else None, width)
    return [replace(record, values=Rows(NumpyReader(path, name, m), (length, width), block)) for m in members]


def assemble_rows(records: Sequence[Record], options: ReadOptions) -> TimeSeries:
    """Make one series of records that are read by blocks; it is cut where time stamps or samples are missing."""
    for name in _WHOLE:
        checks.not_given(name, getattr(options, name) or None, _ROWS)
    if options.missing:
        mark = partial(mark_missing, codes=options.missing)
        records = [replace(r, values=r.values.map(mark)) for r in records]
    some = [replace(r, values=np.concatenate(bounded([r.values], _CHECKED, 4))) for r in records]
    refuse_clocks([replace(r, values=r.values[:_FIRST]) for r in some], options)
    refuse_codes(some, options)
    pieces, places, lost, grids, unit = [], [], 0, [], options.time_unit or ""
    for number, record in enumerate(records):
        first = replace(record, values=record.values[:2])
        if record.clock is None or record.stamps is None or options.time is False:
            grids.append(count_rows(first, options, unit))
            cuts = [(0, len(record.values), 0)]
        else:
            grids.append(to_grid(record.stamps, record.where, unit))
            cuts = _find_cuts(record.clock, record.where)
        unit = unit or grids[-1].unit
        for start, stop, row in cuts:
            pieces.append(record.values.window(start, stop))
            places.append((number, grids[-1].start + grids[-1].dt * row))
        lost += cuts[-1][2] + cuts[-1][1] - cuts[-1][0] - len(record.values)
    if any(abs(grid.dt / grids[0].dt - 1) > 1e-6 for grid in grids):
        raise DataError("The records have different sampling intervals: records of one series share it.")
    starts = [start for _, start in places]
    series = make_series(pieces, starts, grids[0], records[0].labels, options, unit)
    owners = [(places[piece][0], start) for piece, start in zip(series.records, series.starts)]
    return series.with_segments(series.segments, places=owners, lost=lost)


def clock_of(coordinate: xr.DataArray, where: str, options: ReadOptions) -> tuple[Rows, Stamps]:
    """Return time stamps as numbers, (time, 1), that are read by blocks, and the first ones as they are."""
    time = coordinate.variable
    if time.dtype.kind not in "iufM":
        raise DataError(f"The times of {where} are neither numbers nor dates: leave out `chunks`.")

    def read(first: int, stop: int) -> np.ndarray:
        part = np.asarray(time[first:stop].values)
        part = part.astype("datetime64[ns]").astype(np.int64) if part.dtype.kind == "M" else part
        return part.astype(float)[:, None]

    rows = Rows(read, (time.shape[0], 1), block_rows(options, None, 1))
    return rows, Stamps(np.asarray(time[:_FIRST].values), str(coordinate.name), unit_of(coordinate))


def unit_of(coordinate: xr.DataArray) -> str:
    """Return the unit that a time coordinate notes, or noted before its dates were decoded."""
    return str(coordinate.attrs.get("units") or coordinate.encoding.get("units") or "")


def _find_cuts(clock: Rows, where: str) -> list[tuple[int, int, int]]:
    """Return stretches without missing stamps: first row, row after the last, and the step at which each begins."""
    first, last = float(clock[0][0]), float(clock[-1][0])
    typical = float(np.median(np.diff(clock[:_FIRST, 0])))
    if not typical > 0:
        raise DataError(f"The time stamps of {where} do not increase. {_ROWS[0].upper()}{_ROWS[1:]}")
    step = (last - first) / max(round((last - first) / typical), 1)
    cuts, row, previous = [0], 0, -1
    steps = [0]
    for block in clock.blocks():
        counted = (block[:, 0] - first) / step
        whole = np.rint(counted)
        if np.abs(counted - whole).max() > _JITTER:
            raise DataError(
                f"The time stamps of {where} are not uniform. A series that is read by blocks needs a uniform clock: "
                "leave out `chunks`, or resample the file."
            )
        jumps = np.flatnonzero(np.diff(whole, prepend=previous) != 1)
        if (np.diff(whole, prepend=previous) < 1).any():
            raise DataError(f"The time stamps of {where} do not increase throughout.")
        cuts += [row + int(k) for k in jumps]
        steps += [int(whole[k]) for k in jumps]
        row, previous = row + len(block), int(whole[-1])
    return [(a, b, k) for a, b, k in zip(cuts, [*cuts[1:], row], steps) if b > a]
