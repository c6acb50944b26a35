"""What a mobility is, and what every way of inferring one has in common."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jaxtyping import Float

from ..._core import checks
from ..._core.errors import EstimateWarning
from ..._core.format import plus_minus
from ..._core.matrices import positive_part, square_root
from ..._core.types import Matrix, Vector
from ...data import Standardizer, TimeSeries
from ...statistics.integral_time import integral_times
from ...statistics.lags import LaggedMoments, lagged_moments, require_lag
from ...statistics.regime import ShortTimeRegime, classify_short_times
from ...statistics.resampling import OverWeights, bootstrap, jackknife, rating_groups, scatter_of_draws, student_limit
from ..closure.fields import Fields
from ..score import ScoreFit, ScoreStrategy
from ..space import StateSpace
from .evidence import MobilityEvidence
from .forecast_matching import match_forecasts

_READABLE = 6
_MOST_KNOWN = 1 << 25  # numbers in the correlations of a series that are remembered: 256 MiB


@dataclass(frozen=True, eq=False)
class Mobility:
    """Phi, whose symmetric part is the diffusion and whose antisymmetric part is the circulation.

    Parameters
    ----------
    matrix : array of shape (var, var)
        Phi.
    standard_error : array of shape (var, var)
        Sampling error of each entry (leave-one-block-out), with the learned score taken as given.
    method : str
        Name of the estimator.
    replicas : array of shape (replica, var, var)
        Phi from blocks of time drawn with replacement, for the error of anything computed from Phi.
    evidence : MobilityEvidence
        What was found on the way.
    covariances : array of shape (replica, var, var)
        Covariances of the data in the same blocks, for the error of what depends on both.

    Examples
    --------
    >>> phi = el.Mobility(np.array([[2.0, 1.0], [-1.0, 2.0]]), np.zeros((2, 2)), "known", np.zeros((0, 2, 2)))
    >>> phi.antisymmetric.tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """

    matrix: Matrix
    standard_error: Matrix
    method: str
    replicas: Float[np.ndarray, "replica var var"]
    evidence: MobilityEvidence = field(default_factory=MobilityEvidence)
    covariances: Float[np.ndarray, "replica var var"] = field(default_factory=lambda: np.zeros((0, 1, 1)))

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The evidence as plain data."""
        return self.evidence.to_dict()

    @property
    def symmetric(self) -> Matrix:
        """Phi_S: the diffusion tensor."""
        return 0.5 * (self.matrix + self.matrix.T)

    @property
    def antisymmetric(self) -> Matrix:
        """Phi_A: the mean circulation."""
        return 0.5 * (self.matrix - self.matrix.T)

    @property
    def of_motion(self) -> Matrix:
        """Phi of the motion beneath measurement noise and blur, which the model of the observed variable does not have.

        Relaxation is the same for both, so that Phi goes with the variances: noise adds to that of the data, blur takes
        from it (`MobilityEvidence.share_of_motion`).
        """
        scale = np.sqrt(self.evidence.share_of_motion) * np.ones(len(self.matrix))
        return self.matrix * np.outer(scale, scale)

    @property
    def noise_factor(self) -> Matrix:
        """Sigma with Sigma Sigma^T = Phi_S: lower triangular, or symmetric where Phi_S is singular.

        Phi_S is the mean of D(x) where that depends on the state; its estimate may have negative eigenvalues, which
        count as zero.
        """
        return self._root_of(self.matrix)

    @property
    def discretisation_error(self) -> Matrix:
        """What the finite sampling interval may have cost each entry, from the change to twice that interval."""
        bias = self.evidence.discretisation_bias
        return np.zeros_like(self.matrix) if bias is None else np.abs(bias)

    def interval(self, level: float = 0.95) -> tuple[Matrix, Matrix]:
        """Return the confidence interval of each entry.

        It follows Student's law with one degree of freedom less than there are blocks, and is widened by the
        discretisation error, and to hold what a coarser sampling gives where that differs beyond errors.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level.

        Returns
        -------
        tuple of two arrays of shape (var, var)
            Lower and upper ends.
        """
        level = checks.fraction("level", level)
        width = student_limit(self.evidence.blocks, level) * self.standard_error + self.discretisation_error
        agreement = self.evidence.agreement
        coarser = [e.phi for e in agreement.contradicting] if agreement else []
        return np.min([self.matrix - width, *coarser], axis=0), np.max([self.matrix + width, *coarser], axis=0)

    def error_of(self, function: Callable[[Matrix], np.ndarray]) -> np.ndarray:
        """Return the standard error of a function of Phi.

        Parameters
        ----------
        function : callable
            Takes a matrix (var, var) and returns a number or an array.

        Returns
        -------
        array
            The scatter over the replicas; zero without any.
        """
        found = [function(replica) for replica in self.replicas] or [function(self.matrix)]
        return scatter_of_draws(np.array(found), self.evidence.blocks)

    @property
    def symmetric_error(self) -> Matrix:
        """Standard error of Phi_S."""
        return self.error_of(lambda phi: 0.5 * (phi + phi.T))

    @property
    def antisymmetric_error(self) -> Matrix:
        """Standard error of Phi_A."""
        return self.error_of(lambda phi: 0.5 * (phi - phi.T))

    @property
    def noise_factor_error(self) -> Matrix:
        """Standard error of Sigma."""
        return self.error_of(self._root_of)

    def _root_of(self, phi: Matrix) -> Matrix:
        return square_root(0.5 * (phi + phi.T) if self.evidence.closure is None else positive_part(phi))

    def to_physical(self, units: Standardizer) -> "Mobility":
        """Return the same mobility, with its evidence, in physical units.

        Parameters
        ----------
        units : Standardizer
            The standardisation of the variables.

        Returns
        -------
        Mobility
            In physical units.
        """
        convert = units.mobility_to_physical
        arrays = ("matrix", "standard_error", "replicas", "covariances")
        return replace(
            self, evidence=self.evidence.to_physical(convert), **{name: convert(getattr(self, name)) for name in arrays}
        )

    def summary(self) -> str:
        """Say how the mobility was found, and give it with its errors where it is small enough to read."""
        rows = zip(self.matrix, self.standard_error) if len(self.matrix) <= _READABLE else ()
        phi = ["  " + "   ".join(plus_minus(float(v), float(e)) for v, e in zip(*row)) for row in rows]
        return "\n".join([f"Mobility by {self.method}", *phi, self.evidence.summary()])

    def __repr__(self) -> str:
        size = len(self.matrix)
        return f"Mobility({self.method}, {size} x {size}, errors from {self.evidence.blocks} blocks)"


