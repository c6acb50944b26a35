"""Series that no equation fits, or that rounding, gaps and scales make hard: a right answer, a warning or a refusal."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import beta, norm, t

import effective_langevin as el

from ..robustness import Case

N, MEMBERS = 2000, 64
Values = np.ndarray | list[np.ndarray]


def linear(samples: int = N, size: int = 2, dt: float = 0.1, seed: int = 0) -> np.ndarray:
    """Return a rotating Ornstein-Uhlenbeck process; one variable does not rotate."""
    system = el.systems.OrnsteinUhlenbeck.rotating(2)
    paths = [system.simulate(dt * (samples - 1), dt=dt, seed=seed + k).values for k in range(-(-size // 2))]
    return np.concatenate(paths, axis=1)[:samples, :size]


def autoregressive(factor: float, samples: int = N, seed: int = 0) -> np.ndarray:
    from scipy.signal import lfilter

    return lfilter([1.0], [1.0, -factor], np.random.default_rng(seed).normal(size=samples))[:, None]


def _changed(x: np.ndarray, where: object, value: float) -> np.ndarray:
    x[where] = value
    return x


def _logistic(x: float = 0.3) -> np.ndarray:
    return np.array([x := 3.99 * x * (1 - x) for _ in range(N)])[:, None]


def _mixed(weight: float) -> np.ndarray:
    x = linear()
    return np.column_stack([x[:, 0], x[:, 0] + weight * x[:, 1]])


_rows, _noise = np.arange(N), np.random.default_rng(5)

# Variables that are no variables, records that are no records, numbers out of range: refused before the fit.
REFUSED: dict[str, Callable[[], tuple[Values, float]]] = {
    "identical columns": lambda: (_mixed(0.0), 0.1),
    "x and -2 x": lambda: (linear()[:, :1] * [1.0, -2.0], 0.1),
    "sum of two": lambda: ((lambda x: np.column_stack([x, x.sum(axis=1)]))(linear()), 0.1),
    "correlation 1 - 1e-12": lambda: (_mixed(1.4e-6), 0.1),
    "binary": lambda: ((linear(size=1) > 0).astype(float), 0.1),
    "binary, 2 variables": lambda: ((linear() > 0).astype(float), 0.1),
    "all but one constant": lambda: (_changed(np.zeros((N, 1)), (5, 0), 1.0), 0.1),
    "constant": lambda: (np.ones((N, 1)), 0.1),
    "period of 4 samples": lambda: (np.tile([0.0, 1.0, 0.0, -1.0], N // 4)[:, None], 0.1),
    "records of 1": lambda: (list(linear().reshape(-1, 1, 2)), 0.1),
    "a gap after every sample": lambda: (_changed(linear(), slice(1, None, 2), np.nan), 0.1),
    "scale 1e-300": lambda: (linear() * 1e-300, 0.1),
    "scale 1e160": lambda: (linear() * 1e160, 0.1),
    "scale 1e300": lambda: (linear() * 1e300, 0.1),
    "dt 1e-300": lambda: (linear(), 1e-300),
    "dt 1e300": lambda: (linear(), 1e300),
    "100 variables, 90 samples": lambda: (linear(90, 100), 0.1),
    "99 samples": lambda: (linear(99), 0.1),
    "2 samples": lambda: (linear(2), 0.1),
    "1 sample": lambda: (linear(2)[:1], 0.1),
}

# Series of an equation of this kind, in unusual units: the answer must not depend on them.
RIGHT: dict[str, Callable[[], tuple[Values, float]]] = {
    **{f"scale 1e{e}": partial(lambda e: (linear() * 10.0**e, 0.1), e) for e in (-30, -10, 10, 30)},
    **{f"dt 1e{e}": partial(lambda e: (linear(), 10.0**e), e) for e in (-30, -12, 12, 30)},
    "scales 1e-30 and 1e30": lambda: (linear() * [1e-30, 1e30], 0.1),
    "offset 1e8, spread 1e-3": lambda: (linear() * 1e-3 + 1e8, 0.1),
    "offset 1e12, spread 1": lambda: (linear() + 1e12, 0.1),
    "stored in single precision": lambda: ((300 + linear()).astype("f4").astype(float), 0.1),
    "records of 20": lambda: (list(linear().reshape(-1, 20, 2)), 0.1),
    "linear": lambda: (linear(), 0.1),
    "linear, 1 variable": lambda: (linear(size=1), 0.1),
}

# Series that a model may describe badly: never "good" without a word, and never a crash.
HARD: dict[str, Callable[[], tuple[Values, float]]] = {
    "scale 1e-160": lambda: (linear() * 1e-160, 0.1),
    "scale 1e100": lambda: (linear() * 1e100, 0.1),
    "scale 1e150": lambda: (linear() * 1e150, 0.1),
    "offset 1e8, spread 1e-5": lambda: (linear() * 1e-5 + 1e8, 0.1),
    "offset 1e15, spread 100": lambda: (linear() * 100 + 1e15, 0.1),
    "correlation 1 - 1e-6": lambda: (_mixed(1.4e-3), 0.1),
    **{f"Student t, {nu}": partial(lambda nu: (t.ppf(norm.cdf(linear()), nu), 0.1), nu) for nu in (1, 2, 3)},
    "integers 0 to 5": lambda: (np.clip(np.floor(linear(size=1) * 1.2 + 3), 0, 5), 0.1),
    "integers 0 to 5, 2 variables": lambda: (np.clip(np.floor(linear() * 1.2 + 3), 0, 5), 0.1),
    "rounded to 0.1": lambda: (np.round(linear(), 1), 0.1),
    "rounded to 1": lambda: (np.round(linear()), 0.1),
    "a gap after every second": lambda: (_changed(linear(), slice(2, None, 3), np.nan), 0.1),
    "30 % gaps": lambda: (_changed(linear(), _noise.random(N) < 0.3, np.nan), 0.1),
    "records of 2": lambda: (list(linear().reshape(-1, 2, 2)), 0.1),
    "records of 4": lambda: (list(linear().reshape(-1, 4, 2)), 0.1),
    "records of 8": lambda: (list(linear().reshape(-1, 8, 2)), 0.1),
    "every sample twice": lambda: (np.repeat(linear(N // 2), 2, axis=0), 0.05),
    "outlier of 1e6": lambda: (_changed(linear(), (N // 2, 0), 1e6), 0.1),
    "outlier of 50": lambda: (_changed(linear(), (N // 2, 0), 50.0), 0.1),
    "1 % at -9999": lambda: (_changed(linear(), _noise.random(N) < 0.01, -9999.0), 0.1),
    "sine": lambda: (np.sin(0.05 * _rows)[:, None], 0.1),
    "circle": lambda: (np.column_stack([np.cos(0.05 * _rows), np.sin(0.05 * _rows)]), 0.1),
    "sine and noise": lambda: (np.sin(0.05 * _rows)[:, None] + 0.3 * linear(size=1), 0.1),
    "ramp": lambda: (_rows[:, None].astype(float), 0.1),
    "sawtooth": lambda: ((_rows % 50)[:, None].astype(float), 0.1),
    "trend": lambda: (linear() + np.linspace(0, 10, N)[:, None], 0.1),
    "random walk": lambda: (np.cumsum(_noise.normal(size=(N, 1)), axis=0), 0.1),
    "beta (1/2, 1/2)": lambda: (beta.ppf(norm.cdf(linear(size=1)), 0.5, 0.5), 0.1),
    "uniform": lambda: (norm.cdf(linear()), 0.1),
    "rain": lambda: (np.maximum(linear(size=1) - 0.7, 0) ** 2, 0.1),
    "rain, 2 variables": lambda: (np.maximum(linear() - 0.7, 0) ** 2, 0.1),
    "lognormal": lambda: (np.exp(1.5 * linear(size=1)), 0.1),
    "exponential": lambda: (-np.log(norm.cdf(linear(size=1))), 0.1),
    "far wells": lambda: ([linear(N // 2) + 10, linear(N // 2, seed=9) - 10], 0.1),
    "64 variables, 120 samples": lambda: (linear(120, 64), 0.1),
    "16 variables, 100 samples": lambda: (linear(100, 16), 0.1),
    "white noise": lambda: (_noise.normal(size=(N, 2)), 0.1),
    "alternating": lambda: (autoregressive(-0.9), 0.1),
    "very slow": lambda: (autoregressive(0.9999), 0.1),
    "very finely sampled": lambda: (linear(dt=1e-3), 1e-3),
    "100 samples": lambda: (linear(100), 0.1),
    "rare spikes": lambda: (_changed(linear(size=1), (slice(None, None, 500), 0), 100.0), 0.1),
    "wrapped 8-bit numbers": lambda: (np.round(linear(size=1) * 100).astype("i2").astype("i1").astype(float), 0.1),
    "change of the variance": lambda: (linear() * np.repeat([1, 5], N // 2)[:, None], 0.1),
    "chirp": lambda: (np.sin(1e-5 * _rows**2)[:, None], 0.1),
    "logistic map": lambda: (_logistic(), 1.0),
    "season": lambda: (linear() + 3 * np.sin(2 * np.pi * _rows / 120)[:, None], 0.1),
    "correlation 1 - 5e-5": lambda: (_mixed(0.01), 0.1),
    "cubic of a linear process": lambda: ((lambda x: x + 0.3 * x**3)(linear(size=1)), 0.1),
    "hyperbolic sine of a linear process": lambda: (np.sinh(linear()), 0.1),
}


def series(folder: Path, count: int) -> Iterator[Case]:
    """Yield every series with the answer that is expected of diagnosis, fit, validation and report."""
    for cases, expected in ((REFUSED, "refused"), (RIGHT, "right"), (HARD, "either")):
        for name, make in cases.items():
            report = folder / "report.html" if expected == "either" else None
            yield Case(name, partial(_try, make, expected == "right", report), expected)


def _try(make: Callable[[], tuple[Values, float]], right: bool, report: Path | None) -> None:
    """Diagnose, fit, validate, report; a linear model must have its rates, and a bad one a bad verdict."""
    values, dt = make()
    data = el.TimeSeries(values, dt)
    with suppress(el.DataError):  # too short or too fragmented for a diagnosis: the fit says what it needs
        el.diagnose(data).summary()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", el.EstimateWarning)
        model = el.fit(data, seed=0)
    result = el.validate(model, data, members=MEMBERS, seed=1)
    result.summary()
    if report is not None:
        result.report(report)
    assert all(v is None or np.isfinite(v) for v in result.metrics.values()), "a metric is not finite"
    if right:
        rates = np.sort(dt / model.timescales().value)
        assert result.verdict.level != "poor", result.verdict.sentences[0]
        assert 0.02 < rates.min() <= rates.max() < 0.5, rates
        return
    spread = data.stacked().std(axis=0)
    ratio = result.paths.stacked().std(axis=0) / np.where(spread > 0, spread, 1.0)
    silent = result.verdict.level == "good" and not told
    assert not (silent and (np.abs(np.log(ratio)) > 0.5).any()), f"good, but the spread is off by {ratio}"
