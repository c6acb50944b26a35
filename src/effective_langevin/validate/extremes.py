"""How often levels are crossed: the mean time between two upward crossings, for data and model at the same interval.

An upward crossing of u begins an exceedance, and between two of them there is a downward one: for high levels it is
the return time of exceedances, for low ones that of falls below.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..data import TimeSeries
from ..statistics.return_times import return_times

LEVELS = 41


@dataclass(frozen=True)
class ReturnTimes:
    """Mean times between upward crossings of `levels`, (panel, level), with standard errors; NaN where hardly any."""

    levels: Float[np.ndarray, "panel level"]
    data: Float[np.ndarray, "panel level"]
    model: Float[np.ndarray, "panel level"]
    data_error: Float[np.ndarray, "panel level"]
    model_error: Float[np.ndarray, "panel level"]


def compare_return_times(data: TimeSeries, paths: TimeSeries, levels: np.ndarray, points: int = 1) -> ReturnTimes:
    """Return times of rising `levels` (panel, level); each panel pools `points` neighbouring variables."""
    sides = [return_times(series.segments, series.dt, levels, points) for series in (data, paths)]
    (one, one_error), (other, other_error) = sides
    return ReturnTimes(levels, one, other, one_error, other_error)
