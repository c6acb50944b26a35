"""The score without the noise that it was learned with, to first order."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core import checks, keys
from ..._core.types import Samples
from ..networks import Sum, scale
from ..symmetry import Symmetry
from .kgmm import KGMM
from .preconditioning import covariance_matrix
from .strategy import LearnedScore


@dataclass(frozen=True)
class Extrapolated:
    """2 s_sigma - s_{sqrt 2 sigma}: another `score` learned at two noise levels, its change with sigma^2 taken back.

    s_sigma = s + sigma^2 s' + ..., so that what is left is of order sigma^4. It is the score of the data themselves:
    nothing is blurred, and no state has to be denoised. It costs twice as much, and its noise is up to three times
    that of s_sigma: worth it where there are many samples and the noise level cannot be made small. Each of the two is
    left as it was learned, and so is what comes out: Stein's identity, dominated by the steep flanks where sigma^4 is
    not small, would scale the middle wrongly.
    """

    score: Any = field(default_factory=KGMM)
    calibrate: ClassVar[bool] = False

    def __post_init__(self):
        checks.offers("score", self.score, "learn", "KGMM() or DenoisingScore()")
        if not hasattr(self.score, "noise_level"):
            raise checks.refused("score", "a score with a noise level, such as KGMM()", self.score)

    @property
    def narrowest(self) -> float:
        """As the score that is extrapolated."""
        return self.score.narrowest

    def learn(self, train: Samples, held_out: Samples, *, symmetry: Symmetry, key: jax.Array) -> LearnedScore:
        """Learn at the level that is given or chosen, then at sqrt 2 times that."""
        near = LearnedScore.from_result(self.score.learn(train, held_out, symmetry=symmetry, key=key))
        if near.function.network is None:
            return near
        wider = replace(self.score, noise_level=float(np.sqrt(2) * near.noise_level))
        key = keys.named(key, "wider noise")
        far = LearnedScore.from_result(wider.learn(train, held_out, symmetry=symmetry, key=key))
        networks = scale(near.function.network, 2.0), scale(far.function.network, -1.0)
        precision = jnp.asarray(np.linalg.inv(symmetry.project(covariance_matrix(train))), jnp.float32)
        score = eqx.tree_at(lambda s: (s.network, s.precision), near.function, (Sum(networks), precision))
        return LearnedScore(score, 0.0, replace(near.evidence, extrapolated_from=near.noise_level))
