"""One step of simulation and of training of a U-Net at 32 points, in absolute times: for a GPU.

On a CPU it only runs with `--quick`, to see that it works; there times are compared with peers instead.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import effective_langevin as el
from effective_langevin.estimate.networks import Residual
from effective_langevin.estimate.score import Score
from effective_langevin.estimate.score.denoising import Denoising
from effective_langevin.estimate.score.training import Schedule, _run_epoch, flatten_weights
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.model.closure import LangevinDrift
from effective_langevin.simulate import integrate
from effective_langevin.simulate.steppers import Equation

from .harness import Report, compare, ready, timed

POINTS, STEP = 32, 0.005
SIZES = [(16, 8192), (16, 32768), (32, 1024), (32, 8192)]
BATCHES = [(16, 528, "none", False), (16, 528, "batch", False), (16, 528, "batch", True), (32, 2112, "batch", True)]


def run(quick: bool) -> Report:
    report = Report()
    if jax.default_backend() == "cpu" and not quick:
        print("  for a GPU only", flush=True)
        return report
    steps = 5 if quick else 200
    for base, members in [(4, 64)] if quick else SIZES:
        contenders = {digits: stepping(base, members, digits == "half", steps) for digits in ("half", "whole")}
        case, work = f"Euler-Maruyama, base {base}, {members} members", steps * members
        report.results += compare(case, contenders, work=work, per="member-step")
    contenders, work = closures(*((4, 64, 2) if quick else (32, 8192, 2000)))
    rows = compare("default stepper, base 32, 8192 members", contenders, work=work, per="member-step")
    report.results += rows
    ratio = rows[0].seconds / rows[1].seconds if rows[0].seconds and rows[1].seconds else float("nan")
    claim = "a step with a current, over one with a constant mobility, same network"
    report.promise(claim, "<= 1.3", f"{ratio:.2f}", ratio <= 1.3)
    steps = 3 if quick else 400
    for base, batch, normalization, symmetric in [(4, 64, "batch", True)] if quick else BATCHES:
        contender = training(base, batch, normalization, symmetric, steps)
        case = f"training, base {base}, batch {batch}, normalization {normalization}"
        case += ", translations and reflections" if symmetric else ""
        report.results += compare(case, {"half": contender}, work=steps, per="step")
    for claim, start, wanted in (
        ("a member-step of the U-Net, 8192 members or more", "Euler-Maruyama, base 16", 30e-9),
        ("a training step of the U-Net, batch 528", "training, base 16, batch 528", 0.5e-3),
    ):
        found = [r.fastest for r in report.results if r.case.startswith(start) and r.fastest]
        if found:
            report.promise(claim, f"<= {timed(wanted)}", timed(min(found)), min(found) <= wanted)
    return report


def stepping(base: int, members: int, half: bool, steps: int):
    """Euler-Maruyama of dx = Phi s dt + noise, the score a U-Net beside a linear part."""
    network = el.UNet1D(base=base).build(POINTS, key=jax.random.key(0))
    last = 0.05 * jax.random.normal(jax.random.key(3), network.out.weight.shape)
    network = eqx.tree_at(lambda n: n.out.weight, network, last)
    edge = 5.0 * np.ones(POINTS)
    score = Score.learned(Residual(-0.5 * jnp.eye(POINTS), network), np.eye(POINTS), -edge, edge)
    score = score.in_frame(np.eye(POINTS)).lower(half)
    equation = Equation(
        LangevinDrift(score, 0.1 * jnp.eye(POINTS)),
        0.3 * jnp.eye(POINTS),
        linear=-jnp.eye(POINTS),
        centre=jnp.zeros(POINTS),
    )
    advance = el.EulerMaruyama().advance(equation, STEP)
    start = np.random.default_rng(0).normal(size=(members, POINTS)).astype(np.float32)
    options = {"frames": 1, "save_every": steps, "step": STEP, "key": jax.random.key(0), "bound": 1e3}
    return lambda: integrate(advance, start, **options)


def closures(base: int, members: int, steps: int):
    """The default stepper of models of one short field: with a current from the network of the score, and without."""
    series = el.systems.KuramotoSivashinsky(grid=64, stride=2).simulate(
        40.0, dt=1.0, members=64, seed=0, step=0.2, burn_in=100.0
    )
    network = el.UNet1D(base=base, normalization="batch")
    score = el.DenoisingScore(network, noise_level=0.1, epochs=1, epoch_samples=10_000)
    given = {"score": score, "symmetry": el.TranslationsAndReflections(parity=-1, continuous=True), "check": "off"}
    given |= {"compare_estimators": False}
    kinds = {"current": el.StateDependent(), "constant": el.IntegratedResponse()}
    models = {kind: el.fit(series, mobility=mobility, **given) for kind, mobility in kinds.items()}
    some = {"members": members, "step": 0.01, "dt": steps * 0.01, "seed": 0}
    return {
        kind: lambda model=model: model.simulate(steps * 0.01, **some) for kind, model in models.items()
    }, steps * members


def training(base: int, batch: int, normalization: str, symmetric: bool, steps: int):
    """An epoch of denoising score matching on data that stay on the device."""
    network = el.UNet1D(base=base, normalization=normalization).build(POINTS, key=jax.random.key(0))
    symmetry = el.TranslationsAndReflections(parity=-1, continuous=True) if symmetric else NoSymmetry()
    objective, schedule = Denoising(symmetry, batch, True), Schedule(10, steps, 1e-3, 0.01, 0.999, None)
    weights, form = flatten_weights(Residual(jnp.eye(POINTS), network))
    state = (weights, weights, weights, schedule.optimiser().init(weights))
    data = (jax.random.normal(jax.random.key(1), (max(steps * batch, 1000), POINTS)), jnp.float32(0.2))
    return lambda: ready(_run_epoch(state, form, objective, data, jax.random.key(2), schedule))
