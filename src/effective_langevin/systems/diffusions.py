"""Stochastic differential equations in a few variables, with what is known about them exactly."""

from collections.abc import Callable
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.linalg import solve_continuous_lyapunov

from .._core import checks
from .._core.errors import ArgumentError
from .._core.types import Matrix, Samples
from ..execution.batches import times
from .base import System
from .fokker_planck import FokkerPlanck


class OrnsteinUhlenbeck(System):
    """dx = -A x dt + sqrt(2) Sigma dW. Covariance A C + C A^T = 2 Sigma Sigma^T, score -C^-1 x, mobility A C.

    Parameters
    ----------
    drift_matrix : array, shape (var, var)
        A; its eigenvalues have positive real parts.
    noise_matrix : array, shape (var, brownian), optional
        Sigma; default: the identity.

    Examples
    --------
    >>> system = el.systems.OrnsteinUhlenbeck([[1.0, 2.0], [-2.0, 1.0]])
    >>> system.covariance
    array([[1., 0.],
           [0., 1.]])
    >>> system.mobility
    array([[ 1.,  2.],
           [-2.,  1.]])
    """

    step: ClassVar[float] = 0.01
    burn_in: ClassVar[float] = 0.0
    drift_matrix: np.ndarray
    noise_matrix: np.ndarray

    def __init__(self, drift_matrix: Matrix, noise_matrix: Matrix | None = None):
        size = len(drift_matrix)
        self.drift_matrix = checks.shaped_array("drift_matrix", drift_matrix, (size, size), "(var, var)")
        given = np.eye(size) if noise_matrix is None else noise_matrix
        self.noise_matrix = checks.shaped_array("noise_matrix", given, (size, None), "(var, brownian)")
        if np.linalg.eigvals(self.drift_matrix).real.min() <= 0:
            raise ArgumentError(
                "Argument `drift_matrix` must have eigenvalues with positive real part: the process is not stationary."
            )

    @classmethod
    def rotating(cls, dimension: int, rotation: float = 1.0) -> "OrnsteinUhlenbeck":
        """Make a process that is not reversible, with relaxation rates 1, 1.5, 2, ...

        Parameters
        ----------
        dimension : int
            Number of variables.
        rotation : float, default 1.0
            Strength of the rotation between neighbouring variables.

        Returns
        -------
        OrnsteinUhlenbeck
            The process.
        """
        rates = np.diag(1 + 0.5 * np.arange(dimension))
        turn = rotation * (np.eye(dimension, k=1) - np.eye(dimension, k=-1))
        return cls(rates + turn, np.eye(dimension) + 0.3 * np.eye(dimension, k=-1))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables: x1, x2, ..."""
        return tuple(f"x{i + 1}" for i in range(len(self.drift_matrix)))

    @property
    def covariance(self) -> Matrix:
        """Stationary covariance, from the Lyapunov equation."""
        return solve_continuous_lyapunov(self.drift_matrix, 2 * self.noise_matrix @ self.noise_matrix.T)

    @property
    def mobility(self) -> Matrix:
        """A C."""
        return self.drift_matrix @ self.covariance

    def score_function(self, x: Samples) -> Samples:
        return -np.linalg.solve(self.covariance, np.asarray(x, float)[..., None])[..., 0]

    def _initial(self, members, rng):
        return rng.multivariate_normal(np.zeros(self.dimension), self.covariance, members)

    def _drift(self, x):
        return -times(jnp.asarray(self.drift_matrix, x.dtype), x[None])[0]

    def _noise(self, x):
        return self.noise_matrix


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

    def score_function(self, x: Samples) -> Samples:
        x = np.asarray(x, float)
        return -4 * x * (x**2 - np.square(self.wells)) - np.asarray(self.tilt)

    def _drift(self, x):
        score = -4 * x * (x**2 - jnp.square(jnp.asarray(self.wells))) - jnp.asarray(self.tilt)
        return times(jnp.asarray(self.mobility), score[None])[0]

    def _noise(self, x):
        return np.eye(2)


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


class AffineNoise(System):
    """dx = f(x) dt + B(x) dW with f = -(|x|^2 + 1) x + omega (-y, x) and B = B0 + alpha (x B1 + y B2).

    The benchmark for a mobility that depends on the state.

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
    exact: ClassVar[tuple[str, ...]] = ("mobility",)
    alpha: float = 3.0
    omega: float = 1.1

    @property
    def mobility(self) -> Matrix:
        """-<f x^T>, with the stationary density from the Fokker-Planck operator."""
        return self.fokker_planck().mean_mobility()

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


class StochasticLorenz63(System):
    """Lorenz-63 with noise of amplitude 5 on each variable.

    No exact score is known. The diffusion is noise^2 / 2 times the identity; the circulation depends strongly on the
    state, so a constant closure follows only the envelope of the third autocorrelation.

    Parameters
    ----------
    sigma, rho, beta, noise : float
        Prandtl number, Rayleigh number, aspect ratio and amplitude of the noise; defaults 10, 28, 8/3, 5.

    Examples
    --------
    >>> el.systems.StochasticLorenz63().drift([1.0, 2.0, 3.0])
    array([10., 23., -6.])
    """

    names: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    step: ClassVar[float] = 0.002
    burn_in: ClassVar[float] = 30.0
    exact: ClassVar[tuple[str, ...]] = ()
    sigma: float = 10.0
    rho: float = 28.0
    beta: float = 8 / 3
    noise: float = 5.0

    def _initial(self, members, rng):
        return np.array([0.0, 0.0, 25.0]) + 5 * rng.normal(size=(members, 3))

    def _drift(self, x):
        return jnp.stack([self.sigma * (x[1] - x[0]), x[0] * (self.rho - x[2]) - x[1], x[0] * x[1] - self.beta * x[2]])

    def _noise(self, x):
        return self.noise / np.sqrt(2) * np.eye(3)
