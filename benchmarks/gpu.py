"""Stepping and training a U-Net at 32 points on a GPU: nanoseconds per member-step, milliseconds per training step.

    python -m benchmarks.gpu [--quick]

Needs nothing but the package. Writes benchmarks/results/gpu_steps.json; `--quick` is to see that it runs, anywhere.
"""

import argparse
import json
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import effective_langevin as el
from effective_langevin.estimate.score.base import Score
from effective_langevin.estimate.score.denoising import Denoising
from effective_langevin.estimate.score.networks import Residual
from effective_langevin.estimate.score.training import Schedule, _epoch
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.model.drift import LangevinDrift
from effective_langevin.simulate import integrate
from effective_langevin.simulate.steppers import Equation

POINTS, STEP, REPEATS = 32, 0.005, 5
RESULTS = Path(__file__).parent / "results" / "gpu_steps.json"
PROMISED = {"member-step, 8192 members or more": "30 ns", "training step, batch 528": "0.5 ms"}


def fastest(run) -> tuple[float, float]:
    """Seconds of the first call, which compiles, and of the fastest of the others."""
    seconds = []
    for _ in range(1 + REPEATS):
        started = time.monotonic()
        jax.block_until_ready(run())
        seconds.append(time.monotonic() - started)
    return seconds[0], min(seconds[1:])


def stepping(base: int, members: int, half: bool, steps: int) -> dict:
    """Euler-Maruyama of dx = Phi s dt + noise, the score a U-Net beside a linear part."""
    network = el.UNet1D(base=base).build(POINTS, key=jax.random.key(0))
    last = 0.05 * jax.random.normal(jax.random.key(3), network.out.weight.shape)
    network = eqx.tree_at(lambda n: n.out.weight, network, last)
    edge = 5.0 * np.ones(POINTS)
    score = Score.learned(Residual(-0.5 * jnp.eye(POINTS), network), np.eye(POINTS), -edge, edge)
    score = score.in_frame(np.eye(POINTS)).flat(half)
    equation = Equation(
        LangevinDrift(score, 0.1 * jnp.eye(POINTS)),
        0.3 * jnp.eye(POINTS),
        linear=-jnp.eye(POINTS),
        centre=jnp.zeros(POINTS),
    )
    advance = el.EulerMaruyama().advance(equation, STEP)
    start = np.random.default_rng(0).normal(size=(members, POINTS)).astype(np.float32)
    options = {"frames": 1, "save_every": steps, "step": STEP, "key": jax.random.key(0), "bound": 1e3}
    first, best = fastest(lambda: integrate(advance, start, **options).paths)
    return {
        **{"what": "member-step", "base": base, "members": members, "digits": "half" if half else "whole"},
        **{"nanoseconds": 1e9 * best / steps / members, "compile_seconds": first - best},
    }


def training(base: int, batch: int, normalization: str, symmetric: bool, steps: int) -> dict:
    """An epoch of denoising score matching on data that stay on the device."""
    network = el.UNet1D(base=base, normalization=normalization).build(POINTS, key=jax.random.key(0))
    symmetry = el.TranslationsAndReflections(parity=-1, continuous=True) if symmetric else NoSymmetry()
    objective, schedule = Denoising(symmetry, batch, True), Schedule(10, steps, 1e-3, 0.01, 0.999, None)
    weights, frame = eqx.partition(Residual(jnp.eye(POINTS), network), eqx.is_array)
    state = (weights, weights, weights, schedule.optimiser().init(weights))
    data = (jax.random.normal(jax.random.key(1), (max(steps * batch, 1000), POINTS)), jnp.float32(0.2))
    first, best = fastest(lambda: _epoch(state, frame, objective, data, jax.random.key(2), schedule))
    return {
        **{"what": "training step", "base": base, "batch": batch, "normalization": normalization},
        **{"symmetric": symmetric, "milliseconds": 1e3 * best / steps, "compile_seconds": first - best},
    }


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    arguments.add_argument("--quick", action="store_true")
    quick = arguments.parse_args().quick
    sizes = [(4, 64)] if quick else [(16, 8192), (16, 32768), (32, 1024), (32, 8192)]
    batches = [(4, 64, "batch", True)] if quick else [
        (16, 528, "none", False), (16, 528, "batch", False), (16, 528, "batch", True), (32, 2112, "batch", True)
    ]  # fmt: skip
    rows = [stepping(*size, half, 5 if quick else 200) for size in sizes for half in (False, True)]
    rows += [training(*batch, 3 if quick else 400) for batch in batches]
    for row in rows:
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    if not quick:
        found = {"device": jax.devices()[0].device_kind, "wanted": PROMISED, "rows": rows}
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
