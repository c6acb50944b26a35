"""What the past tells beside the present: velocities, or a few coordinates of delayed copies.

Both keep the observed variables as they are, add hidden ones behind them, and need the past alone. Inversion returns
the observed variables.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..._core import checks
from ..._core.differences import derivative_weights
from ..._core.types import Matrix, Samples, Vector
from ..series import Label, TimeSeries
from .base import described
from .embedding import PastTransform

# Share of the variance of the observed variables that a coordinate of the past must hold: one that is narrower than the
# smoothing width of the state, 0.1 of their spread, holds more noise of the smoothing than past.
_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Velocity:
    """Add the velocity of every variable: the state is (x, v), for motion with inertia.

    v(t) is a combination of the last three differences, x(t) - x(t - dt) and those before, and of x(t). Their weights
    are learned: the mean of the velocity from the next three samples, given the past. For smooth motion this is a
    backward difference of high order; where noise drives the velocity, it is smoothed as much as the noise asks for.

    Parameters
    ----------
    order : int, default 1
        Number of derivatives: with 2 the state is (x, v, a), and every derivative comes from the last five
        differences. Smooth motion with two hidden variables, such as chaos in three, needs both.

    Examples
    --------
    >>> series = el.TimeSeries(np.sin(0.1 * np.arange(200.0)), dt=0.1, names=["x"])
    >>> fitted = el.Velocity().fit(series)
    >>> fitted.apply(series).names
    ('x', 'dx/dt')
    """

    order: int = 1

    def __post_init__(self):
        object.__setattr__(self, "order", checks.integer_at_least("order", self.order, 1))

    @property
    def reach(self) -> int:
        """Number of differences that a derivative is made of."""
        return 2 * self.order + 1

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
        reach, mean = self.reach, series.stacked().mean(axis=0)
        ahead = [derivative_weights(range(reach + 1), k) / series.dt**k for k in range(1, self.order + 1)]
        past, target = [], []
        for segment in series.segments:
            steps = np.diff(segment.astype(float), axis=0) / series.dt
            count = len(steps) - 2 * reach + 1
            if count > 0:
                after = [segment[reach + k :][:count].astype(float) for k in range(reach + 1)]
                target.append(np.stack([sum(w * x for w, x in zip(weights, after)) for weights in ahead], axis=2))
                given = [steps[reach - 1 - k :][:count] for k in range(reach)]
                past.append(np.stack([*given, segment[reach:][:count] - mean], axis=2))
        checks.enough_samples(sum(map(len, target)), reach, "a velocity")
        before, after = np.concatenate(past), np.concatenate(target)
        found = [np.linalg.lstsq(before[:, i], after[:, i], rcond=None)[0] for i in range(series.dimension)]
        weights = np.array(found).transpose(2, 0, 1)
        known = np.einsum("nik,oik->nio", before, weights)
        spread = np.transpose([_spread_of_derivative(series, k) for k in range(1, self.order + 1)])
        # What is missing of the spread; no more than what the next samples differ by, also where that is uncertain.
        missing = np.minimum(spread - np.mean(known**2, axis=0), np.mean((after - known) ** 2, axis=0))
        made_of = {"lags": (reach,), "dt": series.dt, "mean": mean, "weights": weights.reshape(-1, reach + 1)}
        return FittedVelocity(**described(series), **made_of, errors=np.sqrt(np.maximum(missing, 0.0)).T.ravel())


def _spread_of_derivative(series: TimeSeries, order: int) -> Vector:
    """Return the mean square of a derivative of each variable: a parabola at lag 0.

    That of differences is less, but not their products at lags at which they do not overlap: one to three samples for
    velocities, two to four for accelerations.
    """
    lags = range(order, order + 3)
    moved = [np.diff(segment.astype(float), n=order, axis=0) / series.dt**order for segment in series.segments]
    means = [np.mean(np.concatenate([d[k:] * d[: len(d) - k] for d in moved if len(d) > k]), 0) for k in lags]
    return derivative_weights(lags, 0) @ np.array(means)


@dataclass(frozen=True, eq=False)
class FittedVelocity(PastTransform):
    """The present first, then the velocities, sums of the last differences, newest first, and x - mean with `weights`.

    After the velocities come accelerations, and so on, as many as there are rows of weights. `errors` are the standard
    errors of all of them.
    """

    mean: Vector
    weights: Matrix
    errors: Vector

    @property
    def new_labels(self) -> list[Label]:
        """x, y, dx/dt, dy/dt; then d2x/dt2, d2y/dt2, and so on."""
        moving: list[Label] = []
        for k in range(1, len(self.weights) // len(self.names) + 1):
            power = str(k) if k > 1 else ""
            per = f"/{self.time_unit}{f'^{k}' if k > 1 else ''}" if self.time_unit else ""
            moving += [(f"d{power}{n}/dt{power}", f"{u}{per}" if u else "", None) for n, u, _ in self.labels]
        return [*self.labels, *moving]

    def _embed(self, copies: list[Samples]) -> Samples:
        steps = [(newer - older) / self.dt for newer, older in pairwise(copies)]
        known = [*steps, copies[0] - self.mean]
        parts = self.weights.reshape(-1, len(self.names), len(known))
        return np.hstack([copies[0], *(sum(w * part for w, part in zip(weights.T, known)) for weights in parts)])

    @property
    def used(self) -> tuple[int, ...]:
        """Lags of the samples that a state is made of, the present first."""
        return tuple(range(max(self.lags) + 1))


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
