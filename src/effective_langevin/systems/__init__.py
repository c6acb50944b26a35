"""Reference systems with known answers, for documentation, tests, demonstrations and users alike."""

from typing import Any

from .._core import checks
from .base import System
from .fokker_planck import FokkerPlanck
from .kuramoto_sivashinsky import KuramotoSivashinsky
from .more_variables import OrnsteinUhlenbeck, StochasticLorenz63
from .one_variable import CoxIngersollRoss, DrivenRing, ScalarMultiplicative
from .two_variables import AffineNoise, AsymmetricWells, DoubleWellOscillator, NoisyLimitCycle

__all__ = [
    "AffineNoise",
    "AsymmetricWells",
    "CoxIngersollRoss",
    "DoubleWellOscillator",
    "DrivenRing",
    "FokkerPlanck",
    "KuramotoSivashinsky",
    "NoisyLimitCycle",
    "OrnsteinUhlenbeck",
    "ScalarMultiplicative",
    "StochasticLorenz63",
    "System",
    "by_name",
]

_BY_NAME = {
    "wells": AsymmetricWells,
    "scalar": ScalarMultiplicative,
    "lorenz63": StochasticLorenz63,
    "affine-noise": AffineNoise,
    "cir": CoxIngersollRoss,
    "limit-cycle": NoisyLimitCycle,
    "oscillator": DoubleWellOscillator,
    "ring": DrivenRing,
    "ornstein-uhlenbeck": lambda: OrnsteinUhlenbeck.rotating(2),
    "kuramoto-sivashinsky": KuramotoSivashinsky,
}


def by_name(name: str) -> System:
    """Return a reference system with its default parameters.

    Parameters
    ----------
    name : str
        Its name on the command line.

    Returns
    -------
    System

    Examples
    --------
    >>> el.systems.by_name("cir").names
    ('x',)
    """
    return _BY_NAME[checks.one_of("system", name, _BY_NAME)]()


def describe_all() -> list[dict[str, Any]]:
    """Return name, class, dimension, what is known exactly, and the equation of each reference system."""
    made = {name: by_name(name) for name in _BY_NAME}
    return [
        {
            "name": name,
            "class": type(system).__name__,
            "dimension": system.dimension,
            "exact": list(system.exact),
            "equation": (type(system).__doc__ or "").strip().split("\n")[0],
        }
        for name, system in made.items()
    ]
