"""The integrated response of smooth functions on circles, for variables that are angles.

With e = cos and sin of every angle, other variables as they are, and f any combination of those of x_j alone,

    < e(T) f(0) > - < e f > = sum_k Phi_kj int_0^T < e(t + tau) [s_k f' + delta_kj f''](t) > dtau

at every T, means removed. On the line, where e = f = x, it is the response of `response`. Every column of Phi has an
equation for each entry of e and each f, and is their least-squares solution. Where a current nu is known, D takes the
place of Phi and what nu carries, int_0^T < e(t + tau) nu_j f'(t) > dtau, is added to the left side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from ..._core.types import LagMatrices, Matrix, Samples
from ...data import TimeSeries
from ...statistics.lags import LaggedMoments, lagged_moments
from ...statistics.resampling import rating_groups
from ..space import StateSpace
from ..symmetry import Symmetry
from .evidence import HorizonEvidence
from .quadrature import integrated

_RESOLVED = 0.8


@dataclass(frozen=True)
class CircleMoments:
    """Lagged moments of e with every f and with s_k f'; f number n is one of variable `owners[n]`.

    Error bars come from `groups` of time, ratings of candidates from `finer` ones.

    Where a current is known up to a factor, those with nu_j f' come last; `strength` is that factor, for any weights of
    the groups.
    `slopes` is < e' f' >, with which the response begins by Stein's identity; `whitening` makes the entries of e
    independent. f'' = -rate^2 f, but for a constant, where the variable is an angle, and zero elsewhere.
    """

    moments: LaggedMoments
    slopes: Matrix
    whitening: Matrix
    owners: tuple[int, ...]
    space: StateSpace
    dt: float
    groups: int
    strength: Callable[[np.ndarray], float] | None = None

    @classmethod
    def of(
        cls,
        series: TimeSeries,
        scores: list[Samples],
        space: StateSpace,
        lags: np.ndarray,
        groups: int,
        currents: list[Samples] | None = None,
        strength: Callable[[np.ndarray], float] | None = None,
    ) -> "CircleMoments":
        """From a standardised series and, on its samples, the score and the current, up to its strength, if known."""
        samples = series.stacked()
        mean, slope = space.embed(samples).mean(axis=0), space.embed(samples, 1)
        future = [space.embed(x) - mean for x in series.segments]
        whole = strength(np.ones(groups)) if strength else 0.0
        flows = [np.zeros(x.shape) for x in series.segments] if currents is None else [whole * nu for nu in currents]
        chosen, owners = _followed(series, future, scores, flows, space)
        past = [
            np.concatenate([e @ chosen, _pushes(score, space.embed(x, 1) @ chosen)], axis=1)
            for e, x, score in zip(future, series.segments, scores)
        ]
        if currents is not None:
            carried = [nu[:, owners] * (space.embed(x, 1) @ chosen) for nu, x in zip(currents, series.segments)]
            past = [np.concatenate(parts, axis=1) for parts in zip(past, carried)]
        spread, axes = np.linalg.eigh(np.cov(space.embed(samples).T).reshape(len(mean), -1))
        whitening = (axes / np.sqrt(np.maximum(spread, 1e-6 * spread[-1]))).T
        slopes = slope.T @ (slope @ chosen) / len(slope)
        moments = lagged_moments(future, past, lags, rating_groups(groups))
        return cls(moments, slopes, whitening, owners, space, series.dt, groups, strength)

    @property
    def finer(self) -> int:
        return len(self.moments.sums)

    @property
    def tau(self) -> np.ndarray:
        return self.dt * self.moments.lags

    def phi_by_horizon(
        self, weights: np.ndarray, symmetry: Symmetry, first: int = 0, stride: int = 1, reach: int | None = None
    ) -> LagMatrices:
        """Phi(T), or D(T), for every horizon T beyond the lag `first`, or the first `reach` of them.

        There is no symmetry but that of the circles.
        """
        if weights.ndim > 1:
            return np.array([self.phi_by_horizon(one, symmetry, first, stride, reach) for one in weights])
        correlation, pushes, carried = self._parts(weights)
        lags, columns = slice(first, None, stride), []
        for j in range(len(self.space.periods)):
            own = [n for n, owner in enumerate(self.owners) if owner == j]
            response = self._response(j, own, correlation, pushes)[lags]
            change = np.concatenate([correlation[lags, :, n] - correlation[first, :, n] for n in own], axis=1)
            if carried is not None:
                flow = np.concatenate([carried[lags, :, n] for n in own], axis=1)
                change = change + integrated(flow, self.tau[lags])
            integral = integrated(response, self.tau[lags])
            columns.append(np.einsum("tij,tj->ti", np.linalg.pinv(integral[1:]), change[1:]))
        return np.stack(columns, axis=-1)[:reach]

    def left_after_one_step(self) -> np.ndarray:
        """How much of the response of each variable is left after one sampling interval, relative to its beginning."""
        correlation, pushes, _ = self._parts(np.ones(self.groups))
        left = []
        for j in range(len(self.space.periods)):
            own = [n for n, owner in enumerate(self.owners) if owner == j]
            start, later = self._response(j, own, correlation, pushes)[:2, :, j]
            left.append(start @ later / (start @ start))
        return np.array(left)

    def _parts(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """< e f >, < e s_k f' > and < e nu_j f' > at each lag."""
        moments, count = self.whitening @ self.moments.mean(weights), len(self.owners)
        end = count * (1 + len(self.space.periods))
        pushes = moments[..., count:end].reshape(*moments.shape[:2], -1, count)
        carried = self.strength(weights) * moments[..., end:] if self.strength else None
        return moments[..., :count], pushes, carried

    def _response(self, j: int, own: list[int], correlation: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """G(tau) of the functions of x_j, (lag, equation, var), the score scaled so that G begins as the exact one."""
        period, size = self.space.periods[j], pushes.shape[2]
        rate = 2 * np.pi / period if period else 0.0
        place, mine = np.eye(size)[j], np.array(self.space.owners)[:, None] == np.arange(size)
        curvature = np.concatenate([-(rate**2) * correlation[:, :, n, None] * place for n in own], axis=1)
        start = np.concatenate([self.whitening @ np.where(mine, -self.slopes[:, n, None], 0.0) for n in own])
        pushed = np.concatenate([pushes[..., n] for n in own], axis=1)
        return curvature + pushed @ np.linalg.lstsq(pushed[0], start - curvature[0], rcond=None)[0]


def infer_effective_of_angles(moments: CircleMoments) -> tuple[Callable[[np.ndarray], Matrix], HorizonEvidence]:
    """Return Phi of smooth motion on circles at the horizon where its trace stops rising, and the evidence."""
    curve = moments.phi_by_horizon(np.ones(moments.groups), moments.space.symmetry)
    falls = np.flatnonzero(np.diff(np.trace(curve, axis1=1, axis2=2)) <= 0)
    end = int(falls[0]) if len(falls) else len(curve) - 1
    horizon = HorizonEvidence("finite", moments.tau[1:], phi=curve, chosen=moments.tau[end + 1 : end + 2])
    return lambda weights: moments.phi_by_horizon(weights, moments.space.symmetry)[end], horizon


def _pushes(score: Samples, slopes: Samples) -> Samples:
    """s_k f' for every k and, within it, every f."""
    return (np.asarray(score, float)[:, :, None] * slopes[:, None, :]).reshape(len(score), -1)


