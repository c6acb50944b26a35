"""Time and memory of the evidence: diagnosis, then mobility with bootstrap, on 1e6 samples of 2 and 32 variables.

    python -m benchmarks.evidence

The score is a Gaussian, so that nothing is trained. Writes benchmarks/results/evidence.json.
"""

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import effective_langevin as el

from .harness import peak_memory_mb

RESULTS = Path(__file__).parent / "results" / "evidence.json"
PROMISED = {2: (30.0, None), 32: (120.0, 3000.0)}


def series(dimension: int) -> el.TimeSeries:
    """1e6 samples: the wells, or the Kuramoto-Sivashinsky equation at 32 points."""
    if dimension == 2:
        return el.systems.AsymmetricWells().simulate(500.0, dt=0.05, members=100, seed=0)
    system = el.systems.KuramotoSivashinsky(grid=64, stride=2)
    return system.simulate(1000.0, dt=1.0, members=1000, seed=0, step=0.2, burn_in=500.0)


def measured(dimension: int) -> dict[str, float]:
    """Seconds of both, and the peak memory of the process, the data included."""
    data = series(dimension)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.monotonic()
        el.diagnose(data)
        diagnosed = time.monotonic()
        model = el.fit(data, score=el.Gaussian(noise_level=0.2 if dimension == 32 else 0.0), seed=0)
    return {
        "samples": data.n_samples,
        "diagnosis_seconds": diagnosed - started,
        "mobility_seconds": time.monotonic() - diagnosed,
        "replicas": len(model.mobility.replicas),
        "peak_memory_mb": peak_memory_mb(),
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measured(int(sys.argv[1]))))
        return
    found = {}
    for dimension, (seconds, memory) in PROMISED.items():
        command = [sys.executable, "-m", "benchmarks.evidence", str(dimension)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[dimension] = json.loads(run.stdout.splitlines()[-1])
        total = found[dimension]["diagnosis_seconds"] + found[dimension]["mobility_seconds"]
        print(
            f"{dimension} variables: {total:.0f} s (wanted {seconds:.0f}), {found[dimension]['peak_memory_mb']:.0f} MB",
            end="",
        )
        print(f" (wanted {memory:.0f})" if memory else "")
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
