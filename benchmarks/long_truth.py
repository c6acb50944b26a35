"""Is a model of a short series right, or only near its series? `python -m benchmarks.long_truth [DEMO:SEED ...]`.

Learns a demonstration and compares a long simulation with a longer series of the equation that no fit has seen. The
errors of both are far smaller than that of the series of the fit: slow changes between patterns make variances of 2e5
samples of the small Kuramoto-Sivashinsky demonstration uncertain by several percent.

`wells:chance` counts how often the exact equation itself, simulated as often as a validation simulates a model, has an
`increment_error` beyond two standard errors: it is the largest of eight numbers. Writes
benchmarks/results/long_truth.json.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin._core import progress
from effective_langevin.cli.demo import DEMOS
from effective_langevin.execution.compilation import keep_compiled_programs
from effective_langevin.statistics import distances
from effective_langevin.statistics.densities import series_statistics
from effective_langevin.statistics.lags import autocovariances
from effective_langevin.validate.sides import with_sampling_errors

RESULTS = Path(__file__).parent / "results" / "long_truth.json"
FIELD = "kuramoto-sivashinsky"
REACH, REPLICAS = 50, 100
FURTHER = {FIELD: {"members": 2000, "duration": 1000.0}, "wells": {"members": 1000, "duration": 1000.0}}
SIMULATED = {FIELD: {"members": 1024, "duration": 1000.0}, "wells": {"members": 1000, "duration": 500.0}}
VALIDATED = {"members": 512, "duration": 58.55}  # what `el.validate` simulates beside the wells


def measure(name: str, seed: int) -> dict[str, dict[str, float]]:
    """Compare the series of the fit and a long simulation of the model with a long series of the equation."""
    demo = DEMOS[name]
    series = demo.series(seed)
    model = el.fit(series, score=demo.score, mobility=demo.mobility, symmetry=demo.symmetry, seed=seed)
    truth = demo.system.simulate(dt=demo.dt, seed=seed + 1000, **FURTHER[name], **demo.spin_up)
    started = time.monotonic()
    result = el.validate(model, truth, seed=seed + 1, **SIMULATED[name])
    found: dict[str, Any] = {"model": {k: float(v) for k, v in result.metrics.items()}, "series": {}}
    found["model"] |= {"seconds": time.monotonic() - started, "members_left": len(result.paths.segments)}
    for side, paths in {"model": result.paths, "series": series}.items():
        found[side]["mean_acf_rmse"] = float(np.sqrt(np.mean((mean_acf(paths) - mean_acf(truth)) ** 2)))
        found[side]["increment_error"] = _errors_of_increments(truth, paths, 1)["increment_error"]
        if name == FIELD:
            found[side]["increment_error"] = _errors_of_increments(truth, paths, truth.dimension)["increment_error"]
            ratio = mode_variances(paths) / mode_variances(truth)
            found[side] |= {f"variance of mode {k}": float(ratio[k]) for k in range(1, 9)}
    return found


def count_chance(name: str) -> dict[str, float]:
    """Count how often the exact equation in the place of a model is beyond two standard errors."""
    demo, beyond, sizes = DEMOS[name], 0, []
    for replica in range(REPLICAS):
        series = demo.series(replica)
        paths = demo.system.simulate(dt=demo.dt, seed=replica + 1000, **VALIDATED)
        found = _errors_of_increments(series, paths, 1)
        sizes.append(found["increment_error"])
        beyond += found["increment_error"] > 2 * found["increment_error_se"]
    return {"replicas": REPLICAS, "beyond_two_errors": beyond / REPLICAS, "median": float(np.median(sizes))}


def _errors_of_increments(data: el.TimeSeries, paths: el.TimeSeries, points: int) -> dict[str, float]:
    """Return `increment_error` of paths with its error, as a validation does."""
    samples = data.stacked()
    edges = np.transpose([np.linspace(low, high, 3) for low, high in zip(samples.min(axis=0), samples.max(axis=0))]).T
    sides = [series_statistics(some.segments, some.dt, edges, np.arange(2)) for some in (data, paths)]

    def distance(one: Any, other: Any, weights: np.ndarray, others: np.ndarray) -> np.ndarray:
        return np.array([distances.increment_error(one.increments(weights, points), other.increments(others, points))])

    return with_sampling_errors(["increment_error"], distance, *sides)


def mean_acf(series: el.TimeSeries) -> np.ndarray:
    """Return the autocorrelation pooled over variables, at lags 0 to 50."""
    centre = series.stacked().mean(axis=0)
    sums = autocovariances([part.astype(float) - centre for part in series.segments], REACH).sum(axis=1)
    return sums / sums[0]


def mode_variances(series: el.TimeSeries) -> np.ndarray:
    """Return < |u_k|^2 > of the unitary Fourier transform."""
    samples = series.stacked()
    return np.mean(np.abs(np.fft.rfft(samples - samples.mean(axis=0), axis=1, norm="ortho")) ** 2, axis=0)


def main() -> None:
    """Measure what is asked for; the rest keeps its last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=[f"{FIELD}:0", "wells:0", "wells:1", "wells:chance"])
    keep_compiled_programs()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with progress.shown():
        for case in parser.parse_args().cases:
            name, seed = case.split(":")
            results[case] = count_chance(name) if seed == "chance" else measure(name, int(seed))
            print(case, json.dumps(results[case], indent=1), flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
