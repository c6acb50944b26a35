"""Current velocity and diffusion as polynomials of the state, within a box that holds the data.

    nu(x) = P(x) + A s(x)                D(x) = f( polynomial of degree d ),  f(l) = (l + sqrt(l^2 + floor^2)) / 2

f acts on the eigenvalues and makes D positive everywhere; it is smooth, so that div D is that of the very field which
drives the noise. Beyond the box D keeps its value at the nearest point and nu fades to zero.
"""

from itertools import combinations_with_replacement
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.types import Vector
from .fields import CurrentField, DiffusionField, States, Tensors

KINDS = ("scalar", "diagonal", "full")


def exponents(variables: int, degree: int) -> list[tuple[int, ...]]:
    """Return the powers of each variable in every monomial up to a degree, by rising degree."""
    chosen = [c for d in range(degree + 1) for c in combinations_with_replacement(range(variables), d)]
    return [tuple(c.count(i) for i in range(variables)) for c in chosen]


def monomials(x: Any, degree: int) -> Any:
    """Return every monomial up to a degree at each state, (batch, term); numpy in, numpy out."""
    library = np if isinstance(x, np.ndarray) else jnp
    columns = {(0,) * x.shape[1]: library.ones_like(x[:, 0])}
    for powers in exponents(x.shape[1], degree)[1:]:
        i = next(i for i, power in enumerate(powers) if power)
        columns[powers] = columns[(*powers[:i], powers[i] - 1, *powers[i + 1 :])] * x[:, i]
    return library.stack(list(columns.values()), axis=1)


def degree_of(terms: int, variables: int) -> int:
    """Return the degree of the polynomials that have so many terms."""
    return next(d for d in range(terms) if comb(variables + d, d) == terms)


class PolynomialCurrent(CurrentField):
    """nu = P(x) + A s(x) within the box [low, high]; beyond it nu fades to zero, as the learned part of a score does.

    `coefficients` are those of the monomials, in the order of `exponents`. With P = 0 and an antisymmetric A this is
    the current of a constant mobility.
    """

    coefficients: Float[Array, "var term"]
    by_score: Float[Array, "var var"]
    low: Float[Array, " var"]
    high: Float[Array, " var"]

    @classmethod
    def of(cls, coefficients: np.ndarray, by_score: np.ndarray, low: Vector, high: Vector) -> "PolynomialCurrent":
        """Make the field from arrays of any precision."""
        return cls(*(jnp.asarray(a, jnp.float32) for a in (coefficients, by_score, low, high)))

    @property
    def degree(self) -> int:
        """Degree of P."""
        return degree_of(self.coefficients.shape[1], self.coefficients.shape[0])

    def in_batch(self, x: States, score: States) -> States:
        inside = jnp.clip(x, self.low, self.high)
        fade = jnp.exp(-0.25 * jnp.sum((x - inside) ** 2, axis=1, keepdims=True) ** 2)
        return fade * (_combined(monomials(inside, self.degree), self.coefficients) + _combined(score, self.by_score))


class PolynomialDiffusion(DiffusionField):
    """D(x), with the eigenvalues of a symmetric matrix of polynomials made positive by a smooth clip at `floor`.

    `coefficients` has one row of monomials for a scalar, one for each variable for a diagonal matrix, and one for each
    entry of the lower triangle, row by row, for a full one. An eigenvalue l well above the floor becomes
    l + floor^2 / 4 l, one at zero floor / 2.
    """

    coefficients: Float[Array, "entry term"]
    floor: Float[Array, ""]
    low: Float[Array, " var"]
    high: Float[Array, " var"]

    @classmethod
    def of(cls, coefficients: np.ndarray, floor: float, low: Vector, high: Vector) -> "PolynomialDiffusion":
        """Make the field from arrays of any precision."""
        return cls(*(jnp.asarray(a, jnp.float32) for a in (coefficients, floor, low, high)))

    @property
    def degree(self) -> int:
        """Degree of the polynomials."""
        return degree_of(self.coefficients.shape[1], len(self.low))

    @property
    def kind(self) -> str:
        """Return "scalar", "diagonal" or "full"."""
        return KINDS[[len(triangle(kind, len(self.low))) for kind in KINDS].index(len(self.coefficients))]

    def in_batch(self, x: States) -> Tensors:
        entries = _combined(monomials(jnp.clip(x, self.low, self.high), self.degree), self.coefficients)
        if self.kind != "full":
            return jnp.eye(x.shape[1]) * _clip_smoothly(entries, self.floor)[:, None]
        return _clip_eigenvalues(_symmetric(entries, x.shape[1]), self.floor)

    def factor(self, x: States) -> Tensors:
        """Return the lower triangular root of D; its columns vanish where D does."""
        diffusion, size = self.in_batch(x), x.shape[1]
        if self.kind != "full":
            return jnp.sqrt(diffusion)
        root = jnp.zeros_like(diffusion)
        for j in range(size):
            rest = diffusion[:, j:, j] - jnp.sum(root[:, j:, :j] * root[:, j, None, :j], axis=2)
            pivot = jnp.maximum(rest[:, :1], 0.0)
            column = jnp.where(pivot > 0, rest / jnp.sqrt(jnp.where(pivot > 0, pivot, 1.0)), 0.0)
            root = root.at[:, j:, j].set(column)
        return root


