"""Reference systems with known answers, for documentation, tests, demonstrations and users alike."""

from typing import Any

import numpy as np

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
    "ornstein-uhlenbeck": lambda: OrnsteinUhlenbeck.rotating(2),
    "kuramoto-sivashinsky": KuramotoSivashinsky,
}


def by_name(name: str) -> System:
    """The reference system of that name, with its default parameters."""
    from .._core import checks

    return _BY_NAME[checks.one_of("system", name, _BY_NAME)]()


def listed() -> list[dict[str, Any]]:
    """Each reference system: name, class, dimension, which quantities are known exactly, and its equation in a line."""
    rows = []
    for name in _BY_NAME:
        system = by_name(name)
        known = {
            "score": getattr(system, "score_function", lambda x: None)(np.full((1, system.dimension), 0.5)) is not None,
            "mobility": system.mobility is not None,
        }
        rows.append(
            {
                "name": name,
                "class": type(system).__name__,
                "dimension": system.dimension,
                "exact": [quantity for quantity, there in known.items() if there],
                "equation": (type(system).__doc__ or "").strip().split("\n")[0],
            }
        )
    return rows
