"""Lagged second moments that never cross a gap, a NaN or the border between two records.

    < a(t + lag) b(t)^T >  for many lags, as sums over groups of consecutive origins t

The segments are laid out in one array with zeros between them, as wide as the largest lag, and a column of ones beside
the data. Products across a border then vanish by themselves, and the number of pairs comes out of the same product.
Groups give error bars: leave one out, or draw them with replacement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.fft import next_fast_len

from .._core.types import LagMatrices, Samples

_BLOCK = 1 << 15
# Products of fewer multiplications stay on one BLAS thread; more threads on busy cores were up to fifty times slower.
_ONE_THREAD = 1 << 18


@dataclass(frozen=True)
class LaggedMoments:
    """Sums of products a(t + lag) b(t)^T and numbers of pairs, per group of origins and per lag."""

    lags: np.ndarray
    sums: Float[np.ndarray, "group lag a b"]
    pairs: Float[np.ndarray, "group lag"]

    def mean(self, weights: np.ndarray | None = None) -> LagMatrices:
        """< a(t + lag) b(t)^T > over all groups, or over groups counted `weights` times each."""
        weights = np.ones(len(self.sums)) if weights is None else weights
        pairs = np.tensordot(weights, self.pairs, 1)
        return np.tensordot(weights, self.sums, 1) / np.maximum(pairs, 1)[:, None, None]


def lagged_moments(
    future: Sequence[Samples], past: Sequence[Samples], lags: Sequence[int] | np.ndarray, groups: int = 1
) -> LaggedMoments:
    """Second moments of `future` at t + lag with `past` at t; both are lists of segments of the same lengths."""
    lags = np.asarray(lags, dtype=int)
    gap = int(lags.max())
    a, b = _laid_out(future, gap), _laid_out(past, gap)
    edges = _group_edges([len(s) for s in past], gap, groups)
    sums = (_sums_here if jax.default_backend() == "cpu" else _sums_on_device)(a, b, lags, edges)
    return LaggedMoments(lags, sums[:, :, :-1, :-1], sums[:, :, -1, -1])


def _sums_here(a: np.ndarray, b: np.ndarray, lags: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sums of products for every group and lag, in small blocks that stay in the cache."""
    groups, gap = len(edges) - 1, int(lags.max())
    sums = np.zeros((groups, len(lags), a.shape[1], b.shape[1]))
    block = min(_BLOCK, max(_ONE_THREAD // (a.shape[1] * b.shape[1]), 64))
    for group in range(groups):
        for start in range(edges[group], edges[group + 1], block):
            stop = min(start + block, edges[group + 1])
            origin = b[start:stop].astype(np.float64, copy=False).T
            window = a[start : stop + gap].astype(np.float64, copy=False)
            for k, lag in enumerate(lags):
                sums[group, k] += (origin @ window[lag : lag + stop - start]).T
    return sums


def _sums_on_device(a: np.ndarray, b: np.ndarray, lags: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The same on an accelerator, where one product per group and lag is fast, also in float64."""
    longest = int(np.diff(edges).max())
    with jax.enable_x64(True):
        padded = [jnp.pad(jnp.asarray(x), ((0, longest + int(lags.max())), (0, 0))) for x in (a, b)]
        parts = [_group_sums(*padded, start, stop, jnp.asarray(lags), longest) for start, stop in pairwise(edges)]
        return np.array(parts)


@partial(jax.jit, static_argnames="longest")
def _group_sums(a, b, start, stop, lags, longest: int):
    """Sums over the origins `start` ... `stop`, of which there are `longest` at most."""

    def rows(x, first):
        return jax.lax.dynamic_slice(x, (first, 0), (longest, x.shape[1])).astype(jnp.float64)

    origin = jnp.where(jnp.arange(longest)[:, None] < stop - start, rows(b, start), 0)
    return jax.lax.map(lambda lag: rows(a, start + lag).T @ origin, lags)


def autocovariances(segments: Sequence[Samples], reach: int) -> Float[np.ndarray, "lag var"]:
    """< x_i(t + lag) x_i(t) > of each variable at lags 0 ... reach, by one FFT per variable."""
    lengths = np.array([len(s) for s in segments])
    pairs = np.maximum(lengths[:, None] - np.arange(reach + 1), 0).sum(axis=0)
    size = next_fast_len(int(np.sum(lengths + reach)), True) or 0
    starts = np.cumsum(lengths + reach) - (lengths + reach)
    sums = np.empty((reach + 1, segments[0].shape[1]))
    for i in range(sums.shape[1]):
        line = np.zeros(size)
        for start, segment in zip(starts, segments):
            line[start : start + len(segment)] = segment[:, i]
        sums[:, i] = np.fft.irfft(np.abs(np.fft.rfft(line)) ** 2, size)[: reach + 1]
    return sums / np.maximum(pairs, 1)[:, None]


def _laid_out(segments: Sequence[Samples], gap: int) -> np.ndarray:
    """Segments in one array, a column of ones beside them, `gap` rows of zeros after each."""
    width = segments[0].shape[1]
    out = np.zeros((sum(len(s) + gap for s in segments), width + 1), dtype=segments[0].dtype)
    start = 0
    for segment in segments:
        out[start : start + len(segment), :width] = segment
        out[start : start + len(segment), width] = 1
        start += len(segment) + gap
    return out


def _group_edges(lengths: Sequence[int], gap: int, groups: int) -> np.ndarray:
    """Edges, in the laid-out array, of groups that hold equally many samples."""
    ends = np.cumsum(lengths)
    targets = np.linspace(0, ends[-1], groups + 1).astype(int)
    owner = np.minimum(np.searchsorted(ends, targets, side="right"), len(lengths) - 1)
    edges = targets + owner * gap
    edges[-1] = ends[-1] + (len(lengths) - 1) * gap
    return edges


def integral_time(acf: Float[np.ndarray, " lag"], dt: float) -> float:
    """Integral of a normalised autocorrelation up to its first zero; independent samples are twice that far apart."""
    below = np.flatnonzero(acf <= 0)
    stop = below[0] if len(below) else len(acf)
    return float(dt * (acf[:stop].sum() - 0.5))
