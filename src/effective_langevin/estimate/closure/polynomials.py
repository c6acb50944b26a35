"""Current velocity and diffusion as polynomials of the state, within a box that holds the data.

    nu(x) = P(x) + A s(x)                D(x) = f( polynomial of degree d ),  f(l) = (l + sqrt(l^2 + floor^2)) / 2

f acts on the eigenvalues and makes D positive everywhere; it is smooth, so that div D is that of the very field which
drives the noise. Beyond the box D keeps its value at the nearest point and nu fades to zero.
"""

import functools
from itertools import combinations_with_replacement
from math import comb
from operator import add
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...execution.batches import times
from .fields import CurrentField, DiffusionField, States, Tensors

KINDS = ("scalar", "diagonal", "full")
_MANY = 100


def exponents(variables: int, degree: int) -> list[tuple[int, ...]]:
    """Return the powers of each variable in every monomial up to a degree, by rising degree."""
    chosen = [c for d in range(degree + 1) for c in combinations_with_replacement(range(variables), d)]
    return [tuple(c.count(i) for i in range(variables)) for c in chosen]


def monomials(x: Any, degree: int) -> Any:
    """Return every monomial up to a degree at each state, (batch, term); numpy in, numpy out."""
    library = np if isinstance(x, np.ndarray) else jnp
    return library.stack(_terms(x, degree), axis=1)


def _terms(x: Any, degree: int) -> list[Any]:
    """Return every monomial apart. What is computed term by term, the compiler fuses with the step around it."""
    columns = {(0,) * x.shape[1]: 0 * x[:, 0] + 1}
    for powers in exponents(x.shape[1], degree)[1:]:
        i = next(i for i, power in enumerate(powers) if power)
        columns[powers] = columns[(*powers[:i], powers[i] - 1, *powers[i + 1 :])] * x[:, i]
    return list(columns.values())


def degree_of(terms: int, variables: int) -> int:
    """Return the degree of the polynomials that have so many terms."""
    return next(d for d in range(terms) if comb(variables + d, d) == terms)


class _Polynomials(eqx.Module):
    """What the fields below have in common: `coefficients` (..., term), and the box [low, high]."""

    @classmethod
    def of(cls, *arrays: Any) -> Self:
        """Make the field from arrays of any precision, in the order of its entries."""
        return cls(*(jnp.asarray(array, jnp.float32) for array in arrays))

    @property
    def degree(self: Any) -> int:
        return degree_of(self.coefficients.shape[1], len(self.low))


class PolynomialCurrent(_Polynomials, CurrentField):
    """nu = P(x) + A s(x) within the box [low, high]; beyond it nu fades to zero, as the learned part of a score does.

    `coefficients` are those of the monomials, in the order of `exponents`. With P = 0 and an antisymmetric A this is
    the current of a constant mobility.
    """

    coefficients: Float[Array, "var term"]
    by_score: Float[Array, "var var"]
    low: Float[Array, " var"]
    high: Float[Array, " var"]

    def in_batch(self, x: States, score: States) -> States:
        inside = jnp.clip(x, self.low, self.high)
        fade = jnp.exp(-0.25 * jnp.sum((x - inside) ** 2, axis=1, keepdims=True) ** 2)
        polynomials = jnp.stack(_combined(_terms(inside, self.degree), self.coefficients), axis=1)
        return fade * (polynomials + times(self.by_score, score))


class InertialCurrent(_Polynomials, CurrentField):
    """dx/dt = rate v, exactly, and dv/dt = P(x, v) + A s(x, v), of states (x, v).

    Beyond the box that holds the data, the force P + A s hands over to rate times the score of x: that of a conserved
    energy with the density of the model, which holds the states back.
    """

    coefficients: Float[Array, "observed term"]
    by_score: Float[Array, "observed var"]
    rates: Float[Array, " observed"]
    low: Float[Array, " var"]
    high: Float[Array, " var"]

    def in_batch(self, x: States, score: States) -> States:
        size = len(self.rates)
        inside = jnp.clip(x, self.low, self.high)
        near = jnp.exp(-0.25 * jnp.sum((x - inside) ** 2, axis=1, keepdims=True) ** 2)
        force = jnp.stack(_combined(_terms(inside, self.degree), self.coefficients), axis=1)
        force = near * (force + times(self.by_score, score)) + (1 - near) * self.rates * score[:, :size]
        return jnp.concatenate([self.rates * x[:, size:], force], axis=1)


