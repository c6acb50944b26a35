"""Many fits and large ensembles: `python -m benchmarks.many [one] [fits] [resumed] [ensembles] [killed]`.

fits        linear processes of 2 variables with 10 000 samples each, every one with another matrix, and three that are
            broken. Fits per minute of `el.fit_many` with its defaults, which include starting the processes, against
            loops over `el.fit` before and after it: with the defaults of `el.fit`, and with those of `el.fit_many`.
one         processor time of one more warm fit with the settings of `el.fit_many`: in a loop over `el.fit`, and in
            `el.fit_many` in the same process, in turns. No processes are started; a few seconds.
resumed     a run that is killed with -9 half-way and begun again.
ensembles   100 000 members of 8 variables into a Zarr store: seconds and peak memory against the number of samples
            (`--lengths`).
killed      a store of the first length that was killed half-way and continued, byte by byte against one that was not.

Writes benchmarks/results/many.json; parts that are not run keep their last results.
"""

import argparse
import hashlib
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov

import effective_langevin as el
from effective_langevin.execution.batches import count_cores

RESULTS = Path(__file__).parent / "results" / "many.json"
SAMPLES, DT = 10_000, 0.05
MEMBERS, VARIABLES, LENGTHS = 100_000, 8, (200, 400, 800)
SCORES = {"gaussian": el.Gaussian(), "default": None}
LEAN: dict[str, Any] = {"mobility": el.IntegratedResponse(), "check": "off", "compare_estimators": False}


def make_series(count: int) -> dict[str, el.TimeSeries]:
    """Linear processes whose rates and rotations differ, sampled exactly."""
    rng = np.random.default_rng(0)
    rates, turns = 0.5 + rng.random((count, 2)), 2 * rng.random(count)
    drift = np.zeros((count, 2, 2))
    drift[:, 0, 0], drift[:, 1, 1], drift[:, 0, 1], drift[:, 1, 0] = *rates.T, -turns, turns
    covariance = np.array([solve_continuous_lyapunov(a, np.eye(2)) for a in drift])
    step = expm(-DT * drift)
    kicks = np.linalg.cholesky(covariance - step @ covariance @ step.transpose(0, 2, 1))
    x = np.einsum("nij,nj->ni", np.linalg.cholesky(covariance), rng.normal(size=(count, 2)))
    paths = np.empty((count, SAMPLES, 2))
    for row in range(SAMPLES):
        paths[:, row] = x
        x = np.einsum("nij,nj->ni", step, x) + np.einsum("nij,nj->ni", kicks, rng.normal(size=(count, 2)))
    return {f"series {i}": el.TimeSeries(path, DT) for i, path in enumerate(paths)}


def with_broken(series: dict[str, el.TimeSeries]) -> dict[str, Any]:
    """Three more that cannot be fitted."""
    first = next(iter(series.values())).values
    broken = {"missing": np.full((SAMPLES, 2), np.nan), "constant": np.ones((SAMPLES, 2)), "short": first[:50]}
    return {**broken, **series}


def loop(series: list[el.TimeSeries], **settings: Any) -> np.ndarray:
    """Seconds, and seconds of processor time, per fit of a loop over `el.fit`."""
    started = np.array([time.perf_counter(), time.process_time()])
    for one in series:
        el.fit(one, **settings)
    return (np.array([time.perf_counter(), time.process_time()]) - started) / len(series)


def together(series: dict[str, Any], score: Any) -> tuple[np.ndarray, Any]:
    """Seconds, and seconds of processor time of the workers, of one call of `el.fit_many`."""

    def now() -> np.ndarray:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return np.array([time.perf_counter(), spent.ru_utime + spent.ru_stime])

    started = now()
    with tempfile.TemporaryDirectory() as folder:
        found = el.fit_many(series, out=folder, score=score, reading={"dt": DT}, workers=2)
        return now() - started, found


