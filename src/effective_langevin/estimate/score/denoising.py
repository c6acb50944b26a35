"""Denoising score matching: the network predicts the noise that was added (paper, Sec. II.A)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core import checks, keys
from ..._core.types import Samples
from ...data import lazy
from ...data.lazy import Rows, mapped
from ...execution.batches import evaluate_batch
from ...execution.compilation import soon_compiled
from ...execution.devices import computed_on_host
from ..networks import MLP, NetworkStrategy, OnCircles, Residual, UNet1D, freeze, scale
from ..space import StateSpace
from ..symmetry import Symmetry
from .evidence import LearnedScore, ScoreEvidence
from .fit_score import ScoreStrategy, draw_rows
from .noise_level import choose_noise_level, gaussian_if_as_good
from .preconditioning import covariance_matrix, cross_moment
from .score import Score
from .streamed import StreamedSamples
from .training import Schedule, mean_square, train

_HELD_OUT = 1 << 14
_PILOT = 6
_MANY_SAMPLES = 1 << 21
_OFTEN, _FEW_EPOCHS = 100, 5  # an epoch that shows a sample more often is one of the last, unless it helped
# Smooth motion fills a thin set, whose score has no limit: the narrower the noise, the better the loss, and the harder
# the score is to learn. Noise of this width adds 1/400 to a variance, which hardly any record can tell.
_LEAST_WIDTH = 0.05
_VELOCITY_WEIGHT = 10.0  # most of the loss of the score is noise that no network removes


@dataclass(frozen=True)
class DenoisingScore(ScoreStrategy):
    """Denoising score matching with a network, for any dimension.

    Minimises < |eps(x + sigma z) - z|^2 > / 2 over samples x and normal z; the score of the smoothed density p_sigma
    is -eps / sigma.

    Of a series that is read by blocks, more than 2^22 numbers for training are a stream: passes over all blocks in
    random order, another one in each pass, through a buffer of 64 MiB whose samples are shuffled. A pass shows every
    sample once. Where the training takes fewer samples than there are, it takes its share of every block. Trainings
    that choose the smoothing width see 2^22 numbers drawn at random.

    Parameters
    ----------
    network : MLP or UNet1D, default MLP()
        The network eps; any description with a method `build`.
    noise_level : float, optional
        Smoothing width sigma in units of the spread of the data. By default it is chosen by the held-out loss of short
        trainings, and the Gaussian score is taken where it is as good on held-out samples.
    batch : int, default 1024
        Samples per step.
    epochs : int, default 60
        Number of passes, each over `epoch_samples` samples.
    epoch_samples : int, default 100000
        Samples per epoch, drawn without replacement where there are enough.
    learning_rate : float, default 2e-3
        Rate of Adam at its peak.
    final_rate : float, default 0.01
        Rate at the last step, in units of `learning_rate`.
    average : float, default 0.995
        Memory of the running mean of the weights, which is what is kept.
    patience : int, optional
        Stop when the held-out loss has not improved for so many epochs. By default all epochs are run; for a series so
        short that an epoch shows every sample more than 100 times, the default is 5.
    precondition : bool, default True
        Let the network learn only what the Gaussian score, sigma (C + sigma^2)^-1 y, leaves over.
    antithetic : bool, default True
        Use every sample with z and with -z, which removes the larger part of the noise in the gradient.
    calibrate : bool, default True
        Impose Stein's identity on the learned score.
    narrowest : float, default 0.1
        The noise follows the spread of the data in each direction, down to this variance; `inf`: equal noise in all.

    See Also
    --------
    KGMM : faster in up to six dimensions.

    Examples
    --------
    >>> el.DenoisingScore(network=el.UNet1D(base=8), noise_level=0.1, epochs=20).epochs
    20
    """

    network: NetworkStrategy = field(default_factory=MLP)
    noise_level: float | None = None
    batch: int = 1024
    epochs: int = 60
    epoch_samples: int = 100_000
    learning_rate: float = 2e-3
    final_rate: float = 0.01
    average: float = 0.995
    patience: int | None = None
    precondition: bool = True
    antithetic: bool = True
    calibrate: bool = True
    narrowest: float = 0.1
    reads_blocks = True

    def __post_init__(self):
        checks.offers("network", self.network, "build", "MLP() or UNet1D()")
        checks.optional_positive_number("noise_level", self.noise_level)
        checks.positive_or_infinite("narrowest", self.narrowest)
        for name in ("batch", "epochs", "epoch_samples", *(["patience"] if self.patience is not None else [])):
            checks.integer_at_least(name, getattr(self, name), 1)
        for name in ("learning_rate", "final_rate"):
            checks.positive_number(name, getattr(self, name))
        checks.fraction("average", self.average)
        for name in ("precondition", "antithetic", "calibrate"):
            checks.instance_of(name, getattr(self, name), (bool,))

    def supports(self, space: StateSpace) -> bool:
        """Support lines, and angles if the network takes cos and sin in their place."""
        return not space.angles or isinstance(self.network, MLP)

    def learns_velocities(self, space: StateSpace) -> bool:
        """On lines, with a network that can have more outputs."""
        return not space.angles and isinstance(self.network, MLP | UNet1D)

    def learn(
        self,
        train: Samples,
        held_out: Samples,
        *,
        space: StateSpace,
        key: jax.Array,
        velocities: Sequence[Samples] | None = None,
    ) -> LearnedScore:
        """Choose the smoothing width unless it is given, then train at it, with the velocities if they are given."""
        level, choice, gain = self.noise_level, None, None
        most = lazy.MOST_NUMBERS // 4
        if isinstance(train, Rows) and np.prod(train.shape) <= most:
            train, velocities = train[:], velocities and [v[:] for v in velocities]
        if level is None:
            epochs, some = max(1, self.epochs // _PILOT), train
            if isinstance(train, Rows):
                some, *_ = draw_rows([train], most, key=keys.named(key, "drawn"))
            level, choice = choose_noise_level(
                lambda sigma: self._fit(some, held_out, sigma, epochs, space, key=key)[0],
                held_out,
                key=keys.named(key, "noise level"),
                least=_LEAST_WIDTH if velocities is not None else 0.0,
            )
        score, history = self._fit(train, held_out, level, self.epochs, space, key=key, velocities=velocities)
        if self.noise_level is None and not space.angles:
            gain_key = keys.named(key, "gain")
            score, level, gain = gaussian_if_as_good(
                score, level, train, held_out, space, key=gain_key, with_velocities=velocities is not None
            )
        return LearnedScore(score, level, ScoreEvidence(choice, gain, **history))

    def _fit(
        self,
        samples: Samples,
        held_out: Samples,
        sigma: float,
        epochs: int,
        space: StateSpace,
        *,
        key: jax.Array,
        velocities: Sequence[Samples] | None = None,
    ) -> tuple[Score, dict[str, Any]]:
        schedule = Schedule(
            epochs,
            max(1, self.epoch_samples // self.batch),
            self.learning_rate,
            self.final_rate,
            self.average,
            _FEW_EPOCHS if self.patience is None and self.epoch_samples > _OFTEN * len(samples) else self.patience,
        )
        # The score is -1 / sigma times what the network returns; so are velocities, in their unit.
        moving = [mapped(v, lambda v: np.asarray(-sigma * v, np.float32)) for v in velocities or ()]
        objective = Denoising(space.symmetry, self.batch, self.antithetic)
        if isinstance(samples, Rows):
            rows = [samples, *moving[:1]], sigma, objective.samples_per_step
            data = StreamedSamples(*rows, schedule, key=keys.named(key, "stream"))
        else:
            data = (jnp.asarray(samples, jnp.float32), jnp.float32(sigma), *map(jnp.asarray, moving[:1]))
        trained = train(
            self._build_network(samples, sigma, space, *moving[:1], key=keys.named(key, "network")),
            objective,
            data,
            schedule,
            key=keys.named(key, "training"),
            label="Training the score and the current" if moving else "Training the score",
            held_out=perturbed_pairs(held_out, sigma, *moving[1:], key=keys.named(key, "held out")),
        )
        history = trained.history()
        if isinstance(data, StreamedSamples):
            history["extra"] = {"read": data.describe(len(trained.losses))}
            data = data.piece(0, min(data.most_steps, -(-_HELD_OUT // data.rows)))
        network = scale(freeze_over_samples(trained.network, data, key=keys.named(key, "frozen")), -1 / sigma)
        return Score.trained_on(samples, network, sigma, tail=0.0, angles=space.angles), history

    def _build_network(self, samples: Samples, sigma: float, space: StateSpace, *velocities: Any, key: jax.Array):
        """Build the network beside the Gaussian score; by itself on circles, where there is none.

        With velocities it has as many outputs again, beside the velocity of a linear process.
        """
        size = samples.shape[1]
        if space.angles and isinstance(self.network, MLP):
            return OnCircles(self.network.build(size, key=key, inputs=len(space.owners)), space.periods)
        further: dict[str, Any] = {"outputs": 2} if velocities else {}
        # One program on the host, instead of one for each of its many small arrays on a GPU.
        network = computed_on_host(_build, self.network, size, key, further)
        if not self.precondition:
            return network
        precision = np.linalg.inv(space.symmetry.project(covariance_matrix(samples, sigma)))
        linear = [sigma * precision]
        for velocity in velocities:
            linear.append(space.symmetry.project(cross_moment(velocity, samples)) @ precision)
        return Residual(jnp.asarray(np.concatenate(linear), jnp.float32), network)


@dataclass(frozen=True)
class Denoising:
    """1/2 < |eps(x + sigma z) - z|^2 > over random batches, moved around by the symmetry.

    Beside it, where velocities v are given, `velocity_weight` times 1/2 < |w(x + sigma z) - v|^2 > / sigma^2 with w the
    further outputs.
    """

    symmetry: Symmetry
    batch: int
    antithetic: bool
    velocity_weight: float = _VELOCITY_WEIGHT

    @property
    def samples_per_step(self) -> int:
        """Number of samples in a batch, each of which may count twice."""
        return max(1, self.batch // 2 if self.antithetic else self.batch)

    def batches(self, data, steps: int, *, key: jax.Array):
        """Draw the samples and the noise of every step together, which leaves only the network to the steps."""

        def draw(rows, key):
            orbit_key, noise_key = jax.random.split(key)
            x, *velocity = (self.symmetry.moved(part[rows], key=orbit_key) for part in (data[0], *data[2:]))
            return x, jax.random.normal(noise_key, x.shape), *velocity

        return jax.vmap(draw)(*self.rows(data, steps, key=key))

    def rows(self, data, steps: int, *, key: jax.Array):
        """Draw the rows of every batch, without replacement where there are enough, and a key for its noise.

        Of very many samples one is drawn from each of as many equal stretches as are needed: to shuffle all of them
        every epoch would take longer than to train.
        """
        size, rows_key, noise_key = len(data[0]), *jax.random.split(key)
        count = self.samples_per_step
        if size >= _MANY_SAMPLES and size >= 2 * steps * count:
            edges = np.arange(steps * count + 1) * size // (steps * count)
            rows = jax.random.randint(rows_key, (steps * count,), jnp.asarray(edges[:-1]), jnp.asarray(edges[1:]))
            rows = jax.random.permutation(noise_key, rows)
        elif size >= steps * count:
            rows = jax.random.permutation(rows_key, size)[: steps * count]
        else:
            rows = jax.random.randint(rows_key, (steps * count,), 0, size)
        return rows.reshape(steps, count), jax.random.split(noise_key, steps)

    def loss(self, network, data, batch):
        """Return the denoising loss of one batch."""
        (x, z, *velocity), sigma = batch, data[1]
        if self.antithetic:
            x, z, velocity = _twice(x), jnp.concatenate([z, -z]), [_twice(v) for v in velocity]
        found = evaluate_batch(network, x + sigma * z, low_precision=True)
        return self._both(found, z, velocity, sigma)

    def held_out_loss(self, network, held_out):
        """Return the denoising loss at fixed states and fixed noise."""
        (y, z, sigma), *velocity = held_out[:3], *held_out[3:]
        return self._both(evaluate_batch(network, y), z, velocity, sigma)

    def _both(self, found, z, velocity, sigma):
        size = z.shape[1]
        rest = sum((mean_square((found[:, size:] - v) / sigma) for v in velocity), jnp.zeros(()))
        return mean_square(found[:, :size] - z) + self.velocity_weight * rest


def perturbed_pairs(samples: Samples, sigma: float, *velocities: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
    """Return y = x +- sigma z, +-z, sigma and the velocities, for samples spread over the whole record."""
    some = slice(None, None, max(1, 2 * len(samples) // _HELD_OUT))
    y, kicks = _perturb_both_ways(jnp.asarray(samples[some], jnp.float32), jnp.float32(sigma), key)
    return y, kicks, jnp.float32(sigma), *(_twice(v[some]) for v in velocities)


@soon_compiled
def _perturb_both_ways(x: jax.Array, sigma: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    z = jax.random.normal(key, x.shape)
    return jnp.concatenate([x + sigma * z, x - sigma * z]), jnp.concatenate([z, -z])


def _twice(x: jax.Array) -> jax.Array:
    return jnp.concatenate([x, x])


def freeze_over_samples(network: Any, data, *, key: jax.Array) -> Any:
    """Freeze any normalisation of a network at its statistics over perturbed training samples."""
    return _freeze(network, data[0], data[1], key)


@soon_compiled
def _freeze(network: Any, samples: jax.Array, sigma: jax.Array, key: jax.Array) -> Any:
    """All in one program, in which nothing is drawn where nothing is frozen."""
    x = samples[jax.random.randint(key, (min(len(samples), _HELD_OUT),), 0, len(samples))]
    return freeze(network, x + sigma * jax.random.normal(key, x.shape))


_build = eqx.filter_jit(lambda network, size, key, further: network.build(size, key=key, **further))
