"""Equations in one variable, on the line or around a circle, with what is known about them exactly."""

from collections.abc import Callable
from functools import cache
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from scipy.integrate import cumulative_trapezoid

from .._core import checks
from .._core.types import Matrix, Samples
from .base import System

_POINTS = 257  # odd: no wave alternates from point to point, whose slope a grid cannot see


class ScalarMultiplicative(System):
    """dx = (F + a x + b x^2 - c x^3) dt + sigma_1 dW_1 + (A - B x) dW_2, F = A B / 2 as printed.

    The paper's scalar equation (Sec. VI). With 2 D(x) = sigma_1^2 + (A - B x)^2 the exact score is (drift - D') / D and
    the exact mean mobility <D>.

    Parameters
    ----------
    a, b, c, A, B, sigma : float
        Coefficients of the drift and of the noise, sigma for sigma_1; defaults as in the paper.

    Examples
    --------
    >>> el.systems.ScalarMultiplicative().mobility.round(6)
    array([[0.009338]])
    """

    names: ClassVar[tuple[str, ...]] = ("x",)
    step: ClassVar[float] = 0.001
    burn_in: ClassVar[float] = 10.0
    additive: ClassVar[bool] = False
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
        x = np.asarray(x, float)
        return (self._drift(x) + self.B * (self.A - self.B * x)) / self._diffusion(x)

    def density(self, x: np.ndarray) -> np.ndarray:
        """Return the exact stationary density.

        Parameters
        ----------
        x : array
            Points, in any shape.

        Returns
        -------
        array
            The density at each point.
        """
        return np.interp(x, *self._stationary(), left=0.0, right=0.0)

    def expectation(self, function: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return the stationary mean of a function of the state.

        Parameters
        ----------
        function : callable
            Function of an array of states, applied to each.

        Returns
        -------
        float
            Its mean, by quadrature.
        """
        grid, density = self._stationary()
        return float(np.trapezoid(function(grid) * density, grid))

    def _stationary(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a grid that reaches far into both tails, and p there from ln p = int (drift - D')/D."""
        grid = np.linspace(-4.0, 4.0, 80001)
        log_density = cumulative_trapezoid(self.score_function(grid), grid, initial=0.0)
        density = np.exp(log_density - log_density.max())
        return grid, density / np.trapezoid(density, grid)

    def _diffusion(self, x):
        return 0.5 * (self.sigma**2 + (self.A - self.B * x) ** 2)

    def _initial(self, members, rng):
        return 0.07 * rng.normal(size=(members, 1))

    def _drift(self, x):
        return 0.5 * self.A * self.B + self.a * x + self.b * x**2 - self.c * x**3

    def _noise(self, x):
        return jnp.stack([jnp.full_like(x[0], self.sigma), self.A - self.B * x[0]])[None] / jnp.sqrt(2.0)


class CoxIngersollRoss(System):
    """dx = k (theta - x) dt + sqrt(2 gamma x) dW. Gamma law, M(x) = gamma x, <M> = theta gamma.

    A positive variable whose noise grows with it.

    Parameters
    ----------
    rate, level, noise : float
        k, theta (the mean) and gamma; defaults 1, 1, 0.25.

    Examples
    --------
    >>> el.systems.CoxIngersollRoss(level=2.0).mobility
    array([[0.5]])
    """

    names: ClassVar[tuple[str, ...]] = ("x",)
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 15.0
    additive: ClassVar[bool] = False
    rate: float = 1.0
    level: float = 1.0
    noise: float = 0.25

    @property
    def mobility(self) -> Matrix:
        """theta gamma."""
        return np.array([[self.level * self.noise]])

    def score_function(self, x: Samples) -> Samples:
        return (self.rate * self.level / self.noise - 1) / np.asarray(x, float) - self.rate / self.noise

    def _initial(self, members, rng):
        return rng.gamma(self.rate * self.level / self.noise, self.noise / self.rate, (members, 1))

    def _drift(self, x):
        return self.rate * (self.level - x)

    def _noise(self, x):
        return jnp.sqrt(self.noise * jnp.maximum(x, 0.0))[:, None]


class DrivenRing(System):
    """d theta = (f - V'(theta)) dt + sqrt(2 D) dW, V = sum_k a_k cos(k theta) + b_k sin(k theta), k = 1, 2, ...

    An angle driven around a circle. The probability current J = p nu is the same everywhere, so nu = J / p; the mean
    velocity is 2 pi J and the entropy production f 2 pi J / D. Without drive J = 0.

    Parameters
    ----------
    drive, noise : float
        f and the diffusion D; defaults 1, 0.5.
    cosines, sines : tuple of float
        a and b, of equal length; defaults (0.8, 0.3), (0.0, 0.4).

    Examples
    --------
    >>> ring = el.systems.DrivenRing(drive=2.0)
    >>> ring.entropy_production == ring.drive * ring.mean_velocity / ring.noise
    True
    >>> round(el.systems.DrivenRing(cosines=(), sines=()).mean_velocity, 12)
    1.0
    """

    names: ClassVar[tuple[str, ...]] = ("theta",)
    periods: ClassVar[tuple[float, ...]] = (2 * np.pi,)
    step: ClassVar[float] = 0.005
    burn_in: ClassVar[float] = 20.0
    drive: float = 1.0
    noise: float = 0.5
    cosines: tuple[float, ...] = (0.8, 0.3)
    sines: tuple[float, ...] = (0.0, 0.4)

    def __post_init__(self):
        checks.instance_of("drive", self.drive, (float, int))
        checks.positive_number("noise", self.noise)
        checks.shaped_array("sines", self.sines, (len(self.cosines),), "(harmonic,), as `cosines`")

    @property
    def mobility(self) -> Matrix:
        """D."""
        return np.array([[self.noise]])

    @property
    def flux(self) -> float:
        """J, the mean number of turns per unit of time."""
        return _solve_ring(self)[1]

    @property
    def mean_velocity(self) -> float:
        """2 pi J."""
        return 2 * np.pi * self.flux

    @property
    def entropy_production(self) -> float:
        """f 2 pi J / D."""
        return self.drive * self.mean_velocity / self.noise

    def density(self, x: np.ndarray) -> np.ndarray:
        """Return the exact stationary density.

        Parameters
        ----------
        x : array
            Angles, in any shape.

        Returns
        -------
        array
            The density at each angle.
        """
        amplitudes = np.fft.rfft(_solve_ring(self)[0]) / _POINTS
        amplitudes[1:] *= 2
        return np.polynomial.polynomial.polyval(np.exp(1j * np.asarray(x, float)), amplitudes).real

    def score_function(self, x: Samples) -> Samples:
        x = np.asarray(x, float)
        return (self._force(x, np) - self.flux / self.density(x)) / self.noise

    def current(self, x: Samples) -> Samples:
        return self.flux / self.density(np.asarray(x, float))

    def _force(self, x, library):
        waves = [
            k * (b * library.cos(k * x) - a * library.sin(k * x))
            for k, (a, b) in enumerate(zip(self.cosines, self.sines), start=1)
        ]
        return self.drive - sum(waves, start=0.0 * x)

    def _initial(self, members, rng):
        return rng.uniform(-np.pi, np.pi, (members, 1))

    def _drift(self, x):
        return self._force(x, jnp)

    def _noise(self, x):
        return np.sqrt(self.noise) * np.eye(1)


@cache
def _solve_ring(ring: DrivenRing) -> tuple[np.ndarray, float]:
    """Return p on a regular grid, and J: (f - V') p - D p' = J with mean p = 1 / 2 pi, by Fourier collocation."""
    grid = 2 * np.pi * np.arange(_POINTS) / _POINTS
    waves = np.fft.fftfreq(_POINTS, 1 / _POINTS)
    slope = np.fft.ifft(1j * waves[:, None] * np.fft.fft(np.eye(_POINTS), axis=0), axis=0).real
    equations = np.ones((_POINTS + 1, _POINTS + 1))
    equations[:-1, :-1] = np.diag(ring._force(grid, np)) - ring.noise * slope
    equations[:-1, -1], equations[-1, -1] = -1.0, 0.0
    solution = np.linalg.solve(equations, np.append(np.zeros(_POINTS), _POINTS / (2 * np.pi)))
    return solution[:-1], float(solution[-1])
