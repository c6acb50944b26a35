"""The paper's scalar equation with additive and multiplicative noise (Sec. VI)."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from scipy.integrate import cumulative_trapezoid

from .._core.types import Matrix, Samples
from .base import System


class ScalarMultiplicative(System):
    """dx = (F + a x + b x^2 - c x^3) dt + sigma_1 dW_1 + (A - B x) dW_2, F = A B / 2 as printed.

    With 2 D(x) = sigma_1^2 + (A - B x)^2 the exact score is (drift - D') / D and the exact mean mobility <D>.
    """

    names: ClassVar[tuple[str, ...]] = ("x",)
    step: ClassVar[float] = 0.001
    burn_in: ClassVar[float] = 10.0
    a: float = -1.809
    b: float = -0.0667
    c: float = 0.1667
    A: float = 0.1265
    B: float = -0.6325
    sigma: float = 0.0632

    @property
    def mobility(self) -> Matrix:
        """<D>, by quadrature."""
        return np.array([[self.expectation(self._diffusion)]])

    def score_function(self, x: Samples) -> Samples:
        """(drift - D') / D."""
        x = np.asarray(x, float)
        return (self._force(x) + self.B * (self.A - self.B * x)) / self._diffusion(x)

    def density(self, x: np.ndarray) -> np.ndarray:
        """The exact stationary density at the points `x` (any shape)."""
        return np.interp(x, *self._stationary(), left=0.0, right=0.0)

    def expectation(self, function) -> float:
        """Stationary mean of an elementwise function of the state."""
        grid, density = self._stationary()
        return float(np.trapezoid(function(grid) * density, grid))

    def _stationary(self) -> tuple[np.ndarray, np.ndarray]:
        """ln p = int (drift - D')/D on a grid that reaches far into both tails, normalised."""
        grid = np.linspace(-4.0, 4.0, 80001)
        log_density = cumulative_trapezoid(self.score_function(grid), grid, initial=0.0)
        density = np.exp(log_density - log_density.max())
        return grid, density / np.trapezoid(density, grid)

    def _force(self, x):
        return 0.5 * self.A * self.B + self.a * x + self.b * x**2 - self.c * x**3

    def _diffusion(self, x):
        return 0.5 * (self.sigma**2 + (self.A - self.B * x) ** 2)

    def _initial(self, members, rng):
        return 0.07 * rng.normal(size=(members, 1))

    def _equation(self):
        return self._force, self._noise

    def _noise(self, x):
        return jnp.stack([jnp.full_like(x[0], self.sigma), self.A - self.B * x[0]])[None] / jnp.sqrt(2.0)
