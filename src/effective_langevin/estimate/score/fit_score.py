"""The score stage: any strategy is turned into a calibrated score with its Stein matrix."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from ..._core import keys
from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries, lazy
from ...data.lazy import Rows, joined, mapped
from ...statistics.velocities import differentiate, trim
from ..space import StateSpace
from .calibration import calibration_matrix, perturbed, stein_error, stein_matrix
from .evidence import LearnedScore, ScoreEvidence
from .preconditioning import covariance_matrix, cross_moment, noise_frame, restoring_map
from .score import OutputsOf, Score, evaluate_everywhere

_STEIN_PARTS = 10
_RESTORED = 1 << 17


class ScoreStrategy(ABC):
    """How to learn a score.

    With `calibrate`, Stein's identity is imposed on the learned score. `narrowest` is the smallest variance down to
    which noise follows the spread of the data; inf means equal noise in all directions. A strategy that `reads_blocks`
    learns from `Rows`, where the series is read by blocks; any other is given a bounded number of samples drawn.
    """

    calibrate: bool = True
    narrowest: float = math.inf
    reads_blocks = False

    def supports(self, space: StateSpace) -> bool:
        """Tell whether the score can be learned on this space; where it cannot, angles become cos and sin."""
        return not space.angles

    def learns_velocities(self, space: StateSpace) -> bool:
        """Tell whether the network of the score can learn the mean velocity at each state beside it."""
        return False

    @abstractmethod
    def learn(self, train: Samples, held_out: Samples, *, space: StateSpace, key: jax.Array) -> LearnedScore:
        """Learn the score of standardised samples in time order, not yet calibrated.

        A strategy that `learns_velocities` takes them as a further argument: those of both parts.
        """


@dataclass(frozen=True, eq=False, repr=False)
class ScoreFit:
    """A learned score of the smoothed data, x + sigma W^-1 z, with what is known about its quality.

    Without a `frame` W the noise is the same in all directions. `restoring` gives expected clean states the spread of
    clean ones. With a `velocity_unit` the network has learned the mean velocity too, in that unit of each variable.
    """

    function: Score
    noise_level: float
    stein: Matrix
    stein_standard_error: float
    covariance: Matrix
    evidence: ScoreEvidence = field(default_factory=ScoreEvidence)
    frame: Matrix | None = None
    restoring: Matrix | None = None
    velocity_unit: Vector | None = None

    def __repr__(self) -> str:
        return (
            f"ScoreFit(dimension={len(self.stein)}, noise_level={self.noise_level:g}, "
            f"stein_error={self.stein_error:.2g} ± {self.stein_standard_error:.1g})"
        )

    def summary(self) -> str:
        """Return the quality of the score and what was found on the way, as text."""
        return f"{self!r}\n{self.evidence.summary()}".rstrip()

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The evidence as plain data."""
        return self.evidence.to_dict()

    @property
    def learned_level(self) -> float:
        """Smoothing width of the learned score, even where the Gaussian one was taken in its place."""
        gain = self.evidence.gain_over_gaussian
        return gain.noise_level if gain else self.noise_level

    @property
    def gaussian_used(self) -> bool:
        """Whether the Gaussian score took the place of a learned one that was not better."""
        return bool(self.evidence.gain_over_gaussian and self.evidence.gain_over_gaussian.gaussian_used)

    @property
    def scale(self) -> Matrix:
        """W^-1: how wide each direction counts."""
        return np.eye(len(self.stein)) if self.frame is None else np.linalg.inv(self.frame)

    @property
    def spread(self) -> Matrix:
        """sigma W^-1: the noise is this matrix times z."""
        return self.noise_level * self.scale

    @property
    def blur(self) -> Matrix:
        """Covariance of the noise, sigma^2 W^-2."""
        return self.spread @ self.spread

    @property
    def resolved(self) -> bool:
        """Whether the data spread further than the noise in every direction."""
        seen = self.covariance if self.frame is None else self.frame @ self.covariance @ self.frame
        return bool(np.linalg.eigvalsh(seen).min() >= 2 * self.noise_level**2)

    @property
    def stein_error(self) -> float:
        """|V + I|_F / sqrt(D) on held-out samples."""
        return stein_error(self.stein)

    def expected_clean(self, y: Samples) -> Samples:
        """Return the clean state expected from a noisy one, y + sigma^2 W^-2 s(y), its lost spread restored."""
        expected = y + self.function.over(y) @ self.blur.astype(np.float32)
        return expected if self.restoring is None else expected @ self.restoring.T.astype(np.float32)


