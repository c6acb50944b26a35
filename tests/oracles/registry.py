"""Every strategy of the package once, small enough for a test; the contract tests run each through one list of checks.

A new public strategy belongs in one of these tables: `tests/contracts/test_strategies.py` fails until it is there.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin import preprocess as pp
from oracles.sample_series import PERIOD, angles, climate, positive

SCORES = {
    "Gaussian": el.Gaussian(),
    "KGMM": el.KGMM(noise_level=0.25, cells=40, hidden=(8,), steps=60, max_draws=4),
    "DenoisingScore": el.DenoisingScore(el.MLP((8,)), noise_level=0.25, batch=256, epochs=4, epoch_samples=2048),
    "Extrapolated": el.Extrapolated(el.Gaussian(noise_level=0.25)),
}
MOBILITIES = {
    "IntegratedResponse": el.IntegratedResponse(),
    "FiniteVolume": el.FiniteVolume(cells=60),
    "QuadraticVariation": el.QuadraticVariation(),
    "CorrelationFit": el.CorrelationFit(),
    "LogCorrelation": el.LogCorrelation(),
    "StateDependent": el.StateDependent(),
}
SYMMETRIES = {
    "Translations": el.Translations(),
    "Translations of two fields": el.Translations(channels=2),
    "Translations by any distance": el.Translations(continuous=True),
    "TranslationsAndReflections": el.TranslationsAndReflections(),
    "TranslationsAndReflections of an even and an odd field": el.TranslationsAndReflections(channels=2, parity=(1, -1)),
}
NETWORKS = {
    "MLP": el.MLP((8, 4)),
    "UNet1D": el.UNet1D(base=2, multipliers=(1, 2)),
    "UNet1D with batch normalisation": el.UNet1D(base=2, multipliers=(1, 2), normalization="batch"),
}


@dataclass(frozen=True)
class StepperFacts:
    """What a stepper promises: the order of its mean path on a linear equation (inf: exact), and the noise it takes."""

    stepper: Any
    order: float
    averages_noise: bool = False


STEPPERS = {
    "EulerMaruyama": StepperFacts(el.EulerMaruyama(), 1),
    "StochasticHeun": StepperFacts(el.StochasticHeun(), 2),
    "StochasticMidpoint": StepperFacts(el.StochasticMidpoint(), 2),
    "ExponentialEuler": StepperFacts(el.ExponentialEuler(), np.inf),
    "LeimkuhlerMatthews": StepperFacts(el.LeimkuhlerMatthews(), 1, averages_noise=True),
}


@dataclass(frozen=True)
class TransformCase:
    """A transform, a series that it fits, and whether it gives the series back in full."""

    transform: Any
    series: Callable[[], el.TimeSeries]
    invertible: bool = True


TRANSFORMS = {
    "Detrend": TransformCase(pp.Detrend(), climate),
    "Detrend degree 3": TransformCase(pp.Detrend(degree=3), climate),
    "RemoveSeasonalCycle": TransformCase(pp.RemoveSeasonalCycle(PERIOD), climate),
    "RemoveSeasonalCycle to the last harmonic": TransformCase(pp.RemoveSeasonalCycle(PERIOD, harmonics=6), climate),
    "PCA": TransformCase(pp.PCA(components=3), climate),
    "PCA of raw covariance": TransformCase(pp.PCA(components=3, standardize=False), climate),
    "PCA that leaves out": TransformCase(pp.PCA(components=2), climate, invertible=False),
    "PhaseAugmentation": TransformCase(pp.PhaseAugmentation(PERIOD), climate),
    "Periodic": TransformCase(pp.Periodic(["phi", "psi"]), angles),
    "Log": TransformCase(pp.Log(), positive),
    "Log of one": TransformCase(pp.Log(["flow"]), positive),
    "BoxCox": TransformCase(pp.BoxCox(), positive),
    "BoxCox with exponent": TransformCase(pp.BoxCox(["rain"], exponent=0.5), positive),
    "DelayEmbedding": TransformCase(pp.DelayEmbedding([2, 5]), climate, invertible=False),
    "Velocity": TransformCase(el.Velocity(), climate, invertible=False),
    "Velocity of order 2": TransformCase(el.Velocity(2), climate, invertible=False),
    "Delays": TransformCase(el.Delays(3, 2), climate, invertible=False),
    "Chain": TransformCase(pp.Chain([pp.Detrend(), pp.RemoveSeasonalCycle(PERIOD), pp.PCA(components=3)]), climate),
    "Chain of chains": TransformCase(
        pp.Chain([pp.Chain([pp.Log(["rain"]), pp.Detrend()]), pp.PCA(components=2)]), positive
    ),
}
SYSTEMS = {
    "AsymmetricWells": el.systems.AsymmetricWells(),
    "ScalarMultiplicative": el.systems.ScalarMultiplicative(),
    "StochasticLorenz63": el.systems.StochasticLorenz63(),
    "AffineNoise": el.systems.AffineNoise(),
    "CoxIngersollRoss": el.systems.CoxIngersollRoss(),
    "NoisyLimitCycle": el.systems.NoisyLimitCycle(),
    "DrivenRing": el.systems.DrivenRing(),
    "DoubleWellOscillator": el.systems.DoubleWellOscillator(),
    "OrnsteinUhlenbeck": el.systems.OrnsteinUhlenbeck.rotating(2),
    "KuramotoSivashinsky": el.systems.KuramotoSivashinsky(grid=64, stride=8),
}

# Roles by which the command line and model files name a strategy.
BY_ROLE = {"score": SCORES, "mobility": MOBILITIES, "symmetry": SYMMETRIES, "network": NETWORKS}
STRATEGIES: dict[str, Any] = {name: made for table in BY_ROLE.values() for name, made in table.items()} | {
    name: facts.stepper for name, facts in STEPPERS.items()
}

# Public classes that are no strategies: what stages take and return, and what they raise.
PRODUCTS = {
    "Diagnosis",
    "Finding",
    "LangevinEstimator",
    "LangevinModel",
    "Mobility",
    "RecordSplit",
    "Standardizer",
    "TimeSeries",
    "Validation",
    "preprocess.FittedTransform",
    "systems.FokkerPlanck",
    "systems.System",
}


def public_classes() -> dict[str, type]:
    """Every public class that is no error, by its name below `effective_langevin`."""
    named = {name: getattr(el, name) for name in el.__all__}
    for module in (el.preprocess, el.systems):
        short = module.__name__.rpartition(".")[2]
        named |= {f"{short}.{name}": getattr(module, name) for name in module.__all__}
    return {
        name: thing
        for name, thing in named.items()
        if inspect.isclass(thing) and not issubclass(thing, Exception | Warning)
    }


def registered_classes() -> set[type]:
    """The classes of everything in the tables above."""
    made = [*STRATEGIES.values(), *(case.transform for case in TRANSFORMS.values()), *SYSTEMS.values()]
    return {type(thing) for thing in made}
