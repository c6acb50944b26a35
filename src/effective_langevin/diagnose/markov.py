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
from .._core.format import listed, measured
from .._core.types import LagMatrices, Matrix, Samples
from ..data import TimeSeries
from ..estimate.partition import grow_tree
from ..statistics.lags import longest_lag
from ..statistics.resampling import critical, jackknife, jackknife_error, split
from ..statistics.time_reversal import compare_with_reverse
from . import thresholds
from .finding import Finding, Quantity
from .moments import FEW_PAIRS, SeriesMoments

_MOST_DIMENSIONS = 6
_CELLS = (128, 32, 8)
_SAMPLES_PER_COEFFICIENT = 50
_SAMPLES = 200_000
_TREE_SAMPLES = 1 << 13  # the partition is made from so many, and labels are looked up in blocks of that size
_RANK = 1e-6
_MEASURED = {"second": "second_order", "third": "third_order", "turns": "turns"}


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
    series, groups = moments.excerpt, moments.groups
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


_MOST_LAGS = 8  # of the comparison with the reverse, doubling


def _largest(found: LinearMemory | CellMemory, groups: int) -> tuple[int, ...] | None:
    """Where the largest significant entry (lag, future, past) worth a note is; half of the chance is the diagonal's."""
    lags, width, _ = found.value.shape
    limit = np.full((width, width), critical(groups, 2 * found.value.size))
    np.fill_diagonal(limit, critical(groups, 2 * lags * width))
    significant = np.where(np.abs(found.value) > limit * found.error, np.abs(found.value), 0.0)
    if significant.max() == 0 or significant.max() < thresholds.MEMORY[0]:
        return None
    return tuple(int(k) for k in np.unravel_index(significant.argmax(), found.value.shape))


def check_linear_markov(moments: SeriesMoments, found: LinearMemory, cells: CellMemory | None) -> Finding:
    """Compare C(2h) with C(h) C(0)^-1 C(h); where it fails, the partition says why."""
    unit, dt, name = moments.series.time_unit, moments.series.dt, "linear Markov test"
    peaks = [np.unravel_index(np.abs(v).argmax(), v.shape) for v in found.value]
    numbers = {
        "lags": Quantity(found.lags * dt, unit=unit),
        "largest_partial_correlation": Quantity(
            [float(v[peak]) for v, peak in zip(found.value, peaks)],
            [float(e[peak]) for e, peak in zip(found.error, peaks)],
        ),
    }
    at = _largest(found, moments.groups)
    if at is None:
        meaning = "C(2h) equals C(h) C(0)^-1 C(h) within errors, as in a linear Markov process."
        typical = float(np.median(found.error))
        if typical > thresholds.MEMORY[0]:
            meaning += f" But the errors are large, {measured(typical)}, so this says little."
        return Finding(name, "ok", meaning, "", numbers)
    meaning = (
        f"C(2h) differs from C(h) C(0)^-1 C(h): over h = {measured(found.lags[at[0]] * dt, None, unit)} the past adds "
        f"a correlation of {measured(float(found.value[at]), float(found.error[at]))} to the prediction by a linear "
        "function of the present. Memory does that, but so does nonlinear motion without memory."
    )
    why = "No partition is affordable to tell the two apart: compare fits of `series` and of `series.thin(2)`."
    if cells is not None:
        nonlinear = _largest(cells, moments.groups) is None
        why = f"The Markov test says that {'it is nonlinear motion, not memory' if nonlinear else 'there is memory'}."
    return Finding(name, "note", meaning, f"A linear inverse model is not exact here. {why}", numbers)


