"""The test of Dickey and Fuller (1979): does a record keep returning to a mean, or is it a random walk?"""

import numpy as np

UNIT_ROOT = -3.9  # 0.2 % point of the Dickey-Fuller distribution with a constant
_PAST_STEPS = 4


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
