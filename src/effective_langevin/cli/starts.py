"""Where a forecast begins: the end of a series, one of its dates, or a state written by hand."""

from typing import TYPE_CHECKING

import numpy as np

from .._core import checks
from .._core.errors import ArgumentError
from .._core.types import Samples
from ..data import TimeSeries
from ..data.io.dates import count_time

if TYPE_CHECKING:
    from ..model import LangevinModel
    from .settings import Settings


def find_states(
    begin: str, model: "LangevinModel", settings: "Settings", data: list[str] | None
) -> TimeSeries | Samples:
    """Return the state named by `--from`, or the series up to there."""
    if "=" in begin:
        return _read_state(begin, model.names if model.transform is None else model.transform.names)
    series = settings.series(data)
    if begin == "last":
        last = int(np.argmax([times[-1] for times in series.times]))
        return _cut(series, last, len(series.segments[last]))
    time = count_time(begin, model.time_unit, model.calendar)
    for number, times in enumerate(series.times):
        row = round((time - times[0]) / series.dt)
        if 0 <= row < len(times) and abs(times[row] - time) < 0.5 * series.dt:
            return _cut(series, number, row + 1)
    raise ArgumentError(
        f"The series has no sample at {begin}. Give `last`, a time at which there is one, or a state such as "
        f"{','.join(f'{name}=0' for name in series.names[:2])}."
    )


def _cut(series: TimeSeries, segment: int, rows: int) -> TimeSeries:
    """Return the first rows of one segment, as a series."""
    place = (series.records[segment], series.starts[segment])
    return series.with_segments([series.segments[segment][:rows]], places=[place])


def _read_state(text: str, names: tuple[str, ...]) -> Samples:
    """Read `x=0.5,y=-1`, one number for every variable."""
    parts = (part.partition("=") for part in text.split(","))
    known = {name.strip(): number for name, _, number in parts}
    checks.known_names("from", known, names, "the model")
    try:
        return np.array([[float(known[name]) for name in names]])
    except (KeyError, ValueError):
        raise checks.refused("from", f"a number for each of {', '.join(names)}, such as x=0.5,y=-1", text) from None