@dataclass(frozen=True, eq=False)
class Inference:
    """Phi, how it depends on the weight of each block of time (for errors), and the evidence behind it."""

    phi: Matrix
    estimate: Callable[[np.ndarray], Matrix]
    evidence: MobilityEvidence

    @classmethod
    def of(cls, estimate: Callable[[np.ndarray], Matrix], blocks: int, **evidence: Any) -> "Inference":
        """Evaluate Phi with all blocks counted once; what is not a field of `MobilityEvidence` becomes its `extra`."""
        own = {f.name for f in fields(MobilityEvidence)}
        extra = {name: evidence.pop(name) for name in set(evidence) - own}
        return cls(estimate(np.ones(blocks)), estimate, MobilityEvidence(blocks=blocks, **evidence, extra=extra))

    @property
    def blocks(self) -> int:
        return self.evidence.blocks

    @property
    def standard_error(self) -> Matrix:
        return jackknife(self.estimate, self.blocks)[1]


@dataclass(frozen=True, eq=False)
class ClosureFit:
    """What closes the equation beside the score, standardised: without `fields` the mobility is constant."""

    mobility: Mobility
    fields: Fields | None = None

    def with_evidence(self, **found: Any) -> "ClosureFit":
        return replace(self, mobility=replace(self.mobility, evidence=replace(self.mobility.evidence, **found)))


class ClosureStrategy(ABC):
    """A way to close the equation, given a standardised series and its score."""

    def supports(self, space: StateSpace) -> bool:
        """Whether the closure can be inferred on this space; where it cannot, angles become cos and sin."""
        return not space.angles

    def learns_beside(self, score: ScoreStrategy, series: TimeSeries, space: StateSpace) -> bool:
        """Whether the network of the score has to learn the mean velocities as well."""
        return False

    def check(self, series: TimeSeries) -> None:
        """Refuse a series whose gap-free stretches are too short: successive samples are needed."""
        require_lag(series.segments, 1)

    @abstractmethod
    def close(self, series: TimeSeries, score: ScoreFit, space: StateSpace, *, key: jax.Array) -> ClosureFit:
        """Return a mean mobility with its errors, and fields where the closure depends on the state."""


class MobilityStrategy(ClosureStrategy):
    """A way to infer a constant mobility."""

    @abstractmethod
    def infer(self, series: TimeSeries, score: ScoreFit, *, space: StateSpace, key: jax.Array) -> Inference:
        """Return Phi with the evidence for it."""

    def close(self, series: TimeSeries, score: ScoreFit, space: StateSpace, *, key: jax.Array) -> ClosureFit:
        return ClosureFit(estimate_mobility(series, score, self, space, key=key))

    def lift(self, phi: Matrix) -> Matrix:
        return lift_eigenvalues(phi)


