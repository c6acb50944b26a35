"""The mobility Phi = -dC/dt(0+), inferred from correlations of the series with itself and with its score."""

from .base import Mobility, estimate_mobility
from .correlation import CorrelationFit, LogCorrelation, QuadraticVariation
from .finite_volume import FiniteVolume
from .response import IntegratedResponse
