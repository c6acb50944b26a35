"""The paper's main result: `python -m examples.paper.kuramoto_sivashinsky [small|paper] [--only-ours] [--out FOLDER]`.

Learns the Kuramoto-Sivashinsky flow from data alone, ours, the same settled by simulation, as published, and as a
linear inverse model; simulates each, and writes results.npz and metrics.json into the folder of that size, from which
`figures.py` draws. `paper` is for a GPU. An interrupted run continues with its training when called again.
"""

import argparse
import json
import time
from pathlib import Path

import jax

import effective_langevin as el
from effective_langevin._core import progress
from effective_langevin.cli.demo import DEMOS, PAPER_SCALE, Demo, run_demo
from effective_langevin.execution.compilation import keep_compiled_programs

from .results import FOLDER, collect, write

NAME = "kuramoto-sivashinsky"


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


def main(size: str, out: Path, only_ours: bool, seed: int) -> None:
    """Ours, the published recipe and LIM on one series; then the small arrays that figures and table are made of."""
    paper = size == "paper"
    demo = (PAPER_SCALE if paper else DEMOS)[NAME]
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    device = str(jax.block_until_ready(jax.numpy.zeros(1)).device)  # the first array starts a GPU, which takes seconds
    started_up = time.monotonic() - started
    with progress.shown():
        run = run_demo(NAME, seed=seed, paper_scale=paper, checkpoint=out / "checkpoints")
        model = run.model
        model.save(out / "model.safetensors")
        facts = {"device": device, "start_seconds": started_up, **run.seconds}
        facts["whole_run_seconds"] = time.monotonic() - started
        facts |= {f"validate.{k}": v for k, v in run.validation.metrics.items()}
        facts |= {k: v for k, v in model.mobility.diagnostics.items() if isinstance(v, float)}
        facts |= {"step": model.automatic_step(), "training_steps": model.score.diagnostics["training_steps"]}
        (out / "ours.json").write_text(json.dumps(facts, indent=2) + "\n")
        print(json.dumps(facts, indent=1), flush=True)
        if only_ours:
            return
        entries = {"ours": (model, run.validation), "settled": settled(demo, model, seed, facts)}
        entries |= others(demo, run.series, seed, facts)
        write(collect(run.series, entries), out, facts)
    print((out / "metrics.json").read_text())


def settled(demo: Demo, model: el.LangevinModel, seed: int, facts: dict) -> tuple[el.LangevinModel, el.TimeSeries]:
    """Ours, with the variances of its steady state put right by simulation; the only row that uses one."""
    members, duration = demo.validation["members"], demo.validation["duration"]
    started = time.monotonic()
    model = el.match_variances(model, 0.4 * duration, members=4 * members, seed=seed + 3, rounds=3)
    facts["settle_seconds"] = time.monotonic() - started
    facts["variance_ratio_by_round"] = model.score.diagnostics["settled"]["variance_ratio"]
    return model, model.simulate(duration, members=members, seed=seed + 2)


def others(demo: Demo, series: el.TimeSeries, seed: int, facts: dict) -> dict:
    """The published recipe, stepped as published, and the linear inverse model."""
    simulation = {"duration": demo.validation["duration"], "members": demo.validation["members"], "seed": seed + 2}
    started = time.monotonic()
    recipe = el.fit(series, **published(demo), seed=seed + 1)
    facts["published_fit_seconds"] = time.monotonic() - started
    facts["published_cells"] = recipe.mobility.diagnostics["cells"]
    paths = recipe.simulate(**simulation, step=0.005, stepper=el.EulerMaruyama(), denoise=False)
    gaussian = el.Gaussian(noise_level=demo.score.noise_level)
    lim = el.fit(series, score=gaussian, mobility=el.LogCorrelation(), symmetry=demo.symmetry, seed=seed + 1)
    return {"published": (recipe, paths), "LIM": (lim, lim.simulate(**simulation))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", choices=("small", "paper"), nargs="?", default="small")
    parser.add_argument("--only-ours", action="store_true", help="leave out the published recipe and LIM")
    parser.add_argument("--out", type=Path, help="default: this folder's subfolder of that size")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    keep_compiled_programs()
    folder = arguments.out or FOLDER / arguments.size
    main(arguments.size, folder, arguments.only_ours, arguments.seed)
