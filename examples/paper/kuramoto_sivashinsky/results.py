"""What the figures and the table of this folder rest on, as small arrays: `results.npz`.

Needs numpy, scipy and the package only. All points of the ring are alike, so densities and autocorrelations are pooled
over them. Fields and matrices are in units of the standard deviation of the data about their mean.

Keys of `results.npz`, all float32; NAME is data, state-dependent, constant,
published or LIM (those given), half1 or half2 of the data:

    mean, std, dt                          scalars: of the data, and the sampling interval
    lag                     (lag,)         lag times 0 ... 50
    pdf_edges               (201,)         edges of the pooled density
    pair_edges              (51,)          edges of the joint counts
    NAME.field              (time, point)  200 time units of one member (not for the halves)
    NAME.pdf_counts         (200,)         counts in `pdf_edges`, pooled over points
    NAME.variable_counts    (point, 200)   counts of each point in its own bins, those of the metric `pdf_kl`
    NAME.pair_counts        (3, 50, 50)    joint counts of u_i (rows) and u_{i+k}, k = 1, 2, 3, pooled over points
    NAME.acf                (lag,)         autocorrelation at a point, pooled over points
    NAME.mode_variance      (mode,)        < |u_k|^2 > of the unitary transform, modes 0 ... points / 2
    NAME.mode_acf           (lag, mode)    autocorrelation of each mode, NaN for one without variance
    NAME.covariance         (point, point) C(0)

for the models also, in the model's own standardised units,

    NAME.phi, .phi_symmetric, .phi_antisymmetric, .sigma, .stein    (point, point)
    NAME.phi_of_mode        (mode,)        Phi_k of the model, per unit of time
    NAME.horizon (horizon,), .phi_by_mode (mode, horizon), .chosen_horizon (mode,)     if inferred by horizon
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import expm

from effective_langevin import LangevinModel, TimeSeries, Translations, Validation
from effective_langevin.statistics import distances
from effective_langevin.statistics.lags import autocovariances
from effective_langevin.validate import fields

FOLDER = Path(__file__).parent
REACH = 50.0
STRETCH = 200.0
BINS = 200
TAIL = 0.0005
FLOOR = "data against data"
METRICS = (
    *("stein_error", "pdf_kl_mean", "pdf_kl_max", "covariance_error", "mean_acf_rmse"),
    *(f"pair_kl_{offset}" for offset in fields.OFFSETS),
)

Entry = tuple[LangevinModel, Validation | TimeSeries]
Arrays = dict[str, np.ndarray]


def collect(series: TimeSeries, entries: Mapping[str, Entry]) -> Arrays:
    """Everything that figures and table need, from the data and, by name, models with their simulated paths."""
    frame = Frame.of(series)
    centre = series.stacked().mean(axis=0)
    half1, half2 = (frame.sums(part, centre) for part in _halves(series.segments))
    found = {"data": half1 + half2, "half1": half1, "half2": half2}
    shown, arrays = {"data": series}, frame.described()
    for name, (model, simulated) in entries.items():
        paths = simulated.paths if isinstance(simulated, Validation) else simulated
        if not np.isclose(paths.dt, series.dt) or paths.dimension != series.dimension:
            raise ValueError(f"The paths of {name!r} must have the points and the sampling interval of the data.")
        found[name], shown[name] = frame.sums(paths.segments, paths.stacked().mean(axis=0)), paths
        arrays |= _named(name, _operators(model))
    for name, sums in found.items():
        arrays |= _named(name, sums.statistics())
    for name, paths in shown.items():
        arrays |= _named(name, {"field": frame.stretch(paths)})
    return {key: np.asarray(value, np.float32) for key, value in arrays.items()}


def table(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """The metrics of every model in `collect`'s arrays, and the same between two halves of the data (`FLOOR`).

    `pdf_kl` and `pair_kl` are KL(data || model) in nats from counts in common bins, with half a count added to each of
    the model's; `covariance_error` is that of the circulant means of covariances; `mean_acf_rmse` is over lags 0 to 50
    of the autocorrelation at a point.
    """
    models = [key.removesuffix(".stein") for key in arrays if key.endswith(".stein")]
    rows = {name: _distances(arrays, "data", name) for name in models}
    for name in models:
        stein = arrays[f"{name}.stein"].astype(float)
        rows[name]["stein_error"] = float(np.linalg.norm(stein + np.eye(len(stein))) / np.sqrt(len(stein)))
    rows[FLOOR] = _distances(arrays, "half1", "half2")
    return {name: {metric: row[metric] for metric in METRICS if metric in row} for name, row in rows.items()}


def write(arrays: Arrays, folder: Path = FOLDER, extra: Mapping[str, float | str] | None = None) -> None:
    """Write `results.npz` and `metrics.json` ({row: {metric: value}}, and `extra` under its own name)."""
    np.savez_compressed(str(folder / "results.npz"), **arrays)  # pyright: ignore[reportArgumentType]
    metrics: dict[str, object] = dict(table(arrays))
    if extra:
        metrics["extra"] = dict(extra)
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")


def read(folder: Path = FOLDER) -> tuple[Arrays, dict[str, dict[str, float]]]:
    """The arrays and the metrics of that folder."""
    with np.load(folder / "results.npz", allow_pickle=False) as stored:
        return dict(stored), json.loads((folder / "metrics.json").read_text())


def linear_paths(model: LangevinModel, duration: float, members: int, seed: int) -> TimeSeries:
    """Exact samples of a model with a Gaussian score, x' = exp(-Phi C^-1 dt) x + noise, at any stiffness.

    The conserved mean of the flow leaves a direction without variance, in which no explicit step is short enough.
    """
    phi, covariance = model.standardizer.mobility_to_standard(model.mobility.matrix), model.score.covariance
    values, vectors = np.linalg.eigh(covariance)
    kept = vectors[:, values > 1e-9 * values[-1]]
    c, phi = kept.T @ covariance @ kept, kept.T @ phi @ kept
    advance = expm(-model.dt * phi @ np.linalg.inv(c))
    spread, axes = np.linalg.eigh(c - advance @ c @ advance.T)
    noise = axes * np.sqrt(np.maximum(spread, 0))
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(members, len(c))) @ np.linalg.cholesky(c).T
    frames = np.empty((round(duration / model.dt) + 1, members, len(c)))
    for frame in frames:
        frame[:] = state
        state = state @ advance.T + rng.normal(size=state.shape) @ noise.T
    paths = model.standardizer.to_physical(np.swapaxes(frames, 0, 1) @ kept.T)
    return TimeSeries(paths, model.dt, names=model.names, units=model.units, time_unit=model.time_unit)


@dataclass(frozen=True)
class Sums:
    """Counts and sums over samples, which add up from one part of a series to the next."""

    pdf_counts: np.ndarray
    variable_counts: np.ndarray
    pair_counts: np.ndarray
    covariance: np.ndarray
    mode_covariances: np.ndarray
    samples: np.ndarray
    pairs: np.ndarray

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*(getattr(self, f.name) + getattr(other, f.name) for f in dataclasses.fields(self)))

    def statistics(self) -> Arrays:
        """Counts as they are, means of the rest."""
        modes = (self.mode_covariances / self.pairs[:, None])[:, None]
        points = len(self.covariance)
        return {
            "pdf_counts": self.pdf_counts,
            "variable_counts": self.variable_counts,
            "pair_counts": self.pair_counts,
            "covariance": self.covariance / self.samples,
            "acf": fields.point_acf(modes, points)[:, 0],
            "mode_variance": modes[0, 0],
            "mode_acf": fields.mode_acf(modes)[:, 0],
        }


@dataclass(frozen=True)
class Frame:
    """Units, bins and lags that are the same for data and models; they come from the data."""

    mean: float
    std: float
    dt: float
    pooled: tuple[float, float]
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, series: TimeSeries) -> "Frame":
        """Mean and standard deviation over samples and points; bins between the quantiles of the metric `pdf_kl`."""
        samples = series.stacked()
        mean = float(samples.mean(dtype=float))
        std = float(np.sqrt(np.mean([np.mean((row - mean) ** 2, dtype=float) for row in samples.T])))
        low, high = (np.quantile(samples, [TAIL, 1 - TAIL], axis=0) - mean) / std
        # All points are alike: the mean of their quantiles is the pooled quantile, at no further cost.
        return cls(mean, std, series.dt, (float(low.mean()), float(high.mean())), low, high)

    @property
    def reach(self) -> int:
        """The longest lag, in steps."""
        return round(REACH / self.dt)

    def described(self) -> Arrays:
        """The frame itself, for the figures."""
        return {
            "mean": np.array(self.mean),
            "std": np.array(self.std),
            "dt": np.array(self.dt),
            "lag": self.dt * np.arange(self.reach + 1),
            "pdf_edges": np.linspace(*self.pooled, BINS + 1),
            "pair_edges": np.linspace(*self.pooled, fields.PAIR_BINS + 1),
        }

    def stretch(self, series: TimeSeries) -> np.ndarray:
        """The beginning of the longest member."""
        return (max(series.segments, key=len)[: round(STRETCH / self.dt) + 1] - self.mean) / self.std

    def sums(self, segments: Sequence[np.ndarray], centre: np.ndarray) -> Sums:
        """Every statistic of standardised segments; covariances are about `centre`."""
        samples = ((np.concatenate(segments) - self.mean) / self.std).astype(np.float32)
        low, high = (np.full(samples.shape[1], end) for end in self.pooled)
        counted = {
            "pdf_counts": fields.histograms(samples, low, high, BINS).sum(axis=0),
            "variable_counts": fields.histograms(samples, self.low, self.high, BINS),
            "pair_counts": fields.pair_counts(samples, *self.pooled),
        }
        samples -= ((centre - self.mean) / self.std).astype(np.float32)
        lengths = np.array([len(s) for s in segments])
        pairs = np.maximum(lengths[:, None] - np.arange(self.reach + 1), 0).sum(axis=0)
        modes = mode_autocovariances(np.split(samples, np.cumsum(lengths)[:-1]), self.reach)[:, 0]
        return Sums(
            **counted,
            covariance=np.sum([(part.T @ part).astype(float) for part in np.array_split(samples, 64)], axis=0),
            mode_covariances=modes * pairs[:, None],
            samples=np.array(len(samples)),
            pairs=pairs,
        )


def _halves(segments: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """The first and the second half of the members; of a single record, its two halves in time."""
    if len(segments) == 1:
        first, second = np.array_split(segments[0], 2)
        return [first], [second]
    return segments[: len(segments) // 2], segments[len(segments) // 2 :]


def _operators(model: LangevinModel) -> Arrays:
    """The matrices of the paper's second figure, and Phi by mode, in standardised units."""
    phi = model.standardizer.mobility_to_standard(model.mobility.matrix)
    found = model.mobility.diagnostics
    by_horizon = {
        key: np.asarray(found[key], float) for key in ("horizon", "phi_by_mode", "chosen_horizon") if key in found
    }
    return {
        "phi": phi,
        "phi_symmetric": 0.5 * (phi + phi.T),
        "phi_antisymmetric": 0.5 * (phi - phi.T),
        "sigma": np.linalg.cholesky(0.5 * (phi + phi.T)),
        "stein": model.score.stein,
        "phi_of_mode": fields.modes_of(phi)[0],
    } | (by_horizon if len(by_horizon) == 3 else {})


