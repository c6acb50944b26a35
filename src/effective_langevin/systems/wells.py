"""The paper's two-dimensional asymmetric four-well potential with a rotational drift (Sec. VI)."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from .._core.types import Matrix, Samples
from ..execution.batches import times
from .base import System


class AsymmetricWells(System):
    """dx = -K grad U dt + sqrt(2) dW with U = sum_i (x_i^2 - A_i^2)^2 + B_i x_i and K = [[1, -c], [c, 1]].

    The density is exp(-U), the score -grad U, the mobility K: a constant closure is exact.
    """

    names: ClassVar[tuple[str, ...]] = ("x1", "x2")
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 30.0
    wells: tuple[float, float] = (1.0, 1.2)
    tilt: tuple[float, float] = (0.6, 0.3)
    circulation: float = 0.8

    @property
    def mobility(self) -> Matrix:
        """K."""
        return np.array([[1.0, -self.circulation], [self.circulation, 1.0]])

    def score_function(self, x: Samples) -> Samples:
        """-grad U."""
        x = np.asarray(x, float)
        return -4 * x * (x**2 - np.square(self.wells)) - np.asarray(self.tilt)

    def _equation(self):
        return self._drift, np.eye(2)

    def _drift(self, x):
        score = -4 * x * (x**2 - jnp.square(jnp.asarray(self.wells))) - jnp.asarray(self.tilt)
        return times(jnp.asarray(self.mobility), score[None])[0]
