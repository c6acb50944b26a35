"""Is the verdict right? Replicas of known truth: `python -m benchmarks.verdict [--processes N] [SIZE ...]`.

Every case pairs data with a model whose truth is known: the right one, one that is wrong in a known way, or data that
no model of this kind can be right about. Models are exact, but for "right, fitted" (linear processes, Gaussian score),
"right, learned" (wells by `el.fit` with all its defaults), and blurred and noisy data of linear processes, where a fit
is what goes wrong. Sizes are effective samples, T / (2 x integral time).

A model that was learned has errors of its own. They are measured against a long series of the exact process: where one
of them is beyond what the verdict calls small, the model is off, and to say so is no false alarm.

Replicas run in turns of all cells, longest first, each in one of N processes of one thread. Every answer is written at
once to `verdict.jsonl` beside the results, with a fingerprint of the code; the same command continues from there and
leaves out what another state of the code found. Counts of levels go to `benchmarks/results/verdict.json` and a table to
`verdict.md`. Needs nothing but numpy, scipy, JAX, equinox, optax and safetensors.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin.validate.findings import aspects, notes
from effective_langevin.validate.findings.verdict import ORDER, stated_trend

from .replicas import PROCESSES, TREND, pair

RESULTS = Path(__file__).parent / "results" / "verdict.json"
SHORT = 30
SIZES = (300, 2000, 100_000)  # effective samples
# Replicas of each process at these sizes; a bound of 2 % at 95 % needs 150 in all.
REPLICAS = {
    "right": (60, 60, 20),
    "right, fitted": (60, 40, 10),
    "right, learned": (40, 24, 6),
    "wrong closure": (40, 40, 5),
    "wrong density": (40, 40, 5),
    "non-stationary": (20, 20, 3),
    "blurred": (40, 40, 5),
    "noisy": (40, 40, 5),
}
SHORT_REPLICAS, CHUNK = 40, 4
SEEDS, SEEDED = 3, 1  # seeds of one replica, and replicas that are repeated with them
MEASURED = ("probability", "covariance", "correlation time", "correlation", "mean squared increment", "return time")
EXACT = {300: 20_000, 2000: 20_000, 100_000: 200_000}  # effective samples that tell the error of a learned model
TREND_SEEN = TREND / np.sqrt(1 + TREND**2 / 12)  # in standard deviations of the series with the trend


LEARNED_OFF = "learned, error beyond small"  # of the model itself, measured against the exact process

Cell = tuple[str, str, int]


def cells(sizes: Iterable[int], truths: Iterable[str], names: Iterable[str]) -> Iterator[tuple[Cell, int]]:
    """Yield every cell (truth, process, size) with its number of replicas."""
    for size in sizes:
        for truth in ["too short"] if size == SHORT else truths:
            for name in names:
                only = {"right, fitted": "linear", "right, learned": "wells"}.get(truth, "")
                if name.startswith(only):
                    count = SHORT_REPLICAS if size == SHORT else REPLICAS[truth][SIZES.index(size)]
                    yield (truth, name, size), count


def judge(model: el.LangevinModel, series: el.TimeSeries, seed: int) -> dict[str, Any]:
    """Return level, border, sizes of differences and what could be detected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = el.validate(model, series, seed=seed)
        verdict = result.verdict
    found, detectable = {}, {}
    for test in (*result.tests, *aspects.of_curves(result, notes.relative_error(result))):
        found |= test.largest
        detectable |= test.detectable
    if (trend := stated_trend(result)) is not None:
        detectable["trend"] = trend
    blamed = [f.name for f in verdict.findings if f.level in ("warning", "stop")]
    return {
        "level": verdict.level,
        "border": verdict.border,
        "largest": found,
        "detectable": detectable,
        "blamed": blamed,
    }


@cache
def exact_series(name: str, size: int) -> el.TimeSeries:
    """Return a series of a process that no model was learned from, longer than that of a model."""
    return PROCESSES[name]().simulate(EXACT[size], 10**8)


def beyond_small(sizes: dict[str, float]) -> bool:
    """Tell whether one of the differences is larger than what the verdict calls small."""
    return any(size > aspects.LIMITS[kind][0] for kind, size in sizes.items())


def run_replica(truth: str, name: str, size: int, replica: int) -> dict[str, Any]:
    """Return the verdict on one replica, and for some of them whether three seeds agree."""
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, series = pair(truth, PROCESSES[name](), size, 1000 * size + replica)
    seeds = SEEDS if replica < SEEDED and size < 10_000 else 1
    first, *others = [judge(model, series, seed) for seed in range(seeds)]
    alike = len({r["level"] for r in (first, *others)}) == 1 or all(r["border"] for r in (first, *others))
    again = {"seeds_agree": alike} if others else {}
    seconds = (time.monotonic() - started) / seeds
    known = {"true": judge(model, exact_series(name, size), 0)["largest"]} if truth == "right, learned" else {}
    return {"cell": [truth, name, size], "replica": replica, **first, **again, **known, "seconds": seconds}


