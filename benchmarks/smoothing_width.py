"""How the smoothing width changes a learned current: `python -m benchmarks.smoothing_width SIZE WIDTH ...`.

Learns the Kuramoto-Sivashinsky flow with a current at each width. Forecasts an independent series (256 states, mean of
16 members, error in standard deviations at leads 1, 5, 10 and 20), simulates 1024 members, and compares the mean
autocorrelation (lags 0 to 50), the covariance averaged over the symmetry and the mean squared increments (lags 1, 2, 4
and 8) with the data. `chosen` leaves the width to the fit, which takes it by the loss of the score on held-out samples.
Adds rows to benchmarks/results/smoothing_width.json. `paper` is for a GPU.
"""

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import jax
import numpy as np

import effective_langevin as el
from effective_langevin.cli.demo import DEMOS, PAPER_SCALE

RESULTS = Path(__file__).parent / "results" / "smoothing_width.json"
NAME = "kuramoto-sivashinsky"
LEADS, INCREMENTS, LAGS = (1, 5, 10, 20), (1, 2, 4, 8), 51
STARTS, MEMBERS = 256, 16
DURATION, SETTLING = 600.0, 100


def mean_acf(paths: np.ndarray) -> np.ndarray:
    """Autocovariances about the mean of all, averaged over points; the first is the variance."""
    rest = paths - paths.mean()
    return np.array([np.mean(rest[:, k:] * rest[:, : rest.shape[1] - k]) for k in range(LAGS)])


def increments(paths: np.ndarray) -> np.ndarray:
    return np.array([np.mean((paths[:, k:] - paths[:, :-k]) ** 2) for k in INCREMENTS])


def mode_variances(paths: np.ndarray) -> np.ndarray:
    """Eigenvalues of the covariance averaged over translations and reflections."""
    return np.mean(np.abs(np.fft.fft(paths - paths.mean(), axis=2)) ** 2, axis=(0, 1)) / paths.shape[2]


def forecast_errors(model: el.LangevinModel, paths: np.ndarray) -> list[float]:
    """Root mean square error of the ensemble mean in standard deviations."""
    starts = np.linspace(0, paths.shape[1] - LEADS[-1] - 1, -(-STARTS // len(paths))).astype(int)
    truth = np.concatenate([paths[:, t : t + LEADS[-1] + 1] for t in starts])[:STARTS]
    initial = np.repeat(truth[:, 0], MEMBERS, axis=0)
    members = np.stack(model.simulate(LEADS[-1] * model.dt, members=len(initial), initial=initial, seed=7).segments)
    mean = members.reshape(len(truth), MEMBERS, -1, paths.shape[2]).mean(axis=1)
    return [float(np.sqrt(np.mean((mean[:, k] - truth[:, k]) ** 2)) / paths.std()) for k in LEADS]


def measure(size: str, width: float | None) -> dict:
    demo = (PAPER_SCALE if size == "paper" else DEMOS)[NAME]
    series, other = demo.series(0), replace(demo, members=64, samples=6400).series(9)
    data, started = np.stack(series.segments), time.monotonic()
    score = replace(demo.score, noise_level=width)
    model = el.fit(series, score=score, mobility=demo.mobility, symmetry=demo.symmetry, seed=0, check="off")
    seconds = time.monotonic() - started
    paths = np.stack(model.simulate(DURATION, members=1024, seed=5).segments)[:, SETTLING:]
    acf, known = mean_acf(paths), mean_acf(data)
    modes, expected = mode_variances(paths), mode_variances(data)
    return {
        "size": size,
        "width": model.score.noise_level,
        "chosen": asdict(choice) if (choice := model.score.evidence.noise_level_choice) else None,
        "forecast_errors": forecast_errors(model, np.stack(other.segments)),
        "mean_acf_rms": float(np.sqrt(np.mean((acf / acf[0] - known / known[0]) ** 2))),
        "covariance_error": float(np.linalg.norm(modes - expected) / np.linalg.norm(expected)),
        "increment_errors": (increments(paths) / increments(data) - 1).tolist(),
        "stein_error": model.score.stein_error,
        "fit_seconds": seconds,
        "device": jax.default_backend(),
    }


def main(size: str, widths: list[float | None]) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for width in widths:
        results.append(measure(size, width))
        print(json.dumps(results[-1]), flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], [None if width == "chosen" else float(width) for width in sys.argv[2:]])
