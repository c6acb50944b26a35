"""What a way to learn a score must offer."""

from typing import Any, Protocol

import jax

from ..._core.types import Samples
from ..symmetry import Symmetry
from .score import Score


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

    def learn(
        self, train: Samples, held_out: Samples, *, symmetry: Symmetry, key: jax.Array
    ) -> tuple[Score, float, dict[str, Any]]:
        """The score, the noise level it belongs to, and diagnostics."""
        ...
