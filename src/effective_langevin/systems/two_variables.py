"""Equations in two variables, with what is known about them exactly."""

from functools import cache
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.special import ndtr

from .._core import checks
from .._core.types import Matrix, Samples
from ..execution.batches import times
from .base import System
from .fokker_planck import FokkerPlanck

_QUARTER_TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


class AsymmetricWells(System):
    """dx = -K grad U dt + sqrt(2) dW with U = sum_i (x_i^2 - A_i^2)^2 + B_i x_i and K = [[1, -c], [c, 1]].

    The paper's four wells (Sec. VI). The density is exp(-U), the score -grad U, the mobility K: a constant closure is
    exact.

    Parameters
    ----------
    wells, tilt : tuple of float
        A, half the distance of the wells along each variable, and B; defaults (1.0, 1.2), (0.6, 0.3).
    circulation : float, default 0.8
        c, the strength of the rotation.

    Examples
    --------
    >>> el.systems.AsymmetricWells(circulation=0.5).mobility
    array([[ 1. , -0.5],
           [ 0.5,  1. ]])
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

    @property
    def entropy_production(self) -> float:
        """c^2 < |grad U|^2 > = c^2 < div grad U >, by quadrature of each variable."""
        x, total = np.linspace(-6.0, 6.0, 4001), 0.0
        for a, b in zip(self.wells, self.tilt):
            weights = np.exp(-((x**2 - a**2) ** 2) - b * x)
            total += float(np.average(12 * x**2 - 4 * a**2, weights=weights))
        return self.circulation**2 * total

    def score_function(self, x: Samples) -> Samples:
        x = np.asarray(x, float)
        return -4 * x * (x**2 - np.square(self.wells)) - np.asarray(self.tilt)

    def _drift(self, x):
        score = -4 * x * (x**2 - jnp.square(jnp.asarray(self.wells))) - jnp.asarray(self.tilt)
        return times(jnp.asarray(self.mobility), score[None])[0]

    def _noise(self, x):
        return np.eye(2)


class DoubleWellOscillator(System):
    """dx = v dt, dv = (x - x^3 - gamma v) dt + sqrt(2 D) dW: motion with inertia and friction in a double well.

    The density is exp(-(v^2 / 2 + x^4 / 4 - x^2 / 2) / T) with T = D / gamma, and the mobility [[0, -T], [T, D]]: a
    constant closure is exact. It is reversible, if v changes its sign with the direction of time.

    Parameters
    ----------
    friction, temperature : float
        gamma and T; defaults 0.5, 0.5.

    Examples
    --------
    >>> el.systems.DoubleWellOscillator().mobility
    array([[ 0.  , -0.5 ],
           [ 0.5 ,  0.25]])
    """

    names: ClassVar[tuple[str, ...]] = ("x", "v")
    step: ClassVar[float] = 0.01
    burn_in: ClassVar[float] = 100.0
    exact: ClassVar[tuple[str, ...]] = ("score", "mobility", "current")
    friction: float = 0.5
    temperature: float = 0.5

    @property
    def mobility(self) -> Matrix:
        """[[0, -T], [T, gamma T]]."""
        return self.temperature * np.array([[0.0, -1.0], [1.0, self.friction]])

    def score_function(self, x: Samples) -> Samples:
        x = np.asarray(x, float)
        return np.stack([x[..., 0] - x[..., 0] ** 3, -x[..., 1]], axis=-1) / self.temperature

    def _drift(self, x):
        return jnp.stack([x[1], x[0] - x[0] ** 3 - self.friction * x[1]])

    def _noise(self, x):
        return np.array([[0.0], [np.sqrt(self.friction * self.temperature)]])


class AffineNoise(System):
    """dx = f(x) dt + B(x) dW with f = -(|x|^2 + 1) x + omega (-y, x) and B = B0 + alpha (x B1 + y B2).

    The benchmark for a mobility that depends on the state. Score, current and entropy production come from the
    Fokker-Planck operator on a grid: right to 0.3 % where the density is above a millionth of its maximum.

    Parameters
    ----------
    alpha, omega : float
        How strongly the noise depends on the state, and the frequency of the rotation; defaults 3, 1.1.

    Examples
    --------
    >>> el.systems.AffineNoise().drift([0.1, 0.0]).round(3)
    array([-0.101,  0.11 ])
    """

    names: ClassVar[tuple[str, ...]] = ("x", "y")
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 10.0
    additive: ClassVar[bool] = False
    alpha: float = 3.0
    omega: float = 1.1

    @property
    def mobility(self) -> Matrix:
        """-<f x^T>, with the stationary density from the Fokker-Planck operator."""
        return self.fokker_planck().mean_mobility()

    @property
    def entropy_production(self) -> float:
        """< nu . D^-1 nu >, from the Fokker-Planck operator."""
        return _solve_affine_noise(self)[1]

    def score_function(self, x: Samples) -> Samples:
        x = np.asarray(x, float)
        log_density = _solve_affine_noise(self)[0]
        return np.stack([log_density.ev(x[..., 0], x[..., 1], *order) for order in ((1, 0), (0, 1))], axis=-1)

    def fokker_planck(self, points: int = 161) -> FokkerPlanck:
        """Return the generator on a grid that holds all of the density.

        Parameters
        ----------
        points : int, default 161
            Grid points along each axis.

        Returns
        -------
        FokkerPlanck
            The generator.
        """
        half = 1.9 if self.alpha > 2 else 1.7
        return FokkerPlanck.from_system(self, [(-half, half)] * 2, points)

    def _initial(self, members, rng):
        return 0.3 * rng.normal(size=(members, 2))

    def _drift(self, x):
        return -(x @ x + 1) * x + self.omega * jnp.stack([-x[1], x[0]])

    def _noise(self, x):
        b0 = jnp.array([[0.60, 0.10], [0.08, 0.55]])
        b1 = jnp.array([[0.12, 0.04], [0.05, -0.02]])
        b2 = jnp.array([[-0.03, 0.07], [0.06, 0.10]])
        return (b0 + self.alpha * (x[0] * b1 + x[1] * b2)) / jnp.sqrt(2.0)


@cache
def _solve_affine_noise(system: AffineNoise) -> tuple[RectBivariateSpline, float]:
    """Return ln p, up to a constant, as a spline, and the entropy production."""
    plane = system.fokker_planck(points=241)
    x, y = plane.axes
    density = plane.density.reshape(len(x), len(y))
    log_density = RectBivariateSpline(x, y, np.log(np.maximum(density, 1e-9 * density.max())))
    return log_density, plane.entropy_production()


class NoisyLimitCycle(System):
    """dx = [(1 - r^2) x + omega J x] dt + sqrt(2 D) dW with r = |x| and J = [[0, -1], [1, 0]].

    A noisy oscillator: the density is a ring, exp((r^2 / 2 - r^4 / 4) / D), around which the state turns with the
    current velocity omega J x. A constant mobility cannot turn it so.

    Parameters
    ----------
    omega, noise : float
        Frequency and diffusion D; defaults 2, 0.1.

    Examples
    --------
    >>> system = el.systems.NoisyLimitCycle()
    >>> system.current([0.5, 0.0])
    array([0., 1.])
    >>> round(system.entropy_production, 2)
    40.59
    """

    names: ClassVar[tuple[str, ...]] = ("x", "y")
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 20.0
    omega: float = 2.0
    noise: float = 0.1

    def __post_init__(self):
        checks.instance_of("omega", self.omega, (float, int))
        checks.positive_number("noise", self.noise)

    @property
    def mean_square(self) -> float:
        """< r^2 >; r^2 follows a normal law of mean 1 and variance 2 D, cut off at zero."""
        width = np.sqrt(2 * self.noise)
        return float(1 + width * np.exp(-0.5 / width**2) / (np.sqrt(2 * np.pi) * ndtr(1 / width)))

    @property
    def mobility(self) -> Matrix:
        """D - omega J < r^2 > / 2."""
        return self.noise * np.eye(2) - 0.5 * self.omega * self.mean_square * _QUARTER_TURN

    @property
    def entropy_production(self) -> float:
        """omega^2 < r^2 > / D."""
        return self.omega**2 * self.mean_square / self.noise

    def score_function(self, x: Samples) -> Samples:
        x = np.asarray(x, float)
        return (1 - np.sum(x**2, axis=-1, keepdims=True)) * x / self.noise

    def current(self, x: Samples) -> Samples:
        return self.omega * np.asarray(x, float) @ _QUARTER_TURN.T

    def _drift(self, x):
        return (1 - x @ x) * x + self.omega * jnp.stack([-x[1], x[0]])

    def _noise(self, x):
        return np.sqrt(self.noise) * np.eye(2)
