"""The product of the score stage: the score with what is known about its quality."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._core.types import Matrix, Samples
from .calibration import stein_error
from .score import Score


@dataclass(frozen=True)
class ScoreFit:
    """A learned score of the blurred data, x + sigma W^-1 z, with what is known about its quality.

    Without a `frame` W the noise is the same in all directions. `restoring` gives expected clean states the spread of
    clean ones.
    """

    function: Score
    noise_level: float
    stein: Matrix
    stein_standard_error: float
    covariance: Matrix
    diagnostics: dict[str, Any] = field(default_factory=dict)
    frame: Matrix | None = None
    restoring: Matrix | None = None

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
        """The clean state to be expected from a noisy one, y + sigma^2 W^-2 s(y), its lost spread restored."""
        expected = y + self.function.over(y) @ self.blur.astype(np.float32)
        return expected if self.restoring is None else expected @ self.restoring.T.astype(np.float32)
