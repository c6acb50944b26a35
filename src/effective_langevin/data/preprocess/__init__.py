"""Invertible transforms: what to do with a series before a model is fitted, and how to come back.

    fitted = Chain([Detrend(), RemoveSeasonalCycle(period=12), PCA(variance=0.9)]).fit(series)
    reduced = fitted.apply(series)          # what the model is fitted to
    physical = fitted.invert(paths)         # simulated paths: names, units, trend and season are back

A transform is a setting; `fit` learns what it needs from a series and returns a fitted transform, which stands alone
and is stored as plain data: `to_dict`, and `from_dict` here.
"""

from .base import FittedTransform, from_dict, pack, unpack
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
    "from_dict",
    "pack",
    "unpack",
]
