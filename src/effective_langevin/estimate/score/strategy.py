"""What a way to learn a score must offer."""

import warnings
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax

from ..._core.types import Samples
from ..symmetry import Symmetry
from .evidence import ScoreEvidence
from .score import Score


@dataclass(frozen=True, eq=False)
class LearnedScore:
    """What a strategy returns: a score, not yet calibrated, its smoothing width, and what was found on the way."""

    function: Score
    noise_level: float = 0.0
    evidence: ScoreEvidence = field(default_factory=ScoreEvidence)

    @classmethod
    def from_result(cls, result: Any) -> "LearnedScore":
        """Accept the tuple (score, noise level, dictionary) of strategies written for earlier versions."""
        if isinstance(result, cls):
            return result
        warnings.warn("`learn` should return a `LearnedScore`, not a tuple.", DeprecationWarning, stacklevel=3)
        function, noise_level, found = result
        return cls(function, noise_level, ScoreEvidence.from_dict(found))


class ScoreStrategy(Protocol):
    """How to learn a score: `learn` sees the training samples in time order and returns an uncalibrated fit."""

    @property
    def calibrate(self) -> bool:
        """Whether Stein's identity is imposed on the learned score."""
        ...

    @property
    def narrowest(self) -> float:
        """The variance from which on noise goes along with the spread of the data; inf: equal in all directions."""
        ...

    def learn(self, train: Samples, held_out: Samples, *, symmetry: Symmetry, key: jax.Array) -> LearnedScore:
        """Learn the score of standardised samples."""
        ...
