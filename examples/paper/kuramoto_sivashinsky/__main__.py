"""The paper's main result: `python -m examples.paper.kuramoto_sivashinsky [small|paper] [--only NAME ...]`.

Learns the Kuramoto-Sivashinsky flow from data alone: with a current that depends on the state, with a constant
mobility, as published, and as a linear inverse model (LIM). Simulates each and writes results.npz and metrics.json into
the folder of that size, from which `figures.py` draws; models that are not named keep their last results. `paper` is
for a GPU.
"""

import argparse
import time
from pathlib import Path

import jax
import numpy as np

import effective_langevin as el
from effective_langevin._core import progress
from effective_langevin.cli.demo import DEMOS, PAPER_SCALE, Demo
from effective_langevin.execution.compilation import keep_compiled_programs

from .results import FOLDER, Entry, collect, read, write

NAME = "kuramoto-sivashinsky"
STARTS, LEADS = 256, (1.0, 5.0, 10.0, 20.0)


def published(demo: Demo) -> dict:
    """The paper's score and mobility; of the smaller configuration, the same with its number of steps and noise."""
    paper = demo is PAPER_SCALE[NAME]
    score = el.DenoisingScore(
        el.UNet1D(normalization="batch"),
        noise_level=0.1 if paper else demo.score.noise_level,
        batch=528 if paper else demo.score.batch,
        epochs=100 if paper else demo.score.epochs,
        epoch_samples=100_000 if paper else demo.score.epoch_samples,
        learning_rate=1e-3,
        final_rate=0.1,
        average=1e-6,
        precondition=False,
        antithetic=False,
        calibrate=False,
        narrowest=float("inf"),
    )
    return {"score": score, "mobility": el.FiniteVolume(min_mass=1e-4)}


def main(size: str, out: Path, only: list[str], seed: int) -> None:
    """All models of one series; then the small arrays that figures and table are made of."""
    demo = (PAPER_SCALE if size == "paper" else DEMOS)[NAME]
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    device = str(jax.block_until_ready(jax.numpy.zeros(1)).device)  # the first array starts a GPU, which takes seconds
    facts: dict = {"device": device, "start_seconds": time.monotonic() - started}
    old, known = read(out) if (out / "results.npz").exists() else ({}, {})
    with progress.shown():
        series = demo.series(seed)
        entries = {name: MODELS[name](demo, series, seed, facts) for name in only}
        facts |= {"whole_run_seconds": time.monotonic() - started}
        facts["forecasts"] = {name: forecast_errors(model, demo, seed) for name, (model, _) in entries.items()}
        write({**old, **collect(series, entries)}, out, {**known.get("extra", {}), **facts})
    print((out / "metrics.json").read_text())


def state_dependent(demo: Demo, series: el.TimeSeries, seed: int, facts: dict) -> Entry:
    """The demonstration: a current that depends on the state."""
    started = time.monotonic()
    model = el.fit(series, score=demo.score, mobility=demo.mobility, symmetry=demo.symmetry, seed=seed)
    facts["fit_seconds"], started = time.monotonic() - started, time.monotonic()
    result = el.validate(model, series, seed=seed + 1, **demo.validation)
    facts["validation_seconds"] = time.monotonic() - started
    facts |= {f"validate.{k}": v for k, v in result.metrics.items()}
    facts["members_left"] = len(result.paths.segments)
    facts |= {"step": model.automatic_step(), "training_steps": model.score.diagnostics["training_steps"]}
    return model, result


def forecast_errors(model: el.LangevinModel, demo: Demo, seed: int) -> dict[str, list[float]]:
    """Return root mean square errors of the mean of 16 members from 256 states that no fit has seen, and persistence.

    Errors are in units of the standard deviation of the data.
    """
    truth = demo.system.simulate(max(LEADS), dt=1.0, members=STARTS, seed=seed + 1000, **demo.spin_up)
    later = np.stack(truth.segments)
    first, then = later[:, 0], later[:, [round(lead) for lead in LEADS]]
    paths = model.simulate(max(LEADS), dt=1.0, members=16 * STARTS, initial=np.repeat(first, 16, axis=0), seed=seed)
    means = np.stack(paths.segments).reshape(STARTS, 16, *later.shape[1:]).mean(axis=1)
    guesses = {"model": means[:, [round(lead) for lead in LEADS]], "persistence": first[:, None]}
    spread = float(np.mean(model.standardizer.std))
    return {name: (rms(guess - then) / spread).tolist() for name, guess in guesses.items()} | {"leads": list(LEADS)}


def rms(errors: np.ndarray) -> np.ndarray:
    """Return the root mean square over starts and points, for each lead."""
    return np.sqrt(np.mean(errors**2, axis=(0, 2)))


def constant(demo: Demo, series: el.TimeSeries, seed: int, facts: dict) -> Entry:
    """The same score with a constant mobility."""
    started = time.monotonic()
    model = el.fit(series, score=demo.score, mobility=el.IntegratedResponse(), symmetry=demo.symmetry, seed=seed)
    facts["constant_fit_seconds"] = time.monotonic() - started
    return model, model.simulate(**_simulation(demo, seed))


def as_published(demo: Demo, series: el.TimeSeries, seed: int, facts: dict) -> Entry:
    """The published recipe, stepped as published."""
    started = time.monotonic()
    model = el.fit(series, **published(demo), seed=seed + 1)
    facts["published_fit_seconds"] = time.monotonic() - started
    facts["published_cells"] = model.mobility.diagnostics["cells"]
    step = {"step": 0.005, "stepper": el.EulerMaruyama(), "denoise": False}
    return model, model.simulate(**_simulation(demo, seed), **step)


def linear_inverse(demo: Demo, series: el.TimeSeries, seed: int, facts: dict) -> Entry:
    """The linear inverse model."""
    gaussian = el.Gaussian(noise_level=demo.score.noise_level)
    model = el.fit(series, score=gaussian, mobility=el.LogCorrelation(), symmetry=demo.symmetry, seed=seed + 1)
    return model, model.simulate(**_simulation(demo, seed))


def _simulation(demo: Demo, seed: int) -> dict:
    return {"duration": demo.validation["duration"], "members": demo.validation["members"], "seed": seed + 2}


MODELS = {
    "state-dependent": state_dependent,
    "constant": constant,
    "published": as_published,
    "LIM": linear_inverse,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", choices=("small", "paper"), nargs="?", default="small")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--out", type=Path, help="default: this folder's subfolder of that size")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    keep_compiled_programs()
    main(arguments.size, arguments.out or FOLDER / arguments.size, arguments.only, arguments.seed)
