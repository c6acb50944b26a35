"""Tests of stationarity: analysis of variance between runs of blocks, and the Dickey-Fuller test of a random walk."""

import numpy as np
from jaxtyping import Float
from scipy.special import fdtrc, ndtri, stdtrit

from .joint_tests import POWER

Features = Float[np.ndarray, "block feature var"]
UNIT_ROOT = -3.9  # 0.2 % point of the Dickey-Fuller (1979) distribution with a constant
_PAST_STEPS = 4
_RANKED = 1.1  # ranks show a trend of this size as values show one of 1 (measured on linear processes)


def compare_runs(features: Features, labels: np.ndarray, correlation: np.ndarray, *, ordered: bool) -> np.ndarray:
    """p-values of the F test and, if the order of runs means something, of a trend; (feature, var).

    Normal scores of the ranks replace the features, so that a few wild blocks decide nothing. `labels` gives the run
    of each block. `correlation` is the integral time over the length of a block; neighbouring blocks are correlated by
    half of it.
    """
    blocks, runs = len(features), labels.max() + 1
    # In random order, so that ties (in a constant stretch) do not look like a trend.
    order = np.random.default_rng(0).permutation(blocks)
    scores = np.empty_like(features)
    scores[order] = ndtri((features[order].argsort(axis=0, kind="stable").argsort(axis=0) + 0.5) / blocks)
    between, inside, size = variance_components(scores, labels)
    inflation = (1 + correlation * (size - 1) / size) / (1 - correlation / size)
    p_values = fdtrc(runs - 1, blocks - runs, between / np.maximum(inside, 1e-300) / inflation)
    if not ordered:
        return p_values
    return np.minimum(2 * np.minimum(p_values, trend_p_values(scores, labels, 1 + correlation)), 1.0)


def trend_p_values(scores: Features, labels: np.ndarray, inflation: np.ndarray) -> np.ndarray:
    """Two-sided p-values of a linear trend over the runs, whose variance is `inflation` times that of white scores."""
    order, freedom = labels - labels.mean(), len(labels) - 2
    explained = np.tensordot(order, scores, 1) ** 2 / np.sum(order**2) / np.sum(scores**2, axis=0)
    return fdtrc(1, freedom, freedom * explained / np.maximum(1 - explained, 1e-300) / inflation)


def detectable_trend(
    values: Features, labels: np.ndarray, correlation: np.ndarray, chance: float
) -> Float[np.ndarray, "feature var"]:
    """Change of a feature from the start of the record to its end that the test of a trend finds with `POWER`.

    `chance` is the p-value below which `compare_runs` gives an alarm, of which its test of a trend has one half.
    """
    order, runs = labels - labels.mean(), labels.max() + 1
    inside = variance_components(values, labels)[1]
    error = np.sqrt(inside * (1 + correlation) / np.sum(order**2))
    return _RANKED * runs * (stdtrit(len(labels) - 2, 1 - chance / 4) + ndtri(POWER)) * error


def variance_components(values: Features, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean squares between and inside runs, and the size of a run."""
    sizes = np.bincount(labels).astype(float)
    means = np.array([values[labels == k].mean(axis=0) for k in range(len(sizes))])
    spread = np.tensordot(sizes, (means - values.mean(axis=0)) ** 2, 1)
    inside = ((values - means[labels]) ** 2).sum(axis=0)
    return spread / (len(sizes) - 1), inside / (len(values) - len(sizes)), float(sizes.mean())


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
