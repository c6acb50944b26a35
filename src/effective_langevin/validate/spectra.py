"""Power spectra by Welch's method: Hann windows that overlap by half, in groups, so that every value has an error.

    int_0^(1/2dt) S(f) df = variance

Data and model are cut into windows of the same length, so that what windows do to a spectrum they do to both.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..data import TimeSeries
from ..statistics.resampling import jackknife
from .statistics import GROUPS

POINTS = 60
_SPAN = 30.0  # integral times per window
_LEAST, _MOST = 16, 1 << 13
_BLOCK = 1 << 20


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
    length = min(_window(data, slowest), _window(paths, slowest))
    if length < _LEAST:
        return None
    frequency, owner = _bins(length, data.dt)
    mean = data.stacked().mean(axis=0)
    sides = [_with_error(_periodograms(s, mean, length), owner, points) for s in (data, paths)]
    (one, one_error), (other, other_error) = sides
    return Curves(frequency, one, other, one_error, other_error)


def _window(series: TimeSeries, slowest: float) -> int:
    """Samples per window: an even number, at most the length that half of all samples have around them."""
    lengths = np.sort([len(s) for s in series.segments])
    usual = lengths[np.searchsorted(np.cumsum(lengths), 0.5 * lengths.sum())]
    return 2 * (min(int(usual), round(_SPAN * slowest / series.dt), _MOST) // 2)


def _periodograms(series: TimeSeries, mean: np.ndarray, length: int) -> Float[np.ndarray, "group frequency var"]:
    """Mean periodogram of each group of consecutive windows; as many groups as there are windows, but at most 20."""
    taper = np.hanning(length + 1)[:-1, None]
    scale = 2 * series.dt / np.sum(taper**2)
    starts = [
        (s, start) for s in series.segments if len(s) >= length for start in range(0, len(s) - length + 1, length // 2)
    ]
    group = np.arange(len(starts)) * min(GROUPS, len(starts)) // len(starts)
    sums = np.zeros((group[-1] + 1, length // 2 + 1, series.dimension))
    block = max(1, _BLOCK // (length * series.dimension))
    for first in range(0, len(starts), block):
        windows = np.stack([s[start : start + length] - mean for s, start in starts[first : first + block]])
        power = np.abs(np.fft.rfft(windows * taper, axis=1)) ** 2
        np.add.at(sums, group[first : first + block], scale * power)
    return sums / np.bincount(group)[:, None, None]


def _bins(length: int, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies joined into bins that are even on a logarithmic scale: their centres and the bin of each frequency.

    The lowest two are left out, where the window mixes in the mean, and so is the highest.
    """
    index = np.arange(2, length // 2)
    edges = np.unique(np.round(np.geomspace(2, length // 2, POINTS + 1)).astype(int))
    owner = np.searchsorted(edges, index, side="right") - 1
    centre = np.exp(np.bincount(owner, np.log(index)) / np.bincount(owner))
    return centre / (length * dt), owner


def _with_error(groups: np.ndarray, owner: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Spectra in bins, (bin, panel), with their leave-one-group-out error."""
    kept = groups[:, 2:-1].reshape(len(groups), len(owner), -1, points).mean(axis=3)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    joined = np.add.reduceat(kept, first, axis=1) / np.bincount(owner)[:, None]
    if len(groups) < 4:
        return joined.mean(axis=0), None
    return jackknife(lambda w: np.tensordot(w, joined, 1) / w.sum(), len(groups))