def triangle(kind: str, variables: int) -> list[list[tuple[int, int]]]:
    """Return the entries (i, j), i >= j, of the matrix that each row of coefficients fills."""
    if kind == "scalar":
        return [[(i, i) for i in range(variables)]]
    if kind == "diagonal":
        return [[(i, i)] for i in range(variables)]
    return [[(i, j)] for i in range(variables) for j in range(i + 1)]


def _combined(values: Float[Array, "batch term"], weights: Float[Array, "out term"]) -> Float[Array, "batch out"]:
    """Sum terms with weights, in full precision."""
    return jnp.matmul(values, weights.T, precision=jax.lax.Precision.HIGHEST)


def _clip_smoothly(values: Array, floor: Array) -> Array:
    """Return f(l) for every l."""
    return 0.5 * (values + jnp.sqrt(values**2 + floor**2))


def _symmetric(entries: Float[Array, "batch entry"], size: int) -> Tensors:
    """Fill a symmetric matrix with its lower triangle."""
    order = np.zeros((size, size), int)
    for k, ((i, j),) in enumerate(triangle("full", size)):
        order[i, j] = order[j, i] = k
    return entries[:, order]


def _clip_eigenvalues(matrix: Tensors, floor: Array) -> Tensors:
    """Return f of each symmetric matrix; its derivative is finite also where eigenvalues coincide."""
    size = matrix.shape[1]
    if size == 1:
        return _clip_smoothly(matrix, floor)
    return _clip_two(matrix, floor) if size == 2 else _clip_many(matrix, floor)


def _clip_two(matrix: Tensors, floor: Array) -> Tensors:
    """Two variables: the root of S = M^2 + floor^2 is (S + sqrt(det S)) / sqrt(tr S + 2 sqrt(det S))."""
    determinant = matrix[:, 0, 0] * matrix[:, 1, 1] - matrix[:, 0, 1] * matrix[:, 1, 0]
    trace, square = matrix[:, 0, 0] + matrix[:, 1, 1], jnp.sum(matrix**2, axis=(1, 2))
    root = jnp.sqrt(determinant**2 + floor**2 * square + floor**4)
    scale = jnp.sqrt(square + 2 * (floor**2 + root))
    shift = (floor**2 + root - determinant) / scale  # M^2 = trace M - determinant
    return 0.5 * (matrix * (1 + trace / scale)[:, None, None] + jnp.eye(2) * shift[:, None, None])


@jax.custom_jvp
def _clip_many(matrix: Tensors, floor: Array) -> Tensors:
    """Any number of variables, by eigenvectors."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.einsum("bik,bk,bjk->bij", vectors, _clip_smoothly(values, floor), vectors, precision="highest")


@_clip_many.defjvp
def _(primals, tangents):
    """Turn the change of M into the frame of its eigenvectors, where f changes by its divided differences."""
    (matrix, floor), (change, _) = primals, tangents
    values, vectors = jnp.linalg.eigh(matrix)
    roots = jnp.sqrt(values**2 + floor**2)
    pairs = (v[:, :, None] + v[:, None, :] for v in (values, roots))
    slopes = 0.5 * (1 + next(pairs) / next(pairs))
    turned = jnp.einsum("bik,bij,bjl->bkl", vectors, change, vectors, precision="highest")
    back = jnp.einsum("bik,bkl,bjl->bij", vectors, slopes * turned, vectors, precision="highest")
    return _clip_many(matrix, floor), back
