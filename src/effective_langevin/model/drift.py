"""The drift of a model, one state or many at a time, and its Jacobian."""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..estimate.score import Score
from ..execution.batches import evaluate_batch
from ..execution.compilation import soon_compiled


class LangevinDrift(eqx.Module):
    """Phi s(x), standardised, for one state."""

    score: Score
    phi: jax.Array

    def __call__(self, x):
        return self.in_batch(x[None])[0]

    def in_batch(self, x):
        """Every state of a batch."""
        return self.score.in_batch(x, self.phi)


@evaluate_batch.register
def _(drift: LangevinDrift, x, low_precision: bool = False):
    return drift.in_batch(x)


@soon_compiled
def jacobians(drift, states):
    """(state, var, var): the change of all drifts along one direction after the other."""

    def along(direction):
        return jax.jvp(drift.in_batch, (states,), (jnp.broadcast_to(direction, states.shape),))[1]

    return jnp.moveaxis(jax.lax.map(along, jnp.eye(states.shape[1])), 0, 2)
