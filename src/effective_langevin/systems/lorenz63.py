"""Lorenz's three equations of 1963 with additive noise."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from .base import System


class StochasticLorenz63(System):
    """Lorenz-63 with noise of amplitude 5 on each variable.

    No exact score is known. The diffusion is noise^2 / 2 times the identity; the circulation depends strongly on the
    state, so a constant closure follows only the envelope of the third autocorrelation.
    """

    names: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 30.0
    sigma: float = 10.0
    rho: float = 28.0
    beta: float = 8 / 3
    noise: float = 5.0

    def _initial(self, members, rng):
        return np.array([0.0, 0.0, 25.0]) + 5 * rng.normal(size=(members, 3))

    def _equation(self):
        return self._drift, self.noise / np.sqrt(2) * np.eye(3)

    def _drift(self, x):
        return jnp.stack([self.sigma * (x[1] - x[0]), x[0] * (self.rho - x[2]) - x[1], x[0] * x[1] - self.beta * x[2]])
