"""Stage 4: one-step maps of a stochastic differential equation and ensembles of them in one compiled loop."""

from .ensemble import Ensemble, integrate
from .steppers import (
    Equation,
    EulerMaruyama,
    ExponentialEuler,
    LeimkuhlerMatthews,
    StepMap,
    Stepper,
    StochasticHeun,
    StochasticMidpoint,
)
