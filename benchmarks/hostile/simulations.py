"""Simulations that cannot work: each is refused in a sentence, before time or memory is spent."""

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el

from ..robustness import Case

NAN, INF = float("nan"), float("inf")
REFUSED: dict[str, list[Any]] = {
    "duration": [0, -1.0, NAN, INF, "5", True, None, 1e300, 1e9],
    "dt": [0, -1, NAN, "x", 1e-308],
    "members": [0, -1, 1.5, "3", 10**9, 10**18],
    "seed": [-1, 1.0, "1", 2**63, 2**64, 10**23],
    "step": [0.0, -1.0, NAN, "x", 1e-30],
    "initial": ["x", np.zeros(2), np.zeros((2, 3)), np.full((1, 2), NAN), np.full((1, 2), INF), np.full((1, 2), 1e30)],
    "start": [NAN, INF, "2000-01-01", 1e18, 1e30],
    "noise": [np.zeros((1, 3, 2)), "x"],
    "stepper": ["heun", el.EulerMaruyama, 3],
    "denoise": [7, "no"],
    "transformed": ["no", 1],
}


def simulations(folder: Path, count: int) -> Iterator[Case]:
    """Yield bad arguments, models that cannot be stepped, seeds of any size, and processes that fork."""
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(60.0, dt=0.1, seed=1)
    model = el.fit(series, score=el.Gaussian(), mobility=el.QuadraticVariation())
    for name, values in REFUSED.items():
        for value in values:
            given = {"duration": 1.0, name: value}
            yield Case(f"{name} = {str(value)[:30]}", partial(_simulate, model, **given), "refused")
    steep = {f"mobility x {factor:g}": _times(model, factor) for factor in (1e6, 1e30, 1e300)}
    steep["mobility of the wrong sign"] = _times(model, -1.0)
    for name, other in steep.items():
        yield Case(name, partial(_simulate, other, duration=1.0), "refused")
    yield Case("step of 3", partial(_simulate, model, duration=300.0, dt=3.0, step=3.0, members=20), "refused")
    yield Case("far from the data", partial(_simulate, model, duration=5.0, initial=np.full((1, 2), 30.0)), "right")
    yield Case("duration below dt", partial(_simulate, model, duration=1e-9), "right")
    for seed in (2**31, 2**32 + 1, 2**40, 2**63 - 1):
        yield Case(f"seed {seed}", partial(_compare_seeds, model, seed), "right")
    yield Case("double precision", partial(_simulate_in_double, model), "right")
    yield Case("forked after a fit", partial(_simulate_in_a_fork, model), "refused")
    for dt in (0.05, 0.1, 0.3, 0.5):
        yield Case(f"increments of the default step, dt {dt}", partial(_compare_increments, dt), "right")
    yield Case("angles in degrees", _wrap_degrees, "right")


def _times(model: el.LangevinModel, factor: float) -> el.LangevinModel:
    return replace(model, mobility=replace(model.mobility, matrix=factor * model.mobility.matrix))


def _simulate(model: el.LangevinModel, **given: Any) -> None:
    assert np.isfinite(model.simulate(**given).stacked()).all(), "paths are not finite"


def _compare_increments(dt: float) -> None:
    """The mean squared increment of a linear process is that of its covariance, whatever the step."""
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(2000 * dt, dt=dt, seed=1)
    model = el.fit(series.with_segments([series.values[:, :1]], names=["x"], units=[""]), score=el.Gaussian())
    paths = model.simulate(200 * dt, members=400, seed=1).values
    rate = 1 / float(model.timescales().value[0])
    found, exact = np.mean(np.diff(paths, axis=1) ** 2), 2 * float(model.score.covariance[0, 0]) * -np.expm1(-rate * dt)
    exact *= float(model.standardizer.std[0]) ** 2
    assert abs(found / exact - 1) < 0.05, f"{found:.4g} where {exact:.4g} is exact"


def _wrap_degrees() -> None:
    """An angle in degrees turns at 360, unless it is told otherwise."""
    turned = np.cumsum(np.random.default_rng(0).normal(size=(3000, 1)), axis=0) * 20 % 360
    series = el.TimeSeries(turned, 0.1, names=["phi"], units=["degrees"])
    model = el.fit(series, preprocess=el.preprocess.Periodic(["phi"]), score=el.Gaussian())
    paths = model.simulate(100.0, members=4, seed=1).stacked()
    assert np.ptp(paths) > 300, f"paths lie within {np.ptp(paths):.3g} degrees"


def _compare_seeds(model: el.LangevinModel, seed: int) -> None:
    one, other = (model.simulate(1.0, seed=s).stacked() for s in (seed, seed % 2**31))
    assert not np.array_equal(one, other), f"seed {seed} repeats seed {seed % 2**31}"


def _simulate_in_double(model: el.LangevinModel) -> None:
    import jax

    before = jax.config.values["jax_enable_x64"]
    single = model.simulate(1.0, seed=1).stacked()
    jax.config.update("jax_enable_x64", True)
    try:
        paths = model.simulate(1.0, seed=1).stacked()
        el.fit(model.simulate(60.0), score=el.Gaussian(), mobility=el.QuadraticVariation()).simulate(1.0)
    finally:
        jax.config.update("jax_enable_x64", before)
    assert np.allclose(paths.std(), single.std(), rtol=1.0), "other paths"


def _simulate_in_a_fork(model: el.LangevinModel) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_answer, args=(model, answers), daemon=True)
    child.start()
    try:
        said = answers.get(timeout=30)
    except Exception:
        raise TimeoutError("the forked process does not answer") from None
    finally:
        child.kill()
    raise el.EffectiveLangevinError(said) if said else AssertionError("not refused")


def _answer(model: el.LangevinModel, answers: Any) -> None:
    try:
        model.simulate(1.0)
        answers.put("")
    except el.EffectiveLangevinError as error:
        answers.put(str(error))
