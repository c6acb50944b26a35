"""Periodograms of gappy records, and what a periodogram looks like where there is no line.

Periodograms of windows of equal length are averaged, on a grid of half bins so that no line falls between two. The
neighbourhood is a power law fitted to each block of bins by maximum likelihood, peaks clipped. A bin over its
neighbourhood has an F distribution as long as there is no line.
"""

from itertools import pairwise

import numpy as np
import scipy.fft
from scipy.special import fdtri, gammainc, gammaincc

from .._core.types import Samples

WIDTH = 64  # bins in a block, at least
_GROWTH = 1.15
_CLIP = 4.0
_MISFIT = 1.5  # a power law is not the truth: so far off it may be


def equal_windows(segments: tuple[Samples, ...]) -> list[Samples]:
    """Windows of one length from all segments: the length with the best signal of a line, length x sqrt(number)."""
    lengths = np.array([len(s) for s in segments])
    sizes = np.unique(lengths)[::-1][:50]
    gain = [size * np.sqrt((lengths // size).sum()) for size in sizes]
    size = int(sizes[int(np.argmax(gain))])
    return [s[k * size : (k + 1) * size] for s in segments for k in range(len(s) // size)]


def periodograms(windows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean periodogram of centred windows without and with a Hann taper, at 0, 1/2, 1, ... per window."""
    mean, size = np.mean([w.mean() for w in windows]), len(windows[0])
    plain, tapered = np.zeros(size + 1), np.zeros(size + 1)
    for window in windows:
        transform = np.asarray(scipy.fft.rfft(window - mean, 2 * size))
        plain += np.square(np.abs(transform))
        # The taper (1 - cos) / 2 takes half of what is one bin, two half bins, to either side.
        tapered[2:-2] += np.square(np.abs(0.5 * transform[2:-2] - 0.25 * (transform[:-4] + transform[4:])))
    return plain / len(windows), tapered / len(windows)


def neighbourhood(power: np.ndarray, averaged: int) -> tuple[np.ndarray, np.ndarray]:
    """Expected power at each bin, and the degrees of freedom it is known with."""
    edges = [2]
    while edges[-1] < len(power):
        edges.append(min(len(power), max(edges[-1] + WIDTH, int(edges[-1] * _GROWTH))))
    if len(edges) > 2 and edges[-1] - edges[-2] < WIDTH:
        del edges[-2]
    level, freedom = np.ones(len(power)), np.ones(len(power))
    for low, high in pairwise(edges):
        law, leverage = power_law(np.maximum(power[low:high], 1e-300), np.arange(low, high), averaged)
        level[low:high], freedom[low:high] = law, 2 * averaged / leverage
    level[:2], freedom[:2] = level[2], freedom[2]
    return level, freedom


def power_law(power: np.ndarray, bins: np.ndarray, averaged: int) -> tuple[np.ndarray, np.ndarray]:
    """S = exp(a + b ln bin) of greatest Whittle likelihood, with power / S clipped so that a line does not count.

    The first block spans so many octaves that ln S gets a quadratic term as well. Also the leverage of each bin: the
    variance of ln S there, times `averaged`.
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


def thresholds(averaged: int, freedom: np.ndarray, chance: float) -> np.ndarray:
    """How far above its neighbourhood a bin must be to be there by chance with probability `chance` only."""
    grid = np.geomspace(freedom.min(), 1.001 * freedom.max(), 40)
    points = [fdtri(2 * averaged, f, 1 - chance) for f in grid]
    return _MISFIT ** (1 - 1 / averaged) * np.interp(freedom, grid, points)