def measure_fits(score: str, fits: int, looped: int) -> dict[str, Any]:
    """Fits per minute, one after the other and all together; loops go before and after.

    The processor time of one more fit, from two calls with a few and with all series, leaves out the start of the
    processes. On idle cores, time and processor time are the same; on busy ones, only the latter says what a fit costs.
    """
    series, strategy = make_series(fits), SCORES[score]
    some, few = list(series.values())[:looped], dict(list(series.items())[: fits // 6])
    for settings in ({}, LEAN):
        loop(some[:2], score=strategy, **settings)
    before = [loop(some[: looped // 2], score=strategy, **settings) for settings in ({}, LEAN)]
    start, _ = together(few, strategy)
    spent, found = together(with_broken(series), strategy)
    after = [loop(some[looped // 2 :], score=strategy, **settings) for settings in ({}, LEAN)]
    alone, lean = ((b + a) / 2 for b, a in zip(before, after))
    one_more = (spent - start) / (fits - len(few))
    return {
        "score": score,
        "fits": fits,
        "loop_fits": looped,
        "workers": 2,
        "load": os.getloadavg()[0],
        "loop_cpu_seconds": alone[1],
        "loop_with_settings_of_fit_many_cpu_seconds": lean[1],
        "fit_many_cpu_seconds": one_more[1],
        "loop_per_minute": 60 / alone[0],
        "fit_many_per_minute": 60 / one_more[0],
        "ratio": alone[0] / one_more[0],
        "ratio_on_two_idle_cores": 2 * alone[1] / one_more[1],
        "ratio_on_two_idle_cores_with_the_same_settings": 2 * lean[1] / one_more[1],
        "models": len(found.models),
        "failures": found.failures,
    }


def measure_one_fit(score: str, fits: int = 40) -> dict[str, float]:
    """Seconds of processor time per warm fit with the settings of `fit_many`, in a loop and by `fit_many`, in turns."""
    series, strategy = list(make_series(2 * fits + 2).items()), SCORES[score]
    loop([one for _, one in series[:2]], score=strategy, **LEAN)
    el.fit_many(dict(series[:2]), score=strategy, workers=1)
    alone = many = 0.0
    for first in range(2, 2 * fits + 2, fits):
        part = series[first : first + fits // 2], series[first + fits // 2 : first + fits]
        alone += loop([one for _, one in part[0]], score=strategy, **LEAN)[1] / 2
        started = time.process_time()
        el.fit_many(dict(part[1]), score=strategy, workers=1)
        many += (time.process_time() - started) / len(part[1]) / 2
    return {"fits": fits, "loop_cpu_seconds": alone, "fit_many_cpu_seconds": many, "load": os.getloadavg()[0]}


def measure_resumed_fits(fits: int) -> dict[str, Any]:
    """Kill a run half-way with all its processes, begin it again, and count what was written twice."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "runs"
        command = [sys.executable, "-m", "benchmarks.many", "--child-fits", str(fits), str(out)]
        child = subprocess.Popen(command, start_new_session=True)
        while len(list(out.glob("rows/*.json"))) < fits // 2 and child.poll() is None:
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        done = {path: path.stat().st_mtime_ns for path in out.glob("rows/[!.]*.json")}
        subprocess.run(command, check=True)
        twice = sum(path.stat().st_mtime_ns != stamp for path, stamp in done.items())
        return {"fits": fits, "done_when_killed": len(done), "done_twice": twice, "done": len(list(out.glob("rows/*")))}


def ensemble_model() -> el.LangevinModel:
    """A linear model of 8 variables."""
    series = el.systems.OrnsteinUhlenbeck.rotating(VARIABLES).simulate(500.0, dt=0.1, seed=1)
    return el.fit(series, score=el.Gaussian(), mobility=el.IntegratedResponse(), check="off")


def simulate_aside(model: Path, out: Path, samples: int, *, kill: bool = False) -> dict[str, float]:
    """Simulate into a store in a process that tells its seconds and its peak memory, or is killed half-way."""
    command = [sys.executable, "-m", "benchmarks.many", "--child-paths", str(model), str(out), str(samples)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    whole = 4.0 * MEMBERS * (samples + 1) * VARIABLES
    while kill and child.poll() is None:
        if sum(p.stat().st_size for p in out.rglob("*") if p.is_file()) > whole / 2:
            child.kill()
            break
        time.sleep(0.1)
    told = child.communicate()[0]
    return {} if kill else json.loads(told.splitlines()[-1])


def digest(store: Path) -> str:
    """A digest of all files of a store."""
    found = hashlib.blake2b()
    for path in sorted(p for p in store.rglob("*") if p.is_file()):
        found.update(path.relative_to(store).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def measure_ensembles(lengths: list[int]) -> dict[str, Any]:
    """Seconds and peak memory against the number of samples."""
    rows = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("LARGE_TMPDIR")) as place:
        model, out = (Path(place) / name for name in ("model.safetensors", "paths.zarr"))
        ensemble_model().save(model)
        simulate_aside(model, out, 64)  # compile
        for samples in lengths:
            shutil.rmtree(out)
            rows.append({"members": MEMBERS, "samples": samples, **simulate_aside(model, out, samples)})
    seconds, samples = ([row[key] for row in rows] for key in ("seconds", "samples"))
    slope = float(np.polyfit(np.log(samples), np.log(seconds), 1)[0])
    per_sample = (seconds[-1] - seconds[0]) / (samples[-1] - samples[0])
    return {
        "variables": VARIABLES,
        "runs": rows,
        "slope_of_seconds_in_samples": slope,
        "hours_for_10_000_samples": per_sample * 10_000 / 3600,
        "peak_mb": max(row["peak_mb"] for row in rows),
    }


def measure_killed_store(samples: int) -> dict[str, Any]:
    """Kill a simulation half-way, continue it, and compare the store with one that was not killed."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("LARGE_TMPDIR")) as place:
        model, out = (Path(place) / name for name in ("model.safetensors", "paths.zarr"))
        ensemble_model().save(model)
        whole = simulate_aside(model, out, samples)
        expected = digest(out)
        shutil.rmtree(out)  # both at once may not fit on the disk
        simulate_aside(model, out, samples, kill=True)
        unfinished = (out / "unfinished.npz").is_file()
        rest = simulate_aside(model, out, samples)
        found = {"members": MEMBERS, "samples": samples, "unfinished": unfinished, "whole": whole, "rest": rest}
        return {**found, "same_bytes": digest(out) == expected}


def child_fits(fits: int, out: str) -> None:
    el.fit_many(make_series(fits), out=out, score=el.Gaussian(), workers=count_cores())


def child_paths(model: str, out: str, samples: int) -> None:
    started = time.perf_counter()
    loaded = el.load(model)
    loaded.simulate(loaded.dt * samples, members=MEMBERS, seed=1, out=out)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": time.perf_counter() - started, "peak_mb": peak}))


def keep(known: dict[str, Any]) -> None:
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.many", description=__doc__)
    arguments.add_argument("parts", nargs="*", default=[], help="one, fits, resumed, ensembles, killed (default: all)")
    arguments.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    arguments.add_argument("--fits", type=int, default=2000)
    arguments.add_argument("--loop", type=int, default=40)
    arguments.add_argument("--scores", nargs="*", default=list(SCORES))
    arguments.add_argument("--child-fits", nargs=2, help=argparse.SUPPRESS)
    arguments.add_argument("--child-paths", nargs=3, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    if given.child_fits:
        return child_fits(int(given.child_fits[0]), given.child_fits[1])
    if given.child_paths:
        return child_paths(*given.child_paths[:2], int(given.child_paths[2]))
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known["machine"] = {"cores": count_cores(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    parts = given.parts or ("one", "fits", "resumed", "ensembles", "killed")
    for score in given.scores if "fits" in parts else ():
        known.setdefault("fits", {})[score] = measure_fits(score, given.fits, given.loop)
        keep(known)
    for score in given.scores if "one" in parts else ():
        known.setdefault("one", {})[score] = measure_one_fit(score)
        keep(known)
    if "resumed" in parts:
        known["resumed"] = measure_resumed_fits(given.fits)
        keep(known)
    if "ensembles" in parts:
        known["ensembles"] = measure_ensembles(given.lengths)
        keep(known)
    if "killed" in parts:
        known["killed"] = measure_killed_store(given.lengths[0])
        keep(known)
    print(json.dumps(known, indent=1))


if __name__ == "__main__":
    main()
