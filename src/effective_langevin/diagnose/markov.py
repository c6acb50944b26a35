"""Does the past tell more about the future once the present is known?

Linearly: the part of x(t + h) and the part of x(t - h) that a linear function of x(t) leaves over are correlated by

    [C(2h) - C(h) C(0)^-1 C(h)]_ij / sqrt(F_ii B_jj),   F, B: covariances of the two remainders,

zero by Chapman-Kolmogorov if the dynamics is Markov *and* E[x(t + h) | x(t)] is linear. On a partition of state space
the functions are linear in each cell instead, so that only memory is left as the partition is refined. Positive: noise
on each sample, or a hidden slow variable. Negative: inertia.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import scipy.sparse.linalg
from jaxtyping import Float

from .._core import keys
from .._core.resampling import jackknife
from .._core.types import LagMatrices, Matrix, Samples
from ..data import TimeSeries
from ..estimate.partition import Tree, grow_tree
from .survey import Survey, chunks

_MOST_DIMENSIONS = 6
_CELLS = (128, 32, 8)
_SAMPLES_PER_COEFFICIENT = 50
_SAMPLES = 200_000
_RANK = 1e-6


@dataclass(frozen=True)
class LinearMemory:
    """Partial correlations of future and past at lags that double, with errors."""

    lags: np.ndarray
    value: Float[np.ndarray, "lag var var"]
    error: Float[np.ndarray, "lag var var"]


@dataclass(frozen=True)
class CellMemory:
    """The same on a partition, at two lags; and the slowest implied times at h, 2h, 4h of the longer one."""

    cells: int
    lags: tuple[int, ...]
    value: Float[np.ndarray, "lag var var"]
    error: Float[np.ndarray, "lag var var"]
    implied_times: np.ndarray
    implied_errors: np.ndarray


def linear_memory(survey: Survey) -> LinearMemory:
    """Chapman-Kolmogorov on correlations at h = 1, 2, 4, ... up to the longest integral time."""
    last = max(1, min(survey.times.max() / survey.series.dt, survey.lags[-1] / 2))
    lags = 2 ** np.arange(int(np.log2(last)) + 1)
    doubled = np.append(lags, 2 * lags[-1])
    return LinearMemory(lags, *survey.jackknifed(partial_correlations, 0, *doubled))


def partial_correlations(moments: LagMatrices) -> LagMatrices:
    """Of C at lags 0, 1, 2, 4, ...: the correlations of future and past given the present, at all but the last lag."""
    inverse = np.linalg.pinv(moments[0], rcond=_RANK, hermitian=True)
    return np.array([_partial(moments[0], inverse, once, twice) for once, twice in pairwise(moments[1:])])


def _partial(covariance: Matrix, inverse: Matrix, once: Matrix, twice: Matrix) -> Matrix:
    """Correlation of what a linear function of the present leaves over of future (rows) and past (columns)."""
    forward = np.diag(covariance - once @ inverse @ once.T)
    backward = np.diag(covariance - once.T @ inverse @ once)
    scale = np.sqrt(np.outer(np.maximum(forward, 1e-12), np.maximum(backward, 1e-12)))
    return np.clip((twice - once @ inverse @ once) / scale, -1, 1)


def cell_memory(survey: Survey, *, key: jax.Array) -> CellMemory | None:
    """Memory on as fine a partition as the samples allow; None in many dimensions or for few samples."""
    series = survey.series
    affordable = min(series.n_samples, _SAMPLES) / _SAMPLES_PER_COEFFICIENT / (series.dimension + 1)
    cells = next((c for c in _CELLS if c <= affordable), None)
    longest = max(len(s) for s in series.segments)
    later = int(min(max(1, 0.5 * survey.times.min() / series.dt), longest / 64))
    if cells is None or series.dimension > _MOST_DIMENSIONS or later < 1:
        return None
    sample = np.concatenate([s[:: max(1, -(-series.n_samples // _SAMPLES))] for s in series.segments])
    tree = grow_tree(sample, cells=cells, key=keys.named(key, "cells"))
    lags = tuple(sorted({1, later}))
    found = [_memory_at(series, tree, lag, survey.groups) for lag in lags]
    times, errors = implied_times(series, tree, later, survey.groups)
    return CellMemory(tree.cells, lags, np.array([v for v, _ in found]), np.array([e for _, e in found]), times, errors)


def _memory_at(series: TimeSeries, tree: Tree, lag: int, groups: int) -> tuple[Matrix, Matrix]:
    """Partial correlation given the cell and a linear function in it, and its error."""
    usable = [s for s in series.segments if len(s) > 2 * lag]
    stride = max(1, -(-series.n_samples // _SAMPLES))
    past, now, future = (
        np.concatenate([s[first : len(s) - 2 * lag + first][::stride] for s in usable]) for first in (0, lag, 2 * lag)
    )
    remains = remainders(np.hstack([future, past]), now, tree.assign(now), tree.cells)
    width = now.shape[1]
    products = [part.T @ part for part in np.array_split(remains, groups)]

    def correlation(weights: np.ndarray) -> Matrix:
        total = np.tensordot(weights, products, 1)
        scale = np.sqrt(np.maximum(np.diag(total), 1e-300))
        return (total / np.outer(scale, scale))[:width, width:]

    return jackknife(correlation, groups)


def remainders(targets: Samples, points: Samples, labels: np.ndarray, cells: int) -> Samples:
    """What is left of `targets` after regression on (1, points) within each cell."""
    order = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[order], np.arange(cells + 1))
    left = np.empty_like(targets)
    for low, high in pairwise(edges):
        rows = order[low:high]
        design = np.column_stack([np.ones(len(rows)), points[rows]])
        basis = np.linalg.qr(design)[0]
        left[rows] = targets[rows] - basis @ (basis.T @ targets[rows])
    return left


def implied_times(series: TimeSeries, tree: Tree, lag: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """-h / ln |lambda_2| of the transition matrix over h = lag, 2 lag, 4 lag: constant if the cells are Markov."""
    share = min(1.0, _SAMPLES / series.n_samples)
    labels = [tree.assign(s[: max(1, int(share * len(s)))])[:, None] for s in series.segments]
    found = []
    for h in (lag, 2 * lag, 4 * lag):
        counts = np.array([_transitions(pieces, h, tree.cells) for pieces in chunks(labels, groups)])
        modulus = _second_eigenvalue(counts.sum(axis=0))
        found.append(jackknife(lambda weights, c=counts, f=modulus: np.asarray(f(np.tensordot(weights, c, 1))), groups))
    values, errors = np.array(found).T
    spans = series.dt * np.array([lag, 2 * lag, 4 * lag])
    values = np.where((values > 0) & (values < 1), values, np.nan)
    return -spans / np.log(values), spans * errors / (values * np.log(values) ** 2)


def _transitions(pieces: list[np.ndarray], lag: int, cells: int) -> Matrix:
    """Counts of origin (row) and target (column)."""
    codes = [p[:-lag, 0].astype(int) * cells + p[lag:, 0] for p in pieces if len(p) > lag]
    codes = np.concatenate(codes) if codes else np.zeros(0, int)
    return np.bincount(codes, minlength=cells * cells).reshape(cells, cells)


def _second_eigenvalue(counts: Matrix) -> Callable[[np.ndarray], float]:
    """|lambda_2| of the row-normalised matrix of other counts, to first order in how far they are from `counts`."""
    visits = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    matrix, start = counts / visits, np.random.default_rng(0).normal(size=len(counts))
    # Without the stationary part, the second eigenvalue comes first; Arnoldi, as dense solvers are slow on busy cores.
    rest = matrix - np.ones((len(counts), 1)) * _stationary(matrix)
    eigs: Any = scipy.sparse.linalg.eigs
    try:
        value, right = (v[..., 0] for v in eigs(rest, k=1, v0=start))
        values, lefts = eigs(rest.T, k=2, v0=start)
    except scipy.sparse.linalg.ArpackError:
        return lambda other: np.nan
    left = lefts[:, np.argmin(np.abs(values - value))]
    pair = left[:, None] * right / (left @ right)

    def modulus(other: np.ndarray) -> float:
        return float(np.abs(np.sum(pair * other / np.maximum(other.sum(axis=1, keepdims=True), 1))))

    return modulus


def _stationary(matrix: Matrix) -> np.ndarray:
    """Left eigenvector of a transition matrix to the eigenvalue one, by squaring."""
    power = matrix
    for _ in range(40):
        power = power @ power
        power /= np.maximum(power.sum(axis=1, keepdims=True), 1e-300)
    return power.mean(axis=0)
