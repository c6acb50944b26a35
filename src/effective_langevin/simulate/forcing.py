"""A push added to the drift, dx = [drift(x) + f(t)] dt + noise, as a part of the one-step map."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core import checks
from .._core.types import Samples, Vector
from .steppers import Noise, State, StepMap

Forcing = Vector | Sequence[float] | Callable[[Vector], Samples]

_COUNT = 2.0**-20  # steps are counted in this unit: exact in float32 for 16 million steps, and far below any bound


def tabulate_forcing(forcing: Forcing, times: Vector, dimension: int) -> Float[np.ndarray, "time var"]:
    """Return the push at each time, or one row if it is constant."""
    if not callable(forcing):
        shape = f"({dimension},), one entry per variable of the model, or be a function of time"
        return checks.finite("forcing", checks.shaped_array("forcing", forcing, (dimension,), shape))[None]
    shape = f"(time, var) = ({len(times)}, {dimension}) at {len(times)} times"
    return checks.finite("forcing", checks.shaped_array("forcing", forcing(times), (len(times), dimension), shape))


class Forced(StepMap):
    """A one-step map between two halves of a push: of second order if the map is.

    The last entry of the state counts the steps. `pushes` is h f at the middle of each step; its last row stays.
    """

    advance: Any
    pushes: Float[Array, "step var"]

    @classmethod
    def of(cls, advance: StepMap, pushes: Samples) -> "Forced":
        draws = {"averages_noise": advance.averages_noise, "draws": advance.draws}
        return cls(advance, jnp.asarray(pushes, jnp.float32), **draws)

    @staticmethod
    def counted(states: Samples) -> Samples:
        """Return states with the number of steps made so far, zero."""
        return np.pad(states, ((0, 0), (0, 1)))

    def __call__(self, x: State, dw: Noise) -> State:
        count = x[:, -1:]
        step = jnp.round(count[:, 0] / _COUNT).astype(int)
        half = 0.5 * jnp.take(self.pushes, step, axis=0, mode="clip")
        return jnp.concatenate([self.advance(x[:, :-1] + half, dw) + half, count + _COUNT], axis=1)