def _followed(
    series: TimeSeries, future: list[Samples], scores: list[Samples], currents: list[Samples], space: StateSpace
) -> tuple[Matrix, tuple[int, ...]]:
    """The combinations of e that are followed, as columns, and the variable that each is a function of.

    Of an angle they are those that decay slowest and fastest. Where a response dies out between two samples its
    integral comes out too large, and the mobility too small: the one with much less of it over one step is left out.
    """
    columns, owners = [], []
    for j, period in enumerate(space.periods):
        own = np.flatnonzero(np.array(space.owners) == j)
        found = np.ones((1, 1))
        if period:
            parts = [e[:, own] for e in future]
            now, later = lagged_moments(parts, parts, [0, 1]).mean()
            found = scipy.linalg.eigh(later + later.T, now)[1].T
            measure = partial(_over_one_step, series, parts, scores, currents, space, own, j)
            sizes = np.array([measure(pair) for pair in found])
            found = found[sizes >= _RESOLVED * sizes.max()]
        for combination in found:
            columns.append(np.zeros(len(space.owners)))
            columns[-1][own] = combination
            owners.append(j)
    return np.array(columns).T, tuple(owners)


def _over_one_step(series, parts, scores, currents, space: StateSpace, own: np.ndarray, j: int, pair) -> float:
    """Phi_jj from the first step of one function of one angle, by the trapezoidal rule."""
    rate = 2 * np.pi / float(space.periods[j] or np.inf)
    slopes = [space.embed(x, 1)[:, own] @ pair for x in series.segments]
    values = [part @ pair for part in parts]
    known = zip(values, scores, currents, slopes)
    past = [np.column_stack([f, s[:, j] * slope, nu[:, j] * slope]) for f, s, nu, slope in known]
    (c, g, v), (c_later, g_later, v_later) = lagged_moments([f[:, None] for f in values], past, [0, 1]).mean()[:, 0]
    start = -float(np.mean(np.concatenate(slopes) ** 2))
    scale = (start + rate**2 * c) / g
    change = c_later - c + 0.5 * series.dt * (v + v_later)
    return change / (0.5 * series.dt * (start + scale * g_later - rate**2 * c_later))
