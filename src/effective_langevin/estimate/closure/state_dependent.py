"""`StateDependent`: a current velocity nu(x) and a diffusion D(x) in place of a constant mobility."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from ..._core import checks, keys
from ..._core.errors import ArgumentError
from ..._core.types import Matrix, Samples
from ...data import TimeSeries
from ...statistics.integral_time import error_groups
from ...statistics.lags import lagged_moments
from ...statistics.regime import classify_short_times
from ...statistics.resampling import drawn_weights, jackknife
from ..mobility.base import ClosureFit, Inference, Mobility, MobilityStrategy
from ..mobility.evidence import MobilityEvidence
from ..score import ScoreFit, ScoreStrategy
from ..score.calibration import perturbed
from ..score.score import OutputsOf, evaluate_everywhere
from ..space import StateSpace
from .evidence import ClosureEvidence
from .fields import ConstantDiffusion, CurrentField, DiffusionField, Fields, SharedCurrent, stack_replicas
from .regression import CurrentRegression
from .residual import ResidualDiffusion, infer_diffusion

_REPLICAS = 40
_MOST_VARIABLES = 12
DIFFUSIONS = ("constant", "scalar", "diagonal", "full")


@dataclass(frozen=True)
class StateDependent(MobilityStrategy):
    """A current velocity nu(x), and a diffusion that is constant or depends on the state too.

    dx = [nu(x) + D(x) s(x) + div D(x)] dt + sqrt(2) D(x)^(1/2) dW has the steady state of the data for every nu with
    div(p nu) = 0, which the mean velocity nu(x) = E[dx/dt | x] of any stationary process fulfils.

    The current of a smooth series is found by regression of dx/dt: on polynomials and the score up to 12 variables, by
    further outputs of the score's network where that is a `DenoisingScore` of a field. The diffusion is then constant,
    from what the current leaves over.

    Parameters
    ----------
    current : bool, default True
        Whether to estimate nu(x); without, nu = 0.
    degree : int, optional
        Degree of the polynomials of the current; default: chosen on held-out blocks of time.

    Examples
    --------
    >>> series = el.systems.StochasticLorenz63().simulate(20.0, dt=0.01, members=4, seed=1)
    >>> model = el.fit(series, score=el.Gaussian(), mobility=el.StateDependent(degree=2))
    >>> model.current(series.segments[0][:3]).shape
    (3, 3)
    """

    current: bool = True
    degree: int | None = None

    def __post_init__(self):
        checks.instance_of("current", self.current, (bool,))
        if self.degree is not None:
            checks.integer_at_least("degree", self.degree, 1)

    def learns_beside(self, score: ScoreStrategy, space: StateSpace) -> bool:
        """Tell whether the network of the score learns the current: of fields, and of many variables."""
        many = space.channels is not None or space.dimension > _MOST_VARIABLES
        return self.current and many and score.learns_velocities(space)

    def infer(self, series: TimeSeries, score: ScoreFit, *, space: StateSpace, key: jax.Array) -> Inference:
        """Return the mean mobility alone."""
        raise NotImplementedError("StateDependent infers fields; see `close`.")

    def close(self, series: TimeSeries, score: ScoreFit, space: StateSpace, *, key: jax.Array) -> ClosureFit:
        """Infer nu, then the D that belongs to it."""
        regime = classify_short_times(series.segments)
        if score.velocity_unit is not None:
            return _from_network(series, score, space, key=key)
        if regime.ballistic and not regime.noisy and series.dimension <= _MOST_VARIABLES and not space.angles:
            return _by_regression(series, score, space, self.degree)
        raise ArgumentError(
            "Argument `mobility` cannot be StateDependent() here: the series is not smooth at its sampling interval. "
            "Use IntegratedResponse()."
        )


def _by_regression(series: TimeSeries, score: ScoreFit, space: StateSpace, degree: int | None) -> ClosureFit:
    """Regress dx/dt on polynomials and the score, at the samples as they are."""
    samples = series.stacked()
    scores = _split_like(series, score.function.over(samples).astype(float))
    regression = CurrentRegression.of(series, scores, error_groups(series.segments, series.dt), degree)
    box = samples.min(axis=0), samples.max(axis=0)

    def field(weights: np.ndarray) -> CurrentField:
        return regression.current(weights, *box)

    current = field(np.ones(len(regression.pairs)))
    found = np.asarray(current.in_batch(*(np.asarray(a, np.float32) for a in (samples, np.concatenate(scores)))), float)
    currents = _split_like(series, found)
    rest = infer_diffusion(series, scores, currents, space.symmetry)
    error, error_se = regression.held_out_violation()
    evidence = ClosureEvidence(
        "current",
        "regression",
        regression.degree,
        current_error=error,
        current_error_se=error_se,
        explained=tuple(regression.share_explained().tolist()),
        white=rest.white,
    )
    return _close(series, currents, rest, field, evidence, space)


def _from_network(series: TimeSeries, score: ScoreFit, space: StateSpace, *, key: jax.Array) -> ClosureFit:
    """Take the current that the network learned beside the score; judge it at perturbed states."""
    unit, size = np.asarray(score.velocity_unit), series.dimension
    current = SharedCurrent(jax.numpy.asarray(np.diag(unit), jax.numpy.float32))
    samples, outputs = series.stacked(np.float32), OutputsOf(score.function.lower())

    def evaluate(name: str) -> Samples:
        noise = perturbed(np.zeros_like(samples), score.spread, key=keys.named(key, name))
        both = (evaluate_everywhere(outputs, samples + sign * noise)[:, size:] for sign in (1, -1))
        return 0.5 * unit * sum(both)

    currents, others = (_split_like(series, evaluate(name)) for name in ("first", "second"))
    rest = infer_diffusion(series, currents, currents, space.symmetry, others)
    carried = lagged_moments(currents, series.segments, [0], rest.groups)

    def violation(weights: np.ndarray) -> Matrix:
        matrix = space.symmetry.project(carried.mean(weights)[0])
        return 0.5 * (matrix + matrix.T)

    mean, error = jackknife(violation, rest.groups)
    power = float(np.linalg.norm(np.concatenate(currents).T @ np.concatenate(currents)) / len(samples))
    evidence = ClosureEvidence(
        "current",
        "the score's network",
        current_error=float(np.linalg.norm(mean)) / power,
        current_error_se=float(np.linalg.norm(error)) / power,
        white=rest.white,
    )
    return _close(series, currents, rest, lambda weights: current, evidence, space)


def _close(
    series: TimeSeries,
    currents: Sequence[Samples],
    rest: ResidualDiffusion,
    field: Callable[[np.ndarray], CurrentField],
    evidence: ClosureEvidence,
    space: StateSpace,
) -> ClosureFit:
    """Join a current and a constant diffusion: < M > = D - antisym < nu x^T >, with errors from groups of time."""
    groups, everything = rest.groups, np.ones(rest.groups)
    carried = lagged_moments(currents, series.segments, [0], groups)
    states = lagged_moments(series.segments, series.segments, [0], groups)

    def mean(weights: np.ndarray) -> Matrix:
        turning = space.symmetry.project(carried.mean(weights)[0])
        return rest.estimate(weights) - 0.5 * (turning - turning.T)

    def fields(weights: np.ndarray) -> tuple[CurrentField, DiffusionField]:
        return field(weights), ConstantDiffusion.of(rest.estimate(weights))

    matrix, error = jackknife(mean, groups)
    weights = drawn_weights(groups, _REPLICAS)
    mobility = Mobility(
        matrix,
        error,
        "StateDependent",
        np.array([mean(drawn) for drawn in weights]),
        MobilityEvidence(blocks=groups, horizon=rest.horizon, closure=evidence),
        np.array([space.symmetry.project(states.mean(drawn)[0]) for drawn in weights]),
    )
    replicas = stack_replicas([fields(drawn) for drawn in weights])
    return ClosureFit(mobility, Fields(*fields(everything), replicas))


def _split_like(series: TimeSeries, values: Samples) -> list[Samples]:
    return np.split(values, np.cumsum([len(s) for s in series.segments])[:-1])
