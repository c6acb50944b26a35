"""The smoothing width for states of smooth motion, which lie on a thin set: what of the motion it may hide.

The density of a thin set has no end of detail, so that no criterion on the score can choose the width. Perturbed states
do not tell all of the velocity, and that part is noise to a current which is learned at them.
"""

from collections.abc import Sequence

import numpy as np

from ..._core.types import Samples, Vector
from ...data import Standardizer, TimeSeries
from ...statistics.integral_time import error_groups
from ...statistics.regime import classify_short_times
from ...statistics.velocities import differentiate, trim
from .regression import CurrentRegression

WIDTHS = (0.1, 0.05, 0.025)  # the first adds 1 % to the variance
_HIDDEN = 0.01
TOLD = 0.9  # share of the squared velocity that states on a thin set tell, at least
_MOST_VARIABLES = 12
_SAMPLES = 100_000


def choose_width(series: TimeSeries) -> float:
    """Return the largest width that hides at most 1 % of the squared mean velocity of every variable.

    Mean velocities are polynomials of the state. The width is in units of the spread. It is the first where the states
    do not tell the motion, so that they lie on no thin set, and for many variables.
    """
    if series.dimension > _MOST_VARIABLES or not classify_short_times(series.segments).ballistic:
        return WIDTHS[0]
    standard = series.map(Standardizer.from_series(series).to_standard)
    every, draw = max(1, series.n_samples // _SAMPLES), np.random.default_rng(0)
    states = [part[::every].astype(float) for part in trim(standard.segments) if len(part)]
    velocities = [part[::every] for part in differentiate(standard.segments, series.dt) if len(part)]
    scores, groups = [np.zeros_like(part) for part in states], error_groups(states, every * series.dt)
    clean = CurrentRegression.from_motion(states, scores, velocities, groups)
    if clean.share_explained().min() < TOLD:
        return WIDTHS[0]
    for width in WIDTHS[:-1]:
        seen = [part + width * draw.normal(size=part.shape) for part in states]
        found = CurrentRegression.from_motion(seen, scores, velocities, groups, clean.degree)
        if np.all(found.share_explained() >= (1 - _HIDDEN) * clean.share_explained()):
            return width
    return WIDTHS[-1]


def told_share(series: TimeSeries, currents: Sequence[Samples]) -> Vector:
    """Return the share of the squared velocity of each variable that a current at every sample tells."""
    velocities = np.concatenate(differentiate(series.segments, series.dt))
    rest = velocities - np.concatenate(trim(currents))
    return 1 - np.mean(rest**2, axis=0) / np.mean(velocities**2, axis=0)
