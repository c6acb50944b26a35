"""Does the past tell more about the future once the present is known?

Linearly: the part of x(t + h) and the part of x(t - h) that a linear function of x(t) leaves over are correlated by

    [C(2h) - C(h) C(0)^-1 C(h)]_ij / sqrt(F_ii B_jj),   F, B: covariances of the two remainders,

zero by Chapman-Kolmogorov if the dynamics is Markov *and* E[x(t + h) | x(t)] is linear. On a partition of state space
the functions are linear in each cell instead, so that only memory is left as the partition is refined. Positive: noise
on each sample, or a hidden slow variable. Negative: inertia.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import scipy.sparse.linalg
from jaxtyping import Float

from .._core import keys
from .._core.types import LagMatrices, Matrix, Samples
from ..data import TimeSeries
from ..estimate.partition import grow_tree
from ..statistics.resampling import jackknife, jackknife_error, split
from .moments import SeriesMoments

_MOST_DIMENSIONS = 6
_CELLS = (128, 32, 8)
_SAMPLES_PER_COEFFICIENT = 50
_SAMPLES = 200_000
_TREE_SAMPLES = 1 << 13  # the partition is made from so many, and labels are looked up in blocks of that size
_RANK = 1e-6


@dataclass(frozen=True, eq=False)
class LinearMemory:
    """Partial correlations of future (rows) and past (columns) given the present, at several lags, with errors."""

    lags: np.ndarray
    value: Float[np.ndarray, "lag var var"]
    error: Float[np.ndarray, "lag var var"]


@dataclass(frozen=True, eq=False)
class CellMemory(LinearMemory):
    """The same on a partition, at two lags; and the slowest implied times at h, 2h, 4h of the longer one."""

    cells: int
    implied_times: np.ndarray
    implied_errors: np.ndarray


def linear_memory(moments: SeriesMoments) -> LinearMemory:
    """Chapman-Kolmogorov on correlations at h = 1, 2, 4, ... up to the longest integral time."""
    last = max(1, min(moments.times.max() / moments.series.dt, moments.lags[-1] / 2))
    lags = 2 ** np.arange(int(np.log2(last)) + 1)
    return LinearMemory(lags, *moments.jackknifed(partial_correlations, 0, *lags, 2 * lags[-1]))


def partial_correlations(correlations: LagMatrices) -> LagMatrices:
    """Of C at lags 0, 1, 2, 4, ...: the correlations of future and past given the present, at all but the last lag."""
    now, found = correlations[0], []
    inverse = np.linalg.pinv(now, rcond=_RANK, hermitian=True)
    for once, twice in pairwise(correlations[1:]):
        forward, backward = (np.maximum(np.diag(now - c @ inverse @ c.T), 1e-12) for c in (once, once.T))
        found.append(np.clip((twice - once @ inverse @ once) / np.sqrt(np.outer(forward, backward)), -1, 1))
    return np.array(found)


def cell_memory(moments: SeriesMoments, *, key: jax.Array) -> CellMemory | None:
    """Memory on as fine a partition as the samples allow; None in many dimensions or for few samples."""
    series, groups = moments.series, moments.groups
    affordable = min(series.n_samples, _SAMPLES) / _SAMPLES_PER_COEFFICIENT / (series.dimension + 1)
    cells = next((c for c in _CELLS if c <= affordable), None)
    longest = max(len(s) for s in series.segments)
    later = int(min(max(1, 0.5 * moments.times.min() / series.dt), longest / 64))
    if cells is None or series.dimension > _MOST_DIMENSIONS or later < 1:
        return None
    labels = label_samples(series, cells, key=keys.named(key, "cells"))
    cells = 1 + max(int(piece.max()) for piece in labels)
    lags = np.unique([1, later])
    value, error = np.swapaxes([_memory_at(series, labels, cells, int(lag), groups) for lag in lags], 0, 1)
    return CellMemory(lags, value, error, cells, *implied_times(labels, cells, later, series.dt, groups))


def label_samples(series: TimeSeries, cells: int, *, key: jax.Array) -> list[np.ndarray]:
    """The cell of every sample, (time, 1) per segment. Few sizes of arrays occur, so that few are compiled."""
    samples = series.stacked()
    size = min(_TREE_SAMPLES, 1 << (len(samples).bit_length() - 1))
    tree = grow_tree(samples[np.linspace(0, len(samples) - 1, size).astype(int)], cells=cells, key=key)
    padded = np.pad(samples, ((0, -len(samples) % _TREE_SAMPLES), (0, 0)))
    labels = np.concatenate([tree.assign(block) for block in padded.reshape(-1, _TREE_SAMPLES, samples.shape[1])])
    return np.split(labels[: len(samples), None], np.cumsum([len(s) for s in series.segments])[:-1])


def _memory_at(series: TimeSeries, labels: list[np.ndarray], cells: int, lag: int, groups: int):
    """Partial correlation given the cell and a linear function in it, and its error."""
    stride = max(1, -(-series.n_samples // _SAMPLES))

    def taken(pieces, first: int) -> np.ndarray:
        return np.concatenate([p[first : len(p) - 2 * lag + first][::stride] for p in pieces if len(p) > 2 * lag])

    past, now, future = (taken(series.segments, first) for first in (0, lag, 2 * lag))
    remains = remainders(np.hstack([future, past]), now, taken(labels, lag)[:, 0], cells)
    products, width = [part.T @ part for part in np.array_split(remains, groups)], now.shape[1]

    def correlation(weights: np.ndarray) -> Matrix:
        total = np.tensordot(weights, products, 1)
        scale = np.sqrt(np.maximum(np.diag(total), 1e-300))
        return (total / np.outer(scale, scale))[:width, width:]

    return jackknife(correlation, groups)


def remainders(targets: Samples, points: Samples, labels: np.ndarray, cells: int) -> Samples:
    """What is left of `targets` after regression on (1, points) within each cell."""
    order, left = np.argsort(labels, kind="stable"), np.empty_like(targets)
    for low, high in pairwise(np.searchsorted(labels[order], np.arange(cells + 1))):
        rows = order[low:high]
        basis = np.linalg.qr(np.column_stack([np.ones(len(rows)), points[rows]]))[0]
        left[rows] = targets[rows] - basis @ (basis.T @ targets[rows])
    return left


def implied_times(
    labels: list[np.ndarray], cells: int, lag: int, dt: float, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """-h / ln |lambda_2| of the transition matrix over h = lag, 2 lag, 4 lag: constant if the cells are Markov.

    Errors by leaving out groups, to first order in how far their counts are from all counts.
    """
    lags, moduli = np.array([lag, 2 * lag, 4 * lag]), []
    for h in lags:
        counts = np.array([_count_transitions(pieces, h, cells) for pieces in split(labels, groups)])
        total = counts.sum(axis=0)
        pair = _second_eigenpair(total)
        weighted = [pair * c / np.maximum(c.sum(axis=1, keepdims=True), 1) for c in (total, *(total - counts))]
        moduli.append([np.abs(np.sum(part)) for part in weighted])
    values, errors = np.array(moduli)[:, 0], jackknife_error(np.array(moduli)[:, 1:].T)
    values = np.where((values > 0) & (values < 1), values, np.nan)
    return -dt * lags / np.log(values), dt * lags * errors / (values * np.log(values) ** 2)


def _count_transitions(pieces: list[np.ndarray], lag: int, cells: int) -> Matrix:
    """Counts of origin (row) and target (column)."""
    codes = [p[:-lag, 0].astype(int) * cells + p[lag:, 0] for p in pieces if len(p) > lag]
    return np.bincount(np.concatenate([np.zeros(0, int), *codes]), minlength=cells * cells).reshape(cells, cells)


def _second_eigenpair(counts: Matrix) -> Matrix:
    """u v^T / u.v of the second eigenvalue of the row-normalised counts: its sum with such a matrix is the eigenvalue.

    By Arnoldi where the matrix is large: dense solvers are slow on busy cores. NaN where that does not converge.
    """
    visits = counts.sum(axis=1, keepdims=True)
    # Taking off equal rows that sum to one removes the eigenvalue one and leaves the others (Brauer).
    matrix = np.where(visits > 0, counts / np.maximum(visits, 1) - (visits / visits.sum()).T, 0.0)
    eigs: Any = scipy.sparse.linalg.eigs
    start = np.random.default_rng(0).normal(size=len(matrix))
    try:
        sides = [np.linalg.eig(m) if len(m) <= 16 else eigs(m, k=2, v0=start) for m in (matrix, matrix.T)]
    except scipy.sparse.linalg.ArpackError:
        return np.full_like(matrix, np.nan)
    (values, rights), (others, lefts) = sides
    k = int(np.argmax(np.abs(values)))
    left, right = lefts[:, np.argmin(np.abs(others - values[k]))], rights[:, k]
    return left[:, None] * right / (left @ right)
