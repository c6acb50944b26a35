"""What a learned score is, and how any strategy is turned into one with its Stein matrix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core import keys
from ..._core.batches import over_members
from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries
from ..circles import Circles
from ..symmetry import Symmetry
from .calibration import calibration_matrix, stein_error, stein_matrix

_BLOCK = 1 << 16
_CACHED_BLOCK = 1 << 11
_STEIN_PARTS = 10
_FEW = 8


class Score(eqx.Module):
    """s(x) = gain network(x), or -gain precision x, for one standardised state.

    Without a network it is the Gaussian score, -precision x; with one, the Gaussian is what remains beyond the box
    [low, high] where the network was trained and may point anywhere: from the nearest point of the box outwards its
    score fades, never pointing further out, and -precision (x - nearest point) takes over. No state escapes.
    """

    precision: Float[Array, "var var"]
    gain: Float[Array, "var var"]
    low: Float[Array, " var"]
    high: Float[Array, " var"]
    network: Callable | None = None

    @classmethod
    def linear(cls, precision: Matrix) -> "Score":
        """The Gaussian score -precision x."""
        size = len(precision)
        return cls(jnp.asarray(precision, jnp.float32), jnp.eye(size), jnp.zeros(size), jnp.zeros(size))

    @classmethod
    def trained_on(
        cls, samples: Samples, network: Callable, noise_level: float, tail: float = 0.0005, angles: Sequence[int] = ()
    ) -> "Score":
        """The score given by a network, within the range of each variable that leaves out `tail` on either side.

        `angles` are the variables that the network is periodic in: on a circle nothing lies beyond the data.
        """
        precision = np.linalg.inv(covariance_matrix(samples, noise_level))
        box = np.quantile(samples, [tail, 1 - tail], axis=0)
        box[:, list(angles)] = np.array([[-np.inf], [np.inf]])
        return cls.learned(network, precision, *box)

    @classmethod
    def learned(cls, network: Callable, precision: Matrix, low: Vector, high: Vector) -> "Score":
        """The score given by a network within the box [low, high]."""
        fixed, start, stop = (jnp.asarray(a, jnp.float32) for a in (precision, low, high))
        return cls(fixed, jnp.eye(len(low)), start, stop, network)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        """grad ln p at one state."""
        if self.network is None:
            return -_exactly(self.gain, _exactly(self.precision, x))
        inside = jnp.clip(x, self.low, self.high)
        beyond = x - inside
        value = _exactly(self.gain, self.network(inside))
        outwards = value * beyond > 0
        fade = jnp.exp(-0.25 * jnp.sum(beyond**2) ** 2)
        return fade * jnp.where(outwards, 0.0, value) - _exactly(self.precision, beyond)

    def scaled_by(self, matrix: Matrix) -> "Score":
        """The score multiplied by a matrix (within the box)."""
        return eqx.tree_at(lambda s: s.gain, self, jnp.asarray(matrix, jnp.float32) @ self.gain)

    def flat(self) -> "Score":
        """The same score in the form in which it is stepped fastest."""
        if self.network is None:
            return self
        return eqx.tree_at(lambda s: s.network, self, self.network.flat(len(self.low)))

    def over(self, samples: Samples) -> Samples:
        """grad ln p at many states, in blocks of bounded memory (on a CPU, such that a block stays in its cache)."""
        block = _CACHED_BLOCK if jax.default_backend() == "cpu" else _BLOCK
        score = self.flat()
        values = np.empty(samples.shape, np.float32)
        for i in range(0, len(samples), block):
            part = samples[i : i + block]
            values[i : i + block] = np.asarray(_evaluate(score, _filled(part)))[: len(part)]
        return values


def covariance_matrix(samples: Samples, noise_level: float = 0.0) -> Matrix:
    """Covariance of samples perturbed by independent noise of that level."""
    size, mean = samples.shape[1], samples.mean(axis=0, dtype=float)
    total = np.zeros((size, size))
    for i in range(0, len(samples), _BLOCK):
        centred = samples[i : i + _BLOCK] - mean
        total += centred.T @ centred
    return total / len(samples) + noise_level**2 * np.eye(size)


def _exactly(matrix: Array, vector: Array) -> Array:
    """Matrix times vector without the shortened numbers that a GPU uses for products by default.

    For a few variables it is written as a sum, which is computed together with what is around it.
    """
    if len(vector) <= _FEW:
        return jnp.sum(matrix * vector, axis=-1)
    return jnp.matmul(matrix, vector, precision=jax.lax.Precision.HIGHEST)


def _filled(samples: Samples) -> Samples:
    """Rows of zeros added up to a power of two, so that few programs serve samples of every number."""
    rows = 1 << max(len(samples) - 1, 0).bit_length()
    return np.pad(samples, ((0, rows - len(samples)), (0, 0)))


@eqx.filter_jit
def _evaluate(score: Score, samples):
    return over_members(score, jnp.asarray(samples, jnp.float32))


@dataclass(frozen=True)
class ScoreFit:
    """A learned score of p_sigma with what is known about its quality."""

    function: Score
    noise_level: float
    stein: Matrix
    stein_standard_error: float
    covariance: Matrix
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @property
    def resolved(self) -> bool:
        """Whether the data spread further than the noise level in every direction."""
        return bool(np.linalg.eigvalsh(self.covariance).min() >= 2 * self.noise_level**2)

    @property
    def stein_error(self) -> float:
        """|V + I|_F / sqrt(D) on held-out samples."""
        return stein_error(self.stein)


class ScoreStrategy(Protocol):
    """How to learn a score: `learn` sees the training samples in time order and returns an uncalibrated fit."""

    @property
    def calibrate(self) -> bool:
        """Whether Stein's identity is imposed on the learned score."""
        ...

    def learn(
        self, train: Samples, held_out: Samples, *, symmetry: Symmetry, key: jax.Array
    ) -> tuple[Score, float, dict[str, Any]]:
        """The score, the noise level it belongs to, and diagnostics."""
        ...


