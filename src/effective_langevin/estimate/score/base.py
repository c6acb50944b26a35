"""What a learned score is, and how any strategy is turned into one with its Stein matrix."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core import keys
from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries
from .calibration import calibration_matrix, stein_error, stein_matrix

_BLOCK = 1 << 16
_STEIN_PARTS = 10


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
    def trained_on(cls, samples: Samples, network: Callable) -> "Score":
        """The score given by a network, within the range that holds all but one in a thousand of each variable."""
        return cls.learned(network, precision_matrix(samples), *np.quantile(samples, [0.0005, 0.9995], axis=0))

    @classmethod
    def learned(cls, network: Callable, precision: Matrix, low: Vector, high: Vector) -> "Score":
        """The score given by a network within the box [low, high]."""
        fixed, start, stop = (jnp.asarray(a, jnp.float32) for a in (precision, low, high))
        return cls(fixed, jnp.eye(len(low)), start, stop, network)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        """grad ln p at one state."""
        if self.network is None:
            return -self.gain @ self.precision @ x
        inside = jnp.clip(x, self.low, self.high)
        beyond = x - inside
        value = self.gain @ self.network(inside)
        outwards = value * beyond > 0
        fade = jnp.exp(-0.25 * (beyond @ beyond) ** 2)
        return fade * jnp.where(outwards, 0.0, value) - self.precision @ beyond

    def scaled_by(self, matrix: Matrix) -> "Score":
        """The score multiplied by a matrix (within the box)."""
        return eqx.tree_at(lambda s: s.gain, self, jnp.asarray(matrix, jnp.float32) @ self.gain)

    def over(self, samples: Samples) -> Samples:
        """grad ln p at many states, in blocks of bounded memory."""
        blocks = [_evaluate(self, samples[i : i + _BLOCK]) for i in range(0, max(len(samples), 1), _BLOCK)]
        return np.concatenate([np.asarray(b) for b in blocks])


def precision_matrix(samples: Samples) -> Matrix:
    """Inverse of the covariance of the samples."""
    return np.linalg.inv(np.cov(samples.T.astype(float), bias=True).reshape(samples.shape[1], -1))


@eqx.filter_jit
def _evaluate(score: Score, samples):
    return jax.vmap(score)(jnp.asarray(samples, jnp.float32))


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
    def stein_error(self) -> float:
        """|V + I|_F / sqrt(D) on held-out samples."""
        return stein_error(self.stein)


class ScoreStrategy(Protocol):
    """How to learn a score: `learn` sees the training samples in time order and returns an uncalibrated fit."""

    @property
    def calibrate(self) -> bool:
        """Whether Stein's identity is imposed on the learned score."""
        ...

    def learn(self, train: Samples, held_out: Samples, *, key: jax.Array) -> tuple[Score, float, dict[str, Any]]:
        """The score, the noise level it belongs to, and diagnostics."""
        ...


def estimate_score(series: TimeSeries, strategy: ScoreStrategy, *, key: jax.Array) -> ScoreFit:
    """Learn the score on the training part of a standardised series; calibrate it; judge it on the held-out part.

    V = < s(y) y^T > over y = x + sigma z is -I for a perfect score (Stein). The calibrated score is -V^-1 s with V from
    the training part; the V reported is that of the held-out part.
    """
    train, held_out = (part.stacked().astype(np.float32) for part in series.split())
    score, noise_level, diagnostics = strategy.learn(train, held_out, key=keys.named(key, "learn"))
    if strategy.calibrate:
        stein = stein_matrix(score.over, train, noise_level, key=keys.named(key, "calibration"))
        score = score.scaled_by(calibration_matrix(stein))
        diagnostics = {**diagnostics, "stein_before_calibration": stein.tolist()}
    parts = [
        stein_matrix(score.over, part, noise_level, key=keys.named(key, f"stein {i}"))
        for i, part in enumerate(np.array_split(held_out, _STEIN_PARTS))
    ]
    stein, uncertainty = np.mean(parts, axis=0), np.std(parts, axis=0, ddof=1) / np.sqrt(_STEIN_PARTS)
    covariance = np.cov(train.T.astype(float)).reshape(stein.shape) + noise_level**2 * np.eye(len(stein))
    return ScoreFit(
        score, noise_level, stein, float(np.linalg.norm(uncertainty) / np.sqrt(len(stein))), covariance, diagnostics
    )
