"""The product of the score stage: the score with what is known about its quality."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._core.types import Matrix, Samples
from .calibration import stein_error
from .evidence import ScoreEvidence
from .score import Score


@dataclass(frozen=True, eq=False, repr=False)
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
    evidence: ScoreEvidence = field(default_factory=ScoreEvidence)
    frame: Matrix | None = None
    restoring: Matrix | None = None

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
        """The clean state to be expected from a noisy one, y + sigma^2 W^-2 s(y), its lost spread restored."""
        expected = y + self.function.over(y) @ self.blur.astype(np.float32)
        return expected if self.restoring is None else expected @ self.restoring.T.astype(np.float32)
