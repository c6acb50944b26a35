"""nu(x) and D(x) of a diffusive series in a few variables, from the weak form, with the degrees chosen from the data.

The equations (`weak_moments`) are solved by least squares. Each is weighted by its scatter over groups of time, about
the richest shape. < nu . grad g > = 0 for polynomials g are further, heavier equations. A ridge, chosen by leaving out
groups of time, holds what the data do not determine: the part of D that varies, and the matrix A of nu = P(x) + A s(x),
which a score close to a polynomial makes exchangeable with P. Shapes are compared by how well they predict the
equations of groups left out; the simplest within one standard error of the best is taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve

from ..._core.errors import ArgumentError
from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries
from ...statistics.resampling import simplest_of_best
from ..mobility.base import lift_eigenvalues
from ..space import StateSpace
from .fields import ConstantDiffusion, CurrentField, DiffusionField, RotatedScore
from .polynomials import KINDS, PolynomialCurrent, PolynomialDiffusion, exponents, triangle
from .weak_lags import FROM_ZERO, Lags
from .weak_moments import ClosureShape, WeakMoments

MOST_VARIABLES = 3
_RIDGES = (1.0, 10.0, 100.0)
_HEAVY = 3.0  # constraints count this much more than their scatter says
_FOLDS = 8
_SPARED = 0.5  # a bias whose square is less than this share of the variance of an equation is not worth a parameter
_REFINED = 3
_BEYOND = 5  # samples on each side of the box, in each variable
_FLOOR = 0.01
_ROUNDING = 1e-12
_LARGEST = {1: (0, 4), 2: (3, 4), 3: (3, 2)}  # degrees of nu and D by number of variables


@dataclass(frozen=True, eq=False)
class WeakForm:
    """nu(x) and D(x) of one shape, for any weights of the groups of time."""

    problem: "_Problem"
    ridge: float
    low: Vector
    high: Vector

    @property
    def shape(self) -> ClosureShape:
        return self.problem.shape

    @property
    def groups(self) -> int:
        return self.problem.moments.groups

    def coefficients(self, weights: Vector) -> Vector:
        """Return all coefficients, with groups counted `weights` times each."""
        return self.problem.solve(weights, self.ridge)

    def fields(self, weights: Vector) -> tuple[CurrentField, DiffusionField]:
        """Return nu and D; a current of degree 0 is that of a constant mobility."""
        size, found = self.problem.moments.variables, self.coefficients(weights)
        diffusion, polynomial, by_score = self.problem.split(found)
        if self.shape.current:
            current: CurrentField = PolynomialCurrent.of(polynomial, by_score, self.low, self.high)
        else:
            turning = np.zeros((size, size)) if self.shape.current is None else 0.5 * (by_score - by_score.T)
            current = RotatedScore(jnp.asarray(turning, jnp.float32))
        mean = self.problem.mean_diffusion(found, weights)
        if self.shape.degree == 0:
            return current, ConstantDiffusion.of(lift_eigenvalues(mean))
        floor = _FLOOR * np.trace(mean) / size
        return current, PolynomialDiffusion.of(diffusion, floor, self.low, self.high)

    def mobility(self, weights: Vector) -> Matrix:
        """Return < M > = < D > - < nu x^T >."""
        found = self.coefficients(weights)
        return self.problem.mean_diffusion(found, weights) - self.problem.carried(found, weights)[0]

    def current_error(self) -> tuple[float, float]:
        """Return |sym < nu x^T >| / |< nu nu^T >| on groups left out, with its standard error."""
        if self.shape.current is None:
            return 0.0, 0.0
        odd, power = [], []
        for held_out in _fold_weights(self.groups):
            carried, square = self.problem.carried(self.coefficients(1 - held_out), held_out)
            odd.append(0.5 * (carried + carried.T))
            power.append(square)
        size = float(np.linalg.norm(np.mean(power, axis=0))) + _ROUNDING
        error = np.std(odd, axis=0, ddof=1) / np.sqrt(len(odd))
        return float(np.linalg.norm(np.mean(odd, axis=0)) / size), float(np.linalg.norm(error) / size)


@dataclass(frozen=True, eq=False)
class WeakSolver:
    """Everything that the shapes have in common: the moments, the scatter of each equation, and the box of the data."""

    moments: WeakMoments
    largest: tuple[int, int]
    low: Vector
    high: Vector

    @classmethod
    def of(
        cls,
        series: TimeSeries,
        scores: Sequence[Samples],
        space: StateSpace,
        largest: tuple[int, int] | None = None,
        lags: Lags = FROM_ZERO,
    ) -> "WeakSolver":
        """Sum over a standardised series of 1 to 3 variables; `largest` are the highest degrees of nu and D."""
        if space.angles or series.dimension > MOST_VARIABLES:
            raise ArgumentError(f"The weak form is for 1 to {MOST_VARIABLES} variables on the line.")
        largest = largest or _LARGEST[series.dimension]
        tail = min(_BEYOND / series.n_samples, 0.5)
        box = np.quantile(series.stacked(), [tail, 1 - tail], axis=0)
        return cls(WeakMoments.of(series, scores, *largest, lags), largest, *box)

    def solve(self, shape: ClosureShape) -> WeakForm:
        """Solve for one shape, with the ridge that predicts groups left out best."""
        ridge, _ = self._rate(shape)
        return WeakForm(self._problem(shape), ridge, self.low, self.high)

    def select(self, shapes: Iterable[ClosureShape]) -> WeakForm:
        """Return the simplest of some shapes whose held-out loss is within one standard error of the best.

        What a bias smaller than the standard errors of the equations adds to the loss is spared.
        """
        size = self.moments.variables
        by_size = sorted(set(shapes), key=lambda shape: (shape.degree > 0, shape.size(size)))
        rated = [self._rate(shape) for shape in by_size]
        losses = np.array([loss for _, loss in rated])
        chosen = simplest_of_best(losses, _SPARED / losses.shape[1])[0]
        return WeakForm(self._problem(by_size[chosen]), rated[chosen][0], self.low, self.high)

    def shapes(self, *, current: bool = True, diffusion: bool = True) -> list[ClosureShape]:
        """Return the shapes to choose from; with `current` or `diffusion`, also those where it depends on the state."""
        size, (largest, degree) = self.moments.variables, self.largest
        currents = [None] if size == 1 else [*range(largest + 1)] if current else [0]
        kinds = KINDS if size > 1 else KINDS[:1]
        fields = [(kind, d) for kind in kinds for d in range(1, degree + 1)] if diffusion else []
        return [ClosureShape(d, *field) for d in currents for field in [("full", 0), *fields]]

    def choose(self, *, current: bool = True, diffusion: bool = True) -> WeakForm:
        """Choose D beside the richest current first, then the current beside that D."""
        every = self.shapes(current=current, diffusion=diffusion)
        richest = every[-1].current
        first = self.select([shape for shape in every if shape.current == richest])
        return self.select([replace(first.shape, current=shape.current) for shape in every])

    @cached_property
    def _richest(self) -> "_Problem":
        """The problem of the richest shape, with the scatter of each equation and constraint over groups of time."""
        current, degree = self.largest
        richest = _Problem(self.moments, ClosureShape(None if self.moments.variables == 1 else current, "full", degree))
        scales = _spread(richest.target, self.moments.shares), np.full(richest.constraints.shape[1], np.inf)
        for _ in range(_REFINED):
            problem = replace(richest, scales=scales)
            found = problem.solve(np.ones(self.moments.groups), _RIDGES[1])
            violation = _spread(problem.constraints @ found, self.moments.shares)
            least = 1e-3 * np.sqrt(np.trace(problem.carried(found, np.ones(self.moments.groups))[1]))
            left = _spread(problem.target - problem.design @ found, self.moments.shares)
            scales = left, np.hypot(violation, least)
        return replace(richest, scales=scales)

    @cached_property
    def _folds(self) -> list["_Fold"]:
        return [_Fold.of(self._richest, held_out) for held_out in _fold_weights(self.moments.groups)]

    def _problem(self, shape: ClosureShape) -> "_Problem":
        return _Problem(self.moments, shape, self._richest.scales)

    def _rate(self, shape: ClosureShape) -> tuple[float, Vector]:
        """The best ridge of a shape, and its loss in every fold."""
        problem, within = self._problem(shape), self._richest.place(shape)
        losses = np.array([fold.losses(problem, within, _RIDGES) for fold in self._folds]).T
        best = int(losses.mean(axis=1).argmin())
        return _RIDGES[best], losses[best]


@dataclass(frozen=True, eq=False)
class _Problem:
    """The least-squares problem of one shape; `scales` are those of the equations and of the constraints."""

    moments: WeakMoments
    shape: ClosureShape
    scales: tuple[Vector, Vector] | None = None

    @cached_property
    def _fields(self) -> tuple[np.ndarray, np.ndarray]:
        return self.moments.functions.fields(self.shape)

    @cached_property
    def design(self) -> Float[np.ndarray, "group equation k"]:
        found = self.moments.designs(*self._fields)
        return found.reshape(len(found), -1, found.shape[-1])

    @cached_property
    def target(self) -> Float[np.ndarray, "group equation"]:
        return self.moments.targets.reshape(self.moments.groups, -1)

    @cached_property
    def constraints(self) -> Float[np.ndarray, "group g k"]:
        current = self._fields[1]
        if self.shape.current is None:
            return np.zeros((self.moments.groups, 0, len(current)))
        return self.moments.constraints(current, self.shape.current + 2)

    @cached_property
    def _stiffness(self) -> Matrix:
        """Square of the part of D that varies, in units of p, and of A; both in units of the mean diffusion."""
        moments, size = self.moments, self.moments.variables
        terms, entries = len(exponents(size, self.shape.degree)), len(triangle(self.shape.diffusion, size))
        varying = np.linalg.cholesky(moments.gram[:terms, :terms]).T[1:]
        rows = np.kron(np.eye(entries), varying)
        whole = np.zeros((len(rows) + size**2, len(self._fields[1])))
        whole[: len(rows), : entries * terms] = rows
        if self.shape.current is not None:
            whole[len(rows) :, -(size**2) :] = np.eye(size**2)
        whole /= moments.typical_diffusion * np.sqrt(moments.groups)
        return whole.T @ whole

    def place(self, shape: ClosureShape) -> Float[np.ndarray, "k coefficient"]:
        """Return the matrix that writes the coefficients of a simpler shape as those of this one."""
        # The fields of different coefficients are orthogonal.
        every, wanted = (
            np.concatenate([field.reshape(len(field), -1) for field in fields], axis=1)
            for fields in (self._fields, self.moments.functions.fields(shape))
        )
        return every @ wanted.T / np.sum(every**2, axis=1, keepdims=True)

    def share(self, weights: Vector) -> Vector:
        share = weights * self.moments.shares
        return share / share.sum()

    def equations(self, weights: Vector) -> tuple[Matrix, Vector]:
        """Return both sides of the equations in units of their scatter, with groups counted `weights` times each."""
        share, scales = self.share(weights), 1.0 if self.scales is None else self.scales[0]
        return (np.tensordot(share, self.design, 1).T / scales).T, share @ self.target / scales

    def hold(self, weights: Vector, normal: Matrix, aim: Vector, ridge: float) -> Vector:
        """Solve normal equations under the constraints and with a ridge."""
        limits = np.ones(0) if self.scales is None else self.scales[1]
        limited = np.tensordot(self.share(weights), self.constraints, 1) / limits[: self.constraints.shape[1], None]
        normal = normal + _HEAVY**2 * limited.T @ limited + ridge**2 * self._stiffness
        scale = 1 / np.maximum(np.sqrt(np.diagonal(normal)), 1e-300)
        normal = normal * scale * scale[:, None] + _ROUNDING * np.eye(len(scale))
        return scale * solve(normal, scale * aim, assume_a="pos")

    def solve(self, weights: Vector, ridge: float) -> Vector:
        design, target = self.equations(weights)
        return self.hold(weights, design.T @ design, design.T @ target, ridge)

    def split(self, found: Vector) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the coefficients of D, of P and of A."""
        size = self.moments.variables
        terms, entries = len(exponents(size, self.shape.degree)), len(triangle(self.shape.diffusion, size))
        diffusion = found[: entries * terms].reshape(entries, terms)
        if self.shape.current is None:
            return diffusion, np.zeros((size, 1)), np.zeros((size, size))
        polynomial, by_score = found[entries * terms : -(size**2)], found[-(size**2) :]
        return diffusion, polynomial.reshape(size, -1), by_score.reshape(size, size)

    def mean_diffusion(self, found: Vector, weights: Vector) -> Matrix:
        """Return < D >."""
        size, coefficients = self.moments.variables, self.split(found)[0]
        means = self.share(weights) @ self.moments.present[:, 0, : coefficients.shape[1]]
        matrix = np.zeros((size, size))
        for pairs, value in zip(triangle(self.shape.diffusion, size), coefficients @ means):
            for i, j in pairs:
                matrix[i, j] = matrix[j, i] = value
        return matrix

    def carried(self, found: Vector, weights: Vector) -> tuple[Matrix, Matrix]:
        """Return < nu x^T > and < nu nu^T >."""
        size, (_, polynomial, by_score) = self.moments.variables, self.split(found)
        terms = polynomial.shape[1]
        present = np.tensordot(self.share(weights), self.moments.present, 1)
        scores = [self.moments.functions.place[i, (0,) * size] for i in range(size)]
        rows = np.concatenate([present[:terms], present[-size:]])
        current = np.concatenate([polynomial, by_score], axis=1)
        both = current @ rows[:, [*range(terms), *scores]] @ current.T
        return current @ rows[:, 1 : 1 + size], both


