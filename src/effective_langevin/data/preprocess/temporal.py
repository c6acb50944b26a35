"""Transforms that know what time it is: trend, seasonal cycle, phase of a forcing."""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from ..._core import checks
from ..._core.errors import DataError
from ..._core.types import Samples
from ..series import TimeSeries
from .base import SegmentTransform, described

_DEFAULT_HARMONICS = 4


@dataclass(frozen=True)
class Detrend:
    """Remove a polynomial trend in time, common to all records; the mean stays.

    A trend is known only where it was fitted: outside, it keeps the value it had at the end, unless `extrapolate`.
    """

    degree: int = 1
    extrapolate: bool = False

    def __post_init__(self):
        checks.integer_at_least("degree", self.degree, 1)
        checks.instance_of("extrapolate", self.extrapolate, (bool,))

    def fit(self, series: TimeSeries) -> "FittedDetrend":
        """Least squares over all samples."""
        checks.enough_samples(series.n_samples, self.degree + 2, f"a trend of degree {self.degree}")
        times = np.concatenate(series.times)
        span = np.array([times.min(), times.max()])
        basis = legendre.legvander(_scaled(times, span), self.degree)
        coefficients = np.linalg.lstsq(basis, series.stacked(), rcond=None)[0]
        coefficients[0] = -basis[:, 1:].mean(axis=0) @ coefficients[1:]
        return FittedDetrend(**described(series), span=span, coefficients=coefficients, extrapolate=self.extrapolate)


@dataclass(frozen=True, eq=False)
class FittedDetrend(SegmentTransform):
    """A trend sum_k c_k P_k(tau) with mean zero over the fitted samples, tau from -1 to 1 over `span`."""

    span: np.ndarray
    coefficients: np.ndarray
    extrapolate: bool

    def trend(self, times: np.ndarray) -> Samples:
        """What is removed, (time, var)."""
        times = times if self.extrapolate else np.clip(times, *self.span)
        return legendre.legvander(_scaled(times, self.span), len(self.coefficients) - 1) @ self.coefficients

    def summary(self) -> str:
        """How much each variable changed over the record."""
        change = np.diff(self.trend(self.span), axis=0)[0]
        per = ", ".join(f"{n} {c:+.3g} {u}".rstrip() for n, c, u in zip(self.names[:8], change, self.units))
        return f"Detrend of degree {len(self.coefficients) - 1}: change over the record {per}"

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        return values - self.trend(times)

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        return values + self.trend(times)


def _scaled(times: np.ndarray, span: np.ndarray) -> np.ndarray:
    return (2 * times - span.sum()) / (span[1] - span[0])


@dataclass(frozen=True)
class RemoveSeasonalCycle:
    """Remove the mean cycle of a known period (in the unit of time of the series); the mean stays.

    The cycle is a sum of `harmonics` sines and cosines; default: 4, or as many as the sampling resolves. Only the cycle
    of the mean is removed: if the variance has a season too, it stays in the series.
    """

    period: float
    harmonics: int | None = None

    def __post_init__(self):
        checks.positive_number("period", self.period)
        if self.harmonics is not None:
            checks.integer_at_least("harmonics", self.harmonics, 1)

    def fit(self, series: TimeSeries) -> "FittedRemoveSeasonalCycle":
        """Least squares of harmonics and mean over all samples."""
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
        """As many as asked for, or four, if the sampling resolves them: two samples in the shortest period."""
        resolved = int(self.period / (2 * series.dt) * (1 + 1e-9))
        harmonics = min(_DEFAULT_HARMONICS, resolved) if self.harmonics is None else self.harmonics
        if not 1 <= harmonics <= resolved:
            raise DataError(
                f"A cycle of period {self.period:g} sampled every {series.dt:g} {series.time_unit}".rstrip()
                + f" shows {resolved} harmonics, not {max(harmonics, 1)}. Lower `harmonics`; mind the unit of `period`."
            )
        return harmonics


@dataclass(frozen=True, eq=False)
class FittedRemoveSeasonalCycle(SegmentTransform):
    """A cycle sum_k a_k cos(2 pi k t / period) + b_k sin(2 pi k t / period); coefficients (a_1, b_1, a_2, ...)."""

    period: float
    coefficients: np.ndarray

    def cycle(self, times: np.ndarray) -> Samples:
        """What is removed, (time, var)."""
        return _harmonics(times, self.period, len(self.coefficients) // 2) @ self.coefficients

    def summary(self) -> str:
        """The size of the cycle of each variable."""
        swing = np.ptp(self.cycle(np.linspace(0, self.period, 400)), axis=0)
        per = ", ".join(f"{n} {s:.3g} {u}".rstrip() for n, s, u in zip(self.names[:8], swing, self.units))
        return f"RemoveSeasonalCycle of period {self.period:g} {self.time_unit}".rstrip() + f": peak to peak {per}"

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        return values - self.cycle(times)

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        return values + self.cycle(times)


def _harmonics(times: np.ndarray, period: float, harmonics: int) -> np.ndarray:
    """cos and sin of the first harmonics, (time, 2 harmonics)."""
    angle = 2 * np.pi * (times / period % 1.0)[:, None] * np.arange(1, harmonics + 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(len(times), -1)


@dataclass(frozen=True)
class PhaseAugmentation:
    """Add cos and sin of the phase of a forcing of known period as two variables; inversion takes them away again."""

    period: float

    def __post_init__(self):
        checks.positive_number("period", self.period)

    def fit(self, series: TimeSeries) -> "FittedPhaseAugmentation":
        """Nothing is learned but the description of the series."""
        return FittedPhaseAugmentation(**described(series), period=float(self.period))


@dataclass(frozen=True, eq=False)
class FittedPhaseAugmentation(SegmentTransform):
    """The variables as they are, then cos and sin of 2 pi t / period."""

    period: float

    @property
    def new_names(self) -> tuple[str, ...]:
        """Names of the variables after `apply`."""
        return (*self.names, f"cos(2pi t/{self.period:g})", f"sin(2pi t/{self.period:g})")

    @property
    def new_units(self) -> tuple[str, ...]:
        """Units of the variables after `apply`."""
        return (*self.units, "", "")

    @property
    def new_periods(self) -> tuple[float | None, ...]:
        """Periods of the variables after `apply`."""
        return (*self.periods, None, None)

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        return np.hstack([values, _harmonics(times, self.period, 1)])

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        return values[:, :-2]
