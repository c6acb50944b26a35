"""The score of a Gaussian: with the matrix logarithm for the mobility it is the linear inverse model."""

from dataclasses import dataclass

import jax
import numpy as np

from ..._core import checks
from ..._core.types import Samples
from ...data.lazy import joined
from ..space import StateSpace
from .evidence import LearnedScore
from .fit_score import ScoreStrategy
from .preconditioning import covariance_matrix
from .score import Score


@dataclass(frozen=True)
class Gaussian(ScoreStrategy):
    """The score of a Gaussian density, s(x) = -(C + sigma^2)^-1 x.

    Exact for linear dynamics, the baseline for everything else.

    Parameters
    ----------
    noise_level : float, default 0.0
        Smoothing width sigma in units of the spread of the data. A positive one keeps the score finite where the data
        do not spread at all in some direction.
    calibrate : bool, default False
        Impose Stein's identity on the score, which for `noise_level` 0 holds by construction.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(duration=400.0, dt=0.1, seed=1)
    >>> el.fit(series, score=el.Gaussian()).score.noise_level
    0.0
    """

    noise_level: float = 0.0
    calibrate: bool = False
    reads_blocks = True

    def __post_init__(self):
        checks.non_negative_number("noise_level", self.noise_level)
        checks.instance_of("calibrate", self.calibrate, (bool,))

    def learn(self, train: Samples, held_out: Samples, *, space: StateSpace, key: jax.Array) -> LearnedScore:
        covariance = space.symmetry.project(covariance_matrix(joined([train, held_out]), self.noise_level))
        return LearnedScore(Score.linear(np.linalg.inv(covariance)), self.noise_level)
