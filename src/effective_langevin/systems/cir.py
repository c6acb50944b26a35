"""The Cox-Ingersoll-Ross process: a positive variable whose noise grows with it."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from .._core.types import Matrix, Samples
from .base import System


class CoxIngersollRoss(System):
    """dx = k (theta - x) dt + sqrt(2 gamma x) dW. Gamma law, M(x) = gamma x, <M> = theta gamma."""

    names: ClassVar[tuple[str, ...]] = ("x",)
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 15.0
    rate: float = 1.0
    level: float = 1.0
    noise: float = 0.25

    @property
    def mobility(self) -> Matrix:
        """theta gamma."""
        return np.array([[self.level * self.noise]])

    def score_function(self, x: Samples) -> Samples:
        """(k theta / gamma - 1) / x - k / gamma."""
        return (self.rate * self.level / self.noise - 1) / np.asarray(x, float) - self.rate / self.noise

    def _initial(self, members, rng):
        return rng.gamma(self.rate * self.level / self.noise, self.noise / self.rate, (members, 1))

    def _equation(self):
        return self._drift, self._factor

    def _drift(self, x):
        return self.rate * (self.level - x)

    def _factor(self, x):
        return jnp.sqrt(self.noise * jnp.maximum(x, 0.0))[:, None]