class PolynomialDiffusion(_Polynomials, DiffusionField):
    """D(x), with the eigenvalues of a symmetric matrix of polynomials made positive by a smooth clip at `floor`.

    `coefficients` has one row of monomials for a scalar, one for each variable for a diagonal matrix, and one for each
    entry of the lower triangle, row by row, for a full one. An eigenvalue l well above the floor becomes
    l + floor^2 / 4 l, one at zero floor / 2.
    """

    coefficients: Float[Array, "entry term"]
    floor: Float[Array, ""]
    low: Float[Array, " var"]
    high: Float[Array, " var"]

    @property
    def kind(self) -> str:
        return KINDS[[len(triangle(kind, len(self.low))) for kind in KINDS].index(len(self.coefficients))]

    def in_batch(self, x: States) -> Tensors:
        entries = _combined(_terms(jnp.clip(x, self.low, self.high), self.degree), self.coefficients)
        if self.kind != "full":
            return _diagonal([_clip_smoothly(entry, self.floor) for entry in entries], x.shape[1])
        if x.shape[1] == 2:
            first, cross, second = entries
            return _clip_two(first, cross, second, self.floor)
        matrix = _symmetric(jnp.stack(entries, axis=1), x.shape[1])
        return _clip_smoothly(matrix, self.floor) if x.shape[1] == 1 else _clip_many(matrix, self.floor)

    def factor(self, x: States) -> Tensors:
        """Return the lower triangular root of D; its columns vanish where D does."""
        diffusion, size = self.in_batch(x), x.shape[1]
        if self.kind != "full":
            return jnp.sqrt(diffusion)
        zero = jnp.zeros_like(x[:, 0])
        root = [[zero] * size for _ in range(size)]
        for j in range(size):
            rest = [diffusion[:, i, j] - sum(root[i][k] * root[j][k] for k in range(j)) for i in range(j, size)]
            pivot = jnp.maximum(rest[0], 0.0)
            scale = jnp.where(pivot > 0, 1 / jnp.sqrt(jnp.where(pivot > 0, pivot, 1.0)), 0.0)
            for i in range(j, size):
                root[i][j] = rest[i - j] * scale
        return _matrices(root)


def triangle(kind: str, variables: int) -> list[list[tuple[int, int]]]:
    """Return the entries (i, j), i >= j, of the matrix that each row of coefficients fills."""
    if kind == "scalar":
        return [[(i, i) for i in range(variables)]]
    if kind == "diagonal":
        return [[(i, i)] for i in range(variables)]
    return [[(i, j)] for i in range(variables) for j in range(i + 1)]


def _combined(terms: list[Array], weights: Float[Array, "out term"]) -> list[Array]:
    """Sum terms with weights, one sum for each row; many terms as one product, in full precision."""
    if weights.size > _MANY:
        sums = jnp.matmul(jnp.stack(terms, axis=1), weights.T, precision=jax.lax.Precision.HIGHEST)
        return [sums[:, k] for k in range(len(weights))]
    return [functools.reduce(add, (row[k] * term for k, term in enumerate(terms))) for row in weights]


def _matrices(rows: list[list[Array]]) -> Tensors:
    """Return matrices from their entries, each with one number per state."""
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def _diagonal(entries: list[Array], size: int) -> Tensors:
    """Return diagonal matrices; one entry is that of all variables."""
    zero, entries = jnp.zeros_like(entries[0]), entries * size if len(entries) == 1 else entries
    return _matrices([[entries[i] if i == j else zero for j in range(size)] for i in range(size)])


def _clip_smoothly(values: Array, floor: Array) -> Array:
    """Return f(l) for every l."""
    return 0.5 * (values + jnp.sqrt(values**2 + floor**2))


def _symmetric(entries: Float[Array, "batch entry"], size: int) -> Tensors:
    """Fill a symmetric matrix with its lower triangle."""
    order = np.zeros((size, size), int)
    for k, ((i, j),) in enumerate(triangle("full", size)):
        order[i, j] = order[j, i] = k
    return entries[:, order]


def _clip_two(first: Array, cross: Array, second: Array, floor: Array) -> Tensors:
    """Return f of symmetric matrices of two variables; the derivative is finite also where eigenvalues coincide.

    The root of S = M^2 + floor^2 is (S + sqrt(det S)) / sqrt(tr S + 2 sqrt(det S)).
    """
    determinant, square = first * second - cross**2, first**2 + 2 * cross**2 + second**2
    root = jnp.sqrt(determinant**2 + floor**2 * square + floor**4)
    scale = jnp.sqrt(square + 2 * (floor**2 + root))
    shift = 0.5 * (floor**2 + root - determinant) / scale  # M^2 = trace M - determinant
    gain = 0.5 * (1 + (first + second) / scale)
    return _matrices([[gain * first + shift, gain * cross], [gain * cross, gain * second + shift]])


@jax.custom_jvp
def _clip_many(matrix: Tensors, floor: Array) -> Tensors:
    """Return f of symmetric matrices of any number of variables, by eigenvectors."""
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
