"""Models with memory: `python -m benchmarks.memory [CASE[:SEED] ...]`.

Sees reference systems through x alone and lets `memory="auto"` choose. Writes what was chosen, and how good the model
is, to `benchmarks/results/memory.json`. `short` counts on how many short series without memory none is chosen. `lorenz`
has a million samples, `lorenz-short` 200 000.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin.execution.compilation import keep_compiled_programs
from effective_langevin.model import LangevinModel

RESULTS = Path(__file__).parent / "results" / "memory.json"
MEASURED = ("acf_rmse", "pdf_kl_max", "increment_error")
SEEDS = 20


def lorenz(seed: int, duration: float = 625.0) -> dict[str, Any]:
    """Lorenz-63 without noise, a million samples of x at 0.01."""
    system = el.systems.StochasticLorenz63(noise=0.0)
    return _measure(_first(system.simulate(duration, dt=0.01, members=16, seed=seed)))


def roessler(seed: int) -> dict[str, Any]:
    """Roessler's flow (a, b, c = 0.2, 0.2, 5.7) without noise, 200 000 samples of x at 0.05."""
    state = np.random.default_rng(seed).uniform([-5, -5, 0], [5, 5, 1], size=(16, 3))

    def slope(s: np.ndarray) -> np.ndarray:
        x, y, z = s.T
        return np.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)], axis=1)

    states, step = [], 0.01
    for count in range(5 * 14_500):
        if count >= 5 * 2000 and count % 5 == 0:
            states.append(state[:, :1])
        first = slope(state)
        second = slope(state + 0.5 * step * first)
        third = slope(state + 0.5 * step * second)
        state = state + step / 6 * (first + 2 * second + 2 * third + slope(state + step * third))
    return _measure(el.TimeSeries(np.stack(states, axis=1), 5 * step, names=["x"]))


def oscillator(seed: int) -> dict[str, Any]:
    """Underdamped motion in a double well, 200 000 samples of x at 0.05."""
    system = el.systems.DoubleWellOscillator()
    series = _first(system.simulate(500.0, dt=0.05, members=20, seed=seed))
    return {**_measure(series), **_errors_of_motion(el.fit(series, memory="velocity", seed=1, check="off"))}


def motion(seed: int) -> dict[str, Any]:
    """Return the errors of noise and friction of the same, without the choice of a memory."""
    series = _first(el.systems.DoubleWellOscillator().simulate(500.0, dt=0.05, members=20, seed=seed))
    return _errors_of_motion(el.fit(series, memory="velocity", seed=1, check="off"))


def _errors_of_motion(model: LangevinModel) -> dict[str, Any]:
    """Return errors of D of v, and of the friction: the slope by v of the part of the drift that is odd in v."""
    system, noise = el.systems.DoubleWellOscillator(), float(model.mobility.matrix[1, 1])
    states = np.asarray(model.states, float)
    odd = 0.5 * (model.drift(states) - model.drift(states * [1, -1]))[:, 1]
    friction = -float(np.sum(odd * states[:, 1]) / np.sum(states[:, 1] ** 2))
    exact = system.friction * system.temperature
    errors = {"noise": noise / exact - 1, "friction": friction / system.friction - 1}
    return {"relative_error": errors, "noise_se": float(model.mobility.standard_error[1, 1]) / exact}


def short(seed: int) -> dict[str, Any]:
    """Series of 5000 samples without memory: how often none is chosen."""
    systems = {"ornstein-uhlenbeck": el.systems.OrnsteinUhlenbeck(np.eye(1)), "wells": el.systems.AsymmetricWells()}
    kinds: dict[str, list[str]] = {name: [] for name in systems}
    for name, system in systems.items():
        for number in range(seed - 1, seed - 1 + SEEDS):
            series = system.simulate(500.0, dt=0.1, seed=number)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", el.EstimateWarning)
                model = el.fit(series, memory="auto", score=el.Gaussian(), seed=number)
            choice = model.mobility.evidence.memory
            kinds[name].append(choice.kind if choice else "")
    return {name: {"none": chosen.count("none"), "of": SEEDS} for name, chosen in kinds.items()}


def _first(series: el.TimeSeries) -> el.TimeSeries:
    """Return the first variable alone."""
    return el.TimeSeries([segment[:, :1].astype(float) for segment in series.segments], series.dt, names=["x"])


def _measure(series: el.TimeSeries) -> dict[str, Any]:
    started = time.monotonic()
    model = el.fit(series, memory="auto", seed=1)
    seconds = time.monotonic() - started
    result = el.validate(model, series, seed=2)
    choice = model.mobility.evidence.memory
    return {
        "memory": choice.to_dict() if choice else None,
        "fit_seconds": seconds,
        **{name: float(value) for name, value in result.metrics.items() if name.startswith(MEASURED)},
        "diverged": result.comparison.diverged,
        "outside": result.comparison.outside,
        "verdict": str(result.verdict.level),
    }


CASES: dict[str, Callable[[int], dict[str, Any]]] = {
    "short": short,
    "motion": motion,
    "oscillator": oscillator,
    "roessler": roessler,
    "lorenz-short": partial(lorenz, duration=125.0),
    "lorenz": lorenz,
}


def main() -> None:
    """Measure the cases named, or all, and write the results."""
    keep_compiled_programs()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in sys.argv[1:] or CASES:
        case, _, seed = name.partition(":")
        found[name] = CASES[case](int(seed or 1))
        print(name, json.dumps(found[name]), flush=True)
        RESULTS.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
