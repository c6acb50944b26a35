"""Lag 0 in doubt, both ways: false alarms on clean series, and what blurred and noisy ones give.

    python -m benchmarks.lag_zero [recovered] [chosen] [clean]

Writes benchmarks/results/lag_zero.json, the parts that are asked for (all, by default): of 500 clean series (linear,
rotating, two wells, at several sampling intervals) how many are said to have measurement noise or motion blur, by the
estimator and by the diagnosis; and of Ornstein-Uhlenbeck processes seen through an exposure, or with noise, the
relaxation time and the diffusion of the motion relative to the exact ones, with their standard errors: "recovered" with
`IntegratedResponse()`, "chosen" with all defaults of `el.fit`, which learns the score and chooses the closure.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import expm
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry

EXPOSURES, TIMES = (0.25, 0.5, 0.75, 1.0), (2.0, 5.0, 10.0, 20.0)
CLEAN = 500
SAMPLES, LONG = 4000, 200_000
WELL = 0.5  # diffusion in the potential x^4 / 4 - x^2 / 2


def exposed(samples: int, time: float, exposure: float, rng: np.random.Generator) -> np.ndarray:
    """Means over `exposure` of an Ornstein-Uhlenbeck process of variance 1, exact, one per unit of time."""
    decay, gap = np.exp(-exposure / time), np.exp(-(1 - exposure) / time)
    mean = time * (1 - decay)  # of the integral over the exposure, per starting value
    spread = 2 * time * (exposure - 2 * mean + time * (1 - decay**2) / 2)
    noise = np.array([[1 - decay**2, time * (1 - decay) ** 2], [time * (1 - decay) ** 2, spread]])
    end, integral = (rng.normal(size=(samples, 2)) @ np.linalg.cholesky(noise).T).T
    kicks = gap * end + np.sqrt(1 - gap**2) * rng.normal(size=samples)
    starts = lfilter([1.0], [1.0, -decay * gap], np.concatenate([[rng.normal()], kicks[:-1]]))
    return (mean * starts + integral) / exposure


def clean_series(kind: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples (time, var) of a clean process, a unit of time apart, and its exact scores."""
    if kind % 5 < 3:
        time = (0.7, 2.0, 5.0, 20.0, 60.0)[kind // 5 % 5]
        turn = 0.0 if kind % 5 < 2 else (0.1, 0.3, 0.6)[kind // 25 % 3]
        step = expm(-np.array([[1 / time, turn], [-turn, 1 / time]]))
        kicks = np.sqrt(1 - np.exp(-2 / time)) * (rng.normal(size=SAMPLES) + 1j * rng.normal(size=SAMPLES))
        z = lfilter([1.0], [1.0, -(step[0, 0] + 1j * step[1, 0])], np.concatenate([[0], kicks]))[400:]
        x = np.column_stack([z.real, z.imag]) if kind % 5 else z.real[:, None]
        return x, -x
    dt, every = (0.1, 0.3, 0.6)[kind // 5 % 3], 60
    x, step, path = 1.0, dt / every, np.empty(SAMPLES)
    kicks = np.sqrt(2 * WELL * step) * rng.normal(size=(SAMPLES, every))
    for t, row in enumerate(kicks):
        for kick in row:
            x += step * (x - x**3) + kick
        path[t] = x
    return path[:, None], ((path - path**3) / WELL)[:, None]


def alarms_of(x: np.ndarray, scores: np.ndarray) -> dict[str, bool]:
    """Whether the estimator and the diagnosis speak of noise or blur."""
    units = el.Standardizer.from_series(series := el.TimeSeries(x, 1.0))
    standard, space = series.map(units.to_standard), StateSpace.of(series, NoSymmetry())
    found = el.IntegratedResponse().infer_from(standard, [scores * units.std], space, np.zeros(2 * x.shape[1:]))
    said = el.diagnose(series)
    return {
        "estimator: noise": found.evidence.noisy,
        "estimator: blur": found.evidence.blurred,
        "estimator: smooth": found.evidence.ballistic,
        "diagnosis: noise": said.finding("measurement noise").level != "ok",
        "diagnosis: blur": said.finding("motion blur").level != "ok",
    }


def count_alarms(count: int = CLEAN, first: int = 0) -> dict[str, int]:
    """How many clean series raise each alarm."""
    every = [alarms_of(*clean_series(k, np.random.default_rng(k))) for k in range(first, first + count)]
    return {"series": count, **{name: sum(found[name] for found in every) for name in every[0]}}


def recovered(x: np.ndarray, time: float, by_default: bool = False) -> dict:
    """Relaxation time and diffusion over the exact ones, with errors, and what is said about lag 0."""
    asked = {} if by_default else {"score": el.Gaussian(), "mobility": el.IntegratedResponse(), "check": "off"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = el.fit(el.TimeSeries(x, 1.0), **asked)
    times, phi = model.timescales(), model.mobility
    relative = phi.standard_error[0, 0] / phi.matrix[0, 0]
    return {
        "relaxation": float(times.value[0] / time),
        "relaxation_error": float(times.standard_error[0] / time),
        "diffusion": float(phi.of_motion[0, 0] * time),
        "diffusion_error": float(relative * phi.of_motion[0, 0] * time),
        "noisy": phi.evidence.noisy,
        "blurred": phi.evidence.blurred,
        "fields": bool(model.fields),
    }


def sweep(samples: int = LONG, by_default: bool = False) -> list[dict]:
    """Every exposure and relaxation time, and noise of a fifth of the standard deviation."""
    rows = []
    for time in TIMES:
        for exposure in EXPOSURES:
            rng = np.random.default_rng(int(100 * exposure + time))
            x = exposed(samples, time, exposure, rng)
            rows.append({"time": time, "exposure": exposure, "noise": 0.0, **recovered(x, time, by_default)})
        rng = np.random.default_rng(int(time))
        x = exposed(samples, time, 1e-3, rng) + 0.2 * rng.normal(size=samples)
        rows.append({"time": time, "exposure": 0.0, "noise": 0.2, **recovered(x, time, by_default)})
    return rows


PARTS = {"recovered": sweep, "chosen": lambda: sweep(by_default=True), "clean": count_alarms}


if __name__ == "__main__":
    path = Path(__file__).parent / "results" / "lag_zero.json"
    results = json.loads(path.read_text())
    for part in sys.argv[1:] or PARTS:
        results[part] = PARTS[part]()
        path.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))
