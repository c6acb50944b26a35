"""What a model says about its dynamics: relaxation times, rotations and entropy production, each with its error.

All follow from Phi, the covariance C and the score; entropy production also from fields nu and D. C(tau) of the model
begins as C - Phi tau, whatever the score, so A = Phi C^-1 holds the rates at which its correlations begin to decay; for
linear dynamics they decay so for ever. Errors come from blocks of time drawn with replacement, Phi and C together.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped
from scipy.optimize import linear_sum_assignment

from .._core.format import count, measured, rounded
from .._core.types import Matrix, Samples, Vector
from ..estimate.closure.fields import Fields
from ..statistics.resampling import scatter_of_draws, student_limit
from .closure import evaluate_fields

if TYPE_CHECKING:
    from .langevin import LangevinModel

_ROUNDING = 1e-9
_SHOWN = 3
_NO_DIFFUSION, _NO_CURRENT = 1e-6, 1e-3
_NEAR_SINGULAR, _SURE = 1e-3, 3.0
_NO_NOISE = "no noise acts along the current, so that a reversed path cannot happen"
_MAYBE_NO_NOISE = "the noise along the current cannot be told from none"

Diffusions = Float[np.ndarray, "state var var"] | Matrix


@dataclass(frozen=True, eq=False, repr=False)
class Timescales:
    """Relaxation times of the linearised model, slowest first; `period` is infinite where a mode does not oscillate.

    `directions` (mode, var) are the eigenvectors, in units of the spread of each variable; complex for an oscillation.
    Errors come from so many `blocks` of time.
    """

    value: Vector
    standard_error: Vector
    period: Vector
    period_error: Vector
    directions: Shaped[np.ndarray, "mode var"]
    blocks: int = 0

    def interval(self, level: float = 0.95) -> tuple[Vector, Vector]:
        """Return the confidence interval of each relaxation time: Student's law of the blocks, in the logarithm."""
        quantile = student_limit(self.blocks, level)
        factor = np.exp(quantile * self.standard_error / self.value)
        return self.value / factor, self.value * factor

    def __repr__(self) -> str:
        return f"Timescales({count(len(self.value), 'mode')}; {self.summary()})"

    def summary(self, unit: str = "") -> str:
        """Return the slowest relaxation times and their periods, as text."""
        texts = []
        for time, error, period in list(zip(self.value, self.standard_error, self.period))[:_SHOWN]:
            turning = f" (period {rounded(period)})" if np.isfinite(period) else ""
            texts.append(measured(float(time), float(error), unit) + turning)
        return f"relaxation times {', '.join(texts)}"

    @property
    def shares(self) -> Float[np.ndarray, "mode var"]:
        """How much each variable takes part in a mode, rows summing to one."""
        weights = np.abs(self.directions) ** 2
        return weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False, repr=False)
class Circulation:
    """Rotations of the model in planes, fastest first: `frequency` in radians per unit of time.

    `planes` (rotation, 2, var) spans each plane by two displacements of one standard deviation, in physical units; the
    motion goes from the first to the second.
    """

    frequency: Vector
    standard_error: Vector
    planes: Float[np.ndarray, "rotation two var"]
    reason: str = ""

    @property
    def defined(self) -> bool:
        """Whether the rotations can be trusted; if not, `reason` says why."""
        return not self.reason

    def __repr__(self) -> str:
        return f"Circulation({self.summary()})"

    def summary(self, unit: str = "") -> str:
        """Return the fastest rotations, as text."""
        if not self.defined:
            return f"rotations withheld: {self.reason}"
        unit, pairs = unit and f"rad/{unit}", list(zip(self.frequency, self.standard_error))[:_SHOWN]
        return f"rotations {', '.join(measured(float(f), float(e), unit) for f, e in pairs) or 'none'}"

    @property
    def period(self) -> Vector:
        """Time of one turn."""
        with np.errstate(divide="ignore"):
            return 2 * np.pi / self.frequency


@dataclass(frozen=True, repr=False)
class EntropyProduction:
    """Entropy production per unit of time, in units of Boltzmann's constant; `bias` is what sampling noise adds to it.

    It is quadratic in the current, so that the noise of the current alone makes it positive. Where no noise acts along
    the current it is not defined: `value` is NaN and `reason` says why.
    """

    value: float
    standard_error: float
    bias: float
    reason: str = ""

    @classmethod
    def undefined(cls, reason: str) -> "EntropyProduction":
        """Return a value that does not exist."""
        return cls(np.nan, np.nan, np.nan, reason)

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return not self.reason

    def __repr__(self) -> str:
        return f"EntropyProduction({self.summary()})"

    def summary(self, unit: str = "") -> str:
        """Return the value and what sampling noise adds to it, as text."""
        if not self.defined:
            return f"entropy production undefined: {self.reason}"
        value = measured(self.value, self.standard_error, unit and f"per {unit}")
        return f"entropy production {value}, of which sampling noise {rounded(self.bias)}"


