"""Training samples that come from a shuffled stream of blocks, where the series is too long to be held at once."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...data.lazy import Rows
from ...data.stream import Stream
from .training import Schedule, Streamed

_PIECE_NUMBERS = 1 << 22  # that one compiled call is given: 16 MiB


class StreamedSamples(Streamed):
    """States, the smoothing width and further rows beside the states, `rows` of them for each step of a training."""

    def __init__(self, parts: Sequence[Rows], sigma: float, rows: int, schedule: Schedule, *, key: jax.Array):
        self.stream = Stream(parts, schedule.steps * rows, np.asarray(jax.random.key_data(key)).tolist())
        self.sigma, self.rows = jnp.float32(sigma), rows
        numbers = rows * sum(part.shape[1] for part in parts)
        self.most_steps = max(1, min(_PIECE_NUMBERS // numbers, schedule.steps_per_epoch))

    @property
    def identity(self) -> tuple[Any, Any]:
        """How the stream is cut, and all its samples."""
        return (self.rows, self.most_steps, self.stream.most), (self.stream.parts, self.sigma)

    def piece(self, first: int, stop: int) -> tuple[jax.Array, ...]:
        """Return the states of some steps, the smoothing width, and what belongs to the states."""
        x, *beside = (jnp.asarray(part) for part in self.stream.take(first * self.rows, stop * self.rows))
        return x, self.sigma, *beside

    def describe(self, steps: int) -> str:
        """Say what was read for so many steps."""
        return self.stream.describe(steps * self.rows)
