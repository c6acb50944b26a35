"""Power spectra by Welch's method: Hann windows that overlap by half, in groups, so that every value has an error.

    int_0^(1/2dt) S(f) df = variance

Data and model are cut into windows of the same length, so that what windows do to a spectrum they do to both.
"""

from dataclasses import dataclass

import numpy as np

from ..data import TimeSeries
from ..statistics.spectra import power_spectra, window_length

_LEAST = 16  # samples per window


@dataclass(frozen=True)
class Curves:
    """Curves of data and model with standard errors, (point, panel); no errors where there are too few groups."""

    x: np.ndarray
    data: np.ndarray
    model: np.ndarray
    data_error: np.ndarray | None
    model_error: np.ndarray | None


def compare_spectra(data: TimeSeries, paths: TimeSeries, slowest: float, points: int = 1) -> Curves | None:
    """Spectra of each variable (each mean over `points` neighbouring ones); None where records are too short for one.

    Windows hold 30 of the slowest integral times where the records do.
    """
    length = min(window_length(s.segments, s.dt, slowest) for s in (data, paths))
    if length < _LEAST:
        return None
    mean = data.stacked().mean(axis=0)
    one, other = (power_spectra(s.segments, s.dt, length, mean, points) for s in (data, paths))
    return Curves(one.frequency, one.power, other.power, one.error, other.error)