def estimate_score(
    series: TimeSeries, strategy: ScoreStrategy, space: StateSpace, *, key: jax.Array, velocities: bool = False
) -> ScoreFit:
    """Learn the score on the training part of a standardised series; calibrate it; judge it on the held-out part.

    V = < s(y) y^T > over y = x + noise is -I for a perfect score (Stein). The calibrated score is -V^-1 s with V from
    the training part, and the V reported is that of the held-out part, both projected on the symmetry. All of it
    happens in the frame W of the noise. With `velocities` the network of the score learns the mean velocity as well.
    """
    parts = series.split()
    moving, unit = None, None
    if velocities:
        unit = _velocity_unit(series, space)
        moving = [mapped(joined(differentiate(part.segments, part.dt)), lambda v: v / unit) for part in parts]
        parts = [part.with_segments(trim(part.segments)) for part in parts]
    train, held_out = (part.stacked_rows(np.float32) for part in parts)
    covariance = space.symmetry.project(covariance_matrix(joined([train, held_out])))
    tests = space.stein_tests(train)
    frame = None if tests else noise_frame(covariance, strategy.narrowest)
    if frame is not None:
        into = frame.astype(np.float32)
        train, held_out = (mapped(part, lambda x: x @ into) for part in (train, held_out))
    learn_key = keys.named(key, "learn")
    given, beside, looked_at = _samples_for(strategy, train, held_out, moving, key=keys.named(key, "drawn"))
    learned = LearnedScore.from_result(strategy.learn(*given, space=space, key=learn_key, **beside))
    score, level, evidence = learned.function, learned.noise_level, learned.evidence
    evidence = replace(evidence, extra={**looked_at, **evidence.extra})
    if strategy.calibrate and not (evidence.gain_over_gaussian and evidence.gain_over_gaussian.gaussian_used):
        stein = stein_matrix(score.lower().over, train, level, key=keys.named(key, "calibration"), tests=tests)
        score = score.scaled_by(calibration_matrix(space.symmetry.project(stein)))
        evidence = replace(evidence, stein_before_calibration=tuple(map(tuple, stein.tolist())))
    if moving is not None and unit is not None and score.network is not None:
        of_train = train, moving[0]
        score = _calibrate_velocities(score, level, of_train, space, unit, frame, key=keys.named(key, "velocities"))
    evaluate = score.lower().over  # converted once for all parts
    parts = [
        space.symmetry.project(stein_matrix(evaluate, part, level, key=keys.named(key, f"stein {i}"), tests=tests))
        for i, part in enumerate(_in_parts(held_out, _STEIN_PARTS))
    ]
    restoring = _find_restoring_map(score, level, train, space, key=keys.named(key, "restoring"))
    if frame is not None:
        inverse = np.linalg.inv(frame)
        parts, restoring = [frame @ part @ inverse for part in parts], inverse @ restoring @ frame
    stein, uncertainty = np.mean(parts, axis=0), np.std(parts, axis=0, ddof=1) / np.sqrt(_STEIN_PARTS)
    error = float(np.linalg.norm(uncertainty) / np.sqrt(len(stein)))
    unit = unit if score.network is not None else None
    fit = ScoreFit(score.in_frame(frame), level, stein, error, covariance, evidence, frame, restoring, unit)
    return replace(fit, covariance=covariance + fit.blur)


