"""The regime: how the series moves over one sampling interval, decided from the evidence on short times."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from ..statistics.resampling import critical
from .markov import CellMemory, LinearMemory
from .short_time import Nugget, Variation, is_white, step_over_fastest
from .survey import Survey

BALLISTIC = 0.3  # slope of log(QV / h) above which motion is smooth; also used by the mobility estimator
_CLEARLY_BALLISTIC = 0.5
# dt over the fastest time seen: worth knowing, and too coarse.
COARSE = (0.3, 0.5)
_LEAST_NOISE = 1e-4  # of the variance: one per cent of the standard deviation
_LEAST_MEMORY = 0.01


@dataclass(frozen=True)
class Regime:
    """The name of the regime and what it rests on, per variable."""

    name: str
    white: bool
    noisy: Bool[np.ndarray, " var"]
    smooth: Bool[np.ndarray, " var"]
    coarseness: Float[np.ndarray, " var_and_all"]
    coarseness_error: Float[np.ndarray, " var_and_all"]


def decide_regime(
    survey: Survey, variation: Variation, missing: Nugget, linear: LinearMemory, cells: CellMemory | None
) -> Regime:
    """White noise before added noise before smooth motion before coarse sampling: each hides what comes after it."""
    noisy = noisy_variables(survey, missing, linear, cells)
    smooth = variation.by_variable > _CLEARLY_BALLISTIC
    noise = np.where(noisy, np.clip(missing.variance, 0, 0.9), 0.0)
    all_smooth = variation.slopes[0] > BALLISTIC
    coarseness, error = step_over_fastest(survey, noise, variation.by_variable > BALLISTIC, bool(all_smooth))
    white = is_white(survey)
    if white:
        name = "white noise / unresolved"
    elif noisy.any():
        name = "measurement noise"
    elif all_smooth:
        rough = variation.by_variable < -2 * variation.by_variable_error
        name = "mixed" if rough.any() else "ballistic"
    elif smooth.any():
        name = "mixed"
    else:
        name = "coarse" if coarseness.max() > COARSE[1] else "diffusive"
    return Regime(name, white, noisy, smooth, coarseness, error)


def noisy_variables(
    survey: Survey, missing: Nugget, linear: LinearMemory, cells: CellMemory | None
) -> Bool[np.ndarray, " var"]:
    """Variables with noise on each sample: variance missing at lag zero, and a past that tells more than the present.

    Without a partition, a nonlinear process sampled coarsely would pass for that; so the sampling must be fine as well.
    """
    limit = critical(survey.groups, survey.series.dimension)
    short = missing.variance > np.maximum(limit * missing.error, _LEAST_NOISE)
    found = linear if cells is None else cells
    memory, error = np.diag(found.value[0]), np.diag(found.error[0])
    remembers = memory > np.maximum(limit * error, _LEAST_MEMORY)
    if cells is not None:
        return short & remembers
    rho = survey.acf[1:4]
    decay = np.maximum(-np.diff(rho, axis=0), 1e-6)
    fine = (rho[0] > 1 - COARSE[0]) | (missing.variance > 0.5 * (1 - rho[0]))
    return short & remembers & fine & (np.log(decay[0] / decay[1]) < COARSE[0])
