"""How to train the small Kuramoto-Sivashinsky demonstration: `python -m benchmarks.training_choice [SEED|NAME ...]`.

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
from effective_langevin.estimate.score import UNet1D, estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import common_units

RESULTS = Path(__file__).parent / "results" / "training_choice.json"
NAME = "kuramoto-sivashinsky"
# What is changed of the demonstration.
PLAIN, NORMALIZED = UNet1D(), UNet1D(normalization="batch")
TRIED = {
    "rate 0.001": {"network": PLAIN, "learning_rate": 1e-3},
    "rate 0.003": {"network": PLAIN, "learning_rate": 3e-3},
    "rate 0.005": {"network": PLAIN, "learning_rate": 5e-3},
    "batch normalization, rate 0.002": {"network": NORMALIZED, "learning_rate": 2e-3},
    "batch normalization, rate 0.005": {"network": NORMALIZED, "learning_rate": 5e-3},
    "batch normalization, rate 0.01": {"network": NORMALIZED, "learning_rate": 1e-2},
}


def main(seeds: list[int], names: list[str]) -> None:
    """Train with the settings named, or all, for every seed."""
    found: dict[str, dict[str, float]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for seed in seeds:
        demo = DEMOS[NAME]
        series = demo.series(seed)
        units = common_units(Standardizer.from_series(series), demo.symmetry)
        standard, space = series.map(units.to_standard), StateSpace.of(series, demo.symmetry)
        for name, changed in {name: TRIED[name] for name in names or TRIED}.items():
            started = time.monotonic()
            score = replace(demo.score, **changed)
            fit = estimate_score(standard, score, space, key=jax.random.key(seed), velocities=True)
            found.setdefault(name, {})[str(seed)] = min(fit.evidence.held_out_loss_curve or ())
            print(f"{name}, seed {seed}: {found[name][str(seed)]:.4f} ({time.monotonic() - started:.0f} s)", flush=True)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    main(numbers or [0], [word for word in sys.argv[1:] if not word.isdecimal()])
