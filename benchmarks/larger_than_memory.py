"""Fits of a series that is read by blocks: memory, time against samples, and the same mobility as in memory.

    python -m benchmarks.larger_than_memory --folder FOLDER [--samples 1000000 10000000 50000000 200000000 1000000000]

Writes a Zarr store (time, variable) of float32 by blocks, from an Ornstein-Uhlenbeck process whose mobility is known,
fits its first samples, each fit in a process of its own, and deletes the store. Results go to
benchmarks/results/larger_than_memory.json; a run adds to those that are there.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from .harness import log_slope

RESULTS = Path(__file__).parent / "results" / "larger_than_memory.json"
DT, PLANES, BLOCK = 0.05, 4, 1 << 17
RATES, TURNS = np.array([0.5, 0.8, 1.3, 2.0]), np.array([0.0, 0.7, -1.0, 1.5])
MIXING = np.eye(8) + 0.15 * np.random.default_rng(7).normal(size=(8, 8))
MOST_IN_MEMORY = 10_000_000
SCORES = ("gaussian", "denoising", "kgmm")


def exact_mobility() -> np.ndarray:
    """Phi = A C of x = M y, where y turns with rates a + i w in planes of unit variance."""
    inner = np.zeros((2 * PLANES, 2 * PLANES))
    for k, (rate, turn) in enumerate(zip(RATES, TURNS)):
        inner[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[rate, -turn], [turn, rate]]
    return MIXING @ inner @ MIXING.T


def write_store(path: Path, samples: int) -> None:
    """Write the process by blocks: in each plane y(t + h) = exp(-(a + i w) h) y(t) + noise, exactly."""
    import scipy.signal
    import zarr

    group = zarr.open_group(path, mode="w")
    array = group.create_array(
        "x",
        shape=(samples, 8),
        chunks=(BLOCK, 8),
        dtype="float32",
        compressors=None,
        dimension_names=("time", "variable"),
    )
    rng, memory = np.random.default_rng(1), np.exp(-(RATES + 1j * TURNS) * DT)
    spread, state = np.sqrt(1 - np.abs(memory) ** 2), (rng.normal(size=PLANES) + 1j * rng.normal(size=PLANES))
    for start in range(0, samples, BLOCK):
        rows = min(BLOCK, samples - start)
        planes = []
        for k in range(PLANES):
            kicks = spread[k] * (rng.standard_normal(rows) + 1j * rng.standard_normal(rows))
            path_of, _ = scipy.signal.lfilter([1.0], [1.0, -memory[k]], kicks, zi=[memory[k] * state[k]])
            state[k] = path_of[-1]
            planes += [path_of.real, path_of.imag]
        array[start : start + rows] = (np.stack(planes, axis=1) @ MIXING.T).astype(np.float32)


def fit_part(path: str, samples: int, score: str, in_memory: bool) -> dict:
    """Fit the first samples of the store, by blocks or in memory; called in a process of its own."""
    import zarr

    import effective_langevin as el
    from effective_langevin.data.lazy import Rows
    from effective_langevin.data.segments import as_rows

    el.fit(el.systems.OrnsteinUhlenbeck.rotating(8).simulate(100.0, dt=DT, seed=0), score=el.Gaussian())  # compile
    started, worked = time.perf_counter(), time.process_time()
    stored = zarr.open_group(path)["x"]
    if samples == stored.shape[0] and samples > MOST_IN_MEMORY:
        series = el.read(path, dt=DT, chunks="auto")
    else:
        rows = as_rows(stored).window(0, samples)
        series = el.TimeSeries(np.concatenate(list(rows.blocks())) if in_memory else rows, DT)
    assert isinstance(series.segments[0], Rows) != in_memory
    gaussian, denoising = el.Gaussian(), el.DenoisingScore(noise_level=0.2, epochs=20)
    strategy = {"gaussian": gaussian, "denoising": denoising, "kgmm": el.KGMM(noise_level=0.2)}[score]
    model = el.fit(series, score=strategy, mobility=el.IntegratedResponse())
    seconds, exact = time.perf_counter() - started, exact_mobility()
    phi, errors = model.mobility.matrix, model.mobility.standard_error
    return {
        "samples": samples,
        "score": score,
        "in_memory": in_memory,
        "seconds": seconds,
        "cpu_seconds": time.process_time() - worked,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "series_mb": samples * 8 * 4 / 2**20,
        "mobility_error": float(np.linalg.norm(phi - exact) / np.linalg.norm(exact)),
        "mobility_error_se": float(np.linalg.norm(errors) / np.linalg.norm(exact)),
        "stein_error": model.score.stein_error,
        "evidence": {k: str(v) for k, v in model.score.evidence.extra.items()},
        "mobility": phi.tolist(),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, required=True)
    arguments.add_argument("--samples", type=int, nargs="+", default=[1_000_000, 10_000_000, 50_000_000])
    arguments.add_argument("--scores", nargs="+", default=["gaussian"], choices=SCORES)
    arguments.add_argument("--keep", action="store_true", help="keep the store")
    arguments.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.one:
        path, samples, score, in_memory = given.one
        print("RESULT " + json.dumps(fit_part(path, int(samples), score, in_memory == "True")))
        return
    store = given.folder / "larger_than_memory.zarr"
    if not store.exists() or json.loads((store / "x" / "zarr.json").read_text())["shape"][0] < max(given.samples):
        write_store(store, max(given.samples))
    for score in given.scores:
        for samples in given.samples:
            for in_memory in (False, True)[: 1 + (samples <= MOST_IN_MEMORY)]:
                command = [sys.executable, "-m", "benchmarks.larger_than_memory", "--folder", str(given.folder)]
                one = ["--one", str(store), str(samples), score, str(in_memory)]
                done = subprocess.run([*command, *one], capture_output=True, text=True)
                lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
                if not lines:
                    print(score, samples, in_memory, done.stderr[-3000:], flush=True)
                    continue
                keep(json.loads(lines[0][7:]))
    if not given.keep:
        shutil.rmtree(store)


def _exponent(fits: list[dict], clock: str) -> float | None:
    timed = [k for k in fits if clock in k]
    return log_slope([k["samples"] for k in timed], [k[clock] for k in timed]) if len(timed) > 1 else None


def keep(found: dict) -> None:
    """Add a result to the file, and what follows from all of them."""
    known = json.loads(RESULTS.read_text())["fits"] if RESULTS.exists() else []
    same = ("samples", "score", "in_memory")
    known = [k for k in known if any(k[name] != found[name] for name in same)] + [found]
    known.sort(key=lambda k: (k["score"], k["in_memory"], k["samples"]))
    summary = {}
    for score in {k["score"] for k in known}:
        lazy = [k for k in known if k["score"] == score and not k["in_memory"]]
        large = [k for k in lazy if k["samples"] >= 10_000_000]
        whole = {k["samples"]: np.array(k["mobility"]) for k in known if k["score"] == score and k["in_memory"]}
        summary[score] = {
            "peak_memory_mb": max((k["peak_memory_mb"] for k in lazy), default=None),
            **{f"exponent_from_1e7_in_{clock}": _exponent(large, clock) for clock in ("seconds", "cpu_seconds")},
            "difference_from_memory": {
                k["samples"]: float(np.abs(k["mobility"] - whole[k["samples"]]).max() / np.abs(k["mobility"]).max())
                for k in lazy
                if k["samples"] in whole
            },
        }
    RESULTS.write_text(json.dumps({"summary": summary, "fits": known}, indent=1) + "\n")
    print({k: v for k, v in found.items() if k != "mobility"}, flush=True)


if __name__ == "__main__":
    main()
