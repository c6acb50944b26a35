"""`TimeSeries`: uniformly sampled, possibly with gaps, possibly several records of one process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import checks
from .._core.errors import DataError
from .._core.types import Paths, Samples

_DT_HINT = "It is the sampling interval of the series, in your unit of time: TimeSeries(values, dt=0.1)."


@dataclass(frozen=True, init=False, repr=False)
class TimeSeries:
    """A stationary multivariate series sampled every `dt`.

    Accepts (time, var), (member, time, var), or a list of (time, var) records of unequal length. Rows with a NaN are
    dropped and the record is split there, so that no lag ever crosses a gap or the border between two records.
    """

    segments: tuple[Samples, ...]
    dt: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    time_unit: str
    dropped: int

    def __init__(
        self,
        values: Any,
        dt: float | None = None,
        *,
        names: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
        time_unit: str = "",
    ):
        dt = checks.positive_number("dt", dt, _DT_HINT)
        records = _as_records(values)
        _check_orientation(records)
        segments, dropped = _split_at_gaps(records)
        checks.enough_samples(sum(len(s) for s in segments), 2, "a time series")
        width = records[0].shape[1]
        store = object.__setattr__
        store(self, "segments", segments)
        store(self, "dt", dt)
        store(self, "names", checks.texts("names", names, width, [f"x{i + 1}" for i in range(width)]))
        store(self, "units", checks.texts("units", units, width, [""] * width))
        store(self, "time_unit", str(time_unit))
        store(self, "dropped", dropped)

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return self.segments[0].shape[1]

    @property
    def n_samples(self) -> int:
        """Number of usable samples in all segments together."""
        return sum(len(s) for s in self.segments)

    @property
    def duration(self) -> float:
        """Time covered by usable samples."""
        return self.n_samples * self.dt

    @property
    def values(self) -> Samples | Paths:
        """(time, var) for one gap-free record, (member, time, var) for several of equal length."""
        if len({len(s) for s in self.segments}) > 1:
            raise DataError(
                "This series has segments of unequal length (gaps or unequal records): "
                "use `.segments`, a tuple of (time, var) arrays."
            )
        return self.segments[0] if len(self.segments) == 1 else np.stack(self.segments)

    def stacked(self) -> Samples:
        """All samples, (sample, var), without regard to time."""
        return self.segments[0] if len(self.segments) == 1 else np.concatenate(self.segments)

    def with_segments(self, segments: Sequence[Samples]) -> "TimeSeries":
        """The same description around other samples."""
        new = object.__new__(TimeSeries)
        for field in ("dt", "names", "units", "time_unit", "dropped"):
            object.__setattr__(new, field, getattr(self, field))
        object.__setattr__(new, "segments", tuple(s for s in segments if len(s)))
        return new

    def map(self, function: Callable[[Samples], Samples]) -> "TimeSeries":
        """Apply a sample-wise function to every segment."""
        return self.with_segments([function(s) for s in self.segments])

    def thin(self, stride: int) -> "TimeSeries":
        """Keep every `stride`-th sample; the sampling interval grows accordingly."""
        stride = checks.integer_at_least("stride", stride, 1)
        new = self.with_segments([s[::stride] for s in self.segments])
        object.__setattr__(new, "dt", self.dt * stride)
        return new

    def split(self, held_out: float = 0.2, blocks: int = 10) -> tuple["TimeSeries", "TimeSeries"]:
        """Split into a training and a held-out part, the latter spread over `blocks` stretches of the record."""
        edges = np.linspace(0, self.n_samples, blocks + 1)
        cuts = np.sort(np.concatenate([edges[1:-1], edges[1:] - held_out * np.diff(edges)])).astype(int)
        train, test, start = [], [], 0
        for segment in self.segments:
            inner = cuts[(cuts > start) & (cuts < start + len(segment))]
            position = start
            for piece in np.split(segment, inner - start):
                kept_out = np.searchsorted(cuts, position, side="right") % 2 == 1
                (test if kept_out else train).append(piece)
                position += len(piece)
            start += len(segment)
        return self.with_segments(train), self.with_segments(test)

    def __repr__(self) -> str:
        gaps = f", {self.dropped} rows with NaN dropped" if self.dropped else ""
        unit = f" {self.time_unit}" if self.time_unit else ""
        return (
            f"TimeSeries({self.n_samples} samples of {', '.join(self.names)} in {len(self.segments)} segment(s), "
            f"dt={self.dt:g}{unit}{gaps})"
        )


def _as_records(values: Any) -> list[Samples]:
    """Turn what the user handed in into a list of (time, var) arrays of one width."""
    if isinstance(values, list | tuple) and len(values) and all(np.ndim(v) == 2 for v in values):
        records = [checks.real_samples(v, f"Record {i} of the series") for i, v in enumerate(values)]
        widths = [r.shape[1] for r in records]
        if len(set(widths)) > 1:
            raise DataError(
                f"The records have differing numbers of variables, {widths}: each must be (time, var) "
                "with the same variables in the same order."
            )
        return records
    array = checks.real_samples(values)
    if array.ndim == 1:
        return [array[:, None]]
    if array.ndim == 2:
        return [array]
    if array.ndim == 3:
        return list(array)
    raise DataError(
        f"The series has {array.ndim} axes; it must be (time, var), (member, time, var) or a list of (time, var)."
    )


def _split_at_gaps(records: list[Samples]) -> tuple[tuple[Samples, ...], int]:
    """Split every record at rows with a NaN; return the pieces and the number of rows dropped."""
    pieces, dropped = [], 0
    for record in records:
        missing = np.isnan(record).any(axis=1)
        if not missing.any():
            pieces.append(record)
            continue
        dropped += int(missing.sum())
        borders = np.flatnonzero(np.diff(missing)) + 1
        pieces += [p for p, gone in zip(np.split(record, borders), np.split(missing, borders)) if not gone[0]]
    pieces = tuple(p for p in pieces if len(p))
    if not pieces:
        raise DataError(
            f"All {dropped} rows of the series hold a NaN: no complete sample is left. "
            "Drop the variables that are missing throughout."
        )
    return pieces, dropped


def _check_orientation(records: list[Samples]) -> None:
    """Refuse one record with more variables than samples; several records say themselves which axis is which."""
    length, width = records[0].shape
    if width == 0:
        raise DataError("The series has no variables (its last axis has length 0).")
    checks.enough_samples(sum(len(r) for r in records), 2, "a time series")
    if len(records) == 1 and width > length:
        raise DataError(
            f"The series has more variables ({width}) than samples ({length}): the axes look transposed. "
            "Time comes before variable, so pass `values.T`."
        )
