"""What a learned score is, and how any strategy is turned into one with its Stein matrix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core import keys
from ..._core.batches import for_batches, on_all_cores, one_cpu, over_members, times
from ..._core.compilation import soon_compiled
from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries
from ..circles import Circles
from ..symmetry import Symmetry
from .calibration import calibration_matrix, perturbed, stein_error, stein_matrix
from .networks import Residual
from .noise import noise_frame, restoring_map

_BLOCK = 1 << 16
_CACHED_BLOCKS = 1 << 8, 1 << 11
_STEIN_PARTS = 10
_RESTORED = 1 << 17


class Score(eqx.Module):
    """s(x) = gain network(x), or -gain precision x, for one standardised state; W gain network(W x) in a frame W.

    Without a network it is the Gaussian score, -precision x; with one, the Gaussian is what remains beyond the box
    [low, high] where the network was trained and may point anywhere: from the nearest point of the box outwards its
    score fades, never pointing further out, and -precision (x - nearest point) takes over. No state escapes. A network
    may have absorbed the gain.
    """

    precision: Float[Array, "var var"]
    gain: Float[Array, "var var"] | None
    low: Float[Array, " var"]
    high: Float[Array, " var"]
    network: Any = None
    frame: Float[Array, "var var"] | None = None

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
        return self.in_batch(x[None])[0]

    def in_batch(
        self, x: Float[Array, "batch var"], after: Float[Array, "var var"] | None = None
    ) -> Float[Array, "batch var"]:
        """grad ln p at each state of a batch; with a matrix `after`, that matrix times it."""
        if self.frame is None:
            values, matrix = self._within(x), after
        else:
            values = self._within(times(self.frame, x))
            matrix = self.frame if after is None else times(after, self.frame.T).T
        return values if matrix is None else times(matrix, values)

    def _within(self, x: Float[Array, "batch var"]) -> Float[Array, "batch var"]:
        """The same in the frame."""
        if self.network is None:
            return -self._gained(times(self.precision, x))
        inside = jnp.clip(x, self.low, self.high)
        beyond = x - inside
        value = self._gained(for_batches(self.network)(inside))
        outwards = value * beyond > 0
        fade = jnp.exp(-0.25 * jnp.sum(beyond**2, axis=1, keepdims=True) ** 2)
        return fade * jnp.where(outwards, 0.0, value) - times(self.precision, beyond)

    def _gained(self, values: Float[Array, "batch var"]) -> Float[Array, "batch var"]:
        """Times the gain."""
        return values if self.gain is None else times(self.gain, values)

    def scaled_by(self, matrix: Matrix) -> "Score":
        """The score multiplied by a matrix (within the box)."""
        gain = matrix if self.gain is None else matrix @ np.asarray(self.gain, float)
        return replace(self, gain=jnp.asarray(gain, jnp.float32))

    def in_frame(self, frame: Matrix | None) -> "Score":
        """The score of x, from that of W x for a symmetric W."""
        return replace(self, frame=None if frame is None else jnp.asarray(frame, jnp.float32))

    def flat(self, half: bool = False) -> "Score":
        """The same score in the form in which it is stepped fastest; with half the digits where that is faster.

        Only beside a linear part: a network on its own holds the weak pull of wide directions, of the order of the
        noise level, within an output of order one, and rounding to 1 in 500 would change it.
        """
        if self.network is None:
            return self
        half = half and isinstance(self.network, Residual)
        network = self.network.flat(len(self.low), half)
        if self.gain is None or not (isinstance(network, Residual) and hasattr(network.network, "followed_by")):
            return replace(self, network=network)
        return replace(self, network=network.followed_by(self.gain), gain=None)

    def over(self, samples: Samples) -> Samples:
        """grad ln p at many states, in blocks of bounded memory, shared out over the cores of a CPU."""
        block = int(np.clip(_power_of_two(len(samples)) // 4, *_CACHED_BLOCKS)) if one_cpu() else _BLOCK
        score = self.flat()

        def evaluate(i: int) -> Samples:
            part = samples[i : i + block]
            return np.asarray(_evaluate(score, _filled(part)))[: len(part)]

        return np.concatenate(on_all_cores(evaluate, range(0, len(samples), block)) or [np.empty(samples.shape)])


def covariance_matrix(samples: Samples, noise_level: float = 0.0) -> Matrix:
    """Covariance of samples perturbed by independent noise of that level."""
    size, mean = samples.shape[1], samples.mean(axis=0, dtype=float)
    total = np.zeros((size, size))
    for i in range(0, len(samples), _BLOCK):
        centred = samples[i : i + _BLOCK] - mean
        total += centred.T @ centred
    return total / len(samples) + noise_level**2 * np.eye(size)


def _filled(samples: Samples) -> Samples:
    """Rows of zeros added up to a power of two, so that few programs serve samples of every number."""
    return np.pad(samples, ((0, _power_of_two(len(samples)) - len(samples)), (0, 0)))


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


@soon_compiled
def _evaluate(score: Score, samples):
    return over_members(score, jnp.asarray(samples, jnp.float32))


@dataclass(frozen=True)
class ScoreFit:
    """A learned score of the blurred data, x + sigma W^-1 z, with what is known about its quality.

    Without a `frame` W the noise is the same in all directions. `restoring` gives expected clean states the spread of
    clean ones.
    """

    function: Score
    noise_level: float
    stein: Matrix
    stein_standard_error: float
    covariance: Matrix
    diagnostics: dict[str, Any] = field(default_factory=dict)
    frame: Matrix | None = None
    restoring: Matrix | None = None

    @property
    def scale(self) -> Matrix:
        """W^-1: how wide each direction counts."""
        return np.eye(len(self.stein)) if self.frame is None else np.linalg.inv(self.frame)

    @property
    def spread(self) -> Matrix:
        """sigma W^-1: the noise is this matrix times z."""
        return self.noise_level * self.scale

    @property
    def blur(self) -> Matrix:
        """Covariance of the noise, sigma^2 W^-2."""
        return self.spread @ self.spread

    @property
    def resolved(self) -> bool:
        """Whether the data spread further than the noise in every direction."""
        seen = self.covariance if self.frame is None else self.frame @ self.covariance @ self.frame
        return bool(np.linalg.eigvalsh(seen).min() >= 2 * self.noise_level**2)

    @property
    def stein_error(self) -> float:
        """|V + I|_F / sqrt(D) on held-out samples."""
        return stein_error(self.stein)

    def expected_clean(self, y: Samples) -> Samples:
        """The clean state to be expected from a noisy one, y + sigma^2 W^-2 s(y), its lost spread restored."""
        expected = y + self.function.over(y) @ self.blur.astype(np.float32)
        return expected if self.restoring is None else expected @ self.restoring.T.astype(np.float32)


class ScoreStrategy(Protocol):
    """How to learn a score: `learn` sees the training samples in time order and returns an uncalibrated fit."""

    @property
    def calibrate(self) -> bool:
        """Whether Stein's identity is imposed on the learned score."""
        ...

    @property
    def narrowest(self) -> float:
        """The variance from which on noise goes along with the spread of the data; inf: equal in all directions."""
        ...

    def learn(
        self, train: Samples, held_out: Samples, *, symmetry: Symmetry, key: jax.Array
    ) -> tuple[Score, float, dict[str, Any]]:
        """The score, the noise level it belongs to, and diagnostics."""
        ...


