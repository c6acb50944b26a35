"""Invertible transforms: what to do with a series before a model is fitted, and how to come back.

    fitted = Chain([Detrend(), RemoveSeasonalCycle(period=12), PCA(variance=0.9)]).fit(series)
    reduced = fitted.apply(series)          # what the model is fitted to
    physical = fitted.invert(paths)         # simulated paths: names, units, trend and season are back

A transform is a setting; `fit` learns what it needs from a series and returns a fitted transform, which stands alone.
"""

import warnings
from typing import Any

from . import base
from .base import FittedTransform
from .chain import Chain
from .embedding import DelayEmbedding
from .pca import PCA
from .pointwise import BoxCox, Log, Periodic
from .temporal import Detrend, PhaseAugmentation, RemoveSeasonalCycle

__all__ = [
    "PCA",
    "BoxCox",
    "Chain",
    "DelayEmbedding",
    "Detrend",
    "FittedTransform",
    "Log",
    "Periodic",
    "PhaseAugmentation",
    "RemoveSeasonalCycle",
]


def __getattr__(name: str) -> Any:
    if name in ("from_dict", "pack", "unpack"):
        warnings.warn(f"preprocess.{name} is private: use el.load and model.save.", DeprecationWarning, stacklevel=2)
        return getattr(base, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
