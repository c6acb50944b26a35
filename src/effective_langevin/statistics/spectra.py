"""Power spectra with error bars, by Welch's method: Hann windows that overlap by half, in groups of consecutive ones.

int_0^(1/2dt) S(f) df = variance
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._core.types import Samples
from .resampling import GROUPS, jackknife

POINTS = 60
_SPAN = 30.0  # integral times per window
_MOST = 1 << 13  # samples per window


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Power spectral density at bins of frequency, with its standard error; None with fewer than four groups."""

    frequency: Float[np.ndarray, " bin"]
    power: Float[np.ndarray, "bin panel"]
    error: Float[np.ndarray, "bin panel"] | None


def window_length(segments: Sequence[Samples], dt: float, slowest: float) -> int:
    """Choose the samples per window: 30 of the slowest integral times, at most what half of all samples allow."""
    lengths = np.sort([len(s) for s in segments])
    usual = lengths[np.searchsorted(np.cumsum(lengths), 0.5 * lengths.sum())]
    return 2 * (min(int(usual), round(_SPAN * slowest / dt), _MOST) // 2)


def power_spectra(segments: Sequence[Samples], dt: float, length: int, mean: np.ndarray, points: int = 1) -> Spectrum:
    """Estimate the spectrum of each variable about `mean` (averaged over `points` neighbouring ones)."""
    frequency, owner = _log_bins(length, dt)
    groups = _welch(segments, dt, length, mean)
    kept = groups[:, 2:-1].reshape(len(groups), len(owner), -1, points).mean(axis=3)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    joined = np.add.reduceat(kept, first, axis=1) / np.bincount(owner)[:, None]
    if len(groups) < 4:
        return Spectrum(frequency, joined.mean(axis=0), None)
    return Spectrum(frequency, *jackknife(lambda w: np.tensordot(w, joined, 1) / w.sum(), len(groups)))


def _welch(
    segments: Sequence[Samples], dt: float, length: int, mean: np.ndarray
) -> Float[np.ndarray, "group frequency var"]:
    """Average the periodograms of each group of consecutive windows; as many groups as windows, but at most 20."""
    import scipy.signal  # takes a second to import

    long = [s for s in segments if len(s) >= length]
    counts = [(len(s) - length) // (length // 2) + 1 for s in long]
    group = np.arange(sum(counts)) * min(GROUPS, sum(counts)) // sum(counts)
    owners = np.split(group, np.cumsum(counts)[:-1])
    sums = np.zeros((group[-1] + 1, length // 2 + 1, len(mean)))
    options = {"window": "hann", "nperseg": length, "noverlap": length // 2, "detrend": False}
    for segment, owner in zip(long, owners):
        for v, centre in enumerate(mean):
            power = scipy.signal.spectrogram(segment[:, v] - centre, 1 / dt, **options)[2]
            np.add.at(sums[:, :, v], owner, power.T)
    return sums / np.bincount(group)[:, None, None]


def _log_bins(length: int, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Join frequencies into bins even on a logarithmic scale: their centres, and the bin of each frequency.

    The lowest two are left out, where the window mixes in the mean, and so is the highest.
    """
    index = np.arange(2, length // 2)
    edges = np.unique(np.round(np.geomspace(2, length // 2, POINTS + 1)).astype(int))
    owner = np.searchsorted(edges, index, side="right") - 1
    centre = np.exp(np.bincount(owner, np.log(index)) / np.bincount(owner))
    return centre / (length * dt), owner
