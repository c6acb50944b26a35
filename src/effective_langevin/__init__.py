"""Effective Langevin equations from one stationary time series.

    dx = [nu(x) + D(x) s(x) + div D(x)] dt + sqrt(2 D(x)) dW,   s = grad ln p

The score s is learned from samples, so the steady state is right by construction. The current velocity nu and the
diffusion D are inferred from how the series moves, so the time scales are right without any trial simulation. With a
constant mobility Phi, the drift is Phi s(x) and D = sym(Phi).
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import systems
from ._core.errors import (
    ArgumentError,
    DataError,
    DivergenceError,
    EffectiveLangevinError,
    EstimateWarning,
    ModelFileError,
)
from .comparison import compare
from .data import Standardizer, TimeSeries, preprocess
from .data.io import read
from .data.preprocess.memory import Delays, Velocity
from .diagnose import Diagnosis, Finding, diagnose
from .estimate.closure.state_dependent import StateDependent
from .estimate.mobility import (
    CorrelationFit,
    FiniteVolume,
    IntegratedResponse,
    LogCorrelation,
    Mobility,
    QuadraticVariation,
)
from .estimate.score import KGMM, MLP, DenoisingScore, Extrapolated, Gaussian, UNet1D
from .estimate.symmetry import Translations, TranslationsAndReflections
from .estimator import LangevinEstimator, RecordSplit
from .fit import fit
from .hindcast import hindcast
from .many import fit_many
from .model import LangevinModel, load, match_variances
from .predict import predict_held_out
from .simulate import EulerMaruyama, ExponentialEuler, LeimkuhlerMatthews, StochasticHeun, StochasticMidpoint
from .validate import Validation, validate

if TYPE_CHECKING:
    from .validate import plots


def __getattr__(name: str) -> Any:
    """Import `plots` when it is first used: it needs matplotlib, which takes a while."""
    if name == "plots":
        return importlib.import_module(".validate.plots", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "KGMM",
    "MLP",
    "ArgumentError",
    "CorrelationFit",
    "DataError",
    "Delays",
    "DenoisingScore",
    "Diagnosis",
    "DivergenceError",
    "EffectiveLangevinError",
    "EstimateWarning",
    "EulerMaruyama",
    "ExponentialEuler",
    "Extrapolated",
    "Finding",
    "FiniteVolume",
    "Gaussian",
    "IntegratedResponse",
    "LangevinEstimator",
    "LangevinModel",
    "LeimkuhlerMatthews",
    "LogCorrelation",
    "Mobility",
    "ModelFileError",
    "QuadraticVariation",
    "RecordSplit",
    "Standardizer",
    "StateDependent",
    "StochasticHeun",
    "StochasticMidpoint",
    "TimeSeries",
    "Translations",
    "TranslationsAndReflections",
    "UNet1D",
    "Validation",
    "Velocity",
    "compare",
    "diagnose",
    "fit",
    "fit_many",
    "hindcast",
    "load",
    "match_variances",
    "plots",
    "predict_held_out",
    "preprocess",
    "read",
    "systems",
    "validate",
]
