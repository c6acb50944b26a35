"""Stage 1: the series as the user has it, and the standardised units inside."""

from . import preprocess
from .lags import LaggedMoments, SideBySide, lagged_moments
from .series import TimeSeries
from .standardize import Standardizer

__all__ = ["LaggedMoments", "SideBySide", "Standardizer", "TimeSeries", "lagged_moments", "preprocess"]
