"""Replicas of processes with a known truth, paired with models that are right or wrong in a known way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov

import effective_langevin as el
from effective_langevin.estimate.score import Score, ScoreFit
from effective_langevin.estimate.space import StateSpace

RECORDS = {30: 1, 300: 1, 2000: 4, 20_000: 20, 100_000: 50, 200_000: 100}
DT = 0.4
STEEPNESS, TILT = 0.5, 0.2
TREND = 1.0  # of the first variable of series that are not stationary, in standard deviations of the process


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
        for frame, kick in enumerate(kicks):
            paths[frame] = state
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
    """Add a trend to the first variable, over the whole of the series."""
    total, done, std, parts = series.n_samples, 0, series.stacked()[:, 0].std(), []
    for segment in series.segments:
        moved = segment.copy()
        moved[:, 0] += TREND * std * ((done + np.arange(len(segment))) / total - 0.5)
        parts.append(moved)
        done += len(segment)
    return series.with_segments(parts)


def blurred(process: Process, size: int, seed: int) -> el.TimeSeries:
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
        series = blurred(process, size, seed)
        return _fitted(series, process), series
    series = process.simulate(size, seed)
    if truth == "noisy":
        series = _noisy(series, seed)
        return _fitted(series, process), series
    if truth == "right, learned":
        return el.fit(series, check="off"), series
    if truth == "right, fitted":
        return _fitted(series, process, el.IntegratedResponse()), series
    if truth == "non-stationary":
        return process.model(), _drifting(series)
    if truth == "wrong closure":
        return process.model(clock=1.6), series
    if truth == "wrong density":
        return process.model(width=1.0 if process.wells else 1.6, gaussian=process.wells), series
    return process.model(), series