# What was found about a series is remembered as long as it lives: several estimators look at the same one.
_times: WeakKeyDictionary[TimeSeries, Vector] = WeakKeyDictionary()
_regimes: WeakKeyDictionary[TimeSeries, ShortTimeRegime] = WeakKeyDictionary()
_correlations: WeakKeyDictionary[TimeSeries, LaggedMoments] = WeakKeyDictionary()


def times_of(series: TimeSeries) -> Vector:
    """Return the integral times of a series."""
    if series not in _times:
        _times[series] = integral_times(series.segments, series.dt)
    return _times[series]


def regime_of(series: TimeSeries) -> ShortTimeRegime:
    """Return how a series moves at short times."""
    if series not in _regimes:
        _regimes[series] = classify_short_times(series.segments)
    return _regimes[series]


def correlations_of(series: TimeSeries, lags: Sequence[int] | np.ndarray, groups: int) -> LaggedMoments:
    """Return < x(t + lag) x(t)^T > of a series, in as many groups as rate candidates; each lag is summed once."""
    lags, finer, known = np.asarray(lags), rating_groups(groups), _correlations.get(series)
    known = None if known is None or len(known.sums) != finer else known
    new = lags if known is None else np.setdiff1d(lags, known.lags)
    if len(new):
        found = lagged_moments(series.segments, series.segments, new, finer)
        known = found if known is None else known.beside(found)
        if known.sums.size <= _MOST_KNOWN:
            _correlations[series] = known
    assert known is not None
    return known.at(np.searchsorted(known.lags, lags))


def estimate_mobility(
    series: TimeSeries, score: ScoreFit, strategy: MobilityStrategy, space: StateSpace, *, key: jax.Array
) -> Mobility:
    """Infer Phi; if its symmetric part is not positive definite, make it so, for drift and noise alike."""
    strategy.check(series)
    found = strategy.infer(series, score, space=space, key=key)
    lifted = _made_positive(found.phi, strategy, series.dt, score, space)
    moved = float(np.linalg.norm(lifted - found.phi) / np.linalg.norm(found.phi))
    states = correlations_of(series, [0], found.blocks)
    return Mobility(
        lifted,
        found.standard_error,
        type(strategy).__name__,
        _replicas(found, strategy, lifted, aside=lifted - found.phi if space.hidden else np.zeros_like(lifted)),
        replace(found.evidence, lifted_by=moved),
        bootstrap(OverWeights(lambda weights: space.symmetry.project(states.mean(weights)[:, 0])), found.blocks),
    )


def _made_positive(phi: Matrix, strategy: MobilityStrategy, dt: float, score: ScoreFit, space: StateSpace) -> Matrix:
    """Return Phi with a positive definite symmetric part; warn where that changes the forecasts.

    Beside hidden variables it is the one whose forecasts of the observed variables are those of Phi.
    """
    lifted = strategy.lift(phi)
    if np.array_equal(lifted, phi):
        return lifted
    if space.hidden:
        matched = match_forecasts(phi, lifted, score.covariance, dt, space.observed)
        if matched is not None:
            return strategy.lift(matched)
    share = float(np.linalg.norm(lifted - phi) / np.linalg.norm(phi))
    warnings.warn(
        f"The inferred diffusion was not positive definite: the mobility was moved by {100 * share:.2g} % to "
        "make it so. The series may be too short, noisy or sampled too coarsely.",
        EstimateWarning,
        stacklevel=4,
    )
    return lifted


def _replicas(found: Inference, strategy: MobilityStrategy, lifted: Matrix, aside: Matrix) -> np.ndarray:
    """Return Phi from blocks of time drawn with replacement, moved `aside` and lifted; their centre is `lifted`."""
    drawn = np.array([strategy.lift(phi + aside) for phi in bootstrap(found.estimate, found.blocks)])
    return drawn + (lifted - strategy.lift(found.estimate(np.ones(found.blocks)) + aside))


def lift_eigenvalues(phi: Matrix, floor: float = 1e-4) -> Matrix:
    """Raise the eigenvalues of the symmetric part to at least `floor` times the largest; keep the rest."""
    values, vectors = np.linalg.eigh(0.5 * (phi + phi.T))
    least = floor * np.abs(values).max()
    if values.min() >= least:
        return phi
    return vectors @ np.diag(np.maximum(values, least)) @ vectors.T + 0.5 * (phi - phi.T)
