"""Rows that stay where they are, on disk or in a graph of dask: read, and computed, by blocks where they are asked for.

A segment of a series is an array, or `Rows`: both have a length, a shape and rows by slices. Rows are read in blocks
that begin at multiples of the size of a block, whatever is asked for, and the last blocks are kept. What needs all rows
at once is refused beyond `MOST_NUMBERS`; sums go over `blocks`, and `excerpt` returns a part that fits.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._core.errors import DataError
from .._core.types import Samples, Segment

MOST_NUMBERS = 1 << 24  # that are held at once: 128 MiB
_BLOCK_NUMBERS = 1 << 20  # in a block, unless it is stored in larger ones
_KEPT_NUMBERS = 1 << 22  # in the blocks that are kept
_FEWEST_KEPT = 3
_STRETCHES = 32  # of an excerpt

Reader = Callable[[int, int], Samples]


class _Blocks:
    """Rows 0 ... length - 1 in blocks, of which the last that were read are kept."""

    def __init__(self, read: Reader, shape: tuple[int, int], block: int):
        self.read, self.shape, self.block = read, shape, max(1, int(block))
        self.most = max(_FEWEST_KEPT, _KEPT_NUMBERS // (self.block * max(shape[1], 1)))
        self.kept: OrderedDict[int, Samples] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": OrderedDict()}

    def __call__(self, first: int, stop: int) -> Samples:
        """Return rows first ... stop - 1: a view where they lie in one block."""
        if stop <= first:
            return np.empty((0, self.shape[1]))
        low, high = first // self.block, (stop - 1) // self.block
        parts = []
        for number in range(low, high + 1):
            start = number * self.block
            parts.append(self._whole(number)[max(first - start, 0) : stop - start])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _whole(self, number: int) -> Samples:
        if number in self.kept:
            self.kept.move_to_end(number)
            return self.kept[number]
        start = number * self.block
        rows = self.read(start, min(start + self.block, self.shape[0]))
        rows.flags.writeable = False
        self.kept[number] = rows
        if len(self.kept) > self.most:
            self.kept.popitem(last=False)
        return rows


class Rows:
    """A segment (time, var) that is read by blocks.

    Slices give arrays; `window`, `map` and `every` give rows that are read by blocks again.
    """

    ndim = 2

    def __init__(self, read: Reader, shape: tuple[int, int], block: int | None = None):
        block = block or max(1, _BLOCK_NUMBERS // max(shape[1], 1))
        self._set(_Blocks(read, shape, block), 0, shape[0])

    def _set(self, source: _Blocks, first: int, stop: int) -> "Rows":
        self._source, self._first, self._stop = source, first, max(first, stop)
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of variables."""
        return self._stop - self._first, self._source.shape[1]

    @property
    def block(self) -> int:
        """Number of rows that are read at once."""
        return self._source.block

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Return some rows as an array: a slice, an array of row numbers, or these with columns."""
        if isinstance(rows, tuple):
            return self[rows[0]][:, *rows[1:]]
        if isinstance(rows, int | np.integer):
            row = range(len(self))[int(rows)]
            return self[row : row + 1][0]
        if not isinstance(rows, slice):
            return self.take(np.asarray(rows))
        first, stop, step = rows.indices(len(self))
        if step == 1:
            self._refuse_many(stop - first)
            return self._source(self._first + first, self._first + max(stop, first))
        return self.take(np.arange(first, stop, step))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self[:], dtype)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return rows by their numbers, in any order; each block is read once."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else np.where(rows < 0, rows + len(self), rows)
        self._refuse_many(len(rows))
        order = np.argsort(rows, kind="stable")
        places, block = rows[order] + self._first, self.block
        edges = np.flatnonzero(np.diff(places // block, prepend=-1, append=-1))
        found = [
            self._source(int(places[low]), int(places[high - 1]) + 1)[places[low:high] - places[low]]
            for low, high in pairwise(edges)
        ]
        out = np.concatenate(found) if found else self._source(0, 0)
        back = np.empty(len(rows), int)
        back[order] = np.arange(len(rows))
        return out[back]

    def window(self, first: int, stop: int) -> "Rows":
        """Return rows first ... stop - 1, which share what is kept with these."""
        first, stop, _ = slice(first, stop).indices(len(self))
        return object.__new__(Rows)._set(self._source, self._first + first, self._first + stop)

    def map(self, function: Callable[[Samples], Samples]) -> "Rows":
        """Return a function of the rows that leaves their width, computed block by block."""
        return Rows(lambda first, stop: function(self[first:stop]), self.shape, self.block)

    def every(self, stride: int) -> "Rows":
        """Return every `stride`-th row."""

        def read(first: int, stop: int) -> Samples:
            return self[first * stride : (stop - 1) * stride + 1 : stride]

        return Rows(read, (-(-len(self) // stride), self.shape[1]), max(1, self.block // stride))

    def blocks(self) -> Iterator[Samples]:
        """Yield the rows in order, as they are read."""
        edges = {0, *range(-self._first % self.block, len(self), self.block), len(self)}
        for first, stop in pairwise(sorted(edges)):
            yield self[first:stop]

    def _refuse_many(self, rows: int) -> None:
        if rows > self.block and rows * self.shape[1] > MOST_NUMBERS:
            raise DataError(
                f"This needs {rows:,} x {self.shape[1]} numbers at once, but the series is read by blocks. Use a part "
                "of it, `series.excerpt()`, or fewer samples, `series.thin(10)`."
            )


def block_of(stored: Any, width: int) -> int:
    """Return how many rows to read at once: whole blocks as they are stored, about 8 MiB of float64."""
    rows = max(1, _BLOCK_NUMBERS // max(width, 1))
    stored = int(max(stored) if isinstance(stored, tuple) else stored or 0)
    return rows if not stored else stored * max(1, rows // stored)


def is_lazy(segment: Segment) -> bool:
    """Tell whether a segment is read by blocks."""
    return isinstance(segment, Rows)


def rows_at_once(samples: Segment, most: int) -> int:
    """Return how many rows to take at once: `most`, and no more than are read at once."""
    return min(most, samples.block) if isinstance(samples, Rows) else most


def window(segment: Segment, first: int, stop: int) -> Any:
    """Return some rows of a segment as a segment: a view of an array, or rows that are read by blocks."""
    return segment.window(first, stop) if isinstance(segment, Rows) else segment[first:stop]


def every(segment: Segment, stride: int) -> Any:
    """Return every `stride`-th row of a segment."""
    return segment.every(stride) if isinstance(segment, Rows) else segment[::stride]


def mapped(segment: Segment, function: Callable[[Samples], Samples]) -> Any:
    """Return a function of the rows of a segment: at once for an array, where it is asked for otherwise."""
    return segment.map(function) if isinstance(segment, Rows) else function(segment)  # pyright: ignore[reportArgumentType]


def blocks_of(segments: Sequence[Segment]) -> Iterator[Samples]:
    """Yield the rows of all segments: arrays joined in one block, others as they are read."""
    if not any(is_lazy(s) for s in segments):
        yield np.asarray(segments[0]) if len(segments) == 1 else np.concatenate([np.asarray(s) for s in segments])
        return
    for segment in segments:
        yield from segment.blocks() if isinstance(segment, Rows) else [np.asarray(segment)]


def joined(segments: Sequence[Segment], dtype: Any = None) -> Any:
    """Return the rows of all segments as one: an array, or rows that are read by blocks."""
    if not any(is_lazy(s) for s in segments):
        if len(segments) == 1:
            only = np.asarray(segments[0])
            return only if dtype is None else only.astype(dtype, copy=False)
        return np.concatenate([np.asarray(s) for s in segments], dtype=dtype, casting="same_kind")
    edges = np.cumsum([0, *(len(s) for s in segments)])

    def read(first: int, stop: int) -> Samples:
        low, high = np.searchsorted(edges, [first, stop], side="right") - 1
        places = range(low, min(int(high) + 1, len(segments)))
        parts = [segments[k][max(first - int(edges[k]), 0) : stop - int(edges[k])] for k in places]
        return np.concatenate(parts, dtype=dtype, casting="same_kind")

    block = max(s.block for s in segments if isinstance(s, Rows))
    return Rows(read, (int(edges[-1]), segments[0].shape[1]), block)


def stretches(segments: Sequence[Segment], most: int, number: int = _STRETCHES) -> list[tuple[int, int, int]]:
    """Return (segment, first, stop) of equal stretches, spread evenly, that hold `most` rows at most."""
    lengths = np.array([len(s) for s in segments])
    if lengths.sum() <= most:
        return [(k, 0, int(n)) for k, n in enumerate(lengths)]
    edges, length = np.cumsum([0, *lengths]), max(1, most // number)
    starts = np.linspace(0, edges[-1] - length, max(1, most // length)).astype(int)
    found = []
    for start in starts.tolist():
        k = int(np.searchsorted(edges, start, side="right")) - 1
        found.append((k, start - int(edges[k]), min(start + length, int(edges[k + 1])) - int(edges[k])))
    return found


def bounded(segments: Sequence[Segment], most: int, number: int = _STRETCHES) -> list[Any]:
    """Return arrays as they are, and of rows that are read by blocks `number` stretches of `most` rows together."""
    if not any(is_lazy(s) for s in segments):
        return list(segments)
    most = min(most, MOST_NUMBERS // 2 // segments[0].shape[1])
    return [np.array(segments[k][first:stop]) for k, first, stop in stretches(segments, most, number)]