def _samples_for(
    strategy: ScoreStrategy, train: Any, held_out: Any, velocities: list[Any] | None, *, key: jax.Array
) -> tuple[list[Any], dict[str, Any], dict[str, str]]:
    """Return what a strategy learns from, and what to say of it: all samples, or a bounded number that is drawn."""
    parts, found = [[train], [held_out]], {}
    if velocities is not None:
        parts = [[*part, v] for part, v in zip(parts, velocities)]
    if isinstance(held_out, Rows):
        parts[1] = draw_rows(parts[1], lazy.MOST_NUMBERS // 8, key=keys.named(key, "held out"))
    if isinstance(train, Rows):
        if isinstance(strategy, ScoreStrategy) and strategy.reads_blocks:
            found = {"read": f"{len(train)} samples by blocks"}
        else:
            parts[0] = draw_rows(parts[0], lazy.MOST_NUMBERS // 4, key=keys.named(key, "train"))
            found = {"drawn": f"{len(parts[0][0])} of {len(train)} training samples, at random"}
    beside = {} if velocities is None else {"velocities": [part[1] for part in parts]}
    return [part[0] for part in parts], beside, found


def draw_rows(parts: Sequence[Rows], numbers: int, *, key: jax.Array) -> list[Samples]:
    """Draw as many rows as hold so many numbers, in order of time and without replacement; all where there are fewer.

    One is drawn from each of as many equal stretches: a permutation of all would not fit. Rows side by side are drawn
    together, as many as of the first alone.
    """
    wanted, length = max(1, numbers // parts[0].shape[1]), len(parts[0])
    if length <= wanted:
        return [part[:] for part in parts]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    edges = np.arange(wanted + 1) * length // wanted
    places = rng.integers(edges[:-1], edges[1:])
    return [part[places] for part in parts]


def _in_parts(samples: Any, number: int) -> list[Any]:
    """Cut samples into parts of about equal length."""
    if not isinstance(samples, Rows):
        return np.array_split(samples, number)
    return [samples.window(len(samples) * i // number, len(samples) * (i + 1) // number) for i in range(number)]


def _calibrate_velocities(
    score: Score,
    level: float,
    samples: tuple[Samples, Samples],
    space: StateSpace,
    unit: Vector,
    frame: Matrix | None,
    *,
    key: jax.Array,
) -> Score:
    """Add a linear term to the learned velocities nu, so that < nu y^T > is antisymmetric: nu must not change C.

    Centred differences v of a stationary series have < v y^T > antisymmetric, so that < (nu - v) y^T > tells the same.
    It is known far better: v takes most of what varies in nu with it. What is left shifts variances for ever.
    """
    some, velocities = (_some_of(part) for part in samples)
    y, back = perturbed(some, level, key=key), np.eye(len(unit)) if frame is None else np.linalg.inv(frame)
    excess = evaluate_everywhere(OutputsOf(score), y)[:, len(unit) :] - velocities
    carried = unit[:, None] * space.symmetry.project(excess.T.astype(float) @ y / len(y)) @ back
    covariance = back @ space.symmetry.project(covariance_matrix(y)) @ back
    linear = -0.5 * (carried + carried.T) @ np.linalg.inv(covariance) @ back / unit[:, None]
    return score.with_linear(np.concatenate([np.zeros_like(linear), linear]))


def _some_of(samples: Any) -> Samples:
    """Return samples spread evenly, as many as a map is measured on; no more than are held at once."""
    most = min(_RESTORED, lazy.MOST_NUMBERS // samples.shape[1]) if isinstance(samples, Rows) else _RESTORED
    return samples[:: -(-len(samples) // most)]


def _velocity_unit(series: TimeSeries, space: StateSpace) -> Vector:
    """Return the size of the velocity of each variable, the same for variables that the symmetry makes equal."""
    velocity = joined(differentiate(series.segments, series.dt))
    return np.sqrt(np.diagonal(space.symmetry.project(cross_moment(velocity, velocity))))


def _find_restoring_map(score: Score, level: float, samples: Samples, space: StateSpace, *, key: jax.Array) -> Matrix:
    """Return what gives the expected clean states of noisy samples the covariance of the samples."""
    if level == 0 or space.angles:
        return np.eye(samples.shape[1])
    some = _some_of(samples)
    y = perturbed(some, level, key=key)
    moments = (covariance_matrix(part) for part in (y + level**2 * score.over(y), some))
    return restoring_map(*(space.symmetry.project(moment) for moment in moments))
