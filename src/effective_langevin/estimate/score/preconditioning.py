"""Noise that follows the spread of the data, and the way back from a noisy state to a clean one.

The same noise in all directions is too little for wide ones, where the pull of the score, of the order of one over the
spread, drowns in targets of the order of 1 / sigma; and too much for narrow ones, which it covers. With the frame
W = B^-1/2, B the covariance C with its variances lifted to at least `narrowest`, the score is learned in w = W x at one
smoothing width sigma for all directions. In x the noise has covariance sigma^2 B and the score is W s_w(W x).
"""

import numpy as np

from ..._core.types import Matrix, Samples
from ...data.lazy import Rows, rows_at_once

_BLOCK = 1 << 16
_LEAST, _MOST = 0.5, 2.0


def noise_frame(covariance: Matrix, narrowest: float) -> Matrix | None:
    """Return W = B^-1/2, which commutes with every symmetry of C; None for equal noise in all directions."""
    return None if np.isinf(narrowest) else power(covariance, -0.5, narrowest)


def restoring_map(expected: Matrix, clean: Matrix) -> Matrix:
    """Return the symmetric A with A M A = C: it gives expected clean states, of covariance M, the spread of clean ones.

    The mean of the states that may have led to a noisy one varies less than they do. A takes the states of covariance M
    to covariance C by the shortest way; where hardly anything of the spread is left it amplifies by no more than 2.
    """
    root, inverse = power(expected, 0.5), power(expected, -0.5)
    values, vectors = np.linalg.eigh(inverse @ power(root @ clean @ root, 0.5) @ inverse)
    return vectors * np.clip(values, _LEAST, _MOST) @ vectors.T


def power(matrix: Matrix, exponent: float, least: float = 0.0) -> Matrix:
    """Return a power of a symmetric positive matrix, its eigenvalues lifted to at least `least` and off zero."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.maximum(values, max(least, 1e-12 * values.max())) ** exponent @ vectors.T


def covariance_matrix(samples: Samples | Rows, noise_level: float = 0.0) -> Matrix:
    """Return the covariance of samples perturbed by independent noise of that width."""
    size = samples.shape[1]
    if isinstance(samples, Rows):
        mean = np.sum([part.sum(axis=0, dtype=float) for part in samples.blocks()], axis=0) / len(samples)
    else:
        mean = samples.mean(axis=0, dtype=float)
    total = np.zeros((size, size))
    block = rows_at_once(samples, _BLOCK)
    for i in range(0, len(samples), block):
        centred = samples[i : i + block] - mean
        total += centred.T @ centred
    return total / len(samples) + noise_level**2 * np.eye(size)


def cross_moment(a: Samples | Rows, b: Samples | Rows) -> Matrix:
    """< a b^T > over rows side by side."""
    if not isinstance(a, Rows):
        return np.asarray(a).T @ np.asarray(b) / len(a)
    total = np.zeros((a.shape[1], b.shape[1]))
    for i in range(0, len(a), a.block):
        total += a[i : i + a.block].T.astype(float) @ b[i : i + a.block]
    return total / len(a)
