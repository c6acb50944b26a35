"""The closure that `el.fit` chooses, over seeds: `python -m benchmarks.choice [SYSTEM ...] [--seeds 20]`.

Counts the kinds chosen for systems whose closure is known, and writes them to `benchmarks/results/choice.json`.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin.execution.compilation import keep_compiled_programs

RESULTS = Path(__file__).parent / "results" / "choice.json"
OU = el.systems.OrnsteinUhlenbeck
# System, duration, sampling interval, members, and the kind that is right.
SYSTEMS: dict[str, tuple[Any, float, float, int, str]] = {
    "linear": (OU([[1.0]]), 1000.0, 0.1, 2, "constant"),
    "rotating linear": (OU.rotating(2), 1000.0, 0.1, 2, "constant"),
    "wells": (el.systems.AsymmetricWells(), 1000.0, 0.05, 3, "constant"),
    "scalar": (el.systems.ScalarMultiplicative(), 1000.0, 0.05, 3, "diffusion"),
    "square root": (el.systems.CoxIngersollRoss(), 1000.0, 0.1, 3, "diffusion"),
    "affine noise": (el.systems.AffineNoise(), 1000.0, 0.05, 3, "diffusion"),
    "limit cycle": (el.systems.NoisyLimitCycle(), 1000.0, 0.1, 2, "current"),
    "driven ring": (el.systems.DrivenRing(), 1000.0, 0.1, 2, "current"),
    "lorenz63": (el.systems.StochasticLorenz63(), 50.0, 0.01, 20, "current"),
}


def count(name: str, seeds: int) -> dict[str, Any]:
    """Fit series of as many seeds with the default settings; return how often each kind was chosen."""
    system, duration, dt, members, right = SYSTEMS[name]
    chosen, gains, seconds = [], [], []
    for seed in range(seeds):
        series = system.simulate(duration, dt=dt, members=members, seed=100 + seed)
        started = time.monotonic()
        choice = el.fit(series, seed=seed, check="off").mobility.evidence.choice
        seconds.append(time.monotonic() - started)
        chosen.append(choice.kind)
        gains += [tried.excess / tried.standard_error for tried in choice.candidates[:1] if tried.standard_error]
        print(name, seed, choice.kind, f"{seconds[-1]:.1f} s", flush=True)
    return {
        "samples": series.n_samples,
        "right": right,
        "chosen": dict(Counter(chosen)),
        "constant_above_best_in_standard_errors": float(np.median(gains)) if gains else None,
        "fit_seconds": float(np.median(seconds)),
    }


def main() -> None:
    """Count for the systems asked for, all by default, and keep what was counted for the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    keep_compiled_programs()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in given.systems or SYSTEMS:
        kept[name] = count(name, given.seeds)
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
