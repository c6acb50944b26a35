"""The score without the noise that it was learned with, to first order."""

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core import checks, keys
from ..._core.types import Samples
from ..networks import Sum, scale
from ..space import StateSpace
from .evidence import LearnedScore
from .fit_score import ScoreStrategy
from .kgmm import KGMM
from .preconditioning import covariance_matrix


@dataclass(frozen=True)
class Extrapolated(ScoreStrategy):
    """The score of the data themselves, extrapolated from two smoothing widths: 2 s_sigma - s_{sqrt 2 sigma}.

    s_sigma = s + sigma^2 s' + ..., so that what is left is of order sigma^4. Nothing is smoothed, and no state has to
    be denoised. It costs twice as much, and its noise is up to three times that of s_sigma: worth it where there are
    many samples and the smoothing width cannot be made small. Neither of the two is calibrated, nor is the result:
    Stein's identity, dominated by the steep flanks where sigma^4 is not small, would scale the middle wrongly.

    Parameters
    ----------
    score : KGMM or DenoisingScore, default KGMM()
        The strategy to be extrapolated; any with a `noise_level`.

    Examples
    --------
    >>> el.Extrapolated(el.KGMM(noise_level=0.1)).score.noise_level
    0.1
    """

    score: Any = field(default_factory=KGMM)
    calibrate = False

    def __post_init__(self):
        checks.offers("score", self.score, "learn", "KGMM() or DenoisingScore()")
        if not is_dataclass(self.score) or "noise_level" not in {f.name for f in fields(self.score)}:
            raise checks.refused("score", "a score with a smoothing width, such as KGMM()", self.score)

    @property
    def narrowest(self) -> float:
        return self.score.narrowest

    def learn(self, train: Samples, held_out: Samples, *, space: StateSpace, key: jax.Array) -> LearnedScore:
        """Learn at the width that is given or chosen, then at sqrt 2 times that."""
        near = LearnedScore.from_result(self.score.learn(train, held_out, space=space, key=key))
        if near.function.network is None:
            return near
        wider = replace(self.score, noise_level=float(np.sqrt(2) * near.noise_level))
        key = keys.named(key, "wider noise")
        far = LearnedScore.from_result(wider.learn(train, held_out, space=space, key=key))
        networks = scale(near.function.network, 2.0), scale(far.function.network, -1.0)
        precision = jnp.asarray(np.linalg.inv(space.symmetry.project(covariance_matrix(train))), jnp.float32)
        score = eqx.tree_at(lambda s: (s.network, s.precision), near.function, (Sum(networks), precision))
        return LearnedScore(score, 0.0, replace(near.evidence, extrapolated_from=near.noise_level))
