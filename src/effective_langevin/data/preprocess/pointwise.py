"""Transforms of single variables: angles to the circle, positive numbers to the line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import boxcox, inv_boxcox

from ..._core import checks
from ..._core.errors import DataError
from ..._core.types import Samples
from .. import angles
from ..series import Label, TimeSeries
from .base import SegmentTransform, described

_LARGEST_EXPONENT = 2.0


@dataclass(frozen=True)
class Periodic:
    """Declare angles: `x` and `x + period` are the same state.

    As the last transform before a fit it does what `TimeSeries(periods=...)` does: the equation is one of the angles
    themselves, with a score that is periodic in them. Before another transform, or for a score or mobility that cannot
    work on circles, each angle becomes cos and sin, two variables, so that the border of the period is not a jump.
    Inversion then takes the angle of the point, arctan2(sin, cos), and disregards its distance from the origin: it
    returns angles modulo the period, in [0, period) if all fitted ones were non-negative, otherwise around zero.

    Parameters
    ----------
    variables : str or list of str, optional
        Names of the angles. Default: all variables.
    period : float, optional
        Their period. Default: 360 for variables in degrees, otherwise 2 pi.

    Examples
    --------
    >>> series = el.TimeSeries(np.array([350.0, 10.0, 30.0]), dt=1.0, names=["wind"])
    >>> el.preprocess.Periodic(period=360).fit(series).apply(series).names
    ('cos(wind)', 'sin(wind)')
    """

    variables: Sequence[str] | None = None
    period: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "variables", _as_names(self.variables))
        checks.optional_positive_number("period", self.period)

    def declare(self, series: TimeSeries) -> TimeSeries:
        """Declare the period of the angles.

        Parameters
        ----------
        series : TimeSeries
            The series to fit.

        Returns
        -------
        TimeSeries
            The same values with `periods`.
        """
        columns = _columns(self.variables, series)
        chosen = {i: angles.choose_period(series, i, self.period) for i in columns}
        periods = [chosen.get(i, period) for i, period in enumerate(series.periods)]
        return series.with_segments(series.segments, periods=periods)

    def fit(self, series: TimeSeries) -> "FittedPeriodic":
        """Learn the branch of each angle."""
        return FittedPeriodic.of(self.declare(series), _columns(self.variables, series))


@dataclass(frozen=True, eq=False)
class FittedPeriodic(SegmentTransform):
    """Column by column in the old order, an angle replaced by its cos and its sin."""

    columns: tuple[int, ...]
    lowest: np.ndarray
    embeds_angles: ClassVar[bool] = True

    @classmethod
    def of(cls, series: TimeSeries, columns: Sequence[int] | None = None) -> "FittedPeriodic":
        """Embed the angles that the series declares, or those in `columns` of them."""
        kept = tuple(i for i, p in enumerate(series.periods) if p) if columns is None else tuple(columns)
        return cls(**described(series), columns=kept, lowest=angles.lowest(series)[list(kept)])

    @property
    def all_lowest(self) -> tuple[float, ...]:
        """Where the period of each variable begins, zero for those that are not angles."""
        return tuple(
            float(self.lowest[self.columns.index(i)]) if i in self.columns else 0.0 for i in range(len(self.names))
        )

    @property
    def new_labels(self) -> list[Label]:
        pairs = [
            [(f"{f}({label[0]})", "", None) for f in ("cos", "sin")] if i in self.columns else [label]
            for i, label in enumerate(self.labels)
        ]
        return [label for pair in pairs for label in pair]

    @staticmethod
    def _periods_before_they_were_stored(state: Mapping[str, Any]) -> list[float | None]:
        return [state["period"] if i in state["columns"] else None for i in range(len(state["names"]))]

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        out = []
        for i, x in enumerate(values.T):
            angle = x * (2 * np.pi / float(self.periods[i] or 1.0))
            out += [np.cos(angle), np.sin(angle)] if i in self.columns else [x]
        return np.column_stack(out)

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        out, at = [], 0
        for i, (period, lowest) in enumerate(zip(self.periods, self.all_lowest)):
            if i not in self.columns:
                out.append(values[:, at])
                at += 1
                continue
            width = float(period or 1.0)
            angle = np.arctan2(values[:, at + 1], values[:, at]) * (width / (2 * np.pi))
            out.append((angle - lowest) % width + lowest)
            at += 2
        return np.column_stack(out)


@dataclass(frozen=True)
class Log:
    """Take the natural logarithm of positive variables.

    Parameters
    ----------
    variables : str or list of str, optional
        Names of the variables. Default: all.

    Examples
    --------
    >>> series = el.TimeSeries(np.exp([0.0, 1.0, 2.0]), dt=1.0)
    >>> el.preprocess.Log().fit(series).apply(series).values.ravel().round(3).tolist()
    [0.0, 1.0, 2.0]
    """

    variables: Sequence[str] | None = None

    def __post_init__(self):
        object.__setattr__(self, "variables", _as_names(self.variables))

    def fit(self, series: TimeSeries) -> "FittedPower":
        columns = _columns(self.variables, series)
        _check_positive(series, columns, "Log")
        return FittedPower(**described(series), columns=columns, exponents=np.zeros(len(columns)), label="log")


@dataclass(frozen=True)
class BoxCox:
    """Replace positive variables by (x^a - 1) / a, or their logarithm for a = 0.

    A path that leaves the range of the transform, below -1/a, is returned as 0.

    Parameters
    ----------
    variables : str or list of str, optional
        Names of the variables. Default: all.
    exponent : float, optional
        The exponent a. Default: for each variable the one between 0 and 2 of largest likelihood, which makes the
        variable most Gaussian.

    Examples
    --------
    >>> series = el.TimeSeries(np.array([1.0, 4.0, 9.0]), dt=1.0)
    >>> el.preprocess.BoxCox(exponent=0.5).fit(series).apply(series).values.ravel().tolist()
    [0.0, 2.0, 4.0]
    """

    variables: Sequence[str] | None = None
    exponent: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "variables", _as_names(self.variables))
        if self.exponent is not None and self.exponent != 0:
            checks.positive_number("exponent", self.exponent)

    def fit(self, series: TimeSeries) -> "FittedPower":
        columns = _columns(self.variables, series)
        _check_positive(series, columns, "BoxCox")
        samples = series.stacked()[:, columns]
        exponents = [_best_exponent(x) if self.exponent is None else float(self.exponent) for x in samples.T]
        return FittedPower(**described(series), columns=columns, exponents=np.array(exponents), label="boxcox")


@dataclass(frozen=True, eq=False)
class FittedPower(SegmentTransform):
    """Box-Cox transforms with known exponents, of some of the variables."""

    columns: tuple[int, ...]
    exponents: np.ndarray
    label: str

    @property
    def new_labels(self) -> list[Label]:
        """A transformed variable has no unit and is not an angle."""
        new = [(f"{self.label}({name})", "", None) for name in self.names]
        return [new[i] if i in self.columns else label for i, label in enumerate(self.labels)]

    def summary(self) -> str:
        per = ", ".join(f"{self.names[c]} {a:.3g}" for c, a in zip(self.columns, self.exponents))
        return f"Power transform with exponents {per} (0 is the logarithm)"

    def apply(self, series: TimeSeries) -> TimeSeries:
        self._expect(series, self.names)
        _check_positive(series, self.columns, "Log" if self.label == "log" else "BoxCox")
        return super().apply(series)

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        out = values.copy()
        out[:, self.columns] = boxcox(values[:, self.columns], self.exponents)
        return out

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        out = values.copy()
        physical = inv_boxcox(values[:, self.columns], self.exponents)
        out[:, self.columns] = np.where(np.isnan(physical), 0.0, physical)
        return out


def embed_angles(series: TimeSeries) -> TimeSeries:
    """Replace the angles that the series declares by their cos and sin, which no border cuts."""
    return FittedPeriodic.of(series).apply(series) if any(series.periods) else series


def _best_exponent(samples: np.ndarray) -> float:
    """Maximise the likelihood (a - 1) <ln x> - ln(var y) / 2 over the exponent a, x in units of its geometric mean."""
    from scipy.optimize import minimize_scalar

    logs = np.log(samples)
    scaled = np.exp(logs - logs.mean())
    found = minimize_scalar(lambda a: np.log(boxcox(scaled, a).var()), bounds=(0, _LARGEST_EXPONENT), method="bounded")
    return float(found.x)  # pyright: ignore[reportAttributeAccessIssue]


def _as_names(variables: Sequence[str] | None) -> tuple[str, ...] | None:
    if variables is None or isinstance(variables, str):
        return None if variables is None else (variables,)
    if not np.iterable(variables):
        raise checks.refused("variables", "a name or a list of names", variables)
    return tuple(variables)


def _columns(variables: Sequence[str] | None, series: TimeSeries) -> tuple[int, ...]:
    wanted = (
        series.names if variables is None else checks.known_names("variables", variables, series.names, "the series")
    )
    return tuple(sorted(series.names.index(name) for name in wanted))


def _check_positive(series: TimeSeries, columns: Sequence[int], kind: str) -> None:
    """Refuse the first sample that is not positive, by variable, row and time."""
    for column in columns:
        for number, (segment, times) in enumerate(zip(series.segments, series.times)):
            bad = np.flatnonzero(segment[:, column] <= 0)
            if len(bad):
                row, total = int(bad[0]), int((series.stacked()[:, column] <= 0).sum())
                time = f"{times[row]:g} {series.time_unit}".rstrip()
                raise DataError(
                    f"{kind} needs positive values, but variable {series.names[column]!r} is "
                    f"{segment[row, column]:g} in row {row} of segment {number} (time {time}), and not positive in "
                    f"{total} rows in all. Shift it, mark such rows as NaN, or leave it out: {kind}(variables=[...])."
                )
