"""Files and labelled arrays in, files and labelled arrays out.

sources.py   which reader for which source       records.py   what readers deliver, and how it becomes a series
tables.py    text, Parquet, DataFrames           arrays.py    npz, npy, HDF5, dictionaries, bare arrays
xarray.py    NetCDF, Zarr, xarray, both ways     times.py     from time stamps to a uniform grid       write.py   files
codes.py     codes for missing values, clocks    dates.py     dates in all their forms    by_blocks.py   large files
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.errors import ArgumentError
from ..series import Periods, TimeSeries, is_labelled

__all__ = ["as_series", "read"]


def read(
    source: Any,
    *,
    variables: str | Sequence[str] | None = None,
    dt: float | None = None,
    time: Any = None,
    member: str | None = None,
    resample: bool | float | None = None,
    join: bool = False,
    names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    time_unit: str | None = None,
    periods: Periods | None = None,
    missing: float | str | Sequence[float | str] | None = None,
    begin: Any = None,
    end: Any = None,
    thin: int = 1,
    calendar: str | None = None,
    records_in_columns: bool = False,
    chunks: int | str | None = None,
) -> TimeSeries:
    """Read a `TimeSeries` from a file, several files, or labelled data in memory.

    Parameters
    ----------
    source : path, pattern, labelled data, or a list of these
        A path or pattern (``"run_*.nc"``) of NetCDF, Zarr, HDF5, ``.npz``, ``.npy``, text (``.csv``, ``.tsv``,
        ``.txt``, ``.dat``) or Parquet files; an xarray, pandas, polars or numpy object; a dictionary of arrays. Each
        file and each entry of a list is a separate record: no lag crosses from one to the next.
    variables : str or list of str, optional
        Variables to read, in this order. Default: all numeric variables along time, in the order of the file, or in
        alphabetical order for HDF5 and Zarr, which keep no order.
    dt : float, optional
        Sampling interval. Required without a time coordinate; refused if it contradicts one.
    time : str, array (time,) or False, optional
        Name of the time coordinate or its beginning, the time stamps themselves, or False to ignore the coordinate.
        Default: the dimension, column, key or index that is called time, t, date, datetime or timestamp (also time_s,
        time (s) and the like), that holds dates, or the columns year, month, day. An age runs backwards: times are
        negative ages.
    member : str, optional
        Dimension or column that separates records. Default: member, ensemble or realization (columns: also trajectory;
        dimensions: also number).
    resample : bool or float, optional
        True, or a step, to interpolate linearly onto a uniform grid and over gaps. Interpolation smooths, so do not
        choose a step below the typical one. Intervals of more than three typical steps stay gaps.
    join : bool, default False
        Join all records into one, ordered in time.
    names, units : list of str, optional
        Labels that replace those found.
    time_unit : str, optional
        Unit to which times are converted.
    periods : list or dict, optional
        Periods of the variables that are angles; see `TimeSeries`.
    missing : float, text, or list of these, optional
        Codes for missing samples, such as -999 and 1e36. Values that look like codes are refused unless this is an
        empty list.
    begin, end : date or number, optional
        Read only this stretch; "1980" to "1999-06" includes both ends.
    thin : int, default 1
        Keep every so many samples.
    calendar : {"rows"}, optional
        Count time in rows, such as trading days: dates only order them, and weekends are not gaps.
    records_in_columns : bool, default False
        Columns are records of one variable.
    chunks : int or "auto", optional
        Leave the samples of Zarr, NetCDF, HDF5 and ``.npy`` files where they are, and read so many rows at once where
        they are needed. With "auto" the rows are those of whole stored blocks, about 8 MiB, and a series of up to 2^24
        numbers is loaded. Arrays of dask that are larger are read by blocks in any case.

    Returns
    -------
    TimeSeries

    Notes
    -----
    Time stamps must be uniform to a twentieth of a step, or to the last digit with which they are written. Missing
    stamps become gaps, counted in ``dropped``. Dates (also 20000115, 200001 and 2000.01) are counted from 1970-01-01,
    in the unit noted in the file or in the largest unit that one step fills. Monthly stamps (28 to 31 days apart) count
    as uniform in months, yearly ones in years.

    Examples
    --------
    >>> import numpy as np, effective_langevin as el
    >>> el.read({"T": np.zeros(5), "h": np.ones(5), "time": 0.5 * np.arange(5)}, time_unit="day")
    TimeSeries(5 samples of T, h in 1 segment, dt=0.5 day)
    """
    from .records import ReadOptions, assemble
    from .sources import describe_source, read_records

    labels = (names, units, time_unit, periods)
    rows = (missing, begin, end, calendar, records_in_columns, chunks)
    options = ReadOptions(variables, dt, time, member, resample, join, *labels, *rows)
    series = assemble(read_records(source, options), options).thin(thin)
    series.source.update(describe_source(source))
    return series


def as_series(source: Any) -> TimeSeries:
    """Return a series as it is, and labelled data as `read` reads them; an array needs a sampling interval."""
    if isinstance(source, TimeSeries):
        return source
    if not is_labelled(source):
        shape = f" of shape {source.shape}" if isinstance(source, np.ndarray) else ""
        raise ArgumentError(
            f"Argument `series` must be a TimeSeries or labelled data, but got a {type(source).__name__}{shape}. "
            "Wrap your array first: el.TimeSeries(values, dt=...)."
        )
    return read(source)
