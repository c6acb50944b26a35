"""Is the verdict right? Replicas of known truth: `python -m benchmarks.verdict [--replicas N] [SIZE ...]`.

Every case pairs data with a model whose truth is known: the right one, one that is wrong in a known way, or data that
no model of this kind can be right about. Models are exact, not fitted, except where a fit is what goes wrong (blurred
and noisy data of linear processes). Sizes are effective samples, T / (2 x integral time). Writes counts of levels to
`benchmarks/results/verdict.json` and a table to `verdict.md` beside it.
"""

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov

import effective_langevin as el
from effective_langevin.estimate.score import Score, ScoreFit
from effective_langevin.estimate.space import StateSpace
from effective_langevin.validate.findings.verdict import ORDER

RESULTS = Path(__file__).parent / "results" / "verdict.json"
# Effective samples: replicas of each process with the right model, and with each that is wrong.
SIZES = {300: (60, 8), 2000: (40, 8), 100_000: (12, 2)}
SHORT, SHORT_REPLICAS = 30, 20
SEEDS, SEEDED = 3, 3  # seeds of one replica, and replicas that are repeated with them
RECORDS = {30: 1, 300: 1, 2000: 4, 100_000: 50}
DT = 0.4
STEEPNESS, TILT = 0.5, 0.2
MEASURED = ("probability", "covariance", "correlation time", "correlation")


class WellScore(eqx.Module):
    """Standardised score of exp(-U), U = k (x^2 - 1)^2 + b x in each variable."""

    mean: Any
    std: Any

    def __call__(self, y):
        x = self.mean + self.std * y
        return -self.std * (4 * STEEPNESS * x * (x**2 - 1) + TILT)


@dataclass(frozen=True, eq=False)
class Process:
    """dx = Phi s(x) dt + sqrt(2) sym(Phi)^(1/2) dW with the score of a Gaussian or of wells in every variable."""

    phi: np.ndarray
    covariance: np.ndarray
    mean: np.ndarray
    wells: bool
    time: float  # the longest integral time

    def simulate(self, size: int, seed: int, dt: float = DT) -> el.TimeSeries:
        """Paths with so many effective samples in all."""
        records = RECORDS[size]
        frames = int(np.ceil(2 * self.time * size / dt / records))
        if self.wells:
            paths = self.model().simulate(
                (frames + 40) * dt, dt=dt, members=records, seed=seed, step=0.02, stepper=el.StochasticHeun()
            )
            return el.TimeSeries([s[41:] for s in paths.segments], dt)
        rng, rate = np.random.default_rng(seed), self.phi @ np.linalg.inv(self.covariance)
        advance = expm(-rate * dt)
        noise = np.linalg.cholesky(self.covariance - advance @ self.covariance @ advance.T)
        root = np.linalg.cholesky(self.covariance)
        state = rng.normal(size=(records, len(rate))) @ root.T
        paths = np.empty((frames, *state.shape))
        kicks = rng.normal(size=paths.shape) @ noise.T
        for frame, kick in zip(paths, kicks):
            frame[:] = state
            state = state @ advance.T + kick
        return el.TimeSeries(np.swapaxes(paths, 0, 1), dt)

    def model(self, clock: float = 1.0, width: float = 1.0, gaussian: bool = False) -> el.LangevinModel:
        """Return the exact model, with a mobility `clock` times and Gaussian variances `width` times too large."""
        size, std = len(self.phi), np.sqrt(np.diagonal(self.covariance))
        standard = width * self.covariance / np.outer(std, std)
        function = Score.linear(np.linalg.inv(standard))
        if self.wells and not gaussian:
            network = WellScore(jnp.asarray(self.mean, jnp.float32), jnp.asarray(std, jnp.float32))
            ends = np.full(size, 6.0)
            function = Score.learned(network, np.linalg.inv(standard), -ends, ends)
        phi = clock * self.phi
        rng = np.random.default_rng(0)
        return el.LangevinModel(
            standardizer=el.Standardizer(self.mean, std),
            score=ScoreFit(function, 0.0, -np.eye(size), 0.0, standard),
            mobility=el.Mobility(phi, np.zeros_like(phi), "exact", np.repeat(phi[None], 3, 0)),
            dt=DT,
            names=tuple(f"x{i + 1}" for i in range(size)),
            units=("",) * size,
            time_unit="",
            states=rng.multivariate_normal(self.mean, self.covariance, 400),
            space=StateSpace((None,) * size),
        )


