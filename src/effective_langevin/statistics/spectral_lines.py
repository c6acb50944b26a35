"""Spectral lines: peaks of the periodogram far above what is around them.

Periodograms of windows of equal length are averaged on a grid of half bins, so that no line falls between two. Their
background is a power law fitted to each block of bins by maximum likelihood, with peaks clipped. A bin over its
background has an F distribution as long as there is no line. A line must also stand out with a Hann taper, which the
side lobes of a stronger line do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy.fft
from scipy.special import fdtri, gammainc, gammaincc

from .._core.types import Samples

WIDTH = 64  # bins in a block of the background, at least
FIRST = 4  # periods in a window: fewer are a trend
_GROWTH = 1.15
_CLIP = 4.0
_MISFIT = 1.5  # a power law is not the truth: the background may be off by this factor
_CONTRAST = 3.0  # a line stands this far above the bins beside it
_LEAST_SHARE = 1e-3
_MOST_LINES = 3
_TRANSFORMED = 1 << 18  # samples in one call of the transform
# Squared relative scatter of the amplitude: 0 for a steady cycle, (4 - pi) / pi = 0.27 for a random one.
_UNSTEADY = 0.1


@dataclass(frozen=True)
class Peak:
    """A line: its position in half bins, its share of the variance, its height over the background."""

    position: float
    share: float
    height: float


def find_peaks(windows: list[np.ndarray], chance: float, expected: np.ndarray) -> list[Peak]:
    """The strongest lines in windows of equal length; `chance` is that of one false line among all half bins.

    Half bins `expected` to hold a line (the year, the day) need less: the chance is shared among them alone.
    """
    power, tapered = half_bin_periodograms(windows)
    level, freedom = background(power[::2], len(windows))
    bins = np.arange(len(power))
    limits = [
        np.interp(bins, bins[::2], level * line_thresholds(len(windows), freedom, chance / tests))
        for tests in (len(power), max(len(expected), 1))
    ]
    excess = power / np.where(np.isin(bins, expected), limits[1], limits[0])
    return [
        Peak(position, share, float(power[round(position)] / level[round(position / 2)]))
        for position, share in _strongest(excess, tapered)
    ]


def _strongest(excess: np.ndarray, tapered: np.ndarray) -> list[tuple[float, float]]:
    """Position (in half bins) and share of the variance of the strongest lines; `excess` is power over its limit."""
    excess[: 2 * FIRST] = 0
    total, found = tapered[::2].sum(), []
    for peak in np.argsort(-excess)[: 40 * _MOST_LINES]:
        if excess[peak] < 1 or len(found) == _MOST_LINES:
            break
        line = np.arange(peak - 2, peak + 3)
        beside = np.concatenate([np.arange(peak - 12, peak - 5), np.arange(peak + 6, peak + 13)])
        line, beside = (rows[(rows >= FIRST) & (rows < len(tapered) - 2)] for rows in (line, beside))
        around = tapered[beside].mean()
        share = float((tapered[line][::2] - around).sum() / total)
        fresh = all(abs(peak - position) > 12 for position, _ in found)
        if fresh and tapered[line].max() > _CONTRAST * around and share > _LEAST_SHARE:
            above = np.maximum(tapered[line] - around, 0)
            found.append((float(above @ line / above.sum()), share))
    return found


def is_steady(windows: list[np.ndarray], period: float, height: float) -> bool:
    """Whether the amplitude at `period` (in samples) is the same in all parts of all windows, within errors.

    A cycle imposed from outside is steady, a resonance of the system is not.
    """
    size = len(windows[0])
    parts = int(np.clip(min(size / period / 3, height / 4), 1, 8))
    wave = np.exp(-2j * np.pi * np.arange(size // parts) / period)
    pieces = [w[k * len(wave) :][: len(wave)] for w in windows for k in range(parts)]
    if len(pieces) < 6:
        return True
    amplitudes = np.array([np.abs(np.dot(p - p.mean(), wave)) for p in pieces])
    scatter = amplitudes.var(ddof=1) / amplitudes.mean() ** 2
    return bool(scatter < _UNSTEADY + 0.5 * parts / height)


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
    together = max(1, _TRANSFORMED // size)
    for start in range(0, len(windows), together):
        some = np.stack(windows[start : start + together]) - mean
        transform = np.asarray(scipy.fft.rfft(some, 2 * size, workers=-1))
        smooth = 0.5 * transform[:, 2:-2] - 0.25 * (transform[:, :-4] + transform[:, 4:])
        for total, part in ((plain, transform), (tapered[2:-2], smooth)):
            total += np.square(np.abs(part)).sum(axis=0)
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
        law, leverage = fit_power_law(np.maximum(power[low:high], 1e-300), low, averaged)
        level[low:high], freedom[low:high] = law, 2 * averaged / leverage
    level[:2], freedom[:2] = level[2], freedom[2]
    return level, freedom


def fit_power_law(power: np.ndarray, first: int, averaged: int) -> tuple[np.ndarray, np.ndarray]:
    """Fit S = exp(a + b ln bin) by Whittle's likelihood, with power / S clipped so that a line does not count.

    The bins are consecutive, from `first` on. Also returns the leverage of each: the variance of ln S there, times
    `averaged`.
    """
    design, curvature, leverage = _power_laws(first, len(power))
    # Mean of the clipped ratio for a gamma law of mean one.
    clip = 1 + (_CLIP - 1) / np.sqrt(averaged)
    expected = gammainc(averaged + 1, averaged * clip) + clip * gammaincc(averaged, averaged * clip)
    fit = np.append(np.median(np.log(power)), np.zeros(design.shape[1] - 1))
    for _ in range(30):
        ratio = np.minimum(power * np.exp(-design @ fit), clip) / expected
        change = curvature @ (design.T @ (ratio - 1))
        fit = fit + np.clip(change, -1, 1)
        if np.abs(change).max() < 1e-3:
            break
    return np.exp(design @ fit), leverage


@lru_cache(maxsize=256)
def _power_laws(first: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Design, its inverse Gram matrix and leverages of power laws on consecutive bins: those of every variable.

    The first block spans so many octaves that ln S gets a quadratic term as well.
    """
    bins = np.arange(first, first + number)
    degree = 2 if bins[-1] > 4 * bins[0] else 1
    design = np.vander(np.log(bins) - np.log(bins).mean(), degree + 1, increasing=True)
    curvature = np.linalg.inv(design.T @ design)
    return design, curvature, np.einsum("ki,ij,kj->k", design, curvature, design)


def line_thresholds(averaged: int, freedom: np.ndarray, chance: float) -> np.ndarray:
    """Return how far above its background a bin is by chance with probability `chance` only."""
    grid = np.geomspace(freedom.min(), 1.001 * freedom.max(), 40)
    points = [fdtri(2 * averaged, f, 1 - chance) for f in grid]
    return _MISFIT ** (1 - 1 / averaged) * np.interp(freedom, grid, points)
