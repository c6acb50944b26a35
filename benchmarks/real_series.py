"""Closures of series that were measured: `python -m benchmarks.real_series DATA [NAME ...]`.

Learns each series with a constant mobility, with `StateDependent`, and with the closure that `fit` chooses. What they
reach goes to `benchmarks/results/real_series.json`. DATA is the folder of the series, which are not part of this
package.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin.execution.compilation import keep_compiled_programs

RESULTS = Path(__file__).parent / "results" / "real_series.json"
MEASURED = ("acf_rmse", "increment_error", "pdf_kl_mean", "covariance_error", "integral_time")
CLOSURES = {"constant": el.IntegratedResponse(), "state-dependent": el.StateDependent(), "chosen": None}


@dataclass(frozen=True)
class Case:
    """A file, what is done to it, and how it is learned."""

    file: str
    prepare: Callable[[el.TimeSeries], el.TimeSeries] = lambda series: series
    preprocess: Any = None
    score: Any = None


def _first(series: el.TimeSeries) -> el.TimeSeries:
    return el.TimeSeries([s[:, :1] for s in series.segments], series.dt, names=series.names[:1])


def _as_angles(series: el.TimeSeries) -> el.TimeSeries:
    periods = [2 * np.pi] * series.dimension
    return el.TimeSeries(list(series.segments), series.dt, names=series.names, periods=periods)


CASES = {
    "NAO": Case("nao_daily.npz"),
    "fish": Case("fish_schooling.npz"),
    "fish, every 4th sample": Case("fish_schooling.npz", lambda series: series.thin(4)),
    "fish, one component": Case("fish_schooling.npz", _first),
    "alanine dipeptide": Case("alanine_dipeptide.npz", _as_angles),
    "ENSO": Case("enso_xro.npz", preprocess=el.preprocess.RemoveSeasonalCycle(12)),
    "EEG": Case("eeg_eye_state.npz"),
}


def measure(series: el.TimeSeries, case: Case, mobility: Any) -> dict[str, Any]:
    """Return what one closure reaches, or the words in which it is refused."""
    started = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = el.fit(series, preprocess=case.preprocess, score=case.score, mobility=mobility, seed=1)
    except (el.ArgumentError, el.DataError) as error:
        return {"refused": str(error)}
    seconds = time.monotonic() - started
    result = el.validate(model, series, seed=2)
    evidence = model.mobility.evidence
    found = {
        "fit_seconds": round(seconds, 1),
        **{k: float(v) for k, v in result.metrics.items() if k.startswith(MEASURED)},
        "verdict": str(result.verdict.level),
        "mobility": np.round(model.mobility.matrix, 6).tolist() if series.dimension <= 3 else None,
    }
    if evidence.closure:
        found["closure"] = evidence.closure.to_dict()
    if evidence.choice:
        found["choice"] = evidence.choice.to_dict()
    if evidence.measurement_noise is not None:
        found["measurement_noise"] = np.round(evidence.measurement_noise, 4).tolist()
    if model.fields is not None and not any(series.periods) and series.dimension <= 2:
        found["diffusion"] = _profile(model, series)
    return found


def _profile(model: el.LangevinModel, series: el.TimeSeries) -> dict[str, list[float]]:
    """D at quantiles of one variable; of two, along and across the radius, averaged over directions."""
    if series.dimension == 1:
        states = np.quantile(series.stacked(), [0.01, 0.1, 0.5, 0.9, 0.99])[:, None]
        return {"at": states[:, 0].tolist(), "value": np.asarray(model.diffusion(states))[:, 0, 0].tolist()}
    radii, angles = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.95]), np.arange(16) * np.pi / 8
    outward = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tensors = np.asarray(model.diffusion((radii[:, None, None] * outward).reshape(-1, 2))).reshape(6, 16, 2, 2)
    along = np.einsum("ai,raij,aj->r", outward, tensors, outward) / 16
    across = np.trace(tensors, axis1=2, axis2=3).mean(axis=1) - along
    return {"radius": radii.tolist(), "along": along.tolist(), "across": across.tolist()}


def main(folder: str, names: list[str]) -> None:
    """Measure the series named, or all, and keep what was measured before."""
    keep_compiled_programs()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or CASES:
        case = CASES[name]
        series = case.prepare(el.read(Path(folder) / case.file))
        results[name] = {"samples": series.n_samples, "segments": len(series.segments)}
        for closure, mobility in CLOSURES.items():
            results[name][closure] = measure(series, case, mobility)
            print(name, closure, json.dumps(results[name][closure]), flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