def check_markov(moments: SeriesMoments, found: CellMemory, *, noisy: bool, smooth: bool) -> Finding:
    """Look for memory that is left once the present is known to within a cell."""
    unit, dt, at = moments.series.time_unit, moments.series.dt, _largest(found, moments.groups)
    numbers = {
        "cells": Quantity(found.cells),
        "lags": Quantity(np.array(found.lags) * dt, unit=unit),
        "partial_correlations": Quantity(found.value, found.error),
        "implied_times": Quantity(found.implied_times, found.implied_errors, unit),
    }
    given = f"Given the present (in {found.cells} cells), the past"
    times = listed([measured(t, e, unit) for t, e in zip(found.implied_times, found.implied_errors)])
    lag = measured(found.lags[-1] * dt, None, unit)
    implied = f"Slowest implied time scales at h, 2h and 4h, h = {lag}: {times}."
    if at is None:
        peak = np.unravel_index(np.abs(found.value).argmax(), found.value.shape)
        most = measured(float(found.value[peak]), float(found.error[peak]))
        return Finding("Markov test", "ok", f"{given} adds nothing: at most {most}. {implied}", "", numbers)
    value, error = float(found.value[at]), float(found.error[at])
    meaning = (
        f"{given} still adds a correlation of {measured(value, error)} over h = "
        f"{measured(found.lags[at[0]] * dt, None, unit)}: the variables are not Markov at that lag. {implied}"
    )
    # Memory that is gone after one sample is worth a note; memory that lasts, or is strong, is a problem.
    lasting = np.abs(found.value[-1]).max() if len(found.lags) > 1 else 0.0
    level = "warning" if max(lasting, 0.5 * abs(value)) > thresholds.MEMORY[1] else "note"
    if noisy and value > 0:
        advice = "Measurement noise explains it at short lags. `el.IntegratedResponse()` leaves out lag 0."
    elif smooth or value < 0:
        advice = 'The motion has inertia. Add velocities or delays: `el.fit(..., memory="auto")`.'
    else:
        advice = 'A slow variable is missing. Add it, or delays: `el.fit(..., memory="auto")`.'
    return Finding("Markov test", level, meaning, advice, numbers)


def check_time_reversal(moments: SeriesMoments) -> Finding:
    """Compare the series with its reverse, in moments of second and third order and in turns."""
    series, name = moments.excerpt, "time reversal"
    longest = min(moments.times.max() / series.dt, longest_lag(series.segments, FEW_PAIRS))
    lags = 2 ** np.arange(min(int(np.log2(max(longest, 1))) + 1, _MOST_LAGS))
    found = compare_with_reverse(series.segments, lags, moments.groups, moments.at(lags))
    kind, size, (lag, i, j) = found.clearest
    time = measured(float(lags[lag] * series.dt), None, series.time_unit)
    numbers = {
        "lags": Quantity(lags * series.dt, unit=series.time_unit),
        **{_MEASURED[key]: Quantity(d.value, d.error) for key, d in found.differences.items()},
        "limit": Quantity(found.limit),
    }
    if not found.irreversible:
        seen = "second and third order" if "third" in found.differences else "second order"
        seen += " or by turns around the mean" if "turns" in found.differences else ""
        reach = measured(float(lags[-1] * series.dt), None, series.time_unit)
        meaning = (
            f"Cannot tell the series from its reverse by moments of {seen} at lags up to {reach}: a difference of "
            f"about {measured(found.visible)} (standardised) would have been seen."
        )
        return Finding(name, "ok", meaning, "", numbers)
    a, b = series.names[i], series.names[j]
    if kind == "second" or (kind == "turns" and found.differs("second")):
        meaning = f"Not the same backwards: {a} and {b} turn around each other ({measured(size)} errors, h = {time})."
        return Finding(name, "ok", meaning, "", numbers)
    if kind == "turns":
        rate = measured(float(found.differences[kind].value[lag, i, j] / (lags[lag] * series.dt)))
        unit = series.time_unit or "unit of time"
        meaning = (
            f"Not the same backwards: from {a} towards {b} the state makes {rate} turns around the mean per {unit} "
            f"({measured(size)} errors, h = {time}). Second moments do not show it."
        )
        advice = "A constant mobility does not turn so: see `el.StateDependent()`."
    else:
        meaning = (
            f"Not the same backwards: < {a}(t)^2 {b}(t + h) > differs from its reverse by {measured(size)} errors at "
            f"h = {time}, as with slow rises and fast falls. Second moments do not show it."
        )
        advice = (
            "A constant mobility does not reproduce it, and in one variable no Langevin equation does: see "
            '`el.StateDependent()` and `el.fit(..., memory="auto")`.'
        )
    return Finding(name, "note", meaning, advice, numbers)
