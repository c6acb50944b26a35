"""How to train the small Kuramoto-Sivashinsky demonstration: `python -m benchmarks.training_choice [SEED ...]`.

Trains score and current at several rates and compares the loss on held-out samples; no model is simulated. Writes
benchmarks/results/training_choice.json. Best on a GPU.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax

from effective_langevin.cli.demo import DEMOS
from effective_langevin.data import Standardizer
from effective_langevin.estimate.score import estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import common_units

RESULTS = Path(__file__).parent / "results" / "training_choice.json"
NAME = "kuramoto-sivashinsky"
# What is changed of the demonstration.
TRIED = {
    "rate 0.001": {"learning_rate": 1e-3},
    "rate 0.003": {"learning_rate": 3e-3},
    "rate 0.005": {"learning_rate": 5e-3},
}


def main(seeds: list[int]) -> None:
    """Train with all settings, for every seed."""
    found: dict[str, dict[str, float]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for seed in seeds:
        demo = DEMOS[NAME]
        series = demo.series(seed)
        units = common_units(Standardizer.from_series(series), demo.symmetry)
        standard, space = series.map(units.to_standard), StateSpace.of(series, demo.symmetry)
        for name, changed in TRIED.items():
            started = time.monotonic()
            score = replace(demo.score, **changed)
            fit = estimate_score(standard, score, space, key=jax.random.key(seed), velocities=True)
            found.setdefault(name, {})[str(seed)] = min(fit.evidence.held_out_loss_curve or ())
            print(f"{name}, seed {seed}: {found[name][str(seed)]:.4f} ({time.monotonic() - started:.0f} s)", flush=True)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [0])