def linear(size: int) -> Process:
    """A linear process in `size` variables with circulation."""
    rng = np.random.default_rng(size)
    rate = np.diag(np.linspace(1.0, 1.5, size)) + 0.5 * np.triu(rng.normal(size=(size, size)), 1)
    rate -= 0.5 * np.tril(rate.T, -1)
    covariance = solve_continuous_lyapunov(rate, 2 * np.eye(size))
    times = np.diagonal(np.linalg.inv(rate) @ covariance) / np.diagonal(covariance)
    return Process(rate @ covariance, covariance, np.zeros(size), False, float(times.max()))


def wells(size: int) -> Process:
    """Two shallow wells in each variable, with circulation between the first two."""
    x = np.linspace(-4, 4, 4001)
    weights = np.exp(-STEEPNESS * (x**2 - 1) ** 2 - TILT * x)
    mean = float(np.average(x, weights=weights))
    variance = float(np.average((x - mean) ** 2, weights=weights))
    phi = np.eye(size)
    if size > 1:
        phi[0, 1], phi[1, 0] = -0.5, 0.5
    return Process(phi, variance * np.eye(size), np.full(size, mean), True, 1.1)


PROCESSES: dict[str, Callable[[], Process]] = {
    "linear 1": lambda: linear(1),
    "linear 2": lambda: linear(2),
    "linear 5": lambda: linear(5),
    "wells 1": lambda: wells(1),
    "wells 3": lambda: wells(3),
}


def _drifting(series: el.TimeSeries) -> el.TimeSeries:
    """Add a trend of one standard deviation to the first variable, over the whole of the series."""
    total, done, std, parts = series.n_samples, 0, series.stacked()[:, 0].std(), []
    for segment in series.segments:
        moved = segment.copy()
        moved[:, 0] += std * ((done + np.arange(len(segment))) / total - 0.5)
        parts.append(moved)
        done += len(segment)
    return series.with_segments(parts)


