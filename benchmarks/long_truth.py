"""Is a model of a short series right, or only near its series? `python -m benchmarks.long_truth [--seeds 0 ...]`.

Learns the small Kuramoto-Sivashinsky demonstration and compares a long simulation, 1e6 samples, with as many samples of
the equation and more that no fit has seen. The errors of both are far smaller than that of the series of the fit, whose
slow changes between patterns make variances of 2e5 samples uncertain by several percent. Writes
benchmarks/results/long_truth.json.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import effective_langevin as el
from effective_langevin._core import progress
from effective_langevin.cli.demo import DEMOS
from effective_langevin.execution.compilation import keep_compiled_programs
from effective_langevin.statistics.lags import autocovariances

RESULTS = Path(__file__).parent / "results" / "long_truth.json"
NAME = "kuramoto-sivashinsky"
REACH = 50
FURTHER = {"members": 2000, "duration": 1000.0}
SIMULATED = {"members": 1024, "duration": 1000.0}


def measure(seed: int) -> dict[str, dict[str, float]]:
    """Compare the series of the fit and a long simulation of the model with a long series of the equation."""
    demo = DEMOS[NAME]
    series = demo.series(seed)
    model = el.fit(series, score=demo.score, mobility=demo.mobility, symmetry=demo.symmetry, seed=seed)
    truth = demo.system.simulate(dt=demo.dt, seed=seed + 1000, **FURTHER, **demo.spin_up)
    started = time.monotonic()
    result = el.validate(model, truth, seed=seed + 1, **SIMULATED)
    found = {"model": {k: float(v) for k, v in result.metrics.items()}, "series": {}}
    found["model"] |= {"seconds": time.monotonic() - started, "members_left": len(result.paths.segments)}
    for name, paths in {"model": result.paths, "series": series}.items():
        found[name]["mean_acf_rmse"] = float(np.sqrt(np.mean((mean_acf(paths) - mean_acf(truth)) ** 2)))
        ratio = mode_variances(paths) / mode_variances(truth)
        found[name] |= {f"variance of mode {k}": float(ratio[k]) for k in range(1, 9)}
    return found


def mean_acf(series: el.TimeSeries) -> np.ndarray:
    """Return the autocorrelation at a point, pooled over points, at lags 0 to 50."""
    centre = series.stacked().mean(axis=0)
    sums = autocovariances([part.astype(float) - centre for part in series.segments], REACH).sum(axis=1)
    return sums / sums[0]


def mode_variances(series: el.TimeSeries) -> np.ndarray:
    """Return < |u_k|^2 > of the unitary Fourier transform."""
    samples = series.stacked()
    return np.mean(np.abs(np.fft.rfft(samples - samples.mean(axis=0), axis=1, norm="ortho")) ** 2, axis=0)


def main() -> None:
    """Measure for every seed; seeds that are not run keep their last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    keep_compiled_programs()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with progress.shown():
        for seed in parser.parse_args().seeds:
            results[str(seed)] = measure(seed)
            print(seed, json.dumps(results[str(seed)], indent=1), flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
