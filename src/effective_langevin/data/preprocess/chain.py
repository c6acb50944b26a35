"""Several transforms, one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from ..series import Label, TimeSeries
from .base import FittedTransform, Transform, described, from_dict
from .pointwise import FittedPeriodic, Periodic


@dataclass(frozen=True)
class Chain:
    """Transforms in the order in which they are applied; each is fitted to what the ones before it leave.

    Parameters
    ----------
    steps : list of transforms
        A chain inside a chain counts as its steps.

    Examples
    --------
    >>> series = el.TimeSeries(np.random.default_rng(0).normal(size=(100, 3)), dt=1.0)
    >>> fitted, reduced = el.preprocess.Chain([el.preprocess.Detrend(), el.preprocess.PCA(2)]).fit_apply(series)
    >>> reduced.names
    ('PC1', 'PC2')
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
        return self.fit_apply(series)[0]

    def fit_apply(self, series: TimeSeries) -> tuple["FittedChain", TimeSeries]:
        """Fit and apply every step in turn.

        Parameters
        ----------
        series : TimeSeries
            The series to transform.

        Returns
        -------
        tuple of FittedChain and TimeSeries
            The fitted chain and the transformed series.
        """
        fitted, current = [], series
        for step in self.steps:
            fitted.append(step.fit(current))
            current = fitted[-1].apply(current)
        return FittedChain(**described(series), steps=tuple(fitted)), current


def as_chain(preprocess: Transform | Sequence[Transform] | None) -> Chain | None:
    """Return the argument `preprocess` of `fit` as a chain: one transform, several, or none."""
    steps = preprocess if isinstance(preprocess, list | tuple) else [] if preprocess is None else [preprocess]
    return Chain([checks.offers("preprocess", step, "fit", "Detrend() or PCA()") for step in steps]) if steps else None


def transform_series(series: TimeSeries, chain: Chain | None) -> tuple["FittedChain | None", TimeSeries]:
    """Fit and apply the transforms; a last `Periodic` only declares its angles, whose values stay."""
    steps, declared = list(chain.steps) if chain else [], []
    while steps and isinstance(steps[-1], Periodic):
        declared.insert(0, steps.pop())
    if not steps:
        fitted = None
    else:
        fitted, transformed = Chain(steps).fit_apply(series)
        _check_angles(series, transformed, fitted)
        series = transformed
    for angles in declared:
        series = angles.declare(series)
    return fitted, series


def _check_angles(before: TimeSeries, after: TimeSeries, fitted: "FittedChain") -> None:
    """Refuse transforms that change declared angles as if they were numbers on a line."""
    for column, (name, period) in enumerate(zip(before.names, before.periods)):
        if period is None or fitted.embeds_angles:
            continue
        if name in after.names:
            place = after.names.index(name)
            pairs = zip(before.segments, after.segments)
            if all(np.array_equal(old[:, column], new[:, place]) for old, new in pairs):
                continue
        kinds = ", ".join(step.kind for step in fitted.steps)
        raise DataError(
            f"Variable {name!r} is an angle, but the transforms ({kinds}) change it as if it were a number on a line. "
            f"Put el.preprocess.Periodic([{name!r}], period={period:g}) before them: it makes cos and sin of it."
        )


@dataclass(frozen=True, eq=False)
class FittedChain(FittedTransform):
    """Fitted transforms in order; inversion goes through them backwards."""

    steps: tuple[FittedTransform, ...]

    @property
    def new_labels(self) -> list[Label]:
        return self.steps[-1].new_labels

    @property
    def embeds_angles(self) -> bool:
        return any(step.embeds_angles for step in self.steps)

    def apply(self, series: TimeSeries) -> TimeSeries:
        for step in self.steps:
            series = step.apply(series)
        return series

    def invert(self, series: TimeSeries) -> TimeSeries:
        for step in reversed(self.steps):
            series = step.invert(series)
        return series

    def summary(self) -> str:
        return "\n".join(step.summary() for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "steps": [step.to_dict() for step in self.steps]}

    @classmethod
    def _from_dict(cls, state: Mapping[str, Any]) -> "FittedChain":
        return join([from_dict(step) for step in state["steps"]])


def embed_after(transform: FittedChain | None, series: TimeSeries) -> tuple[FittedChain, TimeSeries]:
    """Replace the angles of a transformed series by cos and sin, as one more step of the transform."""
    embedding = FittedPeriodic.of(series)
    return join([*(transform.steps if transform else ()), embedding]), embedding.apply(series)


def join(steps: Sequence[FittedTransform]) -> FittedChain:
    """Return fitted steps as one transform."""
    first = steps[0]
    return FittedChain(first.names, first.units, first.time_unit, first.periods, tuple(steps))
