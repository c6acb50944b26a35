"""Delay embedding: the present and some of the past as one state."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from ..._core.types import Samples
from ..series import Label, TimeSeries
from .base import SegmentTransform, described


@dataclass(frozen=True)
class DelayEmbedding:
    """Add delayed copies of the variables: y(t) = (x(t), x(t - lag_1), x(t - lag_2), ...).

    The first max(lags) rows of every segment have no past and are lost (counted in `dropped`). Inversion returns the
    present, x(t), and ignores the delayed copies: in simulated paths they need not agree with the path's past.

    Parameters
    ----------
    lags : int or list of int, default (1,)
        Lags in steps.

    Examples
    --------
    >>> series = el.TimeSeries(np.arange(5.0), dt=1.0)
    >>> el.preprocess.DelayEmbedding([1, 2]).fit(series).apply(series).values.tolist()
    [[2.0, 1.0, 0.0], [3.0, 2.0, 1.0], [4.0, 3.0, 2.0]]
    """

    lags: int | Sequence[int] = (1,)

    def __post_init__(self):
        given = [self.lags] if isinstance(self.lags, Integral) else self.lags
        lags = checks.integers_at_least("lags", list(given) if np.iterable(given) else given, 1)
        if not lags or len(set(lags)) < len(lags):
            raise checks.refused("lags", "a list of one or more distinct entries", lags)
        object.__setattr__(self, "lags", lags)

    def fit(self, series: TimeSeries) -> "FittedDelayEmbedding":
        """Note the sampling interval, in which the lags are counted."""
        assert isinstance(self.lags, tuple)
        return FittedDelayEmbedding(**described(series), lags=self.lags, dt=series.dt)


@dataclass(frozen=True, eq=False)
class PastTransform(SegmentTransform):
    """A state made of the present and of samples up to max(lags) steps before; rows without that past are lost."""

    lags: tuple[int, ...]
    dt: float

    def apply(self, series: TimeSeries) -> TimeSeries:
        self._expect(series, self.names)
        if abs(series.dt / self.dt - 1) > 1e-6:
            raise DataError(f"These lags count steps of {self.dt:g}, but the series has dt = {series.dt:g}.")
        past = max(self.lags)
        segments = [self._forward(s, t) for s, t in zip(series.segments, series.times)]
        lost = series.n_samples - sum(len(s) for s in segments)
        if lost == series.n_samples:
            longest = max(len(s) for s in series.segments)
            raise DataError(
                f"A lag of {past} steps leaves nothing of the series: its longest segment has {longest} rows."
            )
        places = [(record, start + past * series.dt) for record, start in zip(series.records, series.starts)]
        labels = {"names": self.new_names, "units": self.new_units, "periods": self.new_periods}
        return series.with_segments(segments, places=places, lost=lost, **labels)

    @property
    def used(self) -> tuple[int, ...]:
        """Lags of the samples that a state is made of, the present first."""
        return (0, *self.lags)

    def copies(self, values: Samples) -> list[Samples]:
        """Return the samples at each of the `used` lags, side by side in time."""
        past = max(self.lags)
        return [values[past - lag : len(values) - lag] for lag in self.used]

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        if len(values) <= max(self.lags):
            return np.empty((0, len(self.new_names)))
        return self._embed(self.copies(values))

    @abstractmethod
    def _embed(self, copies: list[Samples]) -> Samples: ...

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        return values[:, : len(self.names)]


@dataclass(frozen=True, eq=False)
class FittedDelayEmbedding(PastTransform):
    """The present first, then the delayed copies in the order of `lags`."""

    @property
    def new_labels(self) -> list[Label]:
        """x, y, x(t-1), y(t-1), ..., the numbers being steps."""
        return [*self.labels, *((f"{n}(t-{lag})", u, p) for lag in self.lags for n, u, p in self.labels)]

    def _embed(self, copies: list[Samples]) -> Samples:
        return np.hstack(copies)
