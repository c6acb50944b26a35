"""Do members leave the data? `python -m benchmarks.endurance [NAME ...]`.

Learns each demonstration and simulates its model for a million time units in all (1000 members). Counts members that
are not finite at the end, and those that leave the data by more than three times their range, then or before. Writes
benchmarks/results/endurance.json.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

import effective_langevin as el
from effective_langevin.cli.demo import DEMOS
from effective_langevin.execution.compilation import keep_compiled_programs

RESULTS = Path(__file__).parent / "results" / "endurance.json"
MEMBERS, DURATION, EVERY = 1000, 1000.0, 1.0
RANGE = 3.0


def measure(name: str) -> dict:
    """Fit one demonstration, simulate it for long, and count."""
    demo = DEMOS[name]
    series = demo.series(0)
    model = el.fit(series, score=demo.score, mobility=demo.mobility, symmetry=demo.symmetry, seed=0, check="off")
    step = model.automatic_step()
    paths = model.simulate(DURATION, dt=EVERY, members=MEMBERS, seed=2, step=step)
    data = series.stacked()
    middle, reach = 0.5 * (data.max(axis=0) + data.min(axis=0)), 0.5 * np.ptp(data, axis=0)
    farthest = np.array([np.max(np.abs(path - middle) / reach) for path in paths.segments])
    late = np.concatenate([path[len(path) // 2 :] for path in paths.segments])
    return {
        "member_time_units": MEMBERS * DURATION,
        "step": step,
        "not_finite": MEMBERS - len(paths.segments),
        "beyond_three_ranges": int(np.sum(farthest > RANGE)),
        "farthest_in_ranges": float(farthest.max()),
        "variance_of_the_second_half": float(late.var(axis=0).sum() / data.var(axis=0).sum()),
        "device": jax.default_backend(),
    }


def main(names: list[str]) -> None:
    """Measure the demonstrations named, or all, and keep what was measured before."""
    keep_compiled_programs()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or DEMOS:
        results[name] = measure(name)
        print(name, json.dumps(results[name]), flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