def run_chunk(chunk: tuple[Cell, list[int]]) -> list[dict[str, Any]]:
    (truth, name, size), replicas = chunk
    return [run_replica(truth, name, size, replica) for replica in replicas]


def summarise(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts over the replicas of one cell."""
    levels, seeded = Counter(r["level"] for r in found), [r["seeds_agree"] for r in found if "seeds_agree" in r]
    sizes = {k: [r["largest"][k] for r in found if k in r["largest"]] for k in MEASURED}
    noticed = {k: [r["detectable"][k] for r in found if k in r["detectable"]] for k in (*MEASURED, "trend")}
    return {
        "replicas": len(found),
        **{level: levels[level] for level in ORDER},
        "border": sum(r["border"] for r in found),
        "seeds_agree": sum(seeded),
        "seeds_tried": len(seeded),
        "blamed": dict(Counter(name for r in found for name in r["blamed"])),
        "mean_largest": {k: float(np.mean(v)) for k, v in sizes.items() if v},
        "detectable": {k: float(np.median(v)) for k, v in noticed.items() if v},
        "mean_true": {k: float(np.mean([r["true"][k] for r in found if k in r["true"]])) for k in _kinds(found)},
        "runs": [{k: r[k] for k in ("level", "detectable", "true") if k in r} for r in found],
        "seconds_per_run": float(np.median([r["seconds"] for r in found])),
    }


def _kinds(found: list[dict[str, Any]]) -> list[str]:
    return [kind for kind in MEASURED if any(kind in r.get("true", {}) for r in found)]


def above_detectable(results: dict[str, Any]) -> None:
    """Count replicas whose true error is above what they say they can detect.

    The true error is that of the model itself where it was learned, the trend where there is one, and otherwise what
    the largest size shows.
    """
    for key, cell in results.items():
        truth, name, _ = key.split(" | ")
        reference = results.get(f"{truth} | {name} | {max(SIZES)}", {})
        shown = {**reference.get("mean_largest", {}), **({"trend": TREND_SEEN} if truth == "non-stationary" else {})}
        seen = []
        for run in cell["runs"]:
            true = run.get("true", shown)
            if any(true[k] > run["detectable"].get(k, np.inf) for k in true):
                seen.append(run)
        cell["above_detectable"] = len(seen)
        cell["above_detectable_good"] = sum(r["level"] == "good" for r in seen)


def split_learned(found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Tell learned models that are right, up to what is small, from those that are off."""
    for answer in found:
        truth, *rest = answer["cell"]
        if "true" in answer:
            truth = LEARNED_OFF if beyond_small(answer["true"]) else truth
        yield {**answer, "cell": [truth, *rest]}


def table(results: dict[str, Any]) -> str:
    """Write counts summed over the processes as Markdown.

    "good though off" counts replicas called good whose true error is above what they say they can detect; "right,
    learned" are models whose own error is small.
    """
    head = [
        "truth",
        "effective samples",
        "replicas",
        *ORDER,
        "at the border",
        "seeds agree or say so",
        "good though off",
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for truth in (*REPLICAS, LEARNED_OFF, "too short"):
        for size in (SHORT, *SIZES):
            cells = [c for key, c in results.items() if key.split(" | ")[0] == truth and key.endswith(f"| {size}")]
            if not cells:
                continue
            total = {k: sum(c[k] for c in cells) for k in ("replicas", *ORDER, "border", "seeds_agree", "seeds_tried")}
            shares = " | ".join(f"{100 * total[level] / total['replicas']:.1f} %" for level in ORDER)
            seeds = f"{total['seeds_agree']} of {total['seeds_tried']}" if total["seeds_tried"] else "–"
            border = f"{100 * total['border'] / total['replicas']:.0f} %"
            above = sum(c.get("above_detectable", 0) for c in cells)
            missed = f"{sum(c.get('above_detectable_good', 0) for c in cells)} of {above}"
            missed = "–" if truth.startswith("right") or truth == "too short" else missed
            lines.append(f"| {truth} | {size} | {total['replicas']} | {shares} | {border} | {seeds} | {missed} |")
    return "\n".join(lines) + "\n"


def fingerprint() -> str:
    """Return a hash of the package and of the benchmarks: answers of two states of the code are never mixed."""
    files = [*sorted(Path(el.__file__).parent.rglob("*.py")), *sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def read_answers(log: Path, code: str) -> dict[tuple[Cell, int], dict[str, Any]]:
    """Return what this state of the code has found, by cell and replica; a line that was cut short is left out."""
    found = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        answer = json.loads(line) if line.endswith("}") else {}
        if answer.get("code") == code:
            truth, name, size = answer["cell"]
            found[(truth, name, size), answer["replica"]] = answer
    return found


def plan(wanted: Iterable[tuple[Cell, int]], done: Iterable[tuple[Cell, int]]) -> list[tuple[Cell, list[int]]]:
    """Return chunks of replicas still to run: in turns over all cells, in each turn the longest series first."""
    done, chunks = set(done), []
    for cell, count in sorted(wanted, key=lambda entry: (-entry[0][2], entry[0][0] != "right, learned")):
        size = 1 if cell[2] == max(SIZES) or cell[0] == "right, learned" else CHUNK
        missing = [r for r in range(count) if (cell, r) not in done]
        parts = [missing[i : i + size] for i in range(0, len(missing), size)]
        chunks += [(k / len(parts), cell, p) for k, p in enumerate(parts)]
    return [(cell, replicas) for _, cell, replicas in sorted(chunks, key=lambda chunk: chunk[0])]


def run_all(chunks: list[tuple[Cell, list[int]]], processes: int, seconds: float) -> Iterator[list[dict[str, Any]]]:
    """Yield the answers of chunks as they come, from processes of one thread each; stop when the time is over."""
    compiled = Path(tempfile.gettempdir()) / "effective-langevin-verdict"
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    kept = {"JAX_COMPILATION_CACHE_DIR": str(compiled), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
    os.environ.update({**kept, **os.environ, **one})
    started, context = time.monotonic(), multiprocessing.get_context("spawn")
    with context.Pool(processes, _take_a_core, (context.Value("i", 0),)) as pool:
        answers = pool.imap_unordered(run_chunk, chunks)
        for _ in chunks:
            try:
                yield answers.next(timeout=max(0.1, seconds - (time.monotonic() - started)))
            except multiprocessing.TimeoutError:
                return


def _take_a_core(taken: Any) -> None:
    with taken.get_lock():
        taken.value += 1
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[taken.value % len(cores)]})


def write_results(found: Iterable[dict[str, Any]], out: Path, code: str) -> None:
    """Summarise all answers: counts by cell, and the table."""
    by_cell: dict[str, list[dict[str, Any]]] = {}
    for answer in sorted(split_learned(found), key=lambda a: a["replica"]):
        by_cell.setdefault(" | ".join(map(str, answer["cell"])), []).append(answer)
    results = {key: summarise(answers) for key, answers in sorted(by_cell.items())}
    above_detectable(results)
    for cell in results.values():
        del cell["runs"]
    out.write_text(json.dumps({"code": code, "cells": results}, indent=1) + "\n")
    out.with_suffix(".md").write_text(table(results))
    print(table(results))


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.verdict", description=__doc__)
    arguments.add_argument("sizes", nargs="*", type=int, help=f"effective samples (default: {SHORT} and {[*SIZES]})")
    arguments.add_argument("--replicas", type=int, help="at most so many of each cell")
    arguments.add_argument("--truths", nargs="*", default=[*REPLICAS])
    arguments.add_argument("--systems", nargs="*", default=[*PROCESSES])
    arguments.add_argument("--processes", type=int, default=1, help="how many run at once")
    arguments.add_argument("--minutes", type=float, default=1e6, help="stop after so long; the same command continues")
    arguments.add_argument("--out", type=Path, default=RESULTS)
    given = arguments.parse_args()
    code, log = fingerprint(), given.out.with_suffix(".jsonl")
    found = read_answers(log, code)
    wanted = cells(given.sizes or (SHORT, *SIZES), given.truths, given.systems)
    chunks = plan([(cell, min(count, given.replicas or count)) for cell, count in wanted], found)
    total, done = sum(len(replicas) for _, replicas in chunks), 0
    with log.open("a") as file:
        for answers in run_all(chunks, given.processes, 60 * given.minutes):
            for answer in answers:
                file.write(json.dumps({"code": code, **answer}) + "\n")
                found[tuple(answer["cell"]), answer["replica"]] = answer
            file.flush()
            done += len(answers)
            print(f"{done} of {total} replicas", end="\r", flush=True)
    write_results(found.values(), given.out, code)
    print(f"{done} of {total} replicas that were missing are done.")


if __name__ == "__main__":
    main()
