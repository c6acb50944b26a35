"""Error of the mobility against the sampling interval: wells, 1e6 samples, three seeds, every estimator.

    python -m benchmarks.sampling_interval

All estimators see the same series and the same learned score (`el.fit` defaults). Writes
benchmarks/results/sampling_interval.json and a Markdown table beside it.
"""

import json
import warnings
from pathlib import Path

import jax
import numpy as np

import effective_langevin as el
from effective_langevin.estimate.mobility import estimate_mobility
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.statistics.distances import matrix_error

INTERVALS = (0.02, 0.05, 0.1)
SEEDS = (1, 2, 3)
ESTIMATORS = {
    "IntegratedResponse (default)": el.IntegratedResponse(),
    "FiniteVolume, as published (761 cells, global)": el.FiniteVolume(cells=761),
    "FiniteVolume, per-state": el.FiniteVolume(cells=761, correction="per-state"),
    "FiniteVolume, no correction": el.FiniteVolume(cells=761, correction="none"),
    "QuadraticVariation": el.QuadraticVariation(),
    "CorrelationFit": el.CorrelationFit(),
    "LogCorrelation (linear inverse model)": el.LogCorrelation(),
}


def measure(dt: float, seed: int, samples: int = 1_000_000, members: int = 100) -> dict[str, float]:
    system = el.systems.AsymmetricWells()
    series = system.simulate(samples / members * dt, dt=dt, members=members, seed=seed)
    model = el.fit(series, seed=seed)
    standard = series.map(model.standardizer.to_standard)
    errors = {}
    for name, strategy in ESTIMATORS.items():
        if name.startswith("IntegratedResponse"):
            phi = model.mobility
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", el.EstimateWarning)
                phi = estimate_mobility(
                    standard, model.score, strategy, StateSpace.of(standard, NoSymmetry()), key=jax.random.key(seed)
                ).to_physical(model.standardizer)
        errors[name] = matrix_error(phi.matrix, system.mobility)
    return errors


def table(results: dict) -> str:
    head = (
        "| estimator | " + " | ".join(f"dt = {dt}" for dt in INTERVALS) + " |\n|---|" + "---|" * len(INTERVALS) + "\n"
    )
    rows = []
    for name in ESTIMATORS:
        cells = [", ".join(f"{results[str(dt)][str(s)][name]:.3f}" for s in SEEDS) for dt in INTERVALS]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    measured = {str(dt): {str(seed): measure(dt, seed) for seed in SEEDS} for dt in INTERVALS}
    folder = Path("benchmarks/results")
    folder.mkdir(exist_ok=True)
    (folder / "sampling_interval.json").write_text(json.dumps(measured, indent=2) + "\n")
    (folder / "sampling_interval.md").write_text(table(measured))
    print(table(measured))
    worst = {
        dt: np.max([row["IntegratedResponse (default)"] for row in rows.values()]) for dt, rows in measured.items()
    }
    print("worst of the default:", worst)
