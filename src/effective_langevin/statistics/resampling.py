"""Error bars from groups of consecutive samples."""

from collections.abc import Callable

import numpy as np


def jackknife(estimate: Callable[[np.ndarray], np.ndarray], groups: int) -> tuple[np.ndarray, np.ndarray]:
    """An estimate from all groups and its standard error from leaving out each in turn."""
    return estimate(np.ones(groups)), jackknife_error(left_out(estimate, groups))


def left_out(estimate: Callable[[np.ndarray], np.ndarray], groups: int) -> np.ndarray:
    """Estimates without each of the groups, (group, ...)."""
    return np.array([estimate(1.0 - np.eye(groups)[g]) for g in range(groups)])


def jackknife_error(others: np.ndarray) -> np.ndarray:
    """Standard error from estimates without each of the groups."""
    return np.sqrt((len(others) - 1) * others.var(axis=0))


def bootstrap(estimate: Callable[[np.ndarray], np.ndarray], groups: int, draws: int = 200, seed: int = 0) -> np.ndarray:
    """Estimates from groups drawn with replacement, (draw, ...)."""
    counts = np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), draws)
    return np.array([estimate(weights) for weights in counts.astype(float)])
