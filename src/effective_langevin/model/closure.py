"""What closes the equation of a model once the score is known: the current velocity and the diffusion tensor.

    dx = [ nu(x) + D(x) s(x) + div D(x) ] dt + sqrt(2) D(x)^(1/2) dW          (div D)_i = sum_j d_j D_ij

The density p with the score s is a steady state for every positive semi-definite D(x) and every nu with div(p nu) = 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core.matrices import square_root
from .._core.types import Matrix, Samples
from ..data import Standardizer
from ..estimate.score import Score
from ..execution.batches import evaluate_batch

_NEGLIGIBLE = 1e-9


class Closure(ABC):
    """Current velocity and diffusion of a model at states (..., var), in physical units.

    `score_function` is that of the model. The diffusion may be singular: noise then acts in some directions only.
    """

    score_function: Callable[[Samples], Samples]

    @abstractmethod
    def current(self, x: Samples) -> Samples:
        """Return nu(x), (..., var)."""

    @abstractmethod
    def diffusion(self, x: Samples) -> np.ndarray:
        """Return D(x), (..., var, var)."""

    @abstractmethod
    def divergence(self, x: Samples) -> Samples:
        """Return div D(x), (..., var)."""

    @abstractmethod
    def noise_factor(self, x: Samples) -> np.ndarray:
        """Return a matrix whose product with its transpose is D(x), (..., var, brownian)."""

    @abstractmethod
    def mean(self) -> Matrix:
        """Return the mean mobility < M > = -dC/dt(0+)."""

    @property
    @abstractmethod
    def reversible(self) -> bool:
        """Whether the current vanishes everywhere."""

    @abstractmethod
    def to_standard(self, score: Score, standardizer: Standardizer) -> tuple[Callable, Any]:
        """Return drift and noise factor in standardised units, ready for a compiled loop: see `simulate.Equation`."""

    def drift(self, x: Samples) -> Samples:
        """Return nu + D s + div D, (..., var)."""
        return self.current(x) + np.einsum("...ij,...j", self.diffusion(x), self.score_function(x)) + self.divergence(x)


@dataclass(frozen=True, eq=False)
class ConstantClosure(Closure):
    """The paper's closure, a constant mobility Phi: D = sym(Phi), nu = antisym(Phi) s, so that the drift is Phi s."""

    score_function: Callable[[Samples], Samples]
    phi: Matrix

    def current(self, x: Samples) -> Samples:
        return self.score_function(x) @ self._antisymmetric.T

    def diffusion(self, x: Samples) -> np.ndarray:
        return self._everywhere(0.5 * (self.phi + self.phi.T), x)

    def divergence(self, x: Samples) -> Samples:
        return np.zeros(np.shape(x))

    def noise_factor(self, x: Samples) -> np.ndarray:
        return self._everywhere(square_root(0.5 * (self.phi + self.phi.T)), x)

    def mean(self) -> Matrix:
        return self.phi

    @property
    def reversible(self) -> bool:
        return not np.any(np.abs(self._antisymmetric) > _NEGLIGIBLE * np.abs(self.phi).max())

    def drift(self, x: Samples) -> Samples:
        return self.score_function(x) @ self.phi.T

    def to_standard(self, score: Score, standardizer: Standardizer) -> tuple[Callable, Any]:
        phi = standardizer.mobility_to_standard(self.phi)
        factor = square_root(0.5 * (phi + phi.T))
        return LangevinDrift(score, jnp.asarray(phi, jnp.float32)), jnp.asarray(factor, jnp.float32)

    @property
    def _antisymmetric(self) -> Matrix:
        return 0.5 * (self.phi - self.phi.T)

    @staticmethod
    def _everywhere(matrix: Matrix, x: Samples) -> np.ndarray:
        return np.broadcast_to(matrix, (*np.shape(x)[:-1], *matrix.shape))


class LangevinDrift(eqx.Module):
    """Phi s(x), standardised, for one state or, `in_batch`, for many."""

    score: Score
    phi: jax.Array

    def __call__(self, x):
        return self.in_batch(x[None])[0]

    def in_batch(self, x):
        """Return the drift of every state of a batch."""
        return self.score.in_batch(x, self.phi)


@evaluate_batch.register
def _(drift: LangevinDrift, x, low_precision: bool = False):
    return drift.in_batch(x)
