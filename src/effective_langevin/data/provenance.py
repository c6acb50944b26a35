"""What a model was learned from: files, variables, range and a fingerprint of the samples."""

import hashlib
from typing import Any

import numpy as np

from .._core import timeunits
from .fields import summarize
from .lazy import blocks_of
from .series import TimeSeries


def hash_samples(series: TimeSeries) -> str:
    """Return the SHA-256 of the samples and their times, by which a model knows the series it was fitted to."""
    digest = hashlib.sha256(repr((series.dt, series.starts, series.names)).encode())
    for segment in series.segments:
        for block in blocks_of([segment]):
            digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def describe_data(series: TimeSeries) -> dict[str, Any]:
    """Return the fingerprint of a series, and its files, variables and range as plain data."""
    last = (start + series.dt * (len(s) - 1) for start, s in zip(series.starts, series.segments))
    ends = [min(series.starts), max(float(time) for time in last)]
    unit = timeunits.canonical(series.time_unit)
    if series.calendar and unit:
        from .io.dates import count_dates

        ends = [str(date)[:16] for date in count_dates(np.array(ends), unit, "1970-01-01", series.calendar)]
    source = {**series.source, "variables": summarize(series.names), "from": ends[0], "to": ends[1]}
    return {"sha256": hash_samples(series), "source": source}