def estimate_score(series: TimeSeries, strategy: ScoreStrategy, symmetry: Symmetry, *, key: jax.Array) -> ScoreFit:
    """Learn the score on the training part of a standardised series; calibrate it; judge it on the held-out part.

    V = < s(y) y^T > over y = x + noise is -I for a perfect score (Stein). The calibrated score is -V^-1 s with V from
    the training part, and the V reported is that of the held-out part, both projected on the symmetry. All of it
    happens in the frame W of the noise.
    """
    train, held_out = (part.stacked(np.float32) for part in series.split())
    covariance = symmetry.project(covariance_matrix(np.concatenate([train, held_out])))
    tests = symmetry.stein_tests(train) if isinstance(symmetry, Circles) else None
    frame = None if tests else noise_frame(covariance, strategy.narrowest)
    if frame is not None:
        train, held_out = (part @ frame.astype(np.float32) for part in (train, held_out))
    score, level, diagnostics = strategy.learn(train, held_out, symmetry=symmetry, key=keys.named(key, "learn"))
    if strategy.calibrate:
        stein = stein_matrix(score.over, train, level, key=keys.named(key, "calibration"), tests=tests)
        score = score.scaled_by(calibration_matrix(symmetry.project(stein)))
        diagnostics = {**diagnostics, "stein_before_calibration": stein.tolist()}
    parts = [
        symmetry.project(stein_matrix(score.over, part, level, key=keys.named(key, f"stein {i}"), tests=tests))
        for i, part in enumerate(np.array_split(held_out, _STEIN_PARTS))
    ]
    restoring = _restoring(score, level, train, symmetry, key=keys.named(key, "restoring"))
    if frame is not None:
        inverse = np.linalg.inv(frame)
        parts, restoring = [frame @ part @ inverse for part in parts], inverse @ restoring @ frame
    stein, uncertainty = np.mean(parts, axis=0), np.std(parts, axis=0, ddof=1) / np.sqrt(_STEIN_PARTS)
    error = float(np.linalg.norm(uncertainty) / np.sqrt(len(stein)))
    fit = ScoreFit(score.in_frame(frame), level, stein, error, covariance, diagnostics, frame, restoring)
    return replace(fit, covariance=covariance + fit.blur)


def _restoring(score: Score, level: float, samples: Samples, symmetry: Symmetry, *, key: jax.Array) -> Matrix:
    """What gives the expected clean states of noisy samples the covariance of the samples."""
    if level == 0 or isinstance(symmetry, Circles):
        return np.eye(samples.shape[1])
    some = samples[:: -(-len(samples) // _RESTORED)]
    y = perturbed(some, level, key=key)
    moments = (covariance_matrix(part) for part in (y + level**2 * score.over(y), some))
    return restoring_map(*(symmetry.project(moment) for moment in moments))
