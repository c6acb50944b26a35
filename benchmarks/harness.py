"""Timing in turns, peak memory, and the record that every benchmark returns."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

OURS = "effective-langevin"


@dataclass
class Result:
    """One measured contender in one case: median and fastest time, both over ours; `note` is for words.

    `ratio_cpu` compares the processor time of all threads, which a busy machine changes least. The fastest of all
    rounds is closest to what a quiet machine would show: other programs make PyTorch's threads wait for each other,
    which is no fault of PyTorch. A promise must hold for the median and for the fastest.
    """

    case: str
    contender: str
    seconds: float | None = None
    fastest: float | None = None
    first_seconds: float | None = None
    per: str = "run"
    ratio: float | None = None
    ratio_fastest: float | None = None
    ratio_cpu: float | None = None
    accuracy: str = ""
    note: str = ""
    sizes: dict[str, float] = field(default_factory=dict)


@dataclass
class Target:
    """What was promised, what was measured."""

    claim: str
    wanted: str
    measured: str
    met: bool


@dataclass
class Report:
    """All that a benchmark says."""

    results: list[Result] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def find(self, case: str, contender: str) -> Result | None:
        return next((r for r in self.results if (r.case, r.contender) == (case, contender)), None)

    def promise_ratio(self, claim: str, case: str, contender: str, least: float) -> None:
        """Record the promise that a contender takes at least `least` times as long as we do."""
        found = self.find(case, contender)
        if found is None or found.ratio is None or found.ratio_fastest is None:
            return
        measured = f"{found.ratio:.2f} x (fastest against fastest {found.ratio_fastest:.2f} x)"
        self.promise(claim, f">= {least:g} x", measured, min(found.ratio, found.ratio_fastest) >= least)

    def promise(self, claim: str, wanted: str, measured: str, met: bool) -> None:
        self.targets.append(Target(claim, wanted, measured, bool(met)))


def compare(
    case: str,
    contenders: dict[str, Callable[[], Any]],
    *,
    repeats: int = 5,
    once: tuple[str, ...] = (),
    work: float = 1.0,
    per: str = "run",
    sizes: dict[str, float] | None = None,
) -> list[Result]:
    """Time the contenders in turns, so that whatever else the machine does slows all of them alike.

    The first call of each (compilation, caches) is timed apart; then the median of `repeats` rounds over `work` units.
    A contender named in `once` is so slow that its only call is its time. A contender is a function or, if its package
    is missing or it fails, the exception that says so.
    """
    first, times, busy, notes = {}, {name: [] for name in contenders}, {name: [] for name in contenders}, {}
    for name, run in contenders.items():
        if isinstance(run, Exception):
            notes[name] = f"skipped: {run}"
            continue
        started, worked = time.perf_counter(), time.process_time()
        try:
            run()
        except Exception as error:  # a peer that fails is a result, too
            notes[name] = f"failed: {type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
        first[name] = time.perf_counter() - started
        if name in once:
            times[name].append(first[name])
            busy[name].append(time.process_time() - worked)
    for _ in range(repeats):
        for name, run in contenders.items():
            if name in notes or name in once:
                continue
            started, worked = time.perf_counter(), time.process_time()
            run()
            times[name].append(time.perf_counter() - started)
            busy[name].append(time.process_time() - worked)
    results = []
    for name in contenders:
        if name in notes:
            print(f"  {case}: {name} {notes[name]}", flush=True)
            results.append(Result(case, name, note=notes[name], sizes=sizes or {}))
            continue
        middle, fastest = float(np.median(times[name])), float(min(times[name]))
        extra = max(first[name] - middle, 0.0)
        results.append(Result(case, name, middle / work, fastest / work, extra, per, sizes=sizes or {}))
    ours = next((r for r in results if r.contender.startswith(OURS) and r.seconds), None)
    for result in results:
        if ours and result.seconds:
            result.ratio, result.ratio_fastest = result.seconds / ours.seconds, result.fastest / ours.fastest
            result.ratio_cpu = float(np.median(busy[result.contender]) / max(np.median(busy[ours.contender]), 1e-9))
            print(f"  {case}: {result.contender} {timed(result.seconds)} per {per} ({result.ratio:.2f} x)", flush=True)
    return results


def attempt(build: Callable[[], Callable[[], Any]]) -> Any:
    """The contender that `build` makes, or the reason why there is none."""
    try:
        return build()
    except ImportError as error:
        return ImportError(f"{error.name} is not installed")
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")


def ready(value: Any) -> Any:
    """Wait for a JAX computation."""
    import jax

    return jax.block_until_ready(value)


def peak_memory_mb() -> float:
    """Peak resident memory of this process (`ru_maxrss` would include that of the one that started it)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024


def in_fresh_process(module: str, function: str, **arguments: Any) -> dict[str, Any]:
    """Call `benchmarks.module.function` in a process of its own: its answer with wall time and peak memory."""
    code = (
        "import json, sys, time\n"
        f"from benchmarks.{module} import {function}\n"
        "from benchmarks.harness import peak_memory_mb\n"
        "start = time.perf_counter()\n"
        f"answer = {function}(**json.loads(sys.argv[1]))\n"
        "print(json.dumps({**(answer or {}), 'wall_seconds': time.perf_counter() - start, "
        "'peak_memory_mb': peak_memory_mb()}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments)], capture_output=True, text=True, env=os.environ
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def log_slope(sizes: list[float], values: list[float]) -> float:
    """Exponent of growth, by least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def timed(seconds: float) -> str:
    """A time in the unit that suits it."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def as_data(report: Report) -> dict[str, Any]:
    """A report as plain data."""
    return {"results": [asdict(r) for r in report.results], "targets": [asdict(t) for t in report.targets]}
