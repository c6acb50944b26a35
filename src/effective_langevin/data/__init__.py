"""Stage 1: the series as the user has it, and the standardised units inside."""

from . import preprocess
from .series import TimeSeries
from .standardize import Standardizer

__all__ = ["Standardizer", "TimeSeries", "preprocess"]
