"""Demonstrations: a reference system, a series of it, and a model learned from the series alone."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax

from .._core import checks
from ..data import TimeSeries
from ..estimate.closure.state_dependent import StateDependent
from ..estimate.mobility.base import ClosureStrategy
from ..estimate.score import KGMM, DenoisingScore, ScoreStrategy, UNet1D
from ..estimate.symmetry import Symmetry, TranslationsAndReflections
from ..execution.batches import evaluate_batch
from ..systems import AsymmetricWells, KuramotoSivashinsky, ScalarMultiplicative, StochasticLorenz63


@dataclass(frozen=True)
class Demo:
    """How a reference system is sampled, learned and validated for its demonstration."""

    system: Any
    dt: float
    members: int = 100
    samples: int = 1_000_000
    spin_up: Mapping[str, float] = field(default_factory=dict)
    score: ScoreStrategy | None = None
    mobility: ClosureStrategy | None = None
    symmetry: Symmetry | None = None
    validation: Mapping[str, Any] = field(default_factory=dict)

    def series(self, seed: int) -> TimeSeries:
        """Simulate the series that the model is learned from."""
        duration = self.samples / self.members * self.dt
        return self.system.simulate(duration, dt=self.dt, members=self.members, seed=seed, **self.spin_up)


_TIMED = 1024
_STEPS_PER_TIME = 200

DEMOS = {
    "wells": Demo(AsymmetricWells(), dt=0.05),
    "scalar": Demo(ScalarMultiplicative(), dt=0.05, mobility=StateDependent()),
    "lorenz63": Demo(StochasticLorenz63(), dt=0.01, mobility=StateDependent()),
    "kuramoto-sivashinsky": Demo(
        KuramotoSivashinsky(grid=64, stride=2),
        dt=1.0,
        members=200,
        samples=200_000,
        spin_up={"step": 0.2, "burn_in": 1000.0},
        score=DenoisingScore(
            UNet1D(normalization="batch"),
            noise_level=0.1,
            batch=128,
            epochs=30,
            epoch_samples=51_200,
            learning_rate=1e-2,
            average=0.998,
        ),
        mobility=StateDependent(),
        symmetry=TranslationsAndReflections(parity=-1, continuous=True),
        validation={"members": 256, "duration": 1600.0},
    ),
}

QUICK = {
    **{
        name: replace(DEMOS[name], samples=100_000, score=KGMM(noise_level=0.05))
        for name in ("wells", "scalar", "lorenz63")
    },
    "kuramoto-sivashinsky": replace(
        DEMOS["kuramoto-sivashinsky"],
        samples=20_000,
        members=40,
        score=DenoisingScore(
            UNet1D(base=8), noise_level=0.3, batch=128, epochs=5, epoch_samples=12_800, learning_rate=3e-3
        ),
        validation={"members": 32, "duration": 100.0},
    ),
}

PAPER_SCALE = {
    "kuramoto-sivashinsky": replace(
        DEMOS["kuramoto-sivashinsky"],
        system=KuramotoSivashinsky(),
        members=1000,
        samples=1_000_000,
        spin_up={"step": 0.2, "burn_in": 2000.0},
        score=DenoisingScore(
            UNet1D(base=32, normalization="batch"),
            noise_level=0.05,
            batch=2112,
            epochs=80,
            epoch_samples=400_000,
            learning_rate=3e-3,
            average=0.999,
        ),
        validation={"members": 1024, "duration": 1000.0},
    ),
}


def choose_demo(name: str, *, quick: bool = False, paper_scale: bool = False) -> Demo:
    """Return the demonstration of that name, in the size asked for."""
    checks.one_of("system", name, DEMOS)
    if paper_scale:
        checks.one_of("system with --paper-scale", name, PAPER_SCALE)
        return PAPER_SCALE[name]
    return (QUICK if quick else DEMOS)[name]


def estimate_hours(demo: Demo) -> float:
    """Estimate the hours of training and validation on this CPU, from one timed pass of the network; 0 on a GPU."""
    if jax.default_backend() != "cpu" or not isinstance(demo.score, DenoisingScore):
        return 0.0
    network = demo.score.network.build(demo.system.dimension, key=jax.random.key(0))
    states = jax.random.normal(jax.random.key(1), (_TIMED, demo.system.dimension))
    run = eqx.filter_jit(evaluate_batch)
    run(network, states).block_until_ready()
    started = time.monotonic()
    run(network, states).block_until_ready()
    per_state = (time.monotonic() - started) / _TIMED
    trained = 3 * demo.score.epochs * demo.score.epoch_samples
    simulated = demo.validation["members"] * demo.validation["duration"] * _STEPS_PER_TIME
    return per_state * (trained + simulated + 6 * demo.samples) / 3600
