"""Lagged second moments that never cross a gap, a NaN or the border between two records.

    < a(t + lag) b(t)^T >  for many lags, as sums over groups of consecutive origins t

The segments are thought of as laid out in one array with zeros between them, as wide as the largest lag, and a column
of ones beside the data. Products across a border then vanish by themselves, and the number of pairs comes out of the
same product. Only the stretch at work is filled in: no second copy of the series is needed. Groups give error bars:
leave one out, or draw them with replacement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
from jaxtyping import Float
from scipy.fft import next_fast_len

from .._core.errors import DataError
from .._core.types import LagMatrices, Samples
from ..data.lazy import is_lazy
from ..execution.batches import on_all_cores
from ..execution.cluster import in_order
from ..execution.compilation import soon_compiled

_BLOCK = 1 << 15
_FFT_BLOCK = 1 << 12
_TASK = 1 << 20  # rows of a series on disk that make one piece of work
_TASK_BLOCKS = 1 << 5  # the same in blocks of an FFT
_LEAST_BUCKET = 16  # lags, and rows between segments, on an accelerator
_PARTS = 256  # of the rows of a group, multiplied at once on an accelerator
Segments = Sequence[Any]  # arrays, or what offers `Segment`
# Products of fewer multiplications stay on one BLAS thread; more threads on busy cores were up to fifty times slower.
_ONE_THREAD = 1 << 18
_LEAST_BLOCK = 1 << 8
# More multiplications than this are shared by the cores, group by group: the sums stay the same.
_FOR_THREADS = 1 << 28
# Pairs that a lag needs, as a share of the samples: three quarters of a record are the longest lag within it.
ENOUGH_PAIRS = 0.25


@dataclass(frozen=True)
class LaggedMoments:
    """Sums of products a(t + lag) b(t)^T and numbers of pairs, per group of origins and per lag."""

    lags: np.ndarray
    sums: Float[np.ndarray, "group lag a b"]
    pairs: Float[np.ndarray, "group lag"]

    def mean(self, weights: np.ndarray | None = None) -> LagMatrices:
        """< a(t + lag) b(t)^T > over all groups, or over groups counted `weights` times each; NaN without a pair.

        Each of fewer weights counts for equally many consecutive groups. Many weights, (draw, group), give as many
        means, (draw, lag, a, b).
        """
        weights = np.ones(1) if weights is None else weights
        weights = np.repeat(weights, len(self.sums) // weights.shape[-1], axis=-1)
        total, pairs = (np.tensordot(weights, v, 1) for v in (self.sums, self.pairs))
        total /= np.where(pairs > 0, pairs, np.nan)[..., None, None]
        return total

    def at(self, rows: slice | np.ndarray) -> "LaggedMoments":
        """The same at some of the lags."""
        return LaggedMoments(self.lags[rows], self.sums[:, rows], self.pairs[:, rows])

    def beside(self, other: "LaggedMoments") -> "LaggedMoments":
        """The same at the lags of both, in order; no lag is one of both."""
        lags = np.concatenate([self.lags, other.lags])
        sums, pairs = (np.concatenate([getattr(m, name) for m in (self, other)], axis=1) for name in ("sums", "pairs"))
        return LaggedMoments(lags, sums, pairs).at(np.argsort(lags))


def lagged_moments(
    future: Segments, past: Segments, lags: Sequence[int] | np.ndarray, groups: int = 1
) -> LaggedMoments:
    """Second moments of `future` at t + lag with `past` at t; both are lists of segments of the same lengths.

    Raises `DataError` for a lag that no segment is long enough for.
    """
    lags = np.asarray(lags, dtype=int)
    require_lag(past, int(lags.max()), enough=0.0)
    here = jax.default_backend() == "cpu" or _by_blocks(future) or _by_blocks(past)
    sums = (_sums_here if here else _sums_on_device)(future, past, lags, groups)
    return LaggedMoments(lags, sums[:, :, :-1, :-1].copy(), sums[:, :, -1, -1].copy())


def own_moments(
    segments: Segments, lags: np.ndarray, groups: int
) -> tuple[Float[np.ndarray, "group lag var"], Float[np.ndarray, "group lag"]]:
    """Sums of products x_i(t + lag) x_i(t) of each variable with itself and numbers of pairs, as in `LaggedMoments`."""
    sums = _sums_here(segments, segments, lags, groups, own=True)
    return sums[:, :, :-1], sums[:, :, -1]


def longest_lag(segments: Segments, enough: float = ENOUGH_PAIRS) -> int:
    """Return the longest lag that has at least `enough` times as many pairs as there are samples, and one at least."""
    lengths = np.sort([len(s) for s in segments])
    # Pairs at lag k: the sum of n - k over the records of n > k samples.
    low, high = 0, int(lengths[-1]) - 1
    while low < high:
        lag = (low + high + 1) // 2
        fits = np.maximum(lengths - lag, 0).sum() >= enough * lengths.sum()
        low, high = (lag, high) if fits else (low, lag - 1)
    return low


def require_lag(segments: Segments, lag: int, enough: float = ENOUGH_PAIRS, advice: str = "") -> None:
    """Refuse a series whose gap-free stretches are too short for `lag`."""
    if longest_lag(segments, enough) < lag:
        raise DataError(
            f"Too few pairs of samples lie {lag} sampling interval{'s' * (lag > 1)} apart without a gap between them: "
            f"the gap-free stretches of the series are too short. Use longer records, or fill short gaps.{advice}"
        )


def _sums_here(future: Segments, past: Segments, lags: np.ndarray, groups: int, *, own: bool = False) -> np.ndarray:
    """Sums of products for every group and lag, or of `own` ones alone, in small blocks that stay in the cache."""
    gap = int(lags.max())
    a, b, apart = _Layout(future, gap), _Layout(past, gap), _by_blocks(future) or _by_blocks(past)
    pieces = [
        (group, first, min(first + _TASK, int(stop)) if apart else int(stop))
        for group, (start, stop) in enumerate(pairwise(b.group_edges(groups)))
        for first in (range(int(start), int(stop), _TASK) if apart else [int(start)])
    ]
    shape = (a.width,) if own else (a.width, b.width)
    sums, ends = np.zeros((groups, len(lags), *shape)), [ends for _, *ends in pieces]
    work = partial(_own_sums, a, lags) if own else partial(_piece_sums, a, b, lags)
    many = not apart and a.length * len(lags) * int(np.prod(shape)) > _FOR_THREADS
    found = on_all_cores(work, ends) if many else in_order(work, ends, spread=apart)
    for (group, *_), part in zip(pieces, found):
        sums[group] += part
    return sums


def _piece_sums(a: "_Layout", b: "_Layout", lags: np.ndarray, ends: Sequence[int]) -> np.ndarray:
    """Sums of products for every lag, over the origins between two rows."""
    (first, last), gap = ends, int(lags.max())
    sums = np.zeros((len(lags), a.width, b.width))
    block = min(_BLOCK, max(_ONE_THREAD // (a.width * b.width), _LEAST_BLOCK))
    for start in range(first, last, block):
        stop = min(start + block, last)
        origin, window = b.rows(start, stop).T, a.rows(start, stop + gap)
        for k, lag in enumerate(lags):
            sums[k] += (origin @ window[lag : lag + stop - start]).T
    return sums


def _own_sums(a: "_Layout", lags: np.ndarray, ends: Sequence[int]) -> np.ndarray:
    """Sums of the products of each column with itself for every lag, over the origins between two rows."""
    (first, last), gap = ends, int(lags.max())
    sums = np.zeros((len(lags), a.width))
    for start in range(first, last, _FFT_BLOCK):
        size = min(_FFT_BLOCK, last - start)
        window = np.ascontiguousarray(a.rows(start, start + size + gap).T)
        for k, lag in enumerate(lags):
            sums[k] += np.einsum("it,it->i", window[:, :size], window[:, lag : lag + size])
    return sums


def _sums_on_device(future: Segments, past: Segments, lags: np.ndarray, groups: int) -> np.ndarray:
    """The same on an accelerator, where one product per group and lag is fast, also in float64.

    Gap and number of lags are rounded up to powers of two, so that one program serves many calls: a program takes
    longer to compile than to run.
    """
    gap, number = (max(_LEAST_BUCKET, 1 << (int(n) - 1).bit_length()) for n in (max(lags.max(), 1), len(lags)))
    a, b = _Layout(future, gap), _Layout(past, gap)
    edges = b.group_edges(groups)
    longest = -(-int(np.diff(edges).max()) // _PARTS) * _PARTS
    with jax.enable_x64(True):
        late = jnp.asarray(a.rows(0, a.length + longest))
        early = late if future is past else jnp.asarray(b.rows(0, b.length + longest))
        ends, steps = jnp.asarray(edges), jnp.asarray(np.pad(lags, (0, number - len(lags)), mode="edge"))
        parts = [_group_sums(late, early, first, last, steps, longest) for first, last in pairwise(ends)]
        return np.array(parts)[:, : len(lags)]


@soon_compiled
def _group_sums(a, b, start, stop, lags, longest: int):
    """Sums over the origins `start` ... `stop`, of which there are `longest` at most.

    A product of few columns keeps only a small part of a GPU at work: many parts of the rows are multiplied at once.
    """

    def rows(x, first):
        found = jax.lax.dynamic_slice(x, (first, 0), (longest, x.shape[1])).astype(jnp.float64)
        return found.reshape(_PARTS, -1, x.shape[1])

    inside = jnp.arange(longest).reshape(_PARTS, -1, 1) < stop - start
    origin = jnp.where(inside, rows(b, start), 0)
    return jax.lax.map(lambda lag: jnp.einsum("pna,pnb->pab", rows(a, start + lag), origin).sum(axis=0), lags)


def autocovariances(segments: Sequence[Samples], reach: int) -> Float[np.ndarray, "lag var"]:
    """< x_i(t + lag) x_i(t) > of each variable at lags 0 ... reach, by FFTs of blocks that fit into the cache.

    The cross-spectrum of a block of origins with the block prolonged by `reach` is summed over blocks; one inverse
    transform at the end.
    """
    lengths = np.array([len(s) for s in segments])
    pairs = np.maximum(lengths[:, None] - np.arange(reach + 1), 0).sum(axis=0)
    layout, apart = _Layout(segments, reach), _by_blocks(segments)
    block = max(_FFT_BLOCK, next_fast_len(4 * reach, True) or 0) - reach
    size = next_fast_len(block + reach, True) or 0
    spectrum = np.zeros((layout.width - 1, size // 2 + 1), complex)
    starts = list(range(0, layout.length, block))
    pieces = [starts[i : i + _TASK_BLOCKS] for i in range(0, len(starts), _TASK_BLOCKS)] if apart else [starts]
    for part in in_order(partial(_piece_spectrum, layout, block, reach, size), pieces, spread=apart):
        spectrum += part
    return np.asarray(scipy.fft.irfft(spectrum, size))[:, : reach + 1].T / np.where(pairs > 0, pairs, np.nan)[:, None]


def _piece_spectrum(layout: "_Layout", block: int, reach: int, size: int, starts: Sequence[int]) -> np.ndarray:
    """Sum of the cross-spectra of the blocks of origins that begin at some rows."""
    spectrum = np.zeros((layout.width - 1, size // 2 + 1), complex)
    for start in starts:
        window = np.ascontiguousarray(layout.rows(start, start + block + reach)[:, :-1].T)
        origin = np.asarray(scipy.fft.rfft(window[:, :block], size, workers=-1))
        spectrum += np.asarray(scipy.fft.rfft(window, size, workers=-1)) * origin.conj()
    return spectrum


def _by_blocks(segments: Segments) -> bool:
    """Tell whether segments, or arrays that they join, are read by blocks."""
    return any(is_lazy(part) for s in segments for part in (s.parts if isinstance(s, SideBySide) else [s]))


class SideBySide:
    """Arrays of equally many rows as one that has the columns of all; rows are joined where they are asked for."""

    def __init__(self, *parts: Samples):
        self.parts, self.shape = parts, (len(parts[0]), sum(part.shape[1] for part in parts))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Samples:
        return np.concatenate([part[rows] for part in self.parts], axis=1)


class _Layout:
    """Segments in one array, a column of ones beside them, `gap` rows of zeros after each; made where asked for."""

    def __init__(self, segments: Segments, gap: int):
        self.segments, self.gap, self.width = segments, gap, segments[0].shape[1] + 1
        ends = np.cumsum([len(s) + gap for s in segments])
        self.starts, self.length = ends - [len(s) + gap for s in segments], int(ends[-1])

    def group_edges(self, groups: int) -> np.ndarray:
        """Edges, in the laid-out array, of groups that hold equally many samples."""
        ends = np.cumsum([len(s) for s in self.segments])
        targets = np.linspace(0, ends[-1], groups + 1).astype(int)
        owner = np.minimum(np.searchsorted(ends, targets, side="right"), len(ends) - 1)
        edges = targets + owner * self.gap
        edges[-1] = ends[-1] + (len(ends) - 1) * self.gap
        return edges

    def rows(self, first: int, stop: int) -> np.ndarray:
        """Rows first ... stop - 1, zeros beyond the last."""
        out = np.zeros((stop - first, self.width))
        for i in range(max(int(np.searchsorted(self.starts, first, side="right")) - 1, 0), len(self.segments)):
            start, segment = int(self.starts[i]), self.segments[i]
            if start >= stop:
                break
            low, high = max(start, first), min(start + len(segment), stop)
            if low < high:
                out[low - first : high - first, :-1] = segment[low - start : high - start]
                out[low - first : high - first, -1] = 1
        return out