@dataclass(frozen=True, eq=False)
class Draws:
    """Phi and C in standardised units, and the same from blocks of time drawn with replacement."""

    phi: Matrix
    covariance: Matrix
    phis: Float[np.ndarray, "draw var var"]
    covariances: Float[np.ndarray, "draw var var"]
    lifted_by: float = 0.0
    blocks: int = 0

    def of_first(self, count: int) -> "Draws":
        """Return the same of the first variables alone."""
        part = (..., slice(count), slice(count))
        names = ("phi", "covariance", "phis", "covariances")
        return replace(self, **{name: getattr(self, name)[part] for name in names})

    def scatter(self, drawn: np.ndarray) -> np.ndarray:
        """Return the standard error from draws."""
        return scatter_of_draws(drawn, self.blocks)

    @property
    def degenerate(self) -> str:
        """Why quotients by the diffusion mean nothing, or "": it was lifted, or nearly vanishes along the current."""
        if self.lifted_by:
            return (
                f"the inferred diffusion was not positive definite, and Phi was moved by {100 * self.lifted_by:.2g} % "
                "to make it so"
            )
        values, vectors = np.linalg.eigh(0.5 * (self.phi + self.phi.T))
        errors = self.of(lambda phi, _: np.einsum("ik,dij,jk->dk", vectors, phi, vectors)).std(axis=0)
        doubtful = vectors[:, values < np.maximum(_NEAR_SINGULAR * values[-1], _SURE * errors)]
        odd = 0.5 * (self.phi - self.phi.T)
        return _MAYBE_NO_NOISE if np.linalg.norm(doubtful.T @ odd) > _NO_CURRENT * np.linalg.norm(odd) else ""

    def of(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of Phi and C of all draws, (draw, ...); without draws, of the two alone, with no error then."""
        if len(self.phis) == 0:
            return function(self.phi[None], self.covariance[None])
        return function(self.phis, self.covariances)


def relaxation(draws: Draws) -> Timescales:
    """1 / Re lambda and 2 pi / |Im lambda| of the eigenvalues of A = Phi C^-1; errors to first order in those of A."""
    rates, vectors = np.linalg.eig(draws.phi @ np.linalg.inv(draws.covariance))
    order = np.lexsort((-np.imag(rates), np.real(rates).round(12)))
    rates, directions = rates[order], vectors.T[order]

    def matched(phis: np.ndarray, covariances: np.ndarray) -> np.ndarray:
        """Eigenvalues of each draw, each in the place of the one that it belongs to."""
        drawn = np.linalg.eigvals(phis @ np.linalg.inv(covariances))
        return np.array([one[linear_sum_assignment(np.abs(rates[:, None] - one))[1]] for one in drawn])

    drawn, decay, turn = draws.of(matched), np.real(rates), np.abs(np.imag(rates))
    turn = np.where(turn > _ROUNDING * np.abs(rates), turn, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        period = 2 * np.pi / turn
        period_error = np.where(turn > 0, period * draws.scatter(np.imag(drawn)) / turn, 0.0)
    error = draws.scatter(np.real(drawn)) / decay**2
    return Timescales(1 / decay, error, period, period_error, directions, draws.blocks)


def rotations(draws: Draws, std: Vector, reason: str = "") -> Circulation:
    """Planes and frequencies of dy = -B y dt with B = L^-1 Phi_A L^-T and y = L^-1 x, C = L L^T: in y, C is round.

    B is antisymmetric: -B u = omega v, -B v = -omega u in each plane. The error of omega is that of -v^T B u, which to
    first order does not see that L, too, is another one in every draw: that only turns y.
    """
    turning = _turning(draws.phi, draws.covariance)
    frequency, vectors = np.linalg.eigh(1j * turning)
    fastest = np.argsort(-frequency)[: len(std) // 2]
    second, first = (np.sqrt(2) * part(vectors.T[fastest]) for part in (np.real, np.imag))
    drawn = draws.of(lambda phi, c: -np.einsum("ki,dij,kj->dk", second, _turning(phi, c), first))
    planes = np.stack([first, second], axis=1) @ np.linalg.cholesky(draws.covariance).T * std
    return Circulation(frequency[fastest], draws.scatter(drawn), planes, reason)


def entropy_production(draws: Draws, states: Samples, scores: Samples) -> EntropyProduction:
    """tr(K < s s^T >) with K = Phi_A^T Phi_S^-1 Phi_A, from scores at states of the steady state (paper's Phi).

    It is < v^T Phi_S^-1 v > of the stationary velocity v = Phi_A s, zero without circulation. < s s^T > is C^-1 for the
    Gaussian of the same covariance; only what the score has beyond it is averaged over the states, which is noisier.
    Not defined where Phi_A leads out of the directions in which noise acts, after a lift of eigenvalues of Phi_S, and
    where Phi_S nearly vanishes along the current: it diverges as the least eigenvalue goes to zero.
    """
    if _produced(draws.phi.T - draws.phi, 0.5 * (draws.phi + draws.phi.T)) is None:
        return EntropyProduction.undefined(_NO_NOISE)
    if reason := draws.degenerate:
        return EntropyProduction.undefined(reason)
    kernel, gaussian = _kernel(draws.phi), np.linalg.inv(draws.covariance)
    linear = states @ gaussian

    def beyond(matrix: Matrix) -> np.ndarray:
        return np.einsum("ti,ij,tj->t", scores, matrix, scores) - np.einsum("ti,ij,tj->t", linear, matrix, linear)

    rest = (scores.T @ scores - linear.T @ linear) / len(states)
    value = float(np.sum(kernel * gaussian) + beyond(kernel).mean())
    drawn = draws.of(lambda phi, c: np.sum(_kernel(phi) * (np.linalg.inv(c) + rest), axis=(-2, -1)))
    noise = beyond(kernel).std() / np.sqrt(len(states))
    return EntropyProduction(value, float(np.hypot(draws.scatter(drawn), noise)), float(drawn.mean() - value))


def entropy_of_fields(
    current: Samples, diffusion: Diffusions, replicas: Iterable[tuple[Samples, Diffusions]] = ()
) -> EntropyProduction:
    """< nu . D^-1 nu > from nu (state, var) and D (state, var, var), or one D for all, at states of the steady state.

    The error is the scatter over `replicas`, the two at the same states from blocks of time drawn with replacement,
    and that of the mean over the states. Units are standardised, so that directions can be compared: no noise acts
    where D is below a millionth of its mean size, and the value is not defined if nu has more than a thousandth of its
    size there.
    """
    rates = _produced(current, diffusion)
    if rates is None:
        return EntropyProduction.undefined(_NO_NOISE)
    value, means = float(rates.mean()), []
    for replica in replicas:
        drawn = _produced(*replica)
        if drawn is None:
            return EntropyProduction.undefined(_MAYBE_NO_NOISE)
        means.append(drawn.mean())
    means = np.array(means or [value])
    noise = rates.std() / np.sqrt(len(rates))
    return EntropyProduction(value, float(np.hypot(means.std(), noise)), float(means.mean() - value))


def produce_entropy(model: "LangevinModel", draws: Draws) -> EntropyProduction:
    """Return < nu . D^-1 nu > per unit of time, with its error; see `LangevinModel.entropy_production`."""
    closure = model.mobility.evidence.closure
    if closure is not None and closure.white is False:
        return EntropyProduction.undefined("the series is smooth, so that its noise is not resolved")
    clean = model.standardizer.to_standard(model.states)
    kick = np.random.default_rng(0).normal(size=clean.shape) @ model.score.spread
    states = np.concatenate([clean + kick, clean - kick]) if model.score.noise_level else clean
    if model.fields is None:
        return entropy_production(draws, states, model.score.function.over(states).astype(float))
    every = [model.fields, *model.fields.drawn()]
    if model.space.rates:
        values = _driven(model, every, states)
    else:
        values = [evaluate_fields(model.score.function, fields, states) for fields in every]
    return entropy_of_fields(*values[0], values[1:])


def _driven(model: "LangevinModel", every: list[Fields], states: Samples) -> list[tuple[Samples, np.ndarray]]:
    """Return the part of the current of v that does not turn round with time, and D of v.

    It is [nu(x, v) - nu(x, -v) - D s_v(x, v) - D s_v(x, -v)] / 2, zero for a force of x alone beside friction.
    """
    size = model.space.observed
    mirrored = states * np.where(np.arange(states.shape[1]) < size, 1.0, -1.0)
    scores = sum(model.score.function.over(x).astype(float)[:, size:] for x in (states, mirrored))
    found = []
    for fields in every:
        (ahead, diffusion), (back, _) = (evaluate_fields(model.score.function, fields, x) for x in (states, mirrored))
        noise = diffusion[..., size:, size:]
        found.append((0.5 * ((ahead - back)[:, size:] - scores @ noise.T), noise))
    return found


def _produced(current: Samples, diffusion: Diffusions) -> np.ndarray | None:
    """nu . D^-1 nu at every state within the directions in which noise acts; None where nu leads out of them."""
    values, vectors = np.linalg.eigh(np.reshape(diffusion, (-1, *np.shape(diffusion)[-2:])))
    squares = (np.swapaxes(vectors, 1, 2) @ current[:, :, None])[..., 0] ** 2
    noisy = np.broadcast_to(values > _NO_DIFFUSION * values[:, -1].mean(), squares.shape)
    if squares[~noisy].sum() > _NO_CURRENT**2 * squares.sum():
        return None
    return np.sum(np.where(noisy, squares, 0.0) / np.where(noisy, values, 1.0), axis=1)


def _kernel(phi: np.ndarray) -> np.ndarray:
    odd = 0.5 * (phi - phi.mT)
    return odd.mT @ np.linalg.pinv(0.5 * (phi + phi.mT), rcond=_NO_DIFFUSION, hermitian=True) @ odd


def _turning(phi: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """L^-1 Phi_A L^-T with C = L L^T."""
    root = np.linalg.cholesky(covariance)
    half = np.linalg.solve(root, 0.5 * (phi - phi.mT))
    return np.linalg.solve(root, half.mT).mT
