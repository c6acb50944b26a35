"""How time and memory grow with samples, dimension and members; each measurement in a process of its own.

Sizes beyond memory, thousands of fits and killed runs have scripts of their own: `benchmarks.larger_than_memory`,
`benchmarks.cluster` and `benchmarks.many`.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from .harness import Report, Result, in_fresh_process, log_slope, peak_memory_mb


def run(quick: bool) -> Report:
    report = Report()
    samples = (10_000, 30_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)
    dimensions = (2, 8) if quick else (2, 8, 32, 128)
    members = (100, 1000) if quick else (100, 1000, 10_000, 100_000)
    grow(report, "fit, 8 variables", "samples", samples, "fit_seconds", function="fit_series", dimension=8)
    grow(report, "fit, 2 variables", "samples", samples[:3], "fit_seconds", function="fit_series", dimension=2)
    grow(report, "moments, 8 variables", "samples", samples, "moment_seconds", function="moments", dimension=8)
    grow(report, "fit, 1e5 samples", "dimension", dimensions, "fit_seconds", function="fit_series", samples=samples[1])
    grow(report, "simulation, 200 steps", "members", members, "simulation_seconds", function="simulation")
    stored, number = (samples, (4, 8)) if quick else (samples[2:], (32, 128, 512))
    grow(report, "fit by blocks, 8 variables", "samples", stored, "fit_seconds", function="fit_by_blocks")
    grow(report, "fit_many, 1e4 x 2 each", "series", number, "fit_seconds", function="fit_together")
    grow(
        report,
        "paths of 200 samples x 8 in a store",
        "members",
        members[1:],
        "simulation_seconds",
        function="stored_paths",
    )
    last = report.find("fit, 8 variables", f"samples = {samples[-1]}")
    if last is not None and not quick:
        memory = last.sizes.get("peak_memory_mb", np.inf)
        report.promise("fit of a 1e7 x 8 series: memory", "<= 4 GB", f"{memory / 1024:.2f} GB", memory <= 4096)
        exponent = last.sizes.get("slope_of_last_decade", np.inf)
        report.promise("fit of a 1e7 x 8 series: exponent in samples", "<= 1.05", f"{exponent:.2f}", exponent <= 1.05)
    wide = report.find("fit, 1e5 samples", "dimension = 128")
    if wide is not None and wide.seconds:
        report.promise("fit of a 1e5 x 128 series", "<= 60 s", f"{wide.seconds:.0f} s", wide.seconds <= 60)
    return report


def grow(
    report: Report, case: str, axis: str, sizes: tuple[int, ...], clock: str, *, function: str, **fixed: Any
) -> None:
    """Measure along one axis; the exponents of the last step and of the whole range are noted."""
    seconds, memory = [], []
    for size in sizes:
        answer = in_fresh_process("growth", function, **{axis: size}, **fixed)
        if "error" in answer:
            print(f"  {case}, {axis} = {size}: {answer['error']}", flush=True)
            report.results.append(Result(case, f"{axis} = {size}", note=answer["error"]))
            continue
        seconds.append(answer[clock])
        memory.append(answer["peak_memory_mb"] - answer["before_mb"])
        found = Result(case, f"{axis} = {size}", answer[clock], answer[clock], per="run")
        found.sizes = {axis: size, **fixed, "peak_memory_mb": answer["peak_memory_mb"], "input_mb": answer["input_mb"]}
        found.accuracy = f"{answer['peak_memory_mb']:.0f} MB, of which {answer['input_mb']:.0f} MB input"
        if len(seconds) > 1:
            slope = log_slope(list(sizes[len(seconds) - 2 : len(seconds)]), seconds[-2:])
            heavier = log_slope(list(sizes[len(memory) - 2 : len(memory)]), [max(m, 1.0) for m in memory[-2:]])
            found.sizes["slope_of_last_decade"] = slope
            found.note = f"exponent {slope:.2f} in time, {heavier:.2f} in memory"
        report.results.append(found)
        print(
            f"  {case}, {axis} = {size}: {answer[clock]:.2f} s, {answer['peak_memory_mb']:.0f} MB {found.note}",
            flush=True,
        )


def made_up_series(samples: int, dimension: int):
    """Autoregressive variables, mixed pairwise and bent: cheap to make, not Gaussian."""
    import scipy.signal

    import effective_langevin as el

    rng, values = np.random.default_rng(0), np.empty((samples, dimension))
    for i in range(dimension):
        memory = 0.9 + 0.05 * i / dimension
        line = scipy.signal.lfilter([np.sqrt(1 - memory**2)], [1, -memory], rng.standard_normal(samples))
        values[:, i] = line + (0.3 * values[:, i - 1] if i else 0.0) + 0.1 * line**2
    return el.TimeSeries(values, dt=0.1)


def fit_series(samples: int, dimension: int) -> dict[str, float]:
    import effective_langevin as el

    series, before = made_up_series(samples, dimension), peak_memory_mb()
    started = time.perf_counter()
    el.fit(series, score=el.KGMM(noise_level=0.1) if dimension <= 6 else el.DenoisingScore(noise_level=0.1, epochs=10))
    return {"fit_seconds": time.perf_counter() - started, "before_mb": before, "input_mb": samples * dimension / 2**17}


def fit_by_blocks(samples: int) -> dict[str, float]:
    import effective_langevin as el

    from .larger_than_memory import DT, write_store

    with tempfile.TemporaryDirectory() as folder:
        write_store(store := Path(folder) / "series.zarr", samples)
        before, started = peak_memory_mb(), time.perf_counter()
        el.fit(el.read(store, dt=DT, chunks="auto"), score=el.Gaussian(), mobility=el.IntegratedResponse())
        seconds = time.perf_counter() - started
    return {"fit_seconds": seconds, "before_mb": before, "input_mb": samples * 8 / 2**18}


def fit_together(series: int) -> dict[str, float]:
    import effective_langevin as el

    from .many import SAMPLES, make_series

    made, before = make_series(series), peak_memory_mb()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        found = el.fit_many(made, out=folder, score=el.Gaussian())
        seconds = time.perf_counter() - started
    assert len(found.models) == series
    return {"fit_seconds": seconds, "before_mb": before, "input_mb": series * SAMPLES * 2 / 2**17}


def stored_paths(members: int) -> dict[str, float]:
    import effective_langevin as el

    series = el.systems.OrnsteinUhlenbeck.rotating(8).simulate(200.0, dt=0.1, seed=0)
    model, before = el.fit(series, score=el.Gaussian()), peak_memory_mb()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        model.simulate(19.9, members=members, seed=1, out=Path(folder) / "paths.zarr")
        seconds = time.perf_counter() - started
    return {"simulation_seconds": seconds, "before_mb": before, "input_mb": members * 200 * 8 / 2**18}


def moments(samples: int, dimension: int) -> dict[str, float]:
    from effective_langevin.statistics.lags import autocovariances, lagged_moments

    series, before = made_up_series(samples, dimension), peak_memory_mb()
    started = time.perf_counter()
    lagged_moments(series.segments, series.segments, np.arange(20), groups=8)
    autocovariances(series.segments, 100)
    return {
        "moment_seconds": time.perf_counter() - started,
        "before_mb": before,
        "input_mb": samples * dimension / 2**17,
    }


def simulation(members: int) -> dict[str, float]:
    import jax
    import jax.numpy as jnp

    import effective_langevin as el
    from effective_langevin.simulate import StochasticHeun, integrate
    from effective_langevin.simulate.steppers import Equation

    system = el.systems.AsymmetricWells()
    advance = StochasticHeun().advance(Equation(system._drift, jnp.asarray(system._noise(None), jnp.float32)), 0.005)
    options = {"frames": 4, "save_every": 50, "step": 0.005, "key": jax.random.key(0)}
    integrate(advance, np.zeros((members, 2)), **options)
    before, started = peak_memory_mb(), time.perf_counter()
    integrate(advance, np.zeros((members, 2)), **options)
    seconds = time.perf_counter() - started
    return {"simulation_seconds": seconds, "before_mb": 0.0 * before, "input_mb": members * 2 / 2**18}
