"""Several transforms, one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core import checks
from ..series import TimeSeries
from .base import FittedTransform, Transform, described, from_dict


@dataclass(frozen=True)
class Chain:
    """Transforms in the order in which they are applied; each is fitted to what the ones before it leave.

    A chain inside a chain counts as its steps.
    """

    steps: Sequence[Transform]

    def __post_init__(self):
        steps = self.steps if isinstance(self.steps, list | tuple) else [self.steps]
        checks.not_empty("steps", steps, "at least one transform, such as Detrend()")
        for step in steps:
            checks.offers("steps", step, "fit", "Detrend() or PCA()")
        flat = [inner for step in steps for inner in (step.steps if isinstance(step, Chain) else [step])]
        object.__setattr__(self, "steps", tuple(flat))

    def fit(self, series: TimeSeries) -> "FittedChain":
        """Fit every step in turn."""
        fitted, current = [], series
        for step in self.steps:
            fitted.append(step.fit(current))
            current = fitted[-1].apply(current)
        return FittedChain(**described(series), steps=tuple(fitted))


def as_chain(preprocess: Transform | Sequence[Transform] | None) -> Chain | None:
    """The argument `preprocess` of `fit` as a chain: one transform, several, or none."""
    steps = preprocess if isinstance(preprocess, list | tuple) else [] if preprocess is None else [preprocess]
    return Chain([checks.offers("preprocess", step, "fit", "Detrend() or PCA()") for step in steps]) if steps else None


@dataclass(frozen=True, eq=False)
class FittedChain(FittedTransform):
    """Fitted transforms in order; inversion goes through them backwards."""

    steps: tuple[FittedTransform, ...]

    @property
    def new_names(self) -> tuple[str, ...]:
        """Names of the variables after the last step."""
        return self.steps[-1].new_names

    @property
    def new_units(self) -> tuple[str, ...]:
        """Units of the variables after the last step."""
        return self.steps[-1].new_units

    @property
    def new_periods(self) -> tuple[float | None, ...]:
        """Periods of the variables after the last step."""
        return self.steps[-1].new_periods

    def apply(self, series: TimeSeries) -> TimeSeries:
        """From physical variables to those after the last step."""
        for step in self.steps:
            series = step.apply(series)
        return series

    def invert(self, series: TimeSeries) -> TimeSeries:
        """From the variables after the last step back to physical ones."""
        for step in reversed(self.steps):
            series = step.invert(series)
        return series

    def summary(self) -> str:
        """One line per step."""
        return "\n".join(step.summary() for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain data and arrays, steps inside."""
        return {**super().to_dict(), "steps": [step.to_dict() for step in self.steps]}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "FittedChain":
        """The chain that `to_dict` described."""
        return _join([from_dict(step) for step in state["steps"]])


def chained(steps: Sequence[FittedTransform]) -> FittedChain | None:
    """Fitted steps as one transform; none without any."""
    return _join(steps) if steps else None


def _join(steps: Sequence[FittedTransform]) -> FittedChain:
    first = steps[0]
    return FittedChain(first.names, first.units, first.time_unit, first.periods, tuple(steps))
