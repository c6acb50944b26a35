"""A rotating two-dimensional system whose noise is affine in the state: the benchmark for state-dependent mobility."""

from typing import ClassVar

import jax.numpy as jnp

from .._core.types import Matrix
from .base import System
from .fokker_planck import FokkerPlanck


class AffineNoise(System):
    """dx = f(x) dt + B(x) dW with f = -(|x|^2 + 1) x + omega (-y, x) and B = B0 + alpha (x B1 + y B2)."""

    names: ClassVar[tuple[str, ...]] = ("x", "y")
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 10.0
    alpha: float = 3.0
    omega: float = 1.1

    @property
    def mobility(self) -> Matrix:
        """-<f x^T>, with the stationary density from the Fokker-Planck operator."""
        return self.fokker_planck().mean_mobility()

    def fokker_planck(self, points: int = 161) -> FokkerPlanck:
        """The generator on a grid that holds all of the density."""
        half = 1.9 if self.alpha > 2 else 1.7
        return FokkerPlanck.from_system(self, [(-half, half)] * 2, points)

    def _initial(self, members, rng):
        return 0.3 * rng.normal(size=(members, 2))

    def _equation(self):
        return self._drift, self._noise

    def _drift(self, x):
        return -(x @ x + 1) * x + self.omega * jnp.stack([-x[1], x[0]])

    def _noise(self, x):
        b0 = jnp.array([[0.60, 0.10], [0.08, 0.55]])
        b1 = jnp.array([[0.12, 0.04], [0.05, -0.02]])
        b2 = jnp.array([[-0.03, 0.07], [0.06, 0.10]])
        return (b0 + self.alpha * (x[0] * b1 + x[1] * b2)) / jnp.sqrt(2.0)
