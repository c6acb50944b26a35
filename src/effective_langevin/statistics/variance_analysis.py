"""Analysis of variance between runs of consecutive blocks, on normal scores of the ranks."""

import numpy as np
from jaxtyping import Float
from scipy.special import fdtrc, ndtri

Features = Float[np.ndarray, "block feature var"]


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
    order = labels - labels.mean()
    explained = np.tensordot(order, scores, 1) ** 2 / np.sum(order**2) / np.sum(scores**2, axis=0)
    freedom = len(labels) - 2
    return fdtrc(1, freedom, freedom * explained / np.maximum(1 - explained, 1e-300) / inflation)


def variance_components(values: Features, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean squares between and inside runs, and the size of a run."""
    sizes = np.bincount(labels).astype(float)
    means = np.array([values[labels == k].mean(axis=0) for k in range(len(sizes))])
    spread = np.tensordot(sizes, (means - values.mean(axis=0)) ** 2, 1)
    inside = ((values - means[labels]) ** 2).sum(axis=0)
    return spread / (len(sizes) - 1), inside / (len(values) - len(sizes)), float(sizes.mean())
