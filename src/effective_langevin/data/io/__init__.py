"""Files and labelled arrays in, files and labelled arrays out.

sources.py   which reader for which source       records.py   what readers deliver, and how it becomes a series
tables.py    text, Parquet, DataFrames           arrays.py    npz, npy, HDF5, dictionaries, bare arrays
xarray.py    NetCDF, Zarr, xarray, both ways     times.py     from time stamps to a uniform grid       write.py   files
"""

from collections.abc import Sequence
from typing import Any

from ..series import Periods, TimeSeries

__all__ = ["read"]


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
) -> TimeSeries:
    """Read a `TimeSeries` from a file, several files, or labelled data in memory.

    Parameters
    ----------
    source : path, pattern, labelled data, or a list of these
        A path or pattern (``"run_*.nc"``) of NetCDF, Zarr, HDF5, ``.npz``, ``.npy``, text (``.csv``, ``.tsv``,
        ``.txt``, ``.dat``) or Parquet files; an xarray, pandas or numpy object; a dictionary of arrays. Each file and
        each entry of a list is a separate record: no lag crosses from one to the next.
    variables : str or list of str, optional
        Variables to read, in this order. Default: all numeric variables along time, in the order of the file, or in
        alphabetical order for HDF5 and Zarr, which keep no order.
    dt : float, optional
        Sampling interval. Required without a time coordinate; refused if it contradicts one.
    time : str, array (time,) or False, optional
        Name of the time coordinate, the time stamps themselves, or False to ignore the coordinate. Default: the
        dimension, column, key or index that is called time, t, date, datetime or timestamp, or that holds dates.
    member : str, optional
        Dimension or column that separates records. Default: member, ensemble or realization (columns: also trajectory;
        dimensions: also number).
    resample : bool or float, optional
        True, or a step, to interpolate linearly onto a uniform grid. Interpolation smooths, so do not choose a step
        below the typical one. Intervals of more than three typical steps stay gaps.
    join : bool, default False
        Join all records into one, ordered in time.
    names, units : list of str, optional
        Labels that replace those found.
    time_unit : str, optional
        Unit to which times are converted.
    periods : list or dict, optional
        Periods of the variables that are angles; see `TimeSeries`.

    Returns
    -------
    TimeSeries

    Notes
    -----
    Time stamps must be uniform to a twentieth of a step. Missing stamps become gaps, counted in ``dropped``. Dates are
    counted from 1970-01-01, in the unit noted in the file or in the largest unit that one step fills. Monthly stamps
    (28 to 31 days apart) count as uniform in months, yearly ones in years.

    Examples
    --------
    >>> import numpy as np, effective_langevin as el
    >>> el.read({"T": np.zeros(5), "h": np.ones(5), "time": 0.5 * np.arange(5)}, time_unit="day")
    TimeSeries(5 samples of T, h in 1 segment, dt=0.5 day)
    """
    from .records import ReadOptions, assemble
    from .sources import read_records

    options = ReadOptions(variables, dt, time, member, resample, join, names, units, time_unit, periods)
    return assemble(read_records(source, options), options)
