"""The weak form of a diffusion: equations for nu(x) and D(x) that hold at any sampling interval.

With b = D s + div D - nu, the drift of the process seen backwards in time, and Delta = x(T) - x(0), every function q of
the later state has, for every horizon T,

    -< q(x_T) Delta_j > = int_0^T < q(x_tau) b_j(x_0) >
    < q(x_T) Delta_i Delta_j > = int_0^T < q(x_tau) [ 2 D_ij(x_0) - (x_tau - x_0)_i b_j(x_0) - (i <-> j) ] >

The first follows from C(T) - C(0) with the test functions q and x_j, the second from a sum of three such equations with
x_i x_j, x_i q and x_j q. In that sum the noise of the first order cancels, as in a quadratic variation. Both are linear
in nu and D, and their differences between a first lag and later ones hold as well. Noise that is new in every sample
shows at lag 0 alone. From lag 1 on D and nu are those of the variable as observed: its density is wider than that of
the motion beneath, its relaxation the same.

Here D, nu and q are polynomials, q times a weight that tempers large values. All averages then come from one set of
lagged moments: of polynomials at the later time, of polynomials and scores times polynomials at the earlier.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries
from ...statistics.lags import LaggedMoments, lagged_moments
from ..mobility.quadrature import PropagatedIntegral
from .polynomials import degree_of, exponents, monomials, triangle
from .weak_lags import FROM_ZERO, Lags

_BLOCK, _AHEAD = 1 << 16, 1 << 12
_ORTHONORMAL_ON = 1 << 16
_TEMPERED = 3.0  # standard deviations beyond which test functions stop to grow
_SAMPLES_PER_GROUP, _GROUPS = 50, (4, 32)
_STEIN_DEGREE, _SAMPLES_PER_TERM = 5, 100


@dataclass(frozen=True)
class ClosureShape:
    """Degrees of the polynomials in nu and D; without a degree of the current, nu = 0.

    `diffusion` says which entries of D differ: "scalar", "diagonal" or "full". Degree 0 is a constant. A current of
    degree 0 is that of a constant mobility.
    """

    current: int | None
    diffusion: str = "full"
    degree: int = 0

    def size(self, variables: int) -> int:
        entries = len(triangle(self.diffusion, variables)) * len(exponents(variables, self.degree))
        if self.current is None:
            return entries
        return entries + variables * (len(exponents(variables, self.current)) + variables)


class EarlierFunctions:
    """Functions of the earlier state: monomials, and scores times monomials.

    A linear combination of them is a row vector; `times[i]` multiplies it by x_i, `by_score[i]` by s_i, and `slope[i]`
    differentiates it.
    """

    def __init__(self, variables: int, plain: int, scored: int):
        sets = [(-1, exponents(variables, plain)), *((i, exponents(variables, scored)) for i in range(variables))]
        self.variables, self.plain, self.scored = variables, plain, scored
        self.place = {key: k for k, key in enumerate((kind, powers) for kind, terms in sets for powers in terms)}
        self.times = [self._map(lambda kind, powers, i=i: (kind, _raised(powers, i), 1)) for i in range(variables)]
        self.by_score = [
            self._map(lambda kind, powers, i=i: (i if kind < 0 else None, powers, 1)) for i in range(variables)
        ]
        self.slope = [
            self._map(lambda kind, powers, i=i: (kind if kind < 0 else None, _raised(powers, i, -1), powers[i]))
            for i in range(variables)
        ]

    def __len__(self) -> int:
        return len(self.place)

    def _map(self, change) -> Matrix:
        """Return the matrix of an operation that turns one function into a multiple of another."""
        matrix = np.zeros((len(self), len(self)))
        for (kind, powers), row in self.place.items():
            new, raised, factor = change(kind, powers)
            if (new, raised) in self.place:
                matrix[row, self.place[new, raised]] = factor
        return matrix

    def unit(self, kind: int, powers: tuple[int, ...]) -> Vector:
        """Return the row vector of one function; kind -1 is a monomial, i is s_i times one."""
        return np.eye(len(self))[self.place[kind, powers]]

    def fields(self, shape: ClosureShape) -> tuple[np.ndarray, np.ndarray]:
        """Return D (coefficient, var, var, function) and nu (coefficient, var, function) of every coefficient."""
        size, one = self.variables, (0,) * self.variables
        diffusion, current = [], []
        for pairs in triangle(shape.diffusion, size):
            for powers in exponents(size, shape.degree):
                field = np.zeros((size, size, len(self)))
                for i, j in pairs:
                    field[i, j] = field[j, i] = self.unit(-1, powers)
                diffusion.append(field)
        if shape.current is not None:
            parts = [(-1, powers) for powers in exponents(size, shape.current)], [(i, one) for i in range(size)]
            for j, part in ((j, part) for functions in parts for j in range(size) for part in functions):
                current.append(np.eye(size)[j][:, None] * self.unit(*part))
        first = len(diffusion)
        whole = np.zeros((first + len(current), size, size, len(self)))
        flow = np.zeros((first + len(current), size, len(self)))
        whole[:first] = diffusion
        if current:
            flow[first:] = current
        return whole, flow

    def evaluate(self, x: Samples, scores: Samples) -> Samples:
        terms = monomials(x, max(self.plain, self.scored))
        plain, scored = (len(exponents(self.variables, degree)) for degree in (self.plain, self.scored))
        parts = (terms[:, :scored] * scores[:, i, None] for i in range(self.variables))
        return np.concatenate([terms[:, :plain], *parts], axis=1)


def _raised(powers: tuple[int, ...], i: int, by: int = 1) -> tuple[int, ...]:
    return (*powers[:i], powers[i] + by, *powers[i + 1 :])


class FunctionRows:
    """Functions of the samples, evaluated some rows ahead of where they are asked for."""

    def __init__(self, function: Callable[..., Samples], width: int, *series: Samples):
        self.function, self.series, self.shape = function, series, (len(series[0]), width)
        self.first, self.kept = 0, np.empty((0, width))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Samples:
        start, stop = rows.start, min(rows.stop, len(self))
        if start < self.first or stop > self.first + len(self.kept):
            ahead = slice(start, max(stop, start + _AHEAD))
            self.first, self.kept = start, self.function(*(np.asarray(part[ahead], float) for part in self.series))
        found = self.kept[start - self.first : stop - self.first]
        if stop == len(self):
            self.kept = self.kept[:0]
        return found


@dataclass(frozen=True, eq=False)
class WeakMoments:
    """Sums over the samples, in groups of time, from which the equations of every shape follow."""

    functions: EarlierFunctions
    lagged: LaggedMoments
    now: LaggedMoments
    interval: float
    tests: int
    to_orthonormal: Matrix

    @classmethod
    def of(
        cls, series: TimeSeries, scores: Sequence[Samples], current: int = 3, diffusion: int = 4, lags: Lags = FROM_ZERO
    ) -> "WeakMoments":
        """Sum up to the given degrees of nu and D.

        `scores` are those of the samples, of smoothed data: they are first moved so that Stein's identity holds.
        """
        size, degree = series.dimension, max(diffusion, current)
        scores = impose_stein(series.segments, scores)
        functions = EarlierFunctions(size, max(diffusion, current + 1), diffusion + 1)
        parts = list(zip(series.segments, scores))
        width, tests = len(exponents(size, degree + 2)), len(exponents(size, degree))
        later = [FunctionRows(lambda x: _tempered(x, degree + 2), width, x) for x in series.segments]
        earlier = [FunctionRows(functions.evaluate, len(functions), *part) for part in parts]
        plain = len(exponents(size, functions.plain)) + size
        beside = [
            FunctionRows(lambda x, s: np.concatenate([monomials(x, functions.plain), s], axis=1), plain, *part)
            for part in parts
        ]
        groups = int(np.clip(series.n_samples // _SAMPLES_PER_GROUP, *_GROUPS))
        return cls(
            functions,
            lagged_moments(later, earlier, lags.every, groups),
            lagged_moments(beside, earlier, [0], groups),
            series.dt * lags.stride,
            tests,
            _orthonormal(_tempered(series.stacked()[:: 1 + series.n_samples // _ORTHONORMAL_ON], degree)),
        )

    @property
    def variables(self) -> int:
        return self.functions.variables

    @property
    def groups(self) -> int:
        return len(self.now.pairs)

    @cached_property
    def shares(self) -> Vector:
        return self.now.pairs[:, 0] / self.now.pairs.sum()

    @cached_property
    def by_group(self) -> np.ndarray:
        """Lagged moments of each group, (group, lag, later, earlier)."""
        return self.lagged.sums / np.maximum(self.lagged.pairs, 1)[:, :, None, None]

    @cached_property
    def present(self) -> np.ndarray:
        """< f g > of each group at one time: f are monomials and scores, g all functions, (group, f, g)."""
        return self.now.sums[:, 0] / np.maximum(self.now.pairs, 1)[:, :, None]

    @cached_property
    def integrals(self) -> np.ndarray:
        """Moments of each group integrated from the first lag to every horizon."""
        return PropagatedIntegral(np.tensordot(self.shares, self.by_group, 1), self.interval)(self.by_group)[:, 1:]

    def later(self, *factors: int) -> list[int]:
        """Return where the test functions times the given variables are among the functions of the later state."""
        every = exponents(self.variables, degree_of(self.lagged.sums.shape[2], self.variables))
        place = {powers: k for k, powers in enumerate(every)}
        found = []
        for powers in every[: self.tests]:
            for i in factors:
                powers = _raised(powers, i)
            found.append(place[powers])
        return found

    @cached_property
    def targets(self) -> Float[np.ndarray, "group kind horizon test"]:
        """Left sides of all equations: for each variable, then for each pair of variables."""
        size, moments = self.variables, self.by_group
        order = exponents(size, 2)
        place = [self.functions.place[-1, powers] for powers in order]
        squares = [order.index(_raised(_raised((0,) * size, i), j)) for i, j in self.pairs]

        def mean(factors: tuple[int, ...], earlier: int) -> np.ndarray:
            return moments[:, :, self.later(*factors), place[earlier]]

        found = [mean((), 1 + j) - mean((j,), 0) for j in range(size)]
        for (i, j), square in zip(self.pairs, squares):
            found.append(mean((i, j), 0) - mean((i,), 1 + j) - mean((j,), 1 + i) + mean((), square))
        change = np.stack([kind[:, 1:] - kind[:, :1] for kind in found], axis=1)
        return np.einsum("gktm,pm->gktp", change, self.to_orthonormal)

    @cached_property
    def typical_diffusion(self) -> float:
        """Half the quadratic variation between two lags, per unit of time, of the most mobile variable."""
        steps = [k for k, (i, j) in enumerate(self.pairs) if i == j]
        whole = np.tensordot(self.shares, self.targets, 1)[self.variables :, 0, 0]
        mean_test = self.shares @ self.by_group[:, 0, 0, 0] * self.to_orthonormal[0, 0]
        return float(np.max(np.abs(whole[steps])) / (2 * self.interval * mean_test))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [pair for (pair,) in triangle("full", self.variables)]

    def designs(self, diffusion: np.ndarray, current: np.ndarray) -> Float[np.ndarray, "group kind horizon test k"]:
        """Right sides of all equations for fields D and nu, as `EarlierFunctions.fields` gives them."""
        functions, size = self.functions, self.variables
        change = np.array(functions.by_score) + np.array(functions.slope)
        backward = np.einsum("uijf,ifg->ujg", diffusion, change) - current
        carried = [self.integrals @ np.ascontiguousarray(backward[:, j].T) for j in range(size)]
        found = [carried[j][:, :, self.later()] for j in range(size)]
        for i, j in self.pairs:
            at_start = backward[:, j] @ functions.times[i] + backward[:, i] @ functions.times[j]
            at_start = np.ascontiguousarray((2 * diffusion[:, i, j] + at_start).T)
            here = self.integrals[:, :, self.later()] @ at_start
            found.append(here - carried[j][:, :, self.later(i)] - carried[i][:, :, self.later(j)])
        return np.einsum("gktmu,pm->gktpu", np.stack(found, axis=1), self.to_orthonormal)

    def constraints(self, current: np.ndarray, degree: int) -> Float[np.ndarray, "group g k"]:
        """< nu . grad g > for all monomials g up to a degree, in units of the size of grad g."""
        terms, gram = exponents(self.variables, self.functions.plain), self.gram
        place = {powers: k for k, powers in enumerate(terms)}
        found = []
        for powers in exponents(self.variables, degree)[1:]:
            slopes = [(j, place[_raised(powers, j, -1)], powers[j]) for j in range(self.variables) if powers[j]]
            size = np.sqrt(sum(factor**2 * gram[k, k] for _, k, factor in slopes))
            found.append(sum(factor / size * self.present[:, k] @ current[:, j].T for j, k, factor in slopes))
        return np.stack(found, axis=1)

    @cached_property
    def gram(self) -> Matrix:
        """< f f^T > of monomials, then scores, over all samples."""
        columns = [*range(len(exponents(self.variables, self.functions.plain)))]
        columns += [self.functions.place[i, (0,) * self.variables] for i in range(self.variables)]
        return np.tensordot(self.shares, self.present, 1)[:, columns]


def impose_stein(segments: Sequence[Samples], scores: Sequence[Samples]) -> list[Samples]:
    """Add to the scores the least polynomial with which < s_i q > = -< d_i q > for all polynomials q up to its degree.

    The score of smoothed data, or of other samples, fulfils this only nearly, and every equation rests on it.
    """
    size, count = segments[0].shape[1], sum(len(x) for x in segments)
    degree = max(
        d for d in range(1, _STEIN_DEGREE + 1) if d == 1 or _SAMPLES_PER_TERM * len(exponents(size, d)) < count
    )
    functions = EarlierFunctions(size, degree, 0)
    terms = len(exponents(size, degree))
    gram, products = np.zeros((terms, terms)), np.zeros((terms, size))
    for x, s in _blocks(segments, scores):
        values = monomials(x, degree)
        gram += values.T @ values
        products += values.T @ s
    slopes = np.stack([functions.slope[i][:terms, :terms] @ gram[0] for i in range(size)], axis=1)
    scale = 1 / np.sqrt(np.diagonal(gram))
    change = np.linalg.lstsq(gram * scale[:, None] * scale, -(slopes + products) * scale[:, None], rcond=1e-12)[0]
    change = change * scale[:, None]
    parts = [s + monomials(x, degree) @ change for x, s in _blocks(segments, scores)]
    return np.split(np.concatenate(parts), np.cumsum([len(x) for x in segments])[:-1])


def _blocks(segments: Sequence[Samples], scores: Sequence[Samples]):
    """Stretches of states and scores, in float64, that fit into memory together with their monomials."""
    for x, s in zip(segments, scores):
        for i in range(0, len(x), _BLOCK):
            yield np.asarray(x[i : i + _BLOCK], float), np.asarray(s[i : i + _BLOCK], float)


def _tempered(x: Samples, degree: int) -> Samples:
    """Monomials times a weight that falls as |x|^-4 beyond some standard deviations."""
    weight = (1 + np.sum(x**2, axis=1) / (x.shape[1] * _TEMPERED**2)) ** -2
    return monomials(x, degree) * weight[:, None]


def _orthonormal(values: Samples) -> Matrix:
    """Return the matrix that makes functions with these values nearly orthonormal."""
    gram = values.T @ values / len(values)
    scale = 1 / np.sqrt(np.diagonal(gram))
    return np.linalg.inv(np.linalg.cholesky(gram * scale[:, None] * scale + 1e-12 * np.eye(len(gram)))) * scale
