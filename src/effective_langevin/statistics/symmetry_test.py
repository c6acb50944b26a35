"""The test of a symmetry: how far moments are from their images, against a bootstrap over groups of samples."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .resampling import bootstrap

_DRAWS = 1000


@dataclass(frozen=True)
class SymmetryTest:
    """How far the data are from a symmetry, relative to their size, and how often chance does as much."""

    distance: float
    chance: float

    @property
    def respected(self) -> bool:
        """Whether the departure is within what the sampling error explains (1 in 1000)."""
        return self.chance > 1e-3


def compare_with_image(departure: Callable[[np.ndarray], np.ndarray], size: float, groups: int) -> SymmetryTest:
    """Test whether `departure`, moments less their images for given weights of the groups, is zero within errors.

    `size` is what the distance is relative to, such as the norm of the moments.
    """
    observed = departure(np.ones(groups))
    scattered = bootstrap(departure, groups, _DRAWS) - observed
    scatter = np.sqrt((scattered**2).sum(axis=tuple(range(1, scattered.ndim))))
    distance = np.linalg.norm(observed)
    chance = (1 + np.sum(scatter >= distance)) / (1 + _DRAWS)
    return SymmetryTest(float(distance / size), float(chance))
