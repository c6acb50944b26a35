"""Random walks: the Dickey-Fuller test, where the integral time is not small beside the record.

The sample autocorrelation of a random walk does decay, over about a tenth of any record. So a variable is suspected
when its record is short in integral times, and acquitted when the statistic is very negative.
"""

import numpy as np
from jaxtyping import Float

from .survey import Survey

_SHORT = 60.0  # integral times in a record below which a random walk is a possibility
UNIT_ROOT = -3.9  # 0.2 % point of the Dickey-Fuller distribution with a constant
_PER_TIME = 30  # samples per integral time in the Dickey-Fuller regression
_PAST_STEPS = 4


def unit_roots(survey: Survey) -> Float[np.ndarray, " var"]:
    """Dickey-Fuller statistic of each variable whose integral time is not small beside the record; else -inf."""
    series, found = survey.series, np.full(survey.series.dimension, -np.inf)
    longest = max(series.segments, key=len)
    if 2 * len(longest) < series.n_samples:
        return found
    for i in np.flatnonzero(series.duration < _SHORT * survey.times):
        stride = max(1, int(survey.times[i] / series.dt / _PER_TIME))
        found[i] = dickey_fuller(longest[::stride, i])
    return found


def dickey_fuller(x: np.ndarray) -> float:
    """t statistic of a in dx = a x + b + sum_k c_k dx(t - k): near zero for a random walk, very negative otherwise."""
    steps = np.diff(x)
    rows = len(steps) - _PAST_STEPS
    if rows < 4 * _PAST_STEPS:
        return 0.0
    past = [steps[_PAST_STEPS - k - 1 : len(steps) - k - 1] for k in range(_PAST_STEPS)]
    design = np.column_stack([x[_PAST_STEPS:-1], np.ones(rows), *past])
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ design.T @ steps[_PAST_STEPS:]
    noise = np.sum((steps[_PAST_STEPS:] - design @ coefficients) ** 2) / (rows - design.shape[1])
    return float(coefficients[0] / np.sqrt(noise * inverse[0, 0]))
