"""Reference systems with known answers, for documentation, tests, demonstrations and users alike."""

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

BY_NAME = {
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
    return BY_NAME[checks.one_of("system", name, BY_NAME)]()
