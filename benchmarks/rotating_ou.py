"""Error of the drift field against peers: a rotating Ornstein-Uhlenbeck process, finely and coarsely sampled.

    python -m benchmarks.rotating_ou [words in the names of the contenders to run; the others keep their last results]

dx = -A x dt + sqrt(2) dW with A = [[1, -w], [w, 1]], w = 1.5: relaxation time 1, covariance I. Each seed is one exact
path of length 2000, seen every 0.01 and every 0.5; everyone gets the same samples. The error is the norm of (estimated
- exact drift) over that of the exact drift, over the 4000 coarse samples. Writes benchmarks/results/rotating_ou.json
and rotating_ou.md. A peer that is not installed is named and left out:

    pip install kramersmoyal StochasticForceInference linear-inverse-model
    pip install --no-deps pydaddy && pip install 'setuptools<81' plotly sdeint seaborn scikit-learn tqdm nbconvert
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from scipy.linalg import expm, expm_frechet
from scipy.signal import lfilter

import effective_langevin as el

from .harness import attempt

DURATION, FINE, COARSE = 2000.0, 0.01, 0.5
INTERVALS, ROTATION = (FINE, COARSE), 1.5
SEEDS = (1, 2, 3, 4, 5)
PACKAGES = ("kramersmoyal", "pydaddy", "StochasticForceInference", "linear-inverse-model", "jax", "numpy")
RESULTS = Path(__file__).parent / "results" / "rotating_ou.json"
Field = Callable[[np.ndarray], np.ndarray]


PROCESS = el.systems.OrnsteinUhlenbeck(np.array([[1.0, -ROTATION], [ROTATION, 1.0]]))


def exact_path(seed: int) -> np.ndarray:
    """z = x + iy has z(t + h) = a z(t) + noise, a = exp(-(1 + iw) h), <|noise|^2> = 2 (1 - |a|^2), from the start."""
    rng, steps = np.random.default_rng(seed), round(DURATION / FINE)
    factor = np.exp(-(1 + 1j * ROTATION) * FINE)
    kicks = rng.normal(size=(steps, 2)) @ (1, 1j)
    kicks[1:] *= np.sqrt(1 - abs(factor) ** 2)
    path = lfilter([1], [1, -factor], kicks)
    return np.stack([path.real, path.imag], axis=-1)


def sampling_limit(dt: float, *, mean_known: bool) -> float:
    """Rms error of the best unbiased affine drift from this many samples, the noise unknown (Cramer-Rao).

    n samples give the propagator E = exp(-A h) with the covariance (C - E C E^T) x C^-1 / n, and the mean with
    (1 - E)^-1 (C - E C E^T) (1 - E)^-T / n.
    """
    n, rates, covariance = round(DURATION / dt), PROCESS.drift_matrix, PROCESS.covariance
    propagator, eye = expm(-rates * dt), np.eye(2)
    noise = (covariance - propagator @ covariance @ propagator.T) / n
    directions = np.eye(4).reshape(4, 2, 2)
    slopes = np.stack([expm_frechet(-rates * dt, -dt * e, compute_expm=False).ravel() for e in directions], axis=1)
    of_rates = np.linalg.solve(slopes, np.linalg.solve(slopes, np.kron(noise, np.linalg.inv(covariance))).T)
    of_mean = np.linalg.solve(eye - propagator, np.linalg.solve(eye - propagator, noise).T)
    square = np.trace(of_rates @ np.kron(eye, covariance))
    if not mean_known:
        square += np.trace(rates @ of_mean @ rates.T)
    return float(np.sqrt(square / np.trace(rates @ covariance @ rates.T)))


# --- Peers. Each takes (samples, dt, seed) and returns the drift field.


def kramersmoyal(bandwidth: float | None = None):
    """`km` with its default bins and kernel; the drift is the first coefficient over dt, between bins by interpolation.

    The bandwidth is its default (Silverman's rule) or given by hand, as its documentation asks (0.005 to 0.5).
    """
    from kramersmoyal import km
    from scipy.interpolate import RegularGridInterpolator

    def fit(samples, dt, seed) -> Field:
        powers = np.array([[0, 0], [1, 0], [0, 1]])
        coefficients, edges = km(samples, powers=powers, bw=bandwidth)
        grid = np.moveaxis(coefficients[1:], 0, -1) / dt
        return RegularGridInterpolator(edges, grid, bounds_error=False, fill_value=None)

    return fit


def pydaddy(order: int):
    """Sparse polynomials of `fit` with its default threshold, 0.05.

    `tune=True`, its cross-validated threshold, was worse at dt = 0.01 (order 3, seed 1: 0.40 in 107 s), equal at 0.5.
    """
    import pydaddy

    def fit(samples, dt, seed) -> Field:
        found = pydaddy.Characterize(list(samples.T.copy()), t=dt, show_summary=False)
        parts = [found.fit(name, order=order) for name in ("F1", "F2")]
        return lambda x: np.stack([part(x[:, 0], x[:, 1]) for part in parts], axis=-1)

    return fit


def force_inference(order: int, *, coarse: bool):
    """SFI with polynomials up to `order`.

    Default: the linear estimator as in its quick start. `coarse`: what its documentation says for coarse and clean
    records, the parametric estimator with `eiv=False` (no measurement noise) and substeps in the Runge-Kutta flow. More
    iterations (`max_outer=20`) changed nothing (seed 2).
    """
    from SFI import OverdampedLangevinInference
    from SFI.bases import monomials_up_to
    from SFI.trajectory import TrajectoryCollection

    def fit(samples, dt, seed) -> Field:
        basis = monomials_up_to(order=order, dim=2, rank="vector")
        found = OverdampedLangevinInference(TrajectoryCollection.from_arrays(X=samples, dt=dt))
        if coarse:
            found.infer_force(basis, eiv=False, n_substeps=2)
        else:
            found.compute_diffusion_constant()
            found.infer_force_linear(basis)
        return lambda x: np.asarray(found.force_inferred(x))

    return fit


def linear_inverse_model(*, mean_known: bool):
    """`STLIM` at lag 1, its default and what it recommends for series that were not smoothed; L is per sample.

    It takes anomalies: deviations from the mean of the series, or, if `mean_known`, from the true one, zero.
    """
    from linear_inverse_model import STLIM

    def fit(samples, dt, seed) -> Field:
        mean = np.zeros(2) if mean_known else samples.mean(axis=0)
        operator = STLIM((samples - mean).T).dynamical_operator_L() / dt
        return lambda x: (x - mean) @ operator.T

    return fit


def ours(**strategies):
    def fit(samples, dt, seed) -> Field:
        return el.fit(el.TimeSeries(samples, dt), seed=seed, **strategies).drift

    return fit


CONTENDERS = {
    "kramersmoyal, default bandwidth": lambda: kramersmoyal(),
    "kramersmoyal, bandwidth 0.5": lambda: kramersmoyal(0.5),
    "PyDaddy, order 3": lambda: pydaddy(3),
    "PyDaddy, order 1": lambda: pydaddy(1),
    "SFI, quick start (linear estimator, order 3)": lambda: force_inference(3, coarse=False),
    "SFI, linear estimator, order 1": lambda: force_inference(1, coarse=False),
    "SFI, parametric, order 3": lambda: force_inference(3, coarse=True),
    "SFI, parametric, order 1": lambda: force_inference(1, coarse=True),
    "linear-inverse-model, mean from the data": lambda: linear_inverse_model(mean_known=False),
    "linear-inverse-model, told that the mean is 0": lambda: linear_inverse_model(mean_known=True),
    "ours, Gaussian + QuadraticVariation": lambda: ours(score=el.Gaussian(), mobility=el.QuadraticVariation()),
    "ours, Gaussian + CorrelationFit": lambda: ours(score=el.Gaussian(), mobility=el.CorrelationFit()),
    "ours, Gaussian + LogCorrelation": lambda: ours(score=el.Gaussian(), mobility=el.LogCorrelation()),
    "ours, Gaussian + IntegratedResponse": lambda: ours(score=el.Gaussian(), mobility=el.IntegratedResponse()),
    "ours, el.fit defaults (KGMM + IntegratedResponse)": lambda: ours(),
}
COARSE_ONLY = ("SFI, parametric, order 3", "SFI, parametric, order 1")  # minutes a seed at 200,000 samples


def measure(name: str, fit) -> dict[str, list[float] | str]:
    """Relative drift errors of one contender, a list over seeds for each interval; or why there are none."""
    if isinstance(fit, Exception):
        return {"skipped": str(fit)}
    errors = {}
    for dt in INTERVALS[name in COARSE_ONLY :]:
        errors[str(dt)] = []
        for seed in SEEDS:
            path, started = exact_path(seed), time.perf_counter()
            states = path[:: round(COARSE / FINE)]
            exact = PROCESS.drift(states)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = fit(path[:: round(dt / FINE)], dt, seed)(states)
            error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
            errors[str(dt)].append(error)
            print(f"dt = {dt}, {name}, seed {seed}: {error:.4f}, {time.perf_counter() - started:.1f} s", flush=True)
    return errors


def table(errors: dict) -> str:
    """Mean over seeds ± their standard deviation, and what the samples allow."""
    lines = ["| estimator | " + " | ".join(f"dt = {dt}" for dt in INTERVALS) + " |", "|---|---|---|"]
    for name in CONTENDERS:
        cells = [cell(errors.get(name, {"skipped": "not run"}), str(dt)) for dt in INTERVALS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    for name, known in (("mean from the data", False), ("mean known", True)):
        limits = " | ".join(f"{sampling_limit(dt, mean_known=known):.3f}" for dt in INTERVALS)
        lines.append(f"| *what the samples allow (Cramér-Rao, rms), {name}* | {limits} |")
    return "\n".join(lines) + "\n"


def cell(row: dict, dt: str) -> str:
    if "skipped" in row:
        return row["skipped"]
    return f"{np.mean(row[dt]):.3f} ± {np.std(row[dt], ddof=1):.3f}" if dt in row else "not run"


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main(words: list[str]) -> None:
    """Run those contenders whose name has one of the words, and keep each result as soon as it is there."""
    RESULTS.parent.mkdir(exist_ok=True)
    known = {}
    for name, build in CONTENDERS.items():
        if words and not any(word in name for word in words):
            continue
        found = measure(name, attempt(build))
        known = json.loads(RESULTS.read_text())["errors"] if RESULTS.exists() else {}
        known[name] = found
        kept = {n: known[n] for n in CONTENDERS if n in known}
        RESULTS.write_text(json.dumps({"versions": versions(), "seeds": SEEDS, "errors": kept}, indent=1) + "\n")
        RESULTS.with_suffix(".md").write_text(table(kept))
    print(table(known))


if __name__ == "__main__":
    main(sys.argv[1:])
