"""Reference systems with known answers, for documentation, tests, demonstrations and users alike."""

from .affine_noise import AffineNoise
from .base import System
from .cir import CoxIngersollRoss
from .fokker_planck import FokkerPlanck
from .kuramoto_sivashinsky import KuramotoSivashinsky
from .lorenz63 import StochasticLorenz63
from .ornstein_uhlenbeck import OrnsteinUhlenbeck
from .scalar import ScalarMultiplicative
from .wells import AsymmetricWells

__all__ = [
    "AffineNoise",
    "AsymmetricWells",
    "CoxIngersollRoss",
    "FokkerPlanck",
    "KuramotoSivashinsky",
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
    "kuramoto-sivashinsky": KuramotoSivashinsky,
}


def by_name(name: str) -> System:
    """The reference system of that name, with its default parameters."""
    from .._core import checks

    return _BY_NAME[checks.one_of("system", name, _BY_NAME)]()