def _distances(arrays: Mapping[str, np.ndarray], data: str, model: str) -> dict[str, float]:
    """Every distance of one set of statistics from another."""

    def both(name: str) -> tuple[np.ndarray, np.ndarray]:
        return arrays[f"{data}.{name}"].astype(float), arrays[f"{model}.{name}"].astype(float)

    kl = distances.pdf_kl(*both("variable_counts"))
    pairs = distances.pdf_kl(*(counts.reshape(len(counts), -1) for counts in both("pair_counts")))
    expected, simulated = (Translations().project(c) for c in both("covariance"))
    return {
        "pdf_kl_mean": float(kl.mean()),
        "pdf_kl_max": float(kl.max()),
        "covariance_error": distances.matrix_error(simulated, expected),
        "mean_acf_rmse": distances.acf_rmse(*(acf[:, None] for acf in both("acf"))),
        **{f"pair_kl_{offset}": float(value) for offset, value in zip(fields.OFFSETS, pairs)},
    }


def _named(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}.{key}": value for key, value in arrays.items()}


def mode_autocovariances(segments: Sequence[np.ndarray], reach: int, channels: int = 1) -> np.ndarray:
    """Re < u_k(t + lag) u_k(t)* > at lags 0 ... reach, (lag, channel, mode); give segments without their mean."""
    parts = []
    for segment in segments:
        modes = np.fft.rfft(segment.reshape(len(segment), channels, -1), axis=-1, norm="ortho").reshape(
            len(segment), -1
        )
        parts.append(np.concatenate([modes.real, modes.imag], axis=1))
    return autocovariances(parts, reach).reshape(reach + 1, 2, channels, -1).sum(axis=1)
