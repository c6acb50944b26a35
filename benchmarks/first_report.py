"""From a file of 100 000 samples of three variables to its report: how long it takes, and how long it is ever silent.

One command, `effective-langevin fit FILE --out RUN`, in a fresh process with an empty store of compiled programs.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import effective_langevin as el

from .harness import OURS, Report, Result

COMMAND = "from effective_langevin.cli import main; main()"
LONGEST, LONGEST_SILENCE = 120.0, 15.0


def run(quick: bool) -> Report:
    report = Report()
    samples = 5_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as folder:
        series = el.systems.StochasticLorenz63().simulate(0.02 * samples, dt=0.02, members=1, seed=1)
        values = series.values.reshape(-1, 3)[:samples]
        np.savez(Path(folder) / "lorenz.npz", x=values, dt=0.02, variables=list(series.names))
        wall, silence, said = watched(["fit", f"{folder}/lorenz.npz", "--out", f"{folder}/run"], folder)
        if not (Path(folder) / "run" / "report.html").is_file():
            raise RuntimeError("the fit left no report: " + " | ".join(said[-3:]))
    busy = os.getloadavg()[0]
    note = f"longest silence {silence:.1f} s, {len(said)} lines, load {busy:.1f} on {os.cpu_count()} cores"
    report.results.append(Result(f"fit to report, {samples} x 3", OURS, wall, wall, note=note))
    print(f"  {samples} x 3: {wall:.1f} s, {note}", flush=True)
    report.promise("a file of 1e5 x 3 to its report", f"<= {LONGEST:g} s", f"{wall:.0f} s", wall <= LONGEST)
    report.promise(
        "a sign of life on the way", f"every {LONGEST_SILENCE:g} s", f"{silence:.1f} s", silence <= LONGEST_SILENCE
    )
    return report


def watched(arguments: list[str], folder: str) -> tuple[float, float, list[str]]:
    """Seconds until the command ends, the longest time without a line from it, and its lines."""
    env = {**os.environ, "XDG_CACHE_HOME": folder, "PYTHONUNBUFFERED": "1"}
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"):
        env.pop(name, None)
    command = [sys.executable, "-c", COMMAND, *arguments]
    started = time.perf_counter()
    said, times = [], [started]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            said.append(line.rstrip())
            times.append(time.perf_counter())
            print(f"    {times[-1] - started:6.1f} s  {said[-1][:100]}", flush=True)
    times.append(time.perf_counter())
    return times[-1] - started, float(np.diff(times).max()), said
