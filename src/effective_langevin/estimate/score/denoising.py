"""Denoising score matching: the network predicts the noise that was added (paper, Sec. II.A)."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from ..._core import checks, keys
from ..._core.types import Samples
from .base import Score
from .networks import MLP
from .noise_level import choose_noise_level
from .training import mean_square, train


@dataclass(frozen=True)
class DenoisingScore:
    """Minimise 1/2 |eps(x + sigma z) - z|^2; the score of p_sigma is -eps / sigma. For any dimension."""

    network: MLP = field(default_factory=MLP)
    noise_level: float | None = None
    batch: int = 1024
    steps: int = 6000
    learning_rate: float = 2e-3
    calibrate: bool = True

    def __post_init__(self):
        checks.offers("network", self.network, "build", "MLP()")
        checks.optional_positive_number("noise_level", self.noise_level)
        for name in ("batch", "steps"):
            checks.integer_at_least(name, getattr(self, name), 1)
        checks.positive_number("learning_rate", self.learning_rate)

    def learn(self, train: Samples, held_out: Samples, *, key: jax.Array):
        """Choose the noise level if need be, then train at it."""
        evidence: dict[str, Any] = {}
        level = self.noise_level
        if level is None:
            level, evidence = choose_noise_level(
                lambda sigma: self._fit(train, sigma, self.steps // 6, key=key)[0],
                held_out,
                key=keys.named(key, "noise level"),
            )
        score, losses = self._fit(train, level, self.steps, key=key)
        return score, level, {**evidence, "loss_curve": losses[:: max(1, len(losses) // 200)].tolist()}

    def _fit(self, samples: Samples, sigma: float, steps: int, *, key: jax.Array):
        network = self.network.build(samples.shape[1], key=keys.named(key, "network"))
        data = (jnp.asarray(samples, jnp.float32), jnp.float32(sigma), jnp.zeros(self.batch))
        fitted, losses = train(
            network,
            denoising_loss,
            data,
            steps=steps,
            learning_rate=self.learning_rate,
            key=keys.named(key, "training"),
            label="Training the score",
            average=0.995,
        )
        return Score.trained_on(samples, fitted.scaled_by(-1 / sigma)), losses


def denoising_loss(network, data, key):
    """1/2 < |eps(x + sigma z) - z|^2 > over a random batch."""
    samples, sigma, batch = data
    rows_key, noise_key = jax.random.split(key)
    rows = jax.random.randint(rows_key, batch.shape, 0, len(samples))
    z = jax.random.normal(noise_key, (len(batch), samples.shape[1]))
    return mean_square(jax.vmap(network)(samples[rows] + sigma * z) - z)