def _blurred(process: Process, size: int, seed: int) -> el.TimeSeries:
    """Each sample is the mean over one sampling interval."""
    fine = process.simulate(size, seed, DT / 4)
    parts = [s[: len(s) // 4 * 4].reshape(-1, 4, s.shape[1]).mean(axis=1) for s in fine.segments]
    return el.TimeSeries(parts, DT)


def _noisy(series: el.TimeSeries, seed: int) -> el.TimeSeries:
    rng, std = np.random.default_rng(seed + 10**6), series.stacked().std(axis=0)
    return series.map(lambda x: x + 0.5 * std * rng.normal(size=x.shape))


def _fitted(series: el.TimeSeries, process: Process, mobility: Any = None) -> el.LangevinModel:
    """Return what a plain fit makes of a linear process; wells keep their exact model."""
    if process.wells:
        return process.model()
    return el.fit(series, score=el.Gaussian(), mobility=mobility or el.LogCorrelation(), check="off")


def pair(truth: str, process: Process, size: int, seed: int) -> tuple[el.LangevinModel, el.TimeSeries]:
    """Return a model and the data it is compared with."""
    if truth == "blurred":
        series = _blurred(process, size, seed)
        return _fitted(series, process), series
    series = process.simulate(size, seed)
    if truth == "noisy":
        series = _noisy(series, seed)
        return _fitted(series, process), series
    if truth == "right, fitted":
        return _fitted(series, process, el.IntegratedResponse()), series
    if truth == "non-stationary":
        return process.model(), _drifting(series)
    if truth == "wrong closure":
        return process.model(clock=1.6), series
    if truth == "wrong density":
        return process.model(width=1.0 if process.wells else 1.6, gaussian=process.wells), series
    return process.model(), series


TRUTHS = ("right", "right, fitted", "wrong closure", "wrong density", "non-stationary", "blurred", "noisy")


def judge(model: el.LangevinModel, series: el.TimeSeries, seed: int) -> dict[str, Any]:
    """Return level, border, sizes of differences and what could be detected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = el.validate(model, series, seed=seed)
        verdict = result.verdict
    found, detectable = {}, {}
    for test in result.tests:
        found |= test.largest
        detectable |= test.detectable
    blamed = [f.name for f in verdict.findings if f.level in ("warning", "stop")]
    return {
        "level": verdict.level,
        "border": verdict.border,
        "largest": found,
        "detectable": detectable,
        "blamed": blamed,
    }


def measure(truth: str, name: str, size: int, replicas: int) -> dict[str, Any]:
    """Return counts over replicas, and how often three seeds agree."""
    process, started = PROCESSES[name](), time.monotonic()
    found, agreed, seeded = [], 0, 0
    for replica in range(replicas):
        model, series = pair(truth, process, size, 1000 * size + replica)
        runs = [judge(model, series, seed) for seed in range(SEEDS if replica < SEEDED and size < 10_000 else 1)]
        found.append(runs[0])
        if len(runs) > 1:
            seeded += 1
            agreed += len({r["level"] for r in runs}) == 1 or all(r["border"] for r in runs)
    levels = Counter(r["level"] for r in found)
    return {
        "replicas": replicas,
        **{level: levels[level] for level in ORDER},
        "border": sum(r["border"] for r in found),
        "seeds_agree": agreed,
        "seeds_tried": seeded,
        "blamed": dict(Counter(name for r in found for name in r["blamed"])),
        "mean_largest": {k: float(np.mean([r["largest"][k] for r in found if k in r["largest"]])) for k in MEASURED},
        "detectable": {
            k: float(np.median([r["detectable"][k] for r in found if k in r["detectable"]])) for k in MEASURED
        },
        "runs": [{k: r[k] for k in ("level", "detectable")} for r in found],
        "seconds_per_run": (time.monotonic() - started) / (replicas + (SEEDS - 1) * seeded),
    }


def above_detectable(results: dict[str, Any]) -> None:
    """Count replicas whose true error, as the largest size shows it, is above what they say they can detect."""
    for truth in TRUTHS:
        for name in PROCESSES:
            reference = results.get(f"{truth} | {name} | {max(SIZES)}")
            for size in SIZES:
                cell = results.get(f"{truth} | {name} | {size}")
                if cell is None or reference is None or "runs" not in cell:
                    continue
                true = reference["mean_largest"]
                seen = [r for r in cell["runs"] if any(true[k] > r["detectable"].get(k, np.inf) for k in MEASURED)]
                cell["above_detectable"] = len(seen)
                cell["above_detectable_good"] = sum(r["level"] == "good" for r in seen)


def table(results: dict[str, Any]) -> str:
    """Write counts summed over the processes as Markdown.

    "good though off" counts replicas called good whose true error is above what they say they can detect.
    """
    head = [
        "truth",
        "effective samples",
        "replicas",
        *ORDER,
        "at the border",
        "seeds agree or say so",
        "good though off",
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for truth in (*TRUTHS, "too short"):
        for size in (SHORT, *SIZES):
            cells = [c for key, c in results.items() if key.split(" | ")[0] == truth and key.endswith(f"| {size}")]
            if not cells:
                continue
            total = {k: sum(c[k] for c in cells) for k in ("replicas", *ORDER, "border", "seeds_agree", "seeds_tried")}
            shares = " | ".join(f"{100 * total[level] / total['replicas']:.1f} %" for level in ORDER)
            seeds = f"{total['seeds_agree']} of {total['seeds_tried']}" if total["seeds_tried"] else "–"
            border = f"{100 * total['border'] / total['replicas']:.0f} %"
            above = sum(c.get("above_detectable", 0) for c in cells)
            missed = f"{sum(c.get('above_detectable_good', 0) for c in cells)} of {above}" if above else "–"
            lines.append(f"| {truth} | {size} | {total['replicas']} | {shares} | {border} | {seeds} | {missed} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.verdict", description=__doc__)
    arguments.add_argument("sizes", nargs="*", type=int, help=f"effective samples (default: {SHORT} and {list(SIZES)})")
    arguments.add_argument("--replicas", type=int, help="of each process and truth")
    arguments.add_argument("--truths", nargs="*", default=[*TRUTHS])
    arguments.add_argument("--processes", nargs="*", default=[*PROCESSES])
    arguments.add_argument("--out", type=Path, default=RESULTS)
    given = arguments.parse_args()
    results = json.loads(given.out.read_text()) if given.out.exists() else {}
    for size in given.sizes or (SHORT, *SIZES):
        truths = ["too short"] if size == SHORT else given.truths
        for truth in truths:
            for name in given.processes:
                if truth == "right, fitted" and name.startswith("wells"):
                    continue
                wrong = not truth.startswith("right")
                count = given.replicas or (SHORT_REPLICAS if size == SHORT else SIZES[size][wrong])
                cell = measure(truth, name, size, count)
                results[f"{truth} | {name} | {size}"] = cell
                above_detectable(results)
                print(truth, name, size, {k: cell[k] for k in ("replicas", *ORDER, "border", "blamed")}, flush=True)
                given.out.write_text(json.dumps(results, indent=1) + "\n")
    for cell in results.values():
        if "above_detectable" in cell:
            cell.pop("runs", None)
    given.out.write_text(json.dumps(results, indent=1) + "\n")
    given.out.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
