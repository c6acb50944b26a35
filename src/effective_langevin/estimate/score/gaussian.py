"""The score of a Gaussian: with the matrix logarithm for the mobility it is the linear inverse model."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from ..._core import checks
from ..._core.types import Samples
from ..symmetry import Symmetry
from .preconditioning import covariance_matrix
from .score import Score
from .strategy import LearnedScore


@dataclass(frozen=True)
class Gaussian:
    """s(x) = -(C + sigma^2)^-1 x. Exact for linear dynamics, the baseline for everything else.

    A `noise_level` keeps it finite where the data do not spread at all in some direction.
    """

    noise_level: float = 0.0
    calibrate: bool = False
    narrowest: ClassVar[float] = np.inf

    def __post_init__(self):
        checks.non_negative_number("noise_level", self.noise_level)
        checks.instance_of("calibrate", self.calibrate, (bool,))

    def learn(self, train: Samples, held_out: Samples, *, symmetry: Symmetry, key: jax.Array) -> LearnedScore:
        """Invert the covariance of all samples."""
        covariance = symmetry.project(covariance_matrix(np.concatenate([train, held_out]), self.noise_level))
        return LearnedScore(Score.linear(np.linalg.inv(covariance)), self.noise_level)
