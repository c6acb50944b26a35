"""Coverage of 95 % intervals with few independent samples: 10, 20 and 50 of them, twice an integral time apart.

    python -m benchmarks.few_samples

Writes benchmarks/results/few_samples.json: how often the intervals of Phi and of the slowest relaxation time hold the
exact values, and how often Phi of two halves of a record of twice that length agree within 95 % limits of their errors
(Student's law), for a process of one variable and the one of three of `benchmarks.coverage`, at five samples per unit
of time, with a Gaussian score.
"""

import json
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.statistics.resampling import student_limit

from .coverage import COVARIANCE, DRIFT

DT = 0.2
PROCESSES = {"one variable": (np.eye(1), np.eye(1)), "three variables": (DRIFT, COVARIANCE)}
INDEPENDENT, REPLICAS = (10, 20, 50), 1000


def paths(drift: np.ndarray, covariance: np.ndarray, count: int, samples: int, seed: int = 0) -> np.ndarray:
    """Exact samples, (replica, time, var)."""
    advance, rng = expm(-drift * DT), np.random.default_rng(seed)
    noise = np.linalg.cholesky(covariance - advance @ covariance @ advance.T)
    found = np.empty((samples, count, len(drift)))
    state = rng.normal(size=(count, len(drift))) @ np.linalg.cholesky(covariance).T
    for frame in found:
        frame[:] = state
        state = state @ advance.T + rng.normal(size=state.shape) @ noise.T
    return np.swapaxes(found, 0, 1)


def measure(drift: np.ndarray, covariance: np.ndarray, independent: int, count: int = REPLICAS) -> dict:
    """How often the intervals hold and halves agree, and the mean number of blocks."""
    slowest = float(np.max(np.diag(np.linalg.solve(drift, covariance)) / np.diag(covariance)))
    exact, time = drift @ covariance, 1 / np.linalg.eigvals(drift).real.min()
    held, timed, found = [], [], []
    samples = max(100, round(2 * independent * slowest / DT))
    records = paths(drift, covariance, count // 2, 2 * samples)
    for values in records.reshape(count, samples, -1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = el.fit(
                el.TimeSeries(values, DT), score=el.Gaussian(), mobility=el.IntegratedResponse(), check="off"
            )
        low, high = model.mobility.interval()
        held.append((low <= exact) & (high >= exact))
        low, high = model.timescales().interval()
        timed.append(low[0] <= time <= high[0])
        found.append(model.mobility)
    agree = [_agree(*halves) for halves in zip(found[::2], found[1::2])]
    return {
        "replicas": count,
        "blocks": float(np.mean([phi.evidence.blocks for phi in found])),
        "phi_mean": float(np.mean(held)),
        "phi_least": float(np.mean(held, axis=0).min()),
        "phi_most": float(np.mean(held, axis=0).max()),
        "relaxation": float(np.mean(timed)),
        "halves_agree": float(np.mean(agree)),
    }


def _agree(first: el.Mobility, second: el.Mobility) -> np.ndarray:
    """Whether each entry differs by less than the 95 % limit of both errors."""
    limit = student_limit(first.evidence.blocks + second.evidence.blocks - 1, 0.95)
    return np.abs(first.matrix - second.matrix) < limit * np.hypot(first.standard_error, second.standard_error)


if __name__ == "__main__":
    results = {name: {str(n): measure(*known, n) for n in INDEPENDENT} for name, known in PROCESSES.items()}
    text = json.dumps(results, indent=1)
    (Path(__file__).parent / "results" / "few_samples.json").write_text(text + "\n")
    print(text)
