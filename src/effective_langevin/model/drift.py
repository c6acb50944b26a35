"""The drift of a model, one state or many at a time, how stiff it is, and the members that it did not lose."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core.errors import DivergenceError, EstimateWarning
from ..estimate.score import Score
from ..execution.compilation import soon_compiled
from ..simulate import Ensemble


class LangevinDrift(eqx.Module):
    """Phi s(x), standardised, for one state."""

    score: Score
    phi: jax.Array

    def __call__(self, x):
        return self.in_batch(x[None])[0]

    def in_batch(self, x):
        """Every state of a batch."""
        return self.score.in_batch(x, self.phi)


@soon_compiled
def jacobians(drift, states):
    """(state, var, var): the change of all drifts along one direction after the other."""

    def along(direction):
        return jax.jvp(drift.in_batch, (states,), (jnp.broadcast_to(direction, states.shape),))[1]

    return jnp.moveaxis(jax.lax.map(along, jnp.eye(states.shape[1])), 0, 2)


def survivors(run: Ensemble, step: float) -> np.ndarray:
    """The paths of the members that stayed finite, (member, time, var); the others are counted in a warning."""
    members = len(run.diverged)
    if run.diverged.all():
        raise DivergenceError(
            f"All {members} members diverged at step {step:g}. Give a smaller `step`, or refit with a "
            "larger noise level: the learned score may point outwards beyond the data."
        )
    if run.diverged.any():
        warnings.warn(
            f"{int(run.diverged.sum())} of {members} members diverged at step {step:g} and were left out. "
            "Give a smaller `step`.",
            EstimateWarning,
            stacklevel=3,
        )
    return run.paths[run.alive]
