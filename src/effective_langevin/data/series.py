"""`TimeSeries`: uniformly sampled, possibly with gaps, possibly several records of one process."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import checks, html
from .._core.errors import DataError
from .._core.format import count, typeset, with_unit
from .._core.types import Paths, Samples
from . import lazy
from .fields import summarize
from .segments import as_records, check_orientation, part_at, split_at_gaps

_DT_HINT = "It is the sampling interval of the series, in your unit of time: TimeSeries(values, dt=0.1)."

_MOST_SHOWN = 12

Periods = Sequence[float | None] | Mapping[str, float]
Label = tuple[str, str, float | None]  # name, unit and period of a variable


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TimeSeries:
    """A stationary multivariate series sampled every `dt`.

    Rows with a NaN are dropped and the record is split there, so that no lag ever crosses a gap or the border between
    two records.

    Parameters
    ----------
    values : array (time, var) or (member, time, var), list of arrays (time, var), or labelled data
        Samples of one record, of members of equal length, or of records of any length. NaN marks missing samples. A
        DataFrame, DataArray or Dataset is read as by `el.read`, with its names and times. An array of dask, zarr or
        h5py, or a memory map, of more than 2^24 numbers stays where it is and is read by blocks.
    dt : float
        Sampling interval, in your unit of time.
    names : list of str, optional
        One name per variable. Default: x1, x2, ...
    units : list of str, optional
        One unit per variable. Default: none.
    periods : list of float or None, or dict of float by name, optional
        Period of each variable that is an angle, None for the others. Default: no angles.
    time_unit : str, default ""
        Unit of `dt`.
    start : float or list of float, default 0
        Time of the first row, for all records or for each of them.
    calendar : str, default ""
        Calendar of the dates that times stand for, counted from 1970-01-01 in `time_unit`. Default: times are numbers.

    Attributes
    ----------
    segments : tuple of arrays (time, var)
        Stretches without gaps. Of a series that is read by blocks: objects with a length, a shape and rows by slices.
    starts : tuple of float
        Time at which each segment begins.
    records : tuple of int
        Number of the record to which each segment belongs.
    dropped : int
        Number of dropped rows.
    source : dict
        Names of the files and the day of their last change, where the series was read from files.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(100, 2))
    >>> values[40] = np.nan
    >>> el.TimeSeries(values, dt=0.5, names=["T", "h"], time_unit="day")
    TimeSeries(99 samples of T, h in 2 segments, dt=0.5 day, 1 row with NaN dropped)
    """

    segments: tuple[Samples, ...]
    dt: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    periods: tuple[float | None, ...]
    time_unit: str
    dropped: int
    starts: tuple[float, ...]
    records: tuple[int, ...]
    calendar: str
    source: dict[str, Any]

    def __init__(
        self,
        values: Any,
        dt: float | None = None,
        *,
        names: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
        periods: Periods | None = None,
        time_unit: str = "",
        start: float | Sequence[float] = 0.0,
        calendar: str = "",
    ):
        if is_labelled(values):
            from .io import read

            given = {"names": names, "units": units, "periods": periods, "time_unit": time_unit or None}
            vars(self).update(vars(read(values, dt=dt, **given)))
            return
        dt = checks.positive_number("dt", dt, _DT_HINT)
        checks.sensible_number("dt", dt, "Choose another unit of time.")
        records = as_records(values)
        check_orientation(records, named=names is not None)
        origins = checks.number_or_numbers("start", start, len(records), "record")
        segments, places = split_at_gaps(records)
        samples, width = sum(len(s) for s in segments), records[0].shape[1]
        checks.enough_samples(samples, 2, "a time series")
        vars(self).update(
            segments=segments,
            dt=dt,
            time_unit=checks.printable("time_unit", str(time_unit)),
            dropped=sum(len(r) for r in records) - samples,
            starts=tuple(origins[record] + dt * row for record, row in places),
            records=tuple(record for record, _ in places),
            calendar=str(calendar),
            source={},
            **_check_labels(width, names, units, periods),
        )

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
        """Time covered by the usable samples."""
        return self.n_samples * self.dt

    @property
    def times(self) -> tuple[np.ndarray, ...]:
        """The time of every sample, one array per segment."""
        return tuple(start + self.dt * np.arange(len(s)) for start, s in zip(self.starts, self.segments))

    @property
    def values(self) -> Samples | Paths:
        """(time, var) for one gap-free record, (member, time, var) for several of equal length."""
        if len({len(s) for s in self.segments}) > 1:
            raise DataError(
                "This series has segments of unequal length (gaps or unequal records): "
                "use `.segments`, a tuple of (time, var) arrays."
            )
        return self.segments[0] if len(self.segments) == 1 else np.stack(self.segments)

    def stacked(self, dtype: Any = None) -> Samples:
        """Return the samples of all segments in one array.

        Parameters
        ----------
        dtype : dtype, optional
            Precision of the result. Default: that of the samples.

        Returns
        -------
        array (sample, var)
        """
        return np.asarray(self.stacked_rows(dtype))

    def stacked_rows(self, dtype: Any = None) -> Any:
        """Return the samples of all segments in one array, or as rows that are read by blocks.

        Parameters
        ----------
        dtype : dtype, optional
            Precision of the result. Default: that of the samples.

        Returns
        -------
        array (sample, var), or what has its length, its shape and its rows by slices
        """
        return lazy.joined(self.segments, dtype)

    @property
    def is_lazy(self) -> bool:
        """Whether the samples stay where they are stored, and are read by blocks."""
        return any(lazy.is_lazy(s) for s in self.segments)

    def blocks(self) -> Iterator[Samples]:
        """Yield all samples in order: in memory at once, otherwise in the blocks in which they are read.

        Yields
        ------
        array (sample, var)
        """
        yield from lazy.blocks_of(self.segments)

    def excerpt(self, samples: int | None = None) -> "TimeSeries":
        """Return equal stretches of a series that is read by blocks, spread evenly, in memory.

        Parameters
        ----------
        samples : int, optional
            How many samples to keep at most. Default: 2^22 numbers; all of a series that is in memory.

        Returns
        -------
        TimeSeries
        """
        if samples is None and not self.is_lazy:
            return self
        most = samples or max(1, lazy.MOST_NUMBERS // 4 // self.dimension)
        found = lazy.stretches(self.segments, checks.integer_at_least("samples", most, 1))
        places = [(self.records[k], self.starts[k] + self.dt * first) for k, first, _ in found]
        return self.with_segments([np.array(self.segments[k][a:b]) for k, a, b in found], places=places)

    def with_segments(
        self,
        segments: Sequence[Samples],
        *,
        places: Sequence[tuple[int, float]] | None = None,
        names: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
        periods: Sequence[float | None] | None = None,
        lost: int = 0,
    ) -> "TimeSeries":
        """Return the same description around other samples.

        Parameters
        ----------
        segments : list of arrays (time, var)
            The new samples; empty segments are left out.
        places : list of tuple of int and float, optional
            Record and start of each segment. Default: as before, for as many segments.
        names, units : list of str, optional
            Labels of the new variables. Default: as before; x1, x2, ... if the number of variables changes.
        periods : list of float or None, optional
            Periods of the new variables. Default: as before; no angles if the number of variables changes.
        lost : int, default 0
            Number of rows to add to `dropped`.

        Returns
        -------
        TimeSeries
        """
        if places is None:
            if len(segments) != len(self.segments):
                raise checks.refused("segments", f"a list of {len(self.segments)}, as before", len(segments))
            places = list(zip(self.records, self.starts))
        kept = [(s, place) for s, place in zip(segments, places) if len(s)]
        width = kept[0][0].shape[1] if kept else self.dimension
        same = width == self.dimension
        names = self.names if names is None and same else names
        units = self.units if units is None and same else units
        new = copy.copy(self)
        vars(new).update(
            segments=tuple(s for s, _ in kept),
            records=tuple(record for _, (record, _) in kept),
            starts=tuple(float(start) for _, (_, start) in kept),
            dropped=self.dropped + lost,
            **_check_labels(width, names, units, self.periods if same and periods is None else periods),
        )
        return new

    def starting_at(self, time: float) -> "TimeSeries":
        """Return the same samples with every record beginning at another time.

        Parameters
        ----------
        time : float
            The new start; gaps keep their width.

        Returns
        -------
        TimeSeries
        """
        (time,) = checks.number_or_numbers("time", time, 1, "series")
        first = dict(reversed(list(zip(self.records, self.starts))))
        shifted = [(record, start - first[record] + time) for record, start in zip(self.records, self.starts)]
        return self.with_segments(self.segments, places=shifted)

    def map(self, function: Callable[[Samples], Samples]) -> "TimeSeries":
        """Apply a sample-wise function to every segment.

        Parameters
        ----------
        function : callable
            Takes and returns an array (time, var).

        Returns
        -------
        TimeSeries
        """
        return self.with_segments([lazy.mapped(s, function) for s in self.segments])

    def thin(self, stride: int) -> "TimeSeries":
        """Keep every `stride`-th sample.

        Parameters
        ----------
        stride : int
            Number of steps between samples that are kept; the sampling interval grows accordingly.

        Returns
        -------
        TimeSeries
        """
        stride = checks.integer_at_least("stride", stride, 1)
        new = self.with_segments([lazy.every(s, stride) for s in self.segments])
        vars(new)["dt"] = self.dt * stride
        return new

    def split(self, held_out: float = 0.2, blocks: int = 10) -> tuple["TimeSeries", "TimeSeries"]:
        """Split into a training part and a held-out part.

        Parameters
        ----------
        held_out : float, default 0.2
            Share of the samples to hold out.
        blocks : int, default 10
            Number of stretches over which the held-out part is spread.

        Returns
        -------
        tuple of TimeSeries
            The training part and the held-out part.
        """
        edges = np.linspace(0, self.n_samples, blocks + 1)
        cuts = np.concatenate([edges[1:-1], edges[1:] - held_out * np.diff(edges)])
        train, test = (self.with_segments(found, places=places) for found, places in part_at(self, cuts))
        return train, test

    def to_xarray(self, *, dataset: bool = False, origin: str | None = None) -> Any:
        """Convert to xarray; `el.read` takes the result back.

        Parameters
        ----------
        dataset : bool, default False
            Return a Dataset with one CF variable (member, time) per name, (member, time, ...) per field.
        origin : str, optional
            Date of time zero: times are then dates, as they are for a series that was read from dates.

        Returns
        -------
        xarray.DataArray (member, time, variable) or xarray.Dataset
            A member is a record; gaps are NaN. In a Dataset the points of a field are on their grid again.
        """
        from .io.xarray import to_xarray

        return to_xarray(self, dataset=dataset, origin=origin)

    def _describe_size(self) -> tuple[str, str, str]:
        """Return the sampling interval, the number of segments and the rows dropped, in words."""
        dropped = f", {count(self.dropped, 'row')} with NaN dropped" if self.dropped else ""
        return f"{self.dt:g} {self.time_unit}".rstrip(), count(len(self.segments), "segment"), dropped

    def __repr__(self) -> str:
        dt, segments, dropped = self._describe_size()
        names = ", ".join(summarize(self.names)[:_MOST_SHOWN])
        names += f", ... ({self.dimension} variables)" if self.dimension > _MOST_SHOWN else ""
        return f"TimeSeries({self.n_samples} samples of {names} in {segments}, dt={dt}{dropped})"

    def _repr_html_(self) -> str:
        samples, shown = self.excerpt().stacked(), list(range(min(self.dimension, _MOST_SHOWN)))
        dt, segments, dropped = self._describe_size()
        facts = [
            ("samples", f"{self.n_samples:,} in {segments}{dropped}"),
            ("sampling interval", dt),
            ("time covered", f"{self.duration:,.6g} {self.time_unit}".rstrip()),
        ]
        columns = [f(samples[:, shown], axis=0) for f in (np.mean, np.std, np.min, np.max)]
        rows = [[with_unit(self.names[i], self.units[i]), *(typeset(f"{c[i]:.4g}") for c in columns)] for i in shown]
        more = self.dimension - len(shown)
        listed = html.table(["variable", "mean", "std", "min", "max"], rows)
        return html.card("TimeSeries", facts, listed, note=f"and {count(more, 'more variable')}" if more else "")


def is_labelled(values: Any) -> bool:
    """Tell whether data carry names: those of xarray, pandas, polars and tables that become one of pandas."""
    methods = ("to_dataframe", "to_parquet", "to_pandas", "to_frame", "get_column")
    return any(callable(getattr(values, method, None)) for method in methods)


def _check_labels(width: int, names: Any, units: Any, periods: Any) -> dict[str, Any]:
    """Return names, units and periods of the variables as they are stored: x1, x2, ... on lines, without units."""
    names = checks.distinct("names", checks.texts("names", names, width, [f"x{i + 1}" for i in range(width)]))
    units = checks.texts("units", units, width, [""] * width)
    return {"names": names, "units": units, "periods": checks.periods(periods, names)}
