"""Is the held-out check calibrated? Replicas of known truth: `python -m benchmarks.held_out [--replicas N]`.

Right: linear processes of 1, 2 and 5 variables and shallow wells, fitted with the default closure. Wrong: a biased
estimator (displacements over four sampling intervals), blurred samples taken for slow diffusion, and the sum of a fast
and a slow process (memory). Counts alarms at the level of the verdict and writes `benchmarks/results/held_out.json`
and a table to `held_out.md` beside it.

`--cost` measures instead what the check adds to the processor time of a fit with its report, programs compiled before.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter

import effective_langevin as el
from benchmarks.replicas import PROCESSES, Process, blurred, linear
from effective_langevin.validate.findings.notes import HELD_OUT_CHANCE

RESULTS = Path(__file__).parent / "results" / "held_out.json"
SIZES = {300: 40, 2000: 40}
RIGHT = ("linear 1", "linear 2", "linear 5", "wells 1")
COSTS = ("linear 2", "wells 1", "wells 3")


SLOW = 0.1  # rate of the hidden process; that of the other is 1


def _with_memory(size: int, seed: int) -> el.TimeSeries:
    """The sum of a process and a slow hidden one, of equal variance."""
    series = linear(1).simulate(size, seed)
    kept, rng = np.exp(-SLOW * series.dt), np.random.default_rng(seed + 10**6)

    def hidden(x: np.ndarray) -> np.ndarray:
        kicks = np.sqrt(1 - kept**2) * rng.normal(size=x.shape)
        kicks[0] = rng.normal(size=x.shape[1])
        return np.asarray(lfilter([1.0], [1.0, -kept], kicks, axis=0))

    return series.map(lambda x: x / x.std() + hidden(x))


def pair(truth: str, process: Process, size: int, seed: int) -> tuple[el.TimeSeries, Any]:
    """Return a series, and the mobility strategy that is asked for (None: chosen)."""
    if truth == "blurred":
        return blurred(process, size, seed), el.QuadraticVariation()
    if truth == "memory":
        return _with_memory(size, seed), None
    return process.simulate(size, seed), el.QuadraticVariation(lag=4) if truth == "biased" else None


def measure(truth: str, name: str, size: int, replicas: int) -> dict[str, Any]:
    """Return the number of alarms, of checks that were made, and the share of small p-values."""
    process, started, chances = PROCESSES[name](), time.monotonic(), []
    score = None if process.wells else el.Gaussian()
    for replica in range(replicas):
        series, mobility = pair(truth, process, size, 1000 * size + replica)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = el.fit(series, score=score, mobility=mobility, check="off", check_held_out=True, seed=replica)
        found = model.mobility.evidence.held_out
        chances.append(None if found is None else found.p)
    made = [p for p in chances if p is not None]
    return {
        "replicas": replicas,
        "checked": len(made),
        "alarms": sum(p < HELD_OUT_CHANCE for p in made),
        "below 5 %": sum(p < 0.05 for p in made),
        "seconds_per_fit": (time.monotonic() - started) / replicas,
    }


def cost(name: str, size: int = 2000) -> dict[str, float]:
    """Return the processor time, in seconds, of fit, validation and report without the check and with it."""
    series, seconds = PROCESSES[name]().simulate(size, 7), {}
    for check in (False, True, False, True):  # the first two compile the programs
        started = time.process_time()
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            model = el.fit(series, check_held_out=check, seed=0)
            el.validate(model, series, seed=1).report(Path(folder) / "report.html")
        seconds["with" if check else "without"] = time.process_time() - started
    return {**seconds, "more": seconds["with"] / seconds["without"] - 1}


def table(results: dict[str, Any]) -> str:
    """Write the counts as Markdown."""
    head = ("truth", "process", "effective samples", "replicas", "checked", "alarms (level 1 %)", "p below 5 %")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for key, cell in results.items():
        if key == "cost":
            continue
        counts = " | ".join(str(cell[name]) for name in ("replicas", "checked", "alarms", "below 5 %"))
        lines.append(f"| {key} | {counts} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.held_out", description=__doc__)
    arguments.add_argument("--replicas", type=int, help="of each process and truth")
    arguments.add_argument("--truths", nargs="*", default=["right", "biased", "blurred", "memory"])
    arguments.add_argument("--cost", action="store_true", help="measure the time that the check takes instead")
    given = arguments.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.cost:
        results["cost"] = {name: cost(name) for name in COSTS}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        print(results["cost"])
        return
    cells = [("right", name) for name in RIGHT]
    cells += [("biased", "linear 2"), ("blurred", "linear 1"), ("memory", "linear 1")]
    for truth, name in (cell for cell in cells if cell[0] in given.truths):
        for size, replicas in SIZES.items():
            count = given.replicas or (replicas if truth == "right" else replicas // 4)
            key = f"{truth} | {name} | {size}"
            results[key] = measure(truth, name, size, count)
            print(key, results[key], flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    RESULTS.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