@dataclass(frozen=True, eq=False)
class _Fold:
    """The equations of some groups, and the normal equations of all others, of the richest shape."""

    held_out: Vector
    design: Matrix
    target: Vector
    normal: Matrix
    aim: Vector

    @classmethod
    def of(cls, richest: _Problem, held_out: Vector) -> "_Fold":
        design, target = richest.equations(1 - held_out)
        return cls(held_out, *richest.equations(held_out), design.T @ design, design.T @ target)

    def losses(self, problem: _Problem, within: Matrix, ridges: Sequence[float]) -> list[float]:
        """Mean square of the equations held out, in units of their scatter, with each ridge."""
        design, normal, aim = self.design @ within, within.T @ self.normal @ within, within.T @ self.aim
        found = (problem.hold(1 - self.held_out, normal, aim, ridge) for ridge in ridges)
        return [float(np.mean((self.target - design @ part) ** 2) * self.held_out.sum()) for part in found]


def _spread(values: Float[np.ndarray, "group row"], shares: Vector) -> Vector:
    """Standard deviation over groups."""
    groups = len(shares)
    return np.sqrt(shares @ (values - shares @ values) ** 2 * groups / (groups - 1)) + 1e-300


def _fold_weights(groups: int) -> Float[np.ndarray, "fold group"]:
    """One for the groups of each fold, zero for the others; each fold is spread over the whole record."""
    folds = min(_FOLDS, groups)
    return (np.arange(groups) % folds == np.arange(folds)[:, None]).astype(float)
