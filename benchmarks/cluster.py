"""Fits of a stored series on dask workers: `python -m benchmarks.cluster --folder FOLDER [--samples 20000000]`.

The store of `benchmarks.larger_than_memory` is fitted without workers, with two and with four worker processes, and
with two of which one is killed with -9 while it sums moments; each fit in a process of its own. Says how many digits
agree with the fit without workers, and what the scheduler told of the death. Writes benchmarks/results/cluster.json.
"""

import argparse
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from .larger_than_memory import DT, write_store

RESULTS = Path(__file__).parent / "results" / "cluster.json"
WORKERS = {"no workers": 0, "2 workers": 2, "4 workers": 4, "2 workers, one killed": 2}
MOMENTS, DONE_BEFORE = "piece_sums", 5  # the name of tasks that sum moments; one worker dies after so many of them
NUMBERS = ("mobility", "standard_error", "covariance", "stein")


class Told(logging.Handler):
    """Keeps what the scheduler and the nannies of the workers say."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(re.sub(r"tcp://\S+", "tcp://...", record.getMessage()).splitlines()[0][:160])


def kill_in_the_middle(client: Any, killed: dict[str, Any]) -> None:
    """Wait until some moments are summed and others are at work, then kill a worker that is at work."""

    def at_work(dask_scheduler: Any) -> tuple[int, str]:
        prefix = dask_scheduler.task_prefixes.get(MOMENTS)
        busy = [w for w in dask_scheduler.workers.values() for t in w.processing if t.prefix.name == MOMENTS]
        return prefix.state_counts["memory"] if prefix else 0, busy[0].address if busy else ""

    pids = client.run(os.getpid)
    while True:
        done, address = client.run_on_scheduler(at_work)
        if done >= DONE_BEFORE and address in pids:
            os.kill(pids[address], signal.SIGKILL)
            killed |= {"pid": pids[address], "pieces_done": done}
            return
        time.sleep(0.01)


def fit_with(path: str, workers: int, kill: bool) -> dict[str, Any]:
    """Fit the store; called in a process of its own."""
    import distributed

    import effective_langevin as el

    told, killed = Told(), {}
    for name in ("distributed.scheduler", "distributed.nanny"):
        logging.getLogger(name).addHandler(told)
    started = time.perf_counter()
    if workers:
        local = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        client = distributed.Client(local)
        if kill:
            threading.Thread(target=kill_in_the_middle, args=(client, killed), daemon=True).start()
    series = el.read(path, dt=DT, chunks="auto")
    model = el.fit(series, score=el.Gaussian(), mobility=el.IntegratedResponse(), seed=0)
    seconds = time.perf_counter() - started
    if workers:
        alive = sorted(client.run(os.getpid).values())
        assert killed.get("pid") not in alive
        client.close()
        local.close()
    found = (model.mobility.matrix, model.mobility.standard_error, model.score.covariance, model.score.stein)
    numbers = {name: np.asarray(value, float).tolist() for name, value in zip(NUMBERS, found)}
    retried = [line for line in told.lines if re.search("recomput|unresponsive|lost|Restarting|restart", line)]
    return {"seconds": seconds, "killed_after": killed.get("pieces_done"), "log": retried, **numbers}


def digits(found: dict[str, Any], alone: dict[str, Any]) -> float:
    """Return how many digits agree, relative to the largest number of each matrix; 17 for equal bits."""
    off = 0.0
    for name in NUMBERS:
        one, other = np.array(found[name]), np.array(alone[name])
        off = max(off, float(np.abs(one - other).max() / np.abs(other).max()))
    return float(-np.log10(off)) if off else 17.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--folder", type=Path, required=True)
    arguments.add_argument("--samples", type=int, default=20_000_000)
    arguments.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    store = given.folder / "cluster.zarr"
    if given.one:
        print("RESULT " + json.dumps(fit_with(str(store), int(given.one[0]), given.one[1] == "True")))
        return
    write_store(store, given.samples)
    rows: dict[str, Any] = {}
    for name, workers in WORKERS.items():
        command = [sys.executable, "-m", "benchmarks.cluster", "--folder", str(given.folder)]
        one = ["--one", str(workers), str("killed" in name)]
        done = subprocess.run([*command, *one], capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        if not lines:
            sys.exit(f"{name}: {done.stderr[-3000:]}")
        rows[name] = json.loads(lines[0][7:])
        rows[name]["digits_that_agree"] = digits(rows[name], rows["no workers"])
        print(name, {k: v for k, v in rows[name].items() if k not in NUMBERS}, flush=True)
    shutil.rmtree(store)
    known = {name: {k: v for k, v in row.items() if k not in NUMBERS} for name, row in rows.items()}
    RESULTS.write_text(json.dumps({"samples": given.samples, "variables": 8, "fits": known}, indent=1) + "\n")


if __name__ == "__main__":
    main()
