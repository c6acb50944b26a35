"""Error of the mobility of the wells, `el.fit` defaults, from 4e6 samples at 0.01 and the same series thinned.

    python -m benchmarks.thinned_wells [SEED ...]

Writes benchmarks/results/thinned_wells.json and a Markdown table, with the error that the exact score would leave: the
difference is what the learned score costs.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

import effective_langevin as el
from effective_langevin.estimate.mobility import QuadraticVariation, estimate_mobility
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.statistics.distances import matrix_error

FINE, STRIDES, RESULTS = 0.01, (1, 2, 5, 10, 20), Path(__file__).parent / "results"


def measure(seed: int) -> dict[str, dict[str, float]]:
    """Errors at every interval for one realisation."""
    system = el.systems.AsymmetricWells()
    fine = system.simulate(400.0, dt=FINE, members=100, seed=seed)
    found = {}
    for stride in STRIDES:
        series = fine.thin(stride)
        model = el.fit(series, seed=seed)
        standard, key = series.map(model.standardizer.to_standard), jax.random.key(0)
        scores = [system.score_function(s) * model.standardizer.std for s in series.segments]
        space = StateSpace.of(standard, NoSymmetry())
        exact = el.IntegratedResponse().infer_from(standard, scores, space, np.zeros((2, 2))).phi
        variation = estimate_mobility(standard, model.score, QuadraticVariation(), space, key=key).matrix
        truth, size = model.standardizer.mobility_to_standard(system.mobility), np.linalg.norm(system.mobility)
        found[f"{stride * FINE:g}"] = {
            "mobility_error": matrix_error(model.mobility.matrix, system.mobility),
            "standard_error": float(np.linalg.norm(model.mobility.standard_error) / size),
            "with_exact_score": matrix_error(exact, truth),
            "quadratic_variation": matrix_error(variation, truth),
            "samples": series.n_samples,
        }
        print(seed, f"dt = {stride * FINE:g}", found[f"{stride * FINE:g}"], flush=True)
    return found


def table(results: dict) -> str:
    """One line per interval."""
    head = (
        "| dt | samples | "
        + " | ".join(f"seed {seed}" for seed in results)
        + " | exact score | quadratic variation |\n"
    )
    lines = [head, "|---" * (4 + len(results)) + "|\n"]
    for dt in next(iter(results.values())):
        rows = [result[dt] for result in results.values()]
        ours = " | ".join(f"{r['mobility_error']:.4f} ± {r['standard_error']:.4f}" for r in rows)
        means = (np.mean([r[key] for r in rows]) for key in ("with_exact_score", "quadratic_variation"))
        lines.append(f"| {dt} | {rows[0]['samples']} | {ours} | " + " | ".join(f"{m:.4f}" for m in means) + " |\n")
    return "".join(lines)


if __name__ == "__main__":
    results = {seed: measure(int(seed)) for seed in sys.argv[1:] or ["1", "2"]}
    (RESULTS / "thinned_wells.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "thinned_wells.md").write_text(table(results))
    print(table(results))