def estimate_score(series: TimeSeries, strategy: ScoreStrategy, symmetry: Symmetry, *, key: jax.Array) -> ScoreFit:
    """Learn the score on the training part of a standardised series; calibrate it; judge it on the held-out part.

    V = < s(y) y^T > over y = x + sigma z is -I for a perfect score (Stein). The calibrated score is -V^-1 s with V from
    the training part, and the V reported is that of the held-out part, both projected on the symmetry.
    """
    train, held_out = (part.stacked(np.float32) for part in series.split())
    score, noise_level, diagnostics = strategy.learn(train, held_out, symmetry=symmetry, key=keys.named(key, "learn"))
    tests = symmetry.stein_tests(train) if isinstance(symmetry, Circles) else None
    if strategy.calibrate:
        stein = stein_matrix(score.over, train, noise_level, key=keys.named(key, "calibration"), tests=tests)
        score = score.scaled_by(calibration_matrix(symmetry.project(stein)))
        diagnostics = {**diagnostics, "stein_before_calibration": stein.tolist()}
    parts = [
        stein_matrix(score.over, part, noise_level, key=keys.named(key, f"stein {i}"), tests=tests)
        for i, part in enumerate(np.array_split(held_out, _STEIN_PARTS))
    ]
    parts = [symmetry.project(part) for part in parts]
    stein, uncertainty = np.mean(parts, axis=0), np.std(parts, axis=0, ddof=1) / np.sqrt(_STEIN_PARTS)
    covariance = symmetry.project(covariance_matrix(np.concatenate([train, held_out]), noise_level))
    return ScoreFit(
        score, noise_level, stein, float(np.linalg.norm(uncertainty) / np.sqrt(len(stein))), covariance, diagnostics
    )
