"""Coverage of the error bars: 200 replicas of a 3-D process with circulation, 2e4 samples each.

    python -m benchmarks.coverage

Writes benchmarks/results/coverage.json: how often the 95 % interval of each entry of Phi holds the exact value, at two
sampling intervals, and the scatter of (Phi - exact) / standard error, which should be 1.
"""

import json
from pathlib import Path

import jax
import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov

import effective_langevin as el
from effective_langevin.estimate.mobility import estimate_mobility
from effective_langevin.estimate.score import estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry

DRIFT = np.array([[1.0, -0.8, 0.2], [0.9, 1.4, -0.5], [0.1, 0.6, 0.7]])
DIFFUSION = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, 0.1], [0.0, 0.1, 0.6]])
COVARIANCE = solve_continuous_lyapunov(DRIFT, 2 * DIFFUSION)
PHI = DRIFT @ COVARIANCE
INTERVALS = (0.1, 0.5)


def replicas(dt: float, count: int, samples: int = 20_000, seed: int = 0) -> np.ndarray:
    """Exact samples of the process, (replica, time, var)."""
    advance, rng = expm(-DRIFT * dt), np.random.default_rng(seed)
    noise = np.linalg.cholesky(COVARIANCE - advance @ COVARIANCE @ advance.T)
    paths = np.empty((samples, count, 3))
    state = rng.normal(size=(count, 3)) @ np.linalg.cholesky(COVARIANCE).T
    for frame in paths:
        frame[:] = state
        state = state @ advance.T + rng.normal(size=state.shape) @ noise.T
    return np.swapaxes(paths, 0, 1)


def inferred(values: np.ndarray, dt: float) -> el.Mobility:
    """The mobility of one replica, with a Gaussian score, in physical units."""
    series = el.TimeSeries(values, dt)
    units, key = el.Standardizer.from_series(series), jax.random.key(0)
    standard = series.map(units.to_standard)
    space = StateSpace.of(standard, NoSymmetry())
    score = estimate_score(standard, el.Gaussian(), space, key=key)
    return estimate_mobility(standard, score, el.IntegratedResponse(), space, key=key).to_physical(units)


def measure(dt: float, count: int = 200) -> dict:
    """How often each interval holds the exact value, and the scatter in units of the stated error."""
    held, scaled = [], []
    for values in replicas(dt, count):
        mobility = inferred(values, dt)
        low, high = mobility.interval(0.95)
        held.append((low <= PHI) & (high >= PHI))
        scaled.append((mobility.matrix - PHI) / mobility.standard_error)
    coverage = np.mean(held, axis=0)
    return {
        "replicas": count,
        "coverage": coverage.tolist(),
        "least": float(coverage.min()),
        "most": float(coverage.max()),
        "scatter_over_stated_error": np.std(scaled, axis=0).tolist(),
    }


if __name__ == "__main__":
    results = {str(dt): measure(dt) for dt in INTERVALS}
    text = json.dumps(results, indent=2)
    (Path(__file__).parent / "results" / "coverage.json").write_text(text + "\n")
    print(text)
