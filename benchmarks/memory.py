"""Models with memory: `python -m benchmarks.memory [CASE ...]`.

Sees reference systems through x alone and lets `memory="auto"` choose. Writes what was chosen, and how good the model
is, to `benchmarks/results/memory.json`. `short` counts on how many short series without memory none is chosen.
"""

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin.execution.compilation import keep_compiled_programs

RESULTS = Path(__file__).parent / "results" / "memory.json"
MEASURED = ("acf_rmse", "pdf_kl_max", "increment_error")
SEEDS = 20


def lorenz() -> dict[str, Any]:
    """Lorenz-63 without noise, a million samples of x at 0.01."""
    system = el.systems.StochasticLorenz63(noise=0.0)
    return _measure(_first(system.simulate(625.0, dt=0.01, members=16, seed=1)))


def oscillator() -> dict[str, Any]:
    """Underdamped motion in a double well, 200 000 samples of x at 0.05."""
    system = el.systems.DoubleWellOscillator()
    series = _first(system.simulate(500.0, dt=0.05, members=20, seed=1))
    found = _measure(series)
    model = el.fit(series, memory="velocity", seed=1, check="off")
    noise = float(model.mobility.matrix[1, 1])
    spread = float(np.var(model.to_model_variables(series).stacked()[:, 1]))
    exact = system.friction * system.temperature
    errors = {"noise": noise / exact - 1, "friction": noise / spread / system.friction - 1}
    error = float(model.mobility.standard_error[1, 1]) / exact
    return {**found, "relative_error": errors, "noise_se": error}


def short() -> dict[str, Any]:
    """Series of 5000 samples without memory: how often none is chosen."""
    systems = {"ornstein-uhlenbeck": el.systems.OrnsteinUhlenbeck(np.eye(1)), "wells": el.systems.AsymmetricWells()}
    kinds: dict[str, list[str]] = {name: [] for name in systems}
    for name, system in systems.items():
        for seed in range(SEEDS):
            series = system.simulate(500.0, dt=0.1, seed=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", el.EstimateWarning)
                model = el.fit(series, memory="auto", score=el.Gaussian(), seed=seed)
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


CASES = {"short": short, "oscillator": oscillator, "lorenz": lorenz}


def main() -> None:
    """Measure the cases named, or all, and write the results."""
    keep_compiled_programs()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in sys.argv[1:] or CASES:
        found[name] = CASES[name]()
        print(name, json.dumps(found[name]), flush=True)
        RESULTS.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
