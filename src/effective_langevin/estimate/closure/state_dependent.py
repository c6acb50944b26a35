"""`StateDependent`: a current velocity nu(x) and a diffusion D(x) in place of a constant mobility."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from ..._core import checks
from ..._core.errors import ArgumentError
from ..._core.types import Matrix, Samples
from ...data import TimeSeries
from ...statistics.integral_time import error_groups
from ...statistics.lags import lagged_moments
from ...statistics.nugget import signs_of_doubt
from ...statistics.resampling import drawn_weights, jackknife
from ...statistics.velocities import differentiate, trim
from ..mobility.base import ClosureFit, ClosureStrategy, Mobility, regime_of
from ..mobility.evidence import MobilityEvidence
from ..mobility.response import IntegratedResponse
from ..score import ScoreFit, ScoreStrategy
from ..score.calibration import perturbed
from ..score.score import OutputsOf, evaluate_everywhere
from ..space import StateSpace
from ..symmetry import Symmetry
from .circle import close_ring
from .evidence import ClosureEvidence
from .fields import ConstantDiffusion, CurrentField, DiffusionField, Fields, SharedCurrent, stack_replicas
from .inertia import Motion
from .regression import CurrentRegression
from .residual import ResidualDiffusion, infer_diffusion
from .smoothing import TOLD, told_share
from .weak_form import MOST_VARIABLES, WeakForm, WeakSolver
from .weak_lags import FROM_ZERO, Lags, hides_smooth_motion
from .weak_moments import WeakMoments

_REPLICAS = 40
_MOST_IN_REGRESSION = 12
_NOTHING = 1e-9  # share of the largest < nu_i^2 > that counts as no motion
_KINDS = {(False, False): "constant", (True, False): "current", (False, True): "diffusion", (True, True): "both"}


@dataclass(frozen=True)
class StateDependent(ClosureStrategy):
    """A current velocity nu(x), and a diffusion that is constant or depends on the state too.

    dx = [nu(x) + D(x) s(x) + div D(x)] dt + sqrt(2) D(x)^(1/2) dW has the steady state of the data for every nu with
    div(p nu) = 0, which the mean velocity nu(x) = E[dx/dt | x] of any stationary process fulfils.

    The current of a smooth series is found by regression of dx/dt: on polynomials and the score up to 12 variables, by
    further outputs of the score's network where that is a `DenoisingScore` of a field or of more variables. The
    diffusion is then constant, from what the current leaves over. Where that is white noise, the series is a diffusion.
    For a diffusion of 1 to 3 variables both fields are polynomials, found from correlations at several lags (the weak
    form), also at coarse sampling; their degrees are the lowest that predict blocks of time left out. Where lag 0 is in
    doubt (measurement noise, blur) it is left out, and the fields are those of the variable as observed. One smooth
    variable is seen at the lags where it acts as a diffusion. For one angle nu is J / p, with the flux J from the
    number of turns.

    Parameters
    ----------
    current : bool, default True
        Whether nu may be more than the current Phi_A s of a constant mobility.
    diffusion : bool, default True
        Whether the D of a diffusive series may depend on the state.
    degree : int, optional
        Degree of the polynomials of the current of a smooth series; default: chosen on blocks of time left out.

    Examples
    --------
    >>> series = el.systems.NoisyLimitCycle().simulate(100.0, dt=0.05, members=4, seed=1)
    >>> model = el.fit(series, score=el.Gaussian(), mobility=el.StateDependent())
    >>> model.current(series.segments[0][:3]).shape
    (3, 2)
    """

    current: bool = True
    diffusion: bool = True
    degree: int | None = None

    def __post_init__(self):
        for name in ("current", "diffusion"):
            checks.instance_of(name, getattr(self, name), (bool,))
        if self.degree is not None:
            checks.integer_at_least("degree", self.degree, 1)

    def supports(self, space: StateSpace) -> bool:
        return not space.angles or space.dimension == 1

    def learns_beside(self, score: ScoreStrategy, series: TimeSeries, space: StateSpace) -> bool:
        """Tell whether the network of the score learns the current: of smooth fields, many variables, and delays."""
        delays = space.hidden > 0 and not space.rates
        many = space.channels is not None or delays or (space.dimension > _MOST_IN_REGRESSION and not space.rates)
        if not (self.current and many and score.learns_velocities(space)):
            return False
        regime = regime_of(series)
        return regime.ballistic and not regime.noisy

    def refusal(self, series: TimeSeries, score: ScoreFit, space: StateSpace) -> str:
        """Say why the fields of a standardised series cannot be inferred; empty where they can."""
        if space.angles or score.velocity_unit is not None or series.dimension <= MOST_VARIABLES or space.rates:
            return ""
        regime = regime_of(series)
        if regime.noisy:
            hidden = "the series is smooth beneath measurement noise, so that its velocities are not known, and it has"
            return f"{hidden} {series.dimension} variables, more than {MOST_VARIABLES}"
        if not regime.ballistic:
            names = f" ({', '.join(series.names)})" if series.dimension <= _MOST_IN_REGRESSION else ""
            return f"the series is diffusive and has {series.dimension} variables{names}, more than {MOST_VARIABLES}"
        if self.current and series.dimension <= _MOST_IN_REGRESSION:
            return ""
        return f"the series is smooth and has {series.dimension} variables; `score=DenoisingScore()` can learn them"

    def close(self, series: TimeSeries, score: ScoreFit, space: StateSpace, *, key: jax.Array) -> ClosureFit:
        series = series.excerpt()
        if reason := self.refusal(series, score, space):
            text = f"Argument `mobility` cannot be StateDependent() here: {reason}. Use IntegratedResponse()."
            raise ArgumentError(text)
        if space.angles:
            return close_ring(series, score, space)
        if space.rates:
            return _with_velocities(series, score, space, self.degree)
        if score.velocity_unit is not None:
            return _from_network(series, score, space, key=key)
        regime = regime_of(series)
        few = series.dimension <= MOST_VARIABLES
        turns = self.current and 1 < series.dimension <= _MOST_IN_REGRESSION  # one variable on the line has no current
        smooth, noisy = regime.ballistic, regime.noisy or (few and hides_smooth_motion(series.segments))
        if smooth and not noisy and turns:
            closure = _by_regression(series, score, space, self.degree)
            found = closure.mobility.evidence.closure
            smooth = found is None or not found.white
            if not few or smooth or self.degree:
                return closure
        return self._by_weak_form(series, score, space, smooth, noisy)

    def _by_weak_form(
        self, series: TimeSeries, score: ScoreFit, space: StateSpace, smooth: bool, noisy: bool
    ) -> ClosureFit:
        """Infer both fields of a diffusive series, in the shape that predicts blocks of time left out."""
        scores = _split_like(series, score.function.over(series.stacked()).astype(float))
        lag_zero = MobilityEvidence()
        if smooth and not noisy:
            lags = Lags.beyond_smooth_motion(series.segments)
        else:
            every = IntegratedResponse().infer_from(series, scores, space, score.spread).evidence
            lag_zero = MobilityEvidence(measurement_noise=every.measurement_noise, blur=every.blur)
            in_doubt = noisy or lag_zero.noisy or lag_zero.blurred
            lags = Lags.beyond_noise(series.segments) if in_doubt else FROM_ZERO
        found = WeakSolver.of(series, scores, space, lags=lags).choose(current=self.current, diffusion=self.diffusion)
        if lags != FROM_ZERO and not (smooth or noisy):
            # A constant mobility may have doubted lag 0 for want of a current.
            whole = WeakSolver.of(series, scores, space)
            if _explains_lag_zero(found, whole.moments):
                lag_zero = MobilityEvidence()
                found = whole.choose(current=self.current, diffusion=self.diffusion)
        shape, turning = found.shape, bool(found.shape.current)
        error, error_se = found.current_error()
        evidence = ClosureEvidence(
            _KINDS[turning, shape.degree > 0],
            "the weak form",
            shape.current or None,
            shape.diffusion if shape.degree else "constant",
            shape.degree,
            current_error=error if turning else None,
            current_error_se=error_se if turning else None,
            white=True,
        )
        return _close(series, found.groups, found.mobility, found.fields, evidence, space, lag_zero)


def _explains_lag_zero(found: WeakForm, moments: WeakMoments) -> bool:
    """Tell whether fields found at longer lags predict the squared steps over one sampling interval."""
    squares = [moments.variables + k for k, (i, j) in enumerate(moments.pairs) if i == j]
    target = moments.targets[:, squares, 0, 0]
    design = moments.designs(*moments.functions.fields(found.shape))[:, squares, 0, 0]

    def excess(weights: np.ndarray) -> np.ndarray:
        share = weights * moments.shares
        return share @ (target - design @ found.coefficients(weights)) / share.sum()

    return not signs_of_doubt(*jackknife(excess, found.groups), found.groups).any()


def _by_regression(series: TimeSeries, score: ScoreFit, space: StateSpace, degree: int | None) -> ClosureFit:
    """Regress dx/dt on polynomials and the score, at the samples as they are."""
    samples = series.stacked()
    scores = _split_like(series, score.function.over(samples).astype(float))
    regression = CurrentRegression.of(series, scores, error_groups(series.segments, series.dt), degree)
    box = samples.min(axis=0), samples.max(axis=0)

    def field(weights: np.ndarray) -> CurrentField:
        return regression.current(weights, *box)

    currents = _currents(field(np.ones(len(regression.pairs))), series, samples, np.concatenate(scores))
    rest = infer_diffusion(series, scores, currents, space.symmetry)
    evidence = _found_by("regression", regression, regression.share_explained(), rest.white)
    return _with_residual(series, currents, rest, field, evidence, space)


def _with_velocities(series: TimeSeries, score: ScoreFit, space: StateSpace, degree: int | None) -> ClosureFit:
    """Regress accelerations, where the last variables are velocities of the first; noise acts on velocities alone."""
    motion = Motion(series, score, space.rates)
    regression = motion.regress(degree)
    samples = series.stacked()
    box, once = (samples.min(axis=0), samples.max(axis=0)), np.ones(motion.groups)
    rest = motion.infer_noise(motion.field(regression, once, box))

    def field(weights: np.ndarray) -> CurrentField:
        return motion.field(regression, weights, box, rest.estimate(weights) if rest.white else None)

    currents = _currents(field(once), series, samples, score.function.over(samples))
    explained = regression.share_explained()[len(space.rates) :]
    evidence = _found_by("regression of accelerations", regression, explained, rest.white)
    return _with_residual(series, currents, rest, field, evidence, space)


def _currents(current: CurrentField, series: TimeSeries, samples: Samples, scores: Samples) -> list[Samples]:
    given = (jnp.asarray(part, jnp.float32) for part in (samples, scores))
    return _split_like(series, np.asarray(current.in_batch(*given), float))


def _found_by(by: str, regression: CurrentRegression, explained: np.ndarray, white: bool) -> ClosureEvidence:
    quality = dict(zip(("current_error", "current_error_se"), regression.held_out_violation()))
    found = tuple(explained.tolist())
    return ClosureEvidence("current", by, regression.degree, **quality, explained=found, white=white)


def _from_network(series: TimeSeries, score: ScoreFit, space: StateSpace, *, key: jax.Array) -> ClosureFit:
    """Take the current that the network learned beside the score; judge it at perturbed states.

    What it leaves over is taken at the states as they are: perturbations would add white noise that the data have not.
    """
    size, fast = series.dimension, OutputsOf(score.function.lower())
    unit = np.asarray(score.velocity_unit)
    # The score and its current were learned on the other part of the series.
    _, held_out = series.split()
    seen = perturbed(held_out.stacked(np.float32), score.spread, key=jax.random.fold_in(key, 1))
    moving = evaluate_everywhere(fast, seen)[:, size:]
    gain = _gain(held_out, _split_like(held_out, unit * moving), space.symmetry)
    matrix = _speed_up(fast, series, score, key=key) * gain * unit
    moving, current = moving @ matrix.T, SharedCurrent(jnp.asarray(matrix, jnp.float32))
    values = evaluate_everywhere(fast, series.stacked(np.float32))
    scores, currents = (_split_like(series, part) for part in (values[:, :size], values[:, size:] @ matrix.T))
    rest = infer_diffusion(series, scores, currents, space.symmetry)
    if space.hidden and told_share(series, currents).min() >= TOLD:
        rest = rest.on_hidden(space.observed, np.diagonal(score.blur), unit)
    else:
        rest = rest.at_least(score.scale, series, space.symmetry)
    carried = lagged_moments(_split_like(held_out, moving), _split_like(held_out, seen), [0], rest.groups)

    def violation(weights: np.ndarray) -> Matrix:
        matrix = space.symmetry.project(carried.mean(weights)[0])
        return 0.5 * (matrix + matrix.T)

    mean, error = jackknife(violation, rest.groups)
    power = float(np.linalg.norm(moving.T @ moving) / len(moving))
    evidence = ClosureEvidence(
        "current",
        "the score's network",
        current_error=float(np.linalg.norm(mean)) / power,
        current_error_se=float(np.linalg.norm(error)) / power,
        white=rest.white,
    )
    return _with_residual(series, currents, rest, lambda weights: current, evidence, space)


def _speed_up(outputs: OutputsOf, series: TimeSeries, score: ScoreFit, *, key: jax.Array) -> float:
    """Return how much faster the current of the data is than that learned at perturbed states.

    A perturbed state does not tell all of the velocity, so that its mean there is too small: of a linear system, by the
    share of the velocity that the perturbation hides. That share is measured. A constant factor keeps the density.
    """
    _, held_out = series.split()
    velocities = np.concatenate(differentiate(held_out.segments, held_out.dt))
    states = np.concatenate(trim(held_out.segments)).astype(np.float32)
    unit = np.asarray(score.velocity_unit)

    def explained(x: Samples) -> float:
        found = unit * evaluate_everywhere(outputs, x)[:, series.dimension :]
        return float(np.sum(found * velocities) ** 2 / (np.sum(found**2) * np.sum(velocities**2)))

    return max(1.0, explained(states) / explained(perturbed(states, score.spread, key=key)))


def _gain(series: TimeSeries, currents: Sequence[Samples], symmetry: Symmetry) -> Matrix:
    """Return the matrix A with < (dx/dt - A nu) nu^T > = 0: a learned nu is nowhere zero, also where nothing moves.

    What is left of it there carries states away in directions in which the data have no spread and D is small.
    """
    moving = trim(currents)
    both = [lagged_moments(v, moving, [0]) for v in (differentiate(series.segments, series.dt), moving)]
    cross, square = (symmetry.project(moments.mean()[0]) for moments in both)
    return cross @ np.linalg.pinv(square, rcond=_NOTHING, hermitian=True)


def _with_residual(
    series: TimeSeries,
    currents: Sequence[Samples],
    rest: ResidualDiffusion,
    field: Callable[[np.ndarray], CurrentField],
    evidence: ClosureEvidence,
    space: StateSpace,
) -> ClosureFit:
    """Join a current and the constant diffusion that belongs to it: < M > = D - antisym < nu x^T >."""
    carried = lagged_moments(currents, series.segments, [0], rest.groups)

    def mean(weights: np.ndarray) -> Matrix:
        turning = space.symmetry.project(carried.mean(weights)[0])
        return rest.estimate(weights) - 0.5 * (turning - turning.T)

    def fields(weights: np.ndarray) -> tuple[CurrentField, DiffusionField]:
        return field(weights), ConstantDiffusion.of(rest.estimate(weights))

    return _close(series, rest.groups, mean, fields, evidence, space, MobilityEvidence(horizon=rest.horizon))


def _close(
    series: TimeSeries,
    groups: int,
    mean: Callable[[np.ndarray], Matrix],
    fields: Callable[[np.ndarray], tuple[CurrentField, DiffusionField]],
    evidence: ClosureEvidence,
    space: StateSpace,
    beside: MobilityEvidence,
) -> ClosureFit:
    """Return mean mobility and fields with their errors, from groups of time left out or drawn with replacement."""
    states = lagged_moments(series.segments, series.segments, [0], groups)
    matrix, error = jackknife(mean, groups)
    weights = drawn_weights(groups, _REPLICAS)
    mobility = Mobility(
        matrix,
        error,
        "StateDependent",
        np.array([mean(drawn) for drawn in weights]),
        replace(beside, blocks=groups, closure=evidence),
        np.array([space.symmetry.project(states.mean(drawn)[0]) for drawn in weights]),
    )
    replicas = stack_replicas([fields(drawn) for drawn in weights])
    return ClosureFit(mobility, Fields(*fields(np.ones(groups)), replicas))


def _split_like(series: TimeSeries, values: Samples) -> list[Samples]:
    return np.split(values, np.cumsum([len(s) for s in series.segments])[:-1])
