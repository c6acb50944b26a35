"""`python -m benchmarks [names] [--quick]`: every comparison, each in a process of its own.

Writes benchmarks/results/cpu.json or gpu.json and a Markdown table of the same name. Benchmarks that are not run
keep their last results. A peer that is not installed is skipped and named. `python -m benchmarks robustness` counts
what becomes of hostile inputs.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .harness import as_data, peak_memory_mb, timed

NAMES = (
    "simulation",
    "steps",
    "accuracy",
    "training",
    "partition",
    "correlations",
    "growth",
    "startup",
    "first_report",
)
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    if sys.argv[1:2] == ["robustness"]:
        importlib.import_module("benchmarks.robustness").main(sys.argv[2:])
        return
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    arguments.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(NAMES)} (default: all)")
    arguments.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs; not kept")
    arguments.add_argument("--alone", metavar="FILE", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if unknown := set(given.names) - set(NAMES):
        arguments.error(f"no benchmark called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if given.alone:
        Path(given.alone).write_text(json.dumps(measured(given.names[0], given.quick)))
        return
    done = {name: in_own_process(name, given.quick) for name in given.names or NAMES}
    done = {name: found for name, found in done.items() if found and found["results"]}
    if not done:
        sys.exit("No benchmark finished.")
    kind = next(iter(done.values()))["backend"]
    if given.quick:
        print(table(done, kind))
        return
    path = RESULTS / f"{kind}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known = {name: {**known, **done}[name] for name in NAMES if name in {**known, **done}}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(known, indent=1) + "\n")
    path.with_suffix(".md").write_text(table(known, kind))
    print(table(done, kind))


def in_own_process(name: str, quick: bool) -> dict[str, Any] | None:
    """Run one benchmark in a fresh process, so that its peak memory is its own; None if it broke."""
    print(f"{name} ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks", name, "--alone", str(out), *(["--quick"] if quick else [])]
        # On a busy machine threads that wait by spinning make PyTorch and scikit-learn several times slower.
        code = subprocess.run(command, env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ}).returncode
        if code:
            print(f"{name} ended with exit code {code}", flush=True)
            return None
        return json.loads(out.read_text())


def measured(name: str, quick: bool) -> dict[str, Any]:
    """The report of one benchmark with all that is needed to read it later."""
    import jax

    backend = jax.default_backend()
    load, started = os.getloadavg()[0], time.time()
    report = as_data(importlib.import_module(f"benchmarks.{name}").run(quick))
    memory = jax.devices()[0].memory_stats() if backend != "cpu" else None
    return {
        "backend": backend,
        "device": jax.devices()[0].device_kind if backend != "cpu" else f"{platform.processor() or platform.machine()}",
        "cores": os.cpu_count(),
        "load_before_and_after": [round(load, 2), round(os.getloadavg()[0], 2)],
        "date": time.strftime("%Y-%m-%d", time.gmtime(started)),
        "wall_seconds": round(time.time() - started, 1),
        "peak_memory_mb": round(peak_memory_mb()),
        "peak_device_memory_mb": round((memory or {}).get("peak_bytes_in_use", 0) / 2**20) or None,
        "versions": versions(),
        **report,
    }


def versions() -> dict[str, str]:
    """Versions of ourselves and of the peers that are there."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("jax", "numpy", "torch", "diffrax", "torchsde", "scikit-learn", "statsmodels", "deeptime"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def table(known: dict[str, Any], kind: str) -> str:
    """Targets first, then every measurement."""
    lines = [f"# Speed and memory, {kind.upper()}", "", "`python -m benchmarks` wrote this file; do not edit it.", ""]
    lines += ["| target | wanted | measured | met |", "|---|---|---|---|"]
    for found in known.values():
        lines += [f"| {t['claim']} | {t['wanted']} | {t['measured']} | {yes(t['met'])} |" for t in found["targets"]]
    for name, found in known.items():
        busy = " to ".join(map(str, found["load_before_and_after"]))
        lines += ["", f"## {name}", ""]
        lines += [
            f"{found['date']}, {found['device']}, {found['cores']} cores, load {busy}, {found['wall_seconds']:.0f} s, "
            f"peak memory {found['peak_memory_mb']} MB; "
            + ", ".join(f"{package} {number}" for package, number in found["versions"].items())
            + ".",
            "",
        ]
        lines += [
            "| case | contender | time | over ours: median, fastest, CPU time | first call extra | accuracy | note |"
        ]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [row(result) for result in found["results"]]
    return "\n".join(lines) + "\n"


def row(result: dict[str, Any]) -> str:
    cells = [result["case"], result["contender"]]
    cells.append(f"{timed(result['seconds'])} per {result['per']}" if result["seconds"] else "")
    ratios = [result.get(name) for name in ("ratio", "ratio_fastest", "ratio_cpu")]
    cells.append(", ".join(f"{ratio:.2f}" for ratio in ratios if ratio))
    cells.append(timed(result["first_seconds"]) if result["first_seconds"] else "")
    cells += [result["accuracy"], result["note"]]
    return "| " + " | ".join(cells) + " |"


def yes(met: bool) -> str:
    return "yes" if met else "**no**"


if __name__ == "__main__":
    main()
