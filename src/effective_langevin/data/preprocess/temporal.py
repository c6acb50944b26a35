"""Transforms that know what time it is: trend, seasonal cycle, phase of a forcing."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from ..._core import checks
from ..._core.errors import DataError
from ..._core.types import Samples
from ..series import Label, TimeSeries
from .base import SegmentTransform, described

_DEFAULT_HARMONICS = 4


@dataclass(frozen=True)
class Detrend:
    """Remove a polynomial trend in time, common to all records; the mean stays.

    Parameters
    ----------
    degree : int, default 1
        Degree of the polynomial.
    extrapolate : bool, default False
        Continue the trend beyond the fitted record. Otherwise it keeps the value that it had at the end.

    Examples
    --------
    >>> series = el.TimeSeries(3 + 0.5 * np.arange(10.0), dt=1.0)
    >>> el.preprocess.Detrend().fit(series).summary()
    'Detrend of degree 1: change over the record x1 +4.5'
    """

    degree: int = 1
    extrapolate: bool = False

    def __post_init__(self):
        checks.integer_at_least("degree", self.degree, 1)
        checks.instance_of("extrapolate", self.extrapolate, (bool,))

    def fit(self, series: TimeSeries) -> "FittedDetrend":
        """Fit the trend by least squares over all samples."""
        checks.enough_samples(series.n_samples, self.degree + 2, f"a trend of degree {self.degree}")
        times = np.concatenate(series.times)
        span = np.array([times.min(), times.max()])
        basis = legendre.legvander(_scaled(times, span), self.degree)
        coefficients = np.linalg.lstsq(basis, series.stacked(), rcond=None)[0]
        coefficients[0] = -basis[:, 1:].mean(axis=0) @ coefficients[1:]
        return FittedDetrend(**described(series), span=span, coefficients=coefficients, extrapolate=self.extrapolate)


@dataclass(frozen=True, eq=False)
class _Removal(SegmentTransform):
    """A fitted transform that subtracts a function of time."""

    @abstractmethod
    def removed(self, times: np.ndarray) -> Samples:
        """Return what is removed, (time, var)."""

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        return values - self.removed(times)

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        return values + self.removed(times)

    def _describe(self, sizes: list[str]) -> str:
        return ", ".join(f"{n} {s} {u}".rstrip() for n, s, u in zip(self.names[:8], sizes, self.units))


@dataclass(frozen=True, eq=False)
class FittedDetrend(_Removal):
    """A trend sum_k c_k P_k(tau) with mean zero over the fitted samples, tau from -1 to 1 over `span`."""

    span: np.ndarray
    coefficients: np.ndarray
    extrapolate: bool

    def removed(self, times: np.ndarray) -> Samples:
        times = times if self.extrapolate else np.clip(times, *self.span)
        return legendre.legvander(_scaled(times, self.span), len(self.coefficients) - 1) @ self.coefficients

    def summary(self) -> str:
        change = [f"{c:+.3g}" for c in np.diff(self.removed(self.span), axis=0)[0]]
        return f"Detrend of degree {len(self.coefficients) - 1}: change over the record {self._describe(change)}"


def _scaled(times: np.ndarray, span: np.ndarray) -> np.ndarray:
    return (2 * times - span.sum()) / (span[1] - span[0])


@dataclass(frozen=True)
class RemoveSeasonalCycle:
    """Remove the mean cycle of a known period; the mean stays.

    Only the cycle of the mean is removed: a seasonal variance stays in the series.

    Parameters
    ----------
    period : float
        Period, in the unit of time of the series.
    harmonics : int, optional
        Number of sines and cosines of the cycle. Default: 4, or as many as the sampling resolves.

    Examples
    --------
    >>> series = el.TimeSeries(np.cos(2 * np.pi * np.arange(120) / 12), dt=1.0, time_unit="month")
    >>> el.preprocess.RemoveSeasonalCycle(period=12).fit(series).summary()
    'RemoveSeasonalCycle of period 12 month: peak to peak x1 2'
    """

    period: float
    harmonics: int | None = None

    def __post_init__(self):
        checks.positive_number("period", self.period)
        if self.harmonics is not None:
            checks.integer_at_least("harmonics", self.harmonics, 1)

    def fit(self, series: TimeSeries) -> "FittedRemoveSeasonalCycle":
        """Fit harmonics and mean by least squares over all samples."""
        harmonics = self._resolved_harmonics(series)
        times = np.concatenate(series.times)
        covered = float(np.ptp(times)) + series.dt
        if covered < self.period * (1 - 1e-9):
            raise DataError(
                f"The series covers a time of {covered:g}, less than one period of {self.period:g} "
                f"{series.time_unit}".rstrip()
                + ": a cycle cannot be told from the rest."
            )
        checks.enough_samples(series.n_samples, 2 * harmonics + 2, f"a cycle of {harmonics} harmonics")
        basis = np.column_stack([np.ones(len(times)), _harmonics(times, self.period, harmonics)])
        coefficients = np.linalg.lstsq(basis, series.stacked(), rcond=None)[0][1:]
        return FittedRemoveSeasonalCycle(**described(series), period=float(self.period), coefficients=coefficients)

    def _resolved_harmonics(self, series: TimeSeries) -> int:
        """Return the number of harmonics, which the sampling must resolve: two samples in the shortest period."""
        resolved = int(self.period / (2 * series.dt) * (1 + 1e-9))
        harmonics = min(_DEFAULT_HARMONICS, resolved) if self.harmonics is None else self.harmonics
        if not 1 <= harmonics <= resolved:
            raise DataError(
                f"A cycle of period {self.period:g} sampled every {series.dt:g} {series.time_unit}".rstrip()
                + f" shows {resolved} harmonics, not {max(harmonics, 1)}. Lower `harmonics`; mind the unit of `period`."
            )
        return harmonics


@dataclass(frozen=True, eq=False)
class FittedRemoveSeasonalCycle(_Removal):
    """A cycle sum_k a_k cos(2 pi k t / period) + b_k sin(2 pi k t / period); coefficients (a_1, b_1, a_2, ...)."""

    period: float
    coefficients: np.ndarray

    def removed(self, times: np.ndarray) -> Samples:
        return _harmonics(times, self.period, len(self.coefficients) // 2) @ self.coefficients

    def summary(self) -> str:
        swing = [f"{s:.3g}" for s in np.ptp(self.removed(np.linspace(0, self.period, 400)), axis=0)]
        label = f"RemoveSeasonalCycle of period {self.period:g} {self.time_unit}".rstrip()
        return f"{label}: peak to peak {self._describe(swing)}"


def _harmonics(times: np.ndarray, period: float, harmonics: int) -> np.ndarray:
    """Return cos and sin of the first harmonics, (time, 2 harmonics)."""
    angle = 2 * np.pi * (times / period % 1.0)[:, None] * np.arange(1, harmonics + 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(len(times), -1)


@dataclass(frozen=True)
class PhaseAugmentation:
    """Add cos and sin of the phase of a forcing as two variables; inversion removes them.

    Parameters
    ----------
    period : float
        Period of the forcing, in the unit of time of the series.

    Examples
    --------
    >>> series = el.TimeSeries(np.arange(5.0), dt=1.0)
    >>> el.preprocess.PhaseAugmentation(period=4).fit(series).apply(series).names
    ('x1', 'cos(2pi t/4)', 'sin(2pi t/4)')
    """

    period: float

    def __post_init__(self):
        checks.positive_number("period", self.period)

    def fit(self, series: TimeSeries) -> "FittedPhaseAugmentation":
        return FittedPhaseAugmentation(**described(series), period=float(self.period))


@dataclass(frozen=True, eq=False)
class FittedPhaseAugmentation(SegmentTransform):
    """The variables as they are, then cos and sin of 2 pi t / period."""

    period: float

    @property
    def new_labels(self) -> list[Label]:
        return [*self.labels, *((f"{name}(2pi t/{self.period:g})", "", None) for name in ("cos", "sin"))]

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        return np.hstack([values, _harmonics(times, self.period, 1)])

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        return values[:, :-2]
