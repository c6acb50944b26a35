"""Metrics, time and memory of the demonstrations: `python -m benchmarks.demos [NAME ...]`.

Runs each demonstration in a fresh process with seed 0, as `effective-langevin demo NAME` does, and writes
benchmarks/results/demos.json. Demonstrations that are not run keep their last results.
"""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from .harness import in_fresh_process

NAMES = ("wells", "kuramoto-sivashinsky", "scalar", "lorenz63")
RESULTS = Path(__file__).parent / "results" / "demos.json"


def measure(name: str) -> dict:
    """Run one demonstration and return its metrics."""
    from effective_langevin.cli.settings import Settings

    return {"metrics": Settings.for_demo(name).run()[0].metrics}


def main(names: list[str]) -> None:
    known = json.loads(RESULTS.read_text())
    for name in names or NAMES:
        found = in_fresh_process("demos", "measure", name=name)
        if "error" in found:
            sys.exit(f"{name}: {found['error']}")
        known[name] = {
            "metrics": found["metrics"],
            "seconds": round(found["wall_seconds"]),
            "peak_memory_gb": round(found["peak_memory_mb"] / 1024, 1),
            "python": platform.python_version(),
            "jax": version("jax"),
        }
        print(name, json.dumps(known[name], indent=1), flush=True)
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
