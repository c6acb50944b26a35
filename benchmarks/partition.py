"""Cutting a series into cells: 1e6 x 32 into about 7500, and 1e6 x 2 into 761; scikit-learn at equal inertia.

`MiniBatchKMeans` gets as many steps as it needs by its own rule; its inertia is shown beside its time.
"""

import numpy as np

from .harness import OURS, Report, attempt, compare

BISECTING = "scikit-learn BisectingKMeans (15 iterations)"
MINI_BATCH = "scikit-learn MiniBatchKMeans"


def run(quick: bool) -> Report:
    report = Report()
    rows = 20_000 if quick else 1_000_000
    for dimension, cells in ((2, 761), (32, 200 if quick else 7500)):
        case = f"{rows} x {dimension} into {cells} cells"
        found = compare_partitions(case, made_up_samples(rows, dimension), cells)
        report.results += found
        inertia = {r.contender: r.sizes["inertia"] for r in found if "inertia" in r.sizes}
        report.promise_ratio(f"tree against BisectingKMeans, {case}", case, BISECTING, 3)
        if BISECTING in inertia:
            excess = inertia[OURS] / inertia[BISECTING] - 1
            report.promise(
                f"inertia of the tree over BisectingKMeans, {case}", "<= +3 %", f"{100 * excess:+.1f} %", excess <= 0.03
            )
    return report


def made_up_samples(rows: int, dimension: int) -> np.ndarray:
    """Four wells in the plane; in many dimensions a smooth field with wells in its first two directions."""
    rng = np.random.default_rng(0)
    wells = rng.choice([-1.0, 1.0], (rows, 2)) + 0.35 * rng.standard_normal((rows, 2))
    if dimension == 2:
        return wells.astype(np.float32)
    spectrum = 1.0 / (1 + np.arange(dimension)) ** 0.75
    hidden = rng.standard_normal((rows, dimension)) * spectrum
    hidden[:, :2] += wells
    rotation = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    return (hidden @ rotation).astype(np.float32)


def compare_partitions(case: str, samples: np.ndarray, cells: int):
    labels: dict[str, np.ndarray] = {}

    def ours():
        import jax

        from effective_langevin.estimate.partition import grow_tree

        def run():
            labels[OURS] = grow_tree(samples, cells=cells, key=jax.random.key(0)).assign(samples)

        return run

    def bisecting():
        from sklearn.cluster import BisectingKMeans

        def run():
            model = BisectingKMeans(cells, max_iter=15, bisecting_strategy="largest_cluster", random_state=0)
            labels[BISECTING] = model.fit_predict(samples)

        return run

    def mini_batch():
        from sklearn.cluster import MiniBatchKMeans

        def run():
            model = MiniBatchKMeans(cells, batch_size=max(10_000, 3 * cells), n_init=1, max_iter=3, random_state=0)
            labels[MINI_BATCH] = model.fit_predict(samples)

        return run

    contenders = {OURS: attempt(ours), BISECTING: attempt(bisecting), MINI_BATCH: attempt(mini_batch)}
    sizes = {"samples": len(samples), "dimension": samples.shape[1], "cells": cells}
    found = compare(case, contenders, repeats=3, once=(BISECTING, MINI_BATCH), sizes=sizes)
    for result in found:
        if result.contender in labels:
            value = inertia(samples, labels[result.contender])
            result.sizes = {**result.sizes, "inertia": value}
            result.accuracy = f"inertia {value:.4g} ({len(np.unique(labels[result.contender]))} cells)"
    return found


def inertia(samples: np.ndarray, labels: np.ndarray) -> float:
    """Sum of squared distances to the mean of the cell."""
    counts = np.bincount(labels)
    squares = 0.0
    for column in samples.T.astype(float):
        sums = np.bincount(labels, column)
        squares += column @ column - np.sum(sums**2 / np.maximum(counts, 1))
    return float(squares)
