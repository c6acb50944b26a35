"""What the past tells beside the present: velocities, or a few coordinates of delayed copies.

Both keep the observed variables as they are, add hidden ones behind them, and need the past alone. Inversion returns
the observed variables.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..._core import checks
from ..._core.types import Matrix, Samples, Vector
from ..series import Label, TimeSeries
from .base import described
from .embedding import PastTransform

_DIFFERENCES = 3  # a velocity is a combination of the last three of them
_FORWARD = np.array([11.0, -7.0, 2.0]) / 6  # dx/dt from the next three differences, exact up to the third order
_TO_ZERO = np.array([3.0, -3.0, 1.0])  # a parabola through lags 1, 2 and 3, at lag 0
_LEAST_SHARE = 1e-3  # of the variance of the observed variables that a coordinate of the past must hold


@dataclass(frozen=True)
class Velocity:
    """Add the velocity of every variable: the state is (x, v), for motion with inertia.

    v(t) is a combination of the last three differences, x(t) - x(t - dt) and those before, and of x(t). Their weights
    are learned: the mean of the velocity from the next three samples, given the past. For smooth motion this is a
    backward difference of high order; where noise drives the velocity, it is smoothed as much as the noise asks for.

    Examples
    --------
    >>> series = el.TimeSeries(np.sin(0.1 * np.arange(200.0)), dt=0.1, names=["x"])
    >>> fitted = el.Velocity().fit(series)
    >>> fitted.apply(series).names
    ('x', 'dx/dt')
    """

    def fit(self, series: TimeSeries) -> "FittedVelocity":
        """Learn the weights of the differences.

        Parameters
        ----------
        series : TimeSeries
            A smooth series.

        Returns
        -------
        FittedTransform
            It adds the velocities.
        """
        past, target, mean = [], [], series.stacked().mean(axis=0)
        for segment in series.segments:
            steps = np.diff(segment.astype(float), axis=0) / series.dt
            count = len(steps) - 2 * _DIFFERENCES + 1
            if count > 0:
                target.append(sum(w * steps[_DIFFERENCES + k :][:count] for k, w in enumerate(_FORWARD)))
                given = [steps[_DIFFERENCES - 1 - k :][:count] for k in range(_DIFFERENCES)]
                past.append(np.stack([*given, segment[_DIFFERENCES:][:count] - mean], axis=2))
        checks.enough_samples(sum(map(len, target)), _DIFFERENCES, "a velocity")
        before, after = np.concatenate(past), np.concatenate(target)
        weights = [np.linalg.lstsq(before[:, i], after[:, i], rcond=None)[0] for i in range(series.dimension)]
        found = sum(w * before[..., k] for k, w in enumerate(np.array(weights).T))
        missing = np.maximum(_spread_of_velocities(series) - np.mean(found**2, axis=0), 0.0)
        made_of = {"lags": (_DIFFERENCES,), "dt": series.dt, "mean": mean, "weights": np.array(weights)}
        return FittedVelocity(**described(series), **made_of, errors=np.sqrt(missing))


def _spread_of_velocities(series: TimeSeries) -> Vector:
    """Return < v^2 > of each variable: that of differences is less, but not that at lags of one to three samples."""
    steps = [np.diff(segment.astype(float), axis=0) / series.dt for segment in series.segments]
    means = [np.mean(np.concatenate([s[k:] * s[: len(s) - k] for s in steps if len(s) > k]), 0) for k in (1, 2, 3)]
    return _TO_ZERO @ np.array(means)


@dataclass(frozen=True, eq=False)
class FittedVelocity(PastTransform):
    """The present first, then the velocities, sums of the last differences, newest first, and x - mean with `weights`.

    `errors` are the standard errors of these velocities.
    """

    mean: Vector
    weights: Matrix
    errors: Vector

    @property
    def new_labels(self) -> list[Label]:
        """x, y, dx/dt, dy/dt."""
        unit = f"/{self.time_unit}" if self.time_unit else ""
        moving: list[Label] = [(f"d{n}/dt", f"{u}{unit}" if u else "", None) for n, u, _ in self.labels]
        return [*self.labels, *moving]

    def _embed(self, copies: list[Samples]) -> Samples:
        steps = [(newer - older) / self.dt for newer, older in pairwise(copies)]
        known = [*steps, copies[0] - self.mean]
        return np.hstack([copies[0], sum(w * part for w, part in zip(self.weights.T, known))])

    @property
    def used(self) -> tuple[int, ...]:
        """Lags of the samples that a state is made of, the present first."""
        return tuple(range(_DIFFERENCES + 1))


@dataclass(frozen=True)
class Delays:
    """Add what the past of the variables tells beside the present, in a few coordinates.

    Delayed copies x(t - lag), x(t - 2 lag), ... of a smooth series hardly differ. What the present does not tell of
    them is turned into principal components, and those that matter are kept: they are like the velocity, the
    acceleration and so on, each over the whole window.

    Parameters
    ----------
    count : int, default 5
        Number of delayed copies.
    lag : int, default 1
        Steps between them.

    Examples
    --------
    >>> series = el.TimeSeries(np.sin(0.1 * np.arange(200.0)), dt=0.1, names=["x"])
    >>> el.Delays(4, 2).fit(series).apply(series).names
    ('x', 'past 1')
    """

    count: int = 5
    lag: int = 1

    def __post_init__(self):
        for name in ("count", "lag"):
            object.__setattr__(self, name, checks.integer_at_least(name, getattr(self, name), 1))

    def fit(self, series: TimeSeries) -> "FittedDelays":
        """Find the coordinates of the past.

        Parameters
        ----------
        series : TimeSeries
            A series.

        Returns
        -------
        FittedTransform
            It adds the coordinates.
        """
        lags = tuple(self.lag * (k + 1) for k in range(self.count))
        blank = np.zeros((0, series.dimension))
        bare = FittedDelays(
            **described(series), lags=lags, dt=series.dt, mean=np.zeros(series.dimension), present=blank, axes=blank
        )
        copies = [bare.copies(segment.astype(float)) for segment in series.segments if len(segment) > lags[-1]]
        checks.enough_samples(sum(len(c[0]) for c in copies), self.count * series.dimension + 1, "delays")
        now, *before = (np.concatenate(parts) for parts in zip(*copies))
        unit, mean = now.std(axis=0), now.mean(axis=0)
        scaled, past = (now - mean) / unit, np.hstack([(part - mean) / unit for part in before])
        present = np.linalg.lstsq(scaled, past, rcond=None)[0]
        values, vectors = np.linalg.eigh(np.cov((past - scaled @ present).T, bias=True).reshape(past.shape[1], -1))
        kept = max(1, int(np.sum(values > _LEAST_SHARE)))
        axes = vectors[:, ::-1][:, :kept] / np.tile(unit, self.count)[:, None]
        # Back in the units of the series: coordinates are (past - present @ now) @ axes.
        back = present * np.tile(unit, self.count) / unit[:, None]
        signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(kept)])
        return FittedDelays(**described(series), lags=lags, dt=series.dt, mean=mean, present=back, axes=axes * signs)


@dataclass(frozen=True, eq=False)
class FittedDelays(PastTransform):
    """The present first, then coordinates of the past: (copies - mean - (x - mean) @ present) @ axes."""

    mean: Vector
    present: Matrix
    axes: Matrix

    @property
    def new_labels(self) -> list[Label]:
        """x, y, past 1, past 2, ..."""
        return [*self.labels, *((f"past {k + 1}", "", None) for k in range(self.axes.shape[1]))]

    def _embed(self, copies: list[Samples]) -> Samples:
        now, past = copies[0], np.hstack([copy - self.mean for copy in copies[1:]])
        return np.hstack([now, (past - (now - self.mean) @ self.present) @ self.axes])
