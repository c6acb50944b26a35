"""Power spectra with error bars, and what a periodogram looks like where there is no spectral line.

    int_0^(1/2dt) S(f) df = variance

`power_spectra` is Welch's method: Hann windows that overlap by half, averaged in groups of consecutive windows. To look
for lines, periodograms of windows of equal length are averaged on a grid of half bins, so that no line falls between
two. Their background is a power law fitted to each block of bins by maximum likelihood, with peaks clipped. A bin over
its background has an F distribution as long as there is no line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.fft
import scipy.signal
from jaxtyping import Float
from scipy.special import fdtri, gammainc, gammaincc

from .._core.types import Samples
from .resampling import GROUPS, jackknife

POINTS = 60
WIDTH = 64  # bins in a block of the background, at least
_SPAN = 30.0  # integral times per window
_MOST = 1 << 13  # samples per window
_GROWTH = 1.15
_CLIP = 4.0
_MISFIT = 1.5  # a power law is not the truth: the background may be off by this factor


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


def equal_windows(segments: Sequence[Samples]) -> list[Samples]:
    """Cut windows of one length from all segments: the length with the best signal of a line, length x sqrt(number)."""
    lengths = np.array([len(s) for s in segments])
    sizes = np.unique(lengths)[::-1][:50]
    gain = [size * np.sqrt((lengths // size).sum()) for size in sizes]
    size = int(sizes[int(np.argmax(gain))])
    return [s[k * size : (k + 1) * size] for s in segments for k in range(len(s) // size)]


def half_bin_periodograms(windows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Average the periodograms of centred windows without and with a Hann taper, at 0, 1/2, 1, ... per window.

    One transform serves both: the taper (1 - cos) / 2 takes half of what is two half bins to either side.
    """
    mean, size = np.mean([w.mean() for w in windows]), len(windows[0])
    plain, tapered = np.zeros(size + 1), np.zeros(size + 1)
    for window in windows:
        transform = np.asarray(scipy.fft.rfft(window - mean, 2 * size))
        plain += np.square(np.abs(transform))
        tapered[2:-2] += np.square(np.abs(0.5 * transform[2:-2] - 0.25 * (transform[:-4] + transform[4:])))
    return plain / len(windows), tapered / len(windows)


def background(power: np.ndarray, averaged: int) -> tuple[np.ndarray, np.ndarray]:
    """Estimate the power expected at each bin, and the degrees of freedom it is known with."""
    edges = [2]
    while edges[-1] < len(power):
        edges.append(min(len(power), max(edges[-1] + WIDTH, int(edges[-1] * _GROWTH))))
    if len(edges) > 2 and edges[-1] - edges[-2] < WIDTH:
        del edges[-2]
    level, freedom = np.ones(len(power)), np.ones(len(power))
    for low, high in pairwise(edges):
        law, leverage = fit_power_law(np.maximum(power[low:high], 1e-300), np.arange(low, high), averaged)
        level[low:high], freedom[low:high] = law, 2 * averaged / leverage
    level[:2], freedom[:2] = level[2], freedom[2]
    return level, freedom


def fit_power_law(power: np.ndarray, bins: np.ndarray, averaged: int) -> tuple[np.ndarray, np.ndarray]:
    """Fit S = exp(a + b ln bin) by Whittle's likelihood, with power / S clipped so that a line does not count.

    The first block spans so many octaves that ln S gets a quadratic term as well. Also returns the leverage of each
    bin: the variance of ln S there, times `averaged`.
    """
    degree = 2 if bins[-1] > 4 * bins[0] else 1
    design = np.vander(np.log(bins) - np.log(bins).mean(), degree + 1, increasing=True)
    # Mean of the clipped ratio for a gamma law of mean one.
    clip = 1 + (_CLIP - 1) / np.sqrt(averaged)
    expected = gammainc(averaged + 1, averaged * clip) + clip * gammaincc(averaged, averaged * clip)
    curvature = np.linalg.inv(design.T @ design)
    fit = np.append(np.median(np.log(power)), np.zeros(degree))
    for _ in range(30):
        ratio = np.minimum(power * np.exp(-design @ fit), clip) / expected
        change = curvature @ (design.T @ (ratio - 1))
        fit = fit + np.clip(change, -1, 1)
        if np.abs(change).max() < 1e-3:
            break
    return np.exp(design @ fit), np.einsum("ki,ij,kj->k", design, curvature, design)


def line_thresholds(averaged: int, freedom: np.ndarray, chance: float) -> np.ndarray:
    """Return how far above its background a bin is by chance with probability `chance` only."""
    grid = np.geomspace(freedom.min(), 1.001 * freedom.max(), 40)
    points = [fdtri(2 * averaged, f, 1 - chance) for f in grid]
    return _MISFIT ** (1 - 1 / averaged) * np.interp(freedom, grid, points)
