"""The score stage: any strategy is turned into a calibrated score with its Stein matrix."""

from dataclasses import replace

import jax
import numpy as np

from ..._core import keys
from ..._core.types import Matrix, Samples
from ...data import TimeSeries
from ..circles import Circles
from ..symmetry import Symmetry
from .calibration import calibration_matrix, perturbed, stein_matrix
from .fitted import ScoreFit
from .preconditioning import covariance_matrix, noise_frame, restoring_map
from .score import Score
from .strategy import LearnedScore, ScoreStrategy

_STEIN_PARTS = 10
_RESTORED = 1 << 17


def estimate_score(series: TimeSeries, strategy: ScoreStrategy, symmetry: Symmetry, *, key: jax.Array) -> ScoreFit:
    """Learn the score on the training part of a standardised series; calibrate it; judge it on the held-out part.

    V = < s(y) y^T > over y = x + noise is -I for a perfect score (Stein). The calibrated score is -V^-1 s with V from
    the training part, and the V reported is that of the held-out part, both projected on the symmetry. All of it
    happens in the frame W of the noise.
    """
    train, held_out = (part.stacked(np.float32) for part in series.split())
    covariance = symmetry.project(covariance_matrix(np.concatenate([train, held_out])))
    tests = symmetry.stein_tests(train) if isinstance(symmetry, Circles) else None
    frame = None if tests else noise_frame(covariance, strategy.narrowest)
    if frame is not None:
        train, held_out = (part @ frame.astype(np.float32) for part in (train, held_out))
    learned = LearnedScore.from_result(strategy.learn(train, held_out, symmetry=symmetry, key=keys.named(key, "learn")))
    score, level, evidence = learned.function, learned.noise_level, learned.evidence
    if strategy.calibrate:
        stein = stein_matrix(score.over, train, level, key=keys.named(key, "calibration"), tests=tests)
        score = score.scaled_by(calibration_matrix(symmetry.project(stein)))
        evidence = replace(evidence, stein_before_calibration=tuple(map(tuple, stein.tolist())))
    parts = [
        symmetry.project(stein_matrix(score.over, part, level, key=keys.named(key, f"stein {i}"), tests=tests))
        for i, part in enumerate(np.array_split(held_out, _STEIN_PARTS))
    ]
    restoring = _restoring(score, level, train, symmetry, key=keys.named(key, "restoring"))
    if frame is not None:
        inverse = np.linalg.inv(frame)
        parts, restoring = [frame @ part @ inverse for part in parts], inverse @ restoring @ frame
    stein, uncertainty = np.mean(parts, axis=0), np.std(parts, axis=0, ddof=1) / np.sqrt(_STEIN_PARTS)
    error = float(np.linalg.norm(uncertainty) / np.sqrt(len(stein)))
    fit = ScoreFit(score.in_frame(frame), level, stein, error, covariance, evidence, frame, restoring)
    return replace(fit, covariance=covariance + fit.blur)


def _restoring(score: Score, level: float, samples: Samples, symmetry: Symmetry, *, key: jax.Array) -> Matrix:
    """What gives the expected clean states of noisy samples the covariance of the samples."""
    if level == 0 or isinstance(symmetry, Circles):
        return np.eye(samples.shape[1])
    some = samples[:: -(-len(samples) // _RESTORED)]
    y = perturbed(some, level, key=key)
    moments = (covariance_matrix(part) for part in (y + level**2 * score.over(y), some))
    return restoring_map(*(symmetry.project(moment) for moment in moments))
