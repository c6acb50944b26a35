"""What a learned score is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from ..._core.types import Matrix, Samples, Vector
from ...data.lazy import Rows
from ...execution.batches import Batched, evaluate_batch, on_all_cores, one_cpu, over_members, times
from ...execution.compilation import soon_compiled
from ...execution.lowering import absorb_matrix, lower
from ..networks import Residual
from .preconditioning import covariance_matrix

_BLOCK = 1 << 16
_CACHED_BLOCKS = 1 << 8, 1 << 11


class Score(Batched):
    """s(x) = gain network(x), or -gain precision x, for one standardised state; W gain network(W x) in a frame W.

    Without a network it is the Gaussian score, -precision x; with one, the Gaussian is what remains beyond the box
    [low, high] where the network was trained and may point anywhere: from the nearest point of the box outwards its
    score fades, never pointing further out, and -precision (x - nearest point) takes over. No state escapes. A network
    may have absorbed the gain. It may have further outputs beside the score, which fade beyond the box: `outputs`.
    """

    precision: Float[Array, "var var"]
    gain: Float[Array, "var var"] | None
    low: Float[Array, " var"]
    high: Float[Array, " var"]
    network: Any = None
    frame: Float[Array, "var var"] | None = None

    @classmethod
    def linear(cls, precision: Matrix) -> "Score":
        size = len(precision)
        return cls.learned(None, precision, np.zeros(size), np.zeros(size))

    @classmethod
    def trained_on(
        cls,
        samples: Samples | Rows,
        network: Callable,
        noise_level: float,
        tail: float = 0.0005,
        angles: Sequence[int] = (),
    ) -> "Score":
        """Return the score given by a network, within the range of each variable that leaves out `tail` on each side.

        `angles` are the variables that the network is periodic in: on a circle nothing lies beyond the data.
        """
        precision = np.linalg.inv(covariance_matrix(samples, noise_level))
        box = _box(samples, tail)
        box[:, list(angles)] = np.array([[-np.inf], [np.inf]])
        return cls.learned(network, precision, *box)

    @classmethod
    def learned(cls, network: Callable | None, precision: Matrix, low: Vector, high: Vector) -> "Score":
        fixed, gain, start, stop = (jnp.asarray(a, jnp.float32) for a in (precision, np.eye(len(low)), low, high))
        return cls(fixed, gain, start, stop, network)

    def in_batch(
        self, x: Float[Array, "batch var"], after: Float[Array, "var var"] | None = None
    ) -> Float[Array, "batch var"]:
        """Return grad ln p at each state of a batch; with a matrix `after`, that times the first outputs."""
        size, values = x.shape[1], self._within(_times(self.frame, x))
        if after is None:
            return _times(self.frame, values[:, :size])
        if self.frame is not None:
            after = jnp.concatenate([times(after[:, :size], self.frame.T).T, after[:, size:]], axis=1)
        return times(after, values[:, : after.shape[1]])

    def outputs(self, x: Float[Array, "batch var"]) -> Float[Array, "batch output"]:
        """Return grad ln p at each state, and the further outputs of the network beside it."""
        size, values = x.shape[1], self._within(_times(self.frame, x))
        return jnp.concatenate([_times(self.frame, values[:, :size]), values[:, size:]], axis=1)

    def _within(self, x: Float[Array, "batch var"]) -> Float[Array, "batch output"]:
        """The same in the frame."""
        if self.network is None:
            return -_times(self.gain, times(self.precision, x))
        inside = jnp.clip(x, self.low, self.high)
        beyond = x - inside
        found = evaluate_batch(self.network, inside)
        value = _times(self.gain, found[:, : x.shape[1]])
        outwards = value * beyond > 0
        fade = jnp.exp(-0.25 * jnp.sum(beyond**2, axis=1, keepdims=True) ** 2)
        score = fade * jnp.where(outwards, 0.0, value) - times(self.precision, beyond)
        return score if found.shape == x.shape else jnp.concatenate([score, fade * found[:, x.shape[1] :]], axis=1)

    def scaled_by(self, matrix: Matrix) -> "Score":
        """Return the score multiplied by a matrix (within the box)."""
        gain = matrix if self.gain is None else matrix @ np.asarray(self.gain, float)
        return replace(self, gain=jnp.asarray(gain, jnp.float32))

    def with_linear(self, matrix: Matrix) -> "Score":
        """Return the score with a linear function of the state added to the first outputs of its network."""
        outputs = jax.eval_shape(self.network, self.low).shape[0]
        linear = jnp.pad(jnp.asarray(matrix, jnp.float32), ((0, outputs - len(matrix)), (0, 0)))
        if isinstance(self.network, Residual):
            return replace(self, network=Residual(self.network.linear + linear, self.network.network))
        return replace(self, network=Residual(linear, self.network))

    def in_frame(self, frame: Matrix | None) -> "Score":
        """Return the score of x, from that of W x for a symmetric W."""
        return replace(self, frame=None if frame is None else jnp.asarray(frame, jnp.float32))

    def lower(self, low_precision: bool = False) -> "Score":
        """Return the same score in the form that is stepped fastest; `low_precision` allows bfloat16 on a GPU.

        Only beside a linear part: a network alone holds the weak pull of wide directions, of the order of the
        smoothing width, within an output of order one, and rounding to 1 in 500 would change it.
        """
        if self.network is None:
            return self
        beside_linear = isinstance(self.network, Residual)
        network = lower(self.network, len(self.low), low_precision and beside_linear)
        absorbed = None
        if beside_linear and self.gain is not None:
            further = len(self.network.linear) - len(self.low)
            absorbed = absorb_matrix(network, block_diag(self.gain, jnp.eye(further)) if further else self.gain)
        return replace(self, network=network) if absorbed is None else replace(self, network=absorbed, gain=None)

    def over(self, samples: Samples) -> Samples:
        """Return grad ln p at many states, in blocks of bounded memory, on all cores of a CPU."""
        return evaluate_everywhere(self.lower(), samples)


def evaluate_everywhere(function: Callable, samples: Samples) -> np.ndarray:
    """Evaluate a function of one state at many, in blocks of bounded memory, on all cores of a CPU."""
    block = int(np.clip(_power_of_two(len(samples)) // 4, *_CACHED_BLOCKS)) if one_cpu() else _BLOCK

    def evaluate(i: int) -> Samples:
        part = samples[i : i + block]
        # Rows of zeros up to a block, or a power of two: few programs serve samples of every number.
        size = block if len(samples) > block else _power_of_two(len(part))
        filled = np.pad(part, ((0, size - len(part)), (0, 0))) if len(part) < size else part
        return np.asarray(_evaluate(function, filled))[: len(part)]

    return np.concatenate(on_all_cores(evaluate, range(0, len(samples), block)) or [np.empty(samples.shape)])


def _box(samples: Samples | Rows, tail: float) -> np.ndarray:
    """Return the range of each variable that leaves out `tail` on each side; all of it for rows read by blocks."""
    if tail and not isinstance(samples, Rows):
        return np.quantile(samples, [tail, 1 - tail], axis=0)
    blocks = samples.blocks() if isinstance(samples, Rows) else [samples]
    ends = np.array([[block.min(axis=0), block.max(axis=0)] for block in blocks], float)
    return np.stack([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)])


class OutputsOf(Batched):
    """All outputs of a score's network at one state: the score, and what was learned beside it."""

    score: Score

    def in_batch(self, x: Float[Array, "batch var"]) -> Float[Array, "batch output"]:
        return self.score.outputs(x)


def _times(matrix: Float[Array, "var var"] | None, values: Float[Array, "batch var"]) -> Float[Array, "batch var"]:
    return values if matrix is None else times(matrix, values)


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


@soon_compiled
def _evaluate(function, samples):
    return over_members(function, jnp.asarray(samples, jnp.float32))
