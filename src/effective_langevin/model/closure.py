"""What closes the equation of a model once the score is known: the current velocity and the diffusion tensor.

    dx = [ nu(x) + D(x) s(x) + div D(x) ] dt + sqrt(2) D(x)^(1/2) dW          (div D)_i = sum_j d_j D_ij

The density p with the score s is a steady state for every positive semi-definite D(x) and every nu with div(p nu) = 0.
"""

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
from ..estimate.closure.fields import ConstantDiffusion, Fields, SharedCurrent
from ..estimate.score import Score
from ..estimate.score.score import evaluate_everywhere
from ..execution.batches import Batched, times, times_each


@dataclass(frozen=True, eq=False)
class ConstantClosure:
    """The paper's closure, a constant mobility Phi: D = sym(Phi), nu = antisym(Phi) s, so that the drift is Phi s.

    States are (..., var), in physical units; `score_function` is that of the model. D may be singular: noise then acts
    in some directions only. `noise_factor` times its transpose is D, `divergence` is div D, and `to_standard` gives
    drift and noise factor in standardised units, ready for a compiled loop (`simulate.Equation`).
    """

    score_function: Callable[[Samples], Samples]
    phi: Matrix

    def current(self, x: Samples) -> Samples:
        return self.score_function(x) @ (0.5 * (self.phi - self.phi.T)).T

    def diffusion(self, x: Samples) -> np.ndarray:
        return self._everywhere(0.5 * (self.phi + self.phi.T), x)

    def divergence(self, x: Samples) -> Samples:
        return np.zeros(np.shape(x))

    def noise_factor(self, x: Samples) -> np.ndarray:
        return self._everywhere(square_root(0.5 * (self.phi + self.phi.T)), x)

    def drift(self, x: Samples) -> Samples:
        return self.score_function(x) @ self.phi.T

    def to_standard(self, score: Score, standardizer: Standardizer) -> tuple[Callable, Any]:
        phi = standardizer.mobility_to_standard(self.phi)
        factor = square_root(0.5 * (phi + phi.T))
        return LangevinDrift(score, jnp.asarray(phi, jnp.float32)), jnp.asarray(factor, jnp.float32)

    @staticmethod
    def _everywhere(matrix: Matrix, x: Samples) -> np.ndarray:
        return np.broadcast_to(matrix, (*np.shape(x)[:-1], *matrix.shape))


@dataclass(frozen=True, eq=False)
class FieldClosure:
    """The same for a current and a diffusion that depend on the state, given by standardised fields."""

    score: Score
    fields: Fields
    standardizer: Standardizer

    def current(self, x: Samples) -> Samples:
        return self._evaluate("current", x) * self.standardizer.std

    def diffusion(self, x: Samples) -> np.ndarray:
        return self._evaluate("diffusion", x, 2) * np.outer(self.standardizer.std, self.standardizer.std)

    def divergence(self, x: Samples) -> Samples:
        return self._evaluate("divergence", x) * self.standardizer.std

    def noise_factor(self, x: Samples) -> np.ndarray:
        return self._evaluate("factor", x, 2) * self.standardizer.std[:, None]

    def drift(self, x: Samples) -> Samples:
        return self._evaluate("drift", x) * self.standardizer.std

    def to_standard(self, score: Score, standardizer: Standardizer) -> tuple[Callable, Any]:
        diffusion, current = self.fields.diffusion, self.fields.current
        constant = isinstance(diffusion, ConstantDiffusion)
        if constant and isinstance(current, SharedCurrent):
            both = jnp.concatenate([diffusion.matrix, current.matrix], axis=1)
            return LangevinDrift(score, both), diffusion.root
        return FieldValues(score, self.fields, "drift"), diffusion.root if constant else diffusion

    def _evaluate(self, part: str, x: Samples, axes: int = 1) -> Any:
        function = FieldValues(self.score, self.fields, part)
        standard: Any = ((x - self.standardizer.mean) / self.standardizer.std).reshape(-1, x.shape[-1])
        traced = isinstance(x, jax.Array)
        values = function.in_batch(standard) if traced else evaluate_everywhere(function, standard).astype(float)
        return values.reshape(*x.shape[:-1], *[x.shape[-1]] * axes)


def evaluate_fields(score: Score, fields: Fields, states: Samples) -> tuple[Samples, np.ndarray]:
    """Return nu (state, var) and D (state, var, var) at standardised states; one D for all where it is constant."""
    current = evaluate_everywhere(FieldValues(score, fields, "current"), states).astype(float)
    if isinstance(fields.diffusion, ConstantDiffusion):
        return current, np.asarray(fields.diffusion.matrix, float)
    diffusion = evaluate_everywhere(FieldValues(score, fields, "diffusion"), states).astype(float)
    return current, diffusion.reshape(*states.shape, states.shape[1])


class FieldValues(Batched):
    """One part of a closure, standardised: its drift, current, divergence, or (row by row) diffusion or factor."""

    score: Score
    fields: Fields
    part: str = eqx.field(static=True)

    def in_batch(self, x):
        diffusion = self.fields.diffusion
        if self.part == "diffusion" or self.part == "factor":
            return (diffusion.in_batch(x) if self.part == "diffusion" else diffusion.factor(x)).reshape(len(x), -1)
        if self.part == "divergence":
            return diffusion.divergence(x)
        outputs, current = self.score.outputs(x), self.fields.current
        score = outputs[:, : x.shape[1]]
        current = current.in_batch(x, outputs if isinstance(current, SharedCurrent) else score)
        if self.part == "current":
            return current
        if isinstance(diffusion, ConstantDiffusion):
            return current + times(diffusion.matrix, score)
        return current + times_each(diffusion.in_batch(x), score) + diffusion.divergence(x)


class LangevinDrift(Batched):
    """Phi s(x), standardised, for one state or, `in_batch`, for many."""

    score: Score
    phi: jax.Array

    def in_batch(self, x):
        return self.score.in_batch(x, self.phi)
