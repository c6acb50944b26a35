"""Closures that depend on the state: `python -m benchmarks.closures [CASE ...] [--closure NAME] [--seeds N ...]`.

Learns each reference system with a constant mobility and with `StateDependent`, from one series, and writes what both
reach to `benchmarks/results/closures.json`. Errors of fields are relative, in the mean square over the data. With
`--seeds`, series and fits of other seeds go to `closures_seeds.json`.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin.cli.demo import DEMOS
from effective_langevin.execution.compilation import keep_compiled_programs

RESULTS = Path(__file__).parent / "results" / "closures.json"
OTHER_SEEDS = RESULTS.with_name("closures_seeds.json")
CLOSURES = {"constant": el.IntegratedResponse(), "state-dependent": el.StateDependent()}
MEASURED = ("acf_rmse", "covariance_error", "pdf_kl_mean", "increment_error", "stein_error")
STATES = 4000
REACH = 50


@dataclass(frozen=True)
class Case:
    """A system, its series, and how it is learned."""

    system: Any
    series: Callable[[int], el.TimeSeries]
    score: Any = None
    symmetry: Any = None
    validation: Any = None


def _simulated(system: Any, samples: int, dt: float, members: int) -> Case:
    return Case(system, lambda seed: system.simulate(samples / members * dt, dt=dt, members=members, seed=seed))


def _demo(demo: Any) -> Case:
    return Case(demo.system, lambda seed: demo.series(seed - 1), demo.score, demo.symmetry, dict(demo.validation))


CASES = {
    "wells": _demo(DEMOS["wells"]),
    "scalar": _demo(DEMOS["scalar"]),
    "lorenz63": _demo(DEMOS["lorenz63"]),
    "lorenz63 without noise": _simulated(el.systems.StochasticLorenz63(noise=0.0), 1_000_000, 0.01, 100),
    **{f"limit cycle {h}": _simulated(el.systems.NoisyLimitCycle(), 400_000, h, 40) for h in (0.05, 0.1, 0.2)},
    **{f"affine noise {h}": _simulated(el.systems.AffineNoise(), 1_000_000, h, 100) for h in (0.02, 0.05, 0.1)},
    "square root": _simulated(el.systems.CoxIngersollRoss(), 600_000, 0.1, 60),
    "driven ring": _simulated(el.systems.DrivenRing(), 600_000, 0.1, 20),
    "ks-small": _demo(DEMOS["kuramoto-sivashinsky"]),
}


def measure(case: Case, closures: list[str], seed: int = 1) -> dict[str, Any]:
    """Return the metrics of these closures, and the errors of the fields where the exact ones are known."""
    series = case.series(seed)
    found: dict[str, Any] = {}
    for name in closures:
        started = time.monotonic()
        model = el.fit(
            series, score=case.score, mobility=CLOSURES[name], symmetry=case.symmetry, seed=seed, check="off"
        )
        seconds = {"fit_seconds": time.monotonic() - started}
        started = time.monotonic()
        result = el.validate(model, series, seed=seed + 1, **(case.validation or {}))
        seconds["validation_seconds"] = time.monotonic() - started
        measured = {k: float(v) for k, v in result.metrics.items() if k.startswith(MEASURED)}
        measured["mean_acf_rmse"] = _mean_acf_error(series, result.paths)
        print(name, seconds, measured, flush=True)
        found[name] = {
            **seconds,
            **measured,
            **_field_errors(model, series, case.system),
            "verdict": str(result.verdict.level),
        }
        if evidence := model.mobility.evidence.closure:
            found[name]["closure"] = evidence.to_dict()
    return found


def _field_errors(model: el.LangevinModel, series: el.TimeSeries, system: Any) -> dict[str, Any]:
    """Relative errors of D, D - < D >, nu and drift at states of the data, and the entropy production."""
    found = model.entropy_production()
    numbers = {"entropy_production": float(found.value), "entropy_production_se": float(found.standard_error)}
    errors: dict[str, Any] = {name: value if np.isfinite(value) else None for name, value in numbers.items()}
    if isinstance(system, el.systems.KuramotoSivashinsky):  # observed at some of its grid points
        return errors
    states = series.stacked()[:: max(1, series.n_samples // STATES)]
    diffusion, exact = model.diffusion(states), np.asarray(system.diffusion(states))
    if np.any(exact):
        errors["diffusion"] = _relative(diffusion, exact)
    if np.ptp(exact, axis=0).max() > 1e-9:
        errors["diffusion_less_mean"] = _relative(diffusion - diffusion.mean(axis=0), exact - exact.mean(axis=0))
    current = system.current(states)
    if current is not None and np.any(np.abs(current) > 1e-9):
        errors["current"] = _relative(model.current(states), np.asarray(current))
    errors["drift"] = _relative(model.drift(states), np.asarray(system.drift(states)))
    if system.entropy_production is not None:
        errors["entropy_production_exact"] = float(system.entropy_production)
    return errors


def _relative(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.sqrt(np.sum((found - exact) ** 2) / np.sum(exact**2)))


def _mean_acf_error(data: el.TimeSeries, model: el.TimeSeries) -> float:
    """Root mean square difference of the autocorrelation, averaged over variables, at lags 0 to 50 samples."""
    curves = [_mean_acf(part) for part in (data, model)]
    return float(np.sqrt(np.mean(np.square(curves[0] - curves[1]))))


def _mean_acf(series: el.TimeSeries) -> np.ndarray:
    mean = series.stacked().mean(axis=0)
    segments = [s - mean for s in series.segments]
    sums = np.array([sum((s[k:] * s[: len(s) - k]).sum(axis=0) for s in segments) for k in range(REACH + 1)])
    pairs = np.array([sum(len(s) - k for s in segments) for k in range(REACH + 1)])
    curves = sums / pairs[:, None]
    return (curves / curves[0]).mean(axis=1)


def main() -> None:
    """Measure the cases named, or all that run on a CPU, and keep what was measured before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--closure", choices=CLOSURES, help="measure this one alone")
    parser.add_argument("--seeds", type=int, nargs="+", help="of other series and fits, kept apart; the usual one is 1")
    given = parser.parse_args()
    keep_compiled_programs()
    path = OTHER_SEEDS if given.seeds else RESULTS
    results = json.loads(path.read_text()) if path.exists() else {}
    closures = [given.closure] if given.closure else list(CLOSURES)
    for name in given.cases or [name for name in CASES if not name.startswith("ks")]:
        for seed in given.seeds or [1]:
            label = f"{name}, seed {seed}" if given.seeds else name
            found = {**results.get(label, {}), **measure(CASES[name], closures, seed)}
            results[label] = {closure: found[closure] for closure in CLOSURES if closure in found}
            print(json.dumps({label: results[label]}, indent=1), flush=True)
            path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
