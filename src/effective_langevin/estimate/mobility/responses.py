"""Correlations and responses in groups of time, and Phi(T) out of them."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from ..._core.types import LagMatrices, Matrix, Samples
from ...data import TimeSeries
from ...execution.batches import on_all_cores
from ...statistics.lags import LaggedMoments, SideBySide, lagged_moments
from ...statistics.resampling import rating_groups
from ..symmetry import Symmetry
from .quadrature import Exponentials, Frame, integrated, integrated_along, spanning_frame

_MOST_KNOWN = 1 << 25  # numbers that are remembered: 256 MiB
_AT_ONCE = 1 << 19  # values of the curves of all draws that are worked on together


@dataclass(frozen=True)
class Moments:
    """Correlations and responses at increasing lags from 0 on; those of (x, s) at the first few.

    Error bars come from `groups` of time, ratings of candidates from `finer` ones. `carried` are the correlations of x
    with the current nu at the same lags, where one is known.
    """

    correlation: LaggedMoments
    response: LaggedMoments
    dt: float
    groups: int
    normalised: bool
    joint: LaggedMoments | None = None
    carried: LaggedMoments | None = None
    frames: dict[Symmetry, list[Frame]] = field(default_factory=dict)
    known: dict[tuple[Any, ...], tuple[np.ndarray, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, series: TimeSeries, scores: list[Samples], lags: np.ndarray, groups: int, normalised: bool
    ) -> "Moments":
        finer = rating_groups(groups)
        correlation = lagged_moments(series.segments, series.segments, lags, finer)
        return cls(correlation, lagged_moments(series.segments, scores, lags, finer), series.dt, groups, normalised)

    def with_current(self, series: TimeSeries, currents: list[Samples]) -> "Moments":
        """The same, with the correlations of the states with the current."""
        lags = self.correlation.lags
        return replace(self, carried=lagged_moments(series.segments, currents, lags, self.finer), known={})

    def with_rates(self, series: TimeSeries, scores: list[Samples]) -> "Moments":
        """The same, with what the exponentials between samples need."""
        both = [SideBySide(x, s) for x, s in zip(series.segments, scores)]
        return replace(self, joint=lagged_moments(both, both, range(4), self.finer), known={})

    @property
    def finer(self) -> int:
        return len(self.correlation.sums)

    @property
    def tau(self) -> np.ndarray:
        return self.dt * self.correlation.lags

    def curves(
        self, weights: np.ndarray, symmetry: Symmetry, first: int = 0, stride: int = 1
    ) -> tuple[np.ndarray, ...]:
        """C(T) - C(T_0), int_{T_0}^T G and G at every lag T from T_0 on, in the blocks of the symmetry.

        Weights of one draw of the groups, or of many: (draw, group) gives (draw, lag, block, n, n).

        With a current, int < x(tau) nu(x(0))^T > is added to the first: what is left is due to the diffusion.
        """
        c, g = (symmetry.blocks(m.mean(weights)) for m in (self.correlation, self.response))
        scaling = -np.linalg.inv(g[..., 0, :, :, :]) if self.normalised else None
        chosen = (..., slice(first, None, stride), *3 * (slice(None),))
        c, tau = c[chosen], self.tau[first::stride]
        g = (g if scaling is None else g @ scaling[..., None, :, :, :])[chosen]
        change = c - c[..., :1, :, :, :]
        if self.carried is not None:
            change = change + integrated(symmetry.blocks(self.carried.mean(weights))[chosen], tau, axis=-4)
        if self.joint is None or scaling is None:
            return change, integrated(g, tau, axis=-4), g
        joint = self.joint.mean(weights)
        now, later = (_joint_blocks(joint[..., lag, :, :], symmetry) for lag in (first, first + stride))
        parts = []
        for b, frame in enumerate(self._frames(symmetry)):
            between = Exponentials.through(now[..., b, :, :], later[..., b, :, :], tau[1] - tau[0], frame)
            parts.append(integrated_along(g[..., b, :, :], tau, between, scaling[..., b, :, :]))
        return change, np.stack(parts, axis=-3), g

    def phi_by_horizon(self, weights: np.ndarray, symmetry: Symmetry, first: int = 0, stride: int = 1) -> LagMatrices:
        """Phi(T) = (int G)^-1 (C(T) - C(T_0)) for every horizon T beyond T_0; for many draws, (draw, horizon, n, n)."""
        return self._solved(weights, symmetry, first, stride)[0]

    def first_step(self, weights: np.ndarray, symmetry: Symmetry) -> tuple[np.ndarray, ...]:
        """C(h) - C(0) and int_0^h G over one sampling interval, in the blocks of the symmetry."""
        return self._solved(weights, symmetry, 0, 1)[1:]

    def _solved(self, weights: np.ndarray, symmetry: Symmetry, first: int, stride: int) -> tuple[np.ndarray, ...]:
        """Phi(T), and both sides of its equation at the first horizon; remembered: many statistics ask for the same."""
        asked = (weights.tobytes(), weights.shape, symmetry, first, stride)
        if asked in self.known:
            return self.known[asked]
        most = max(1, _AT_ONCE // self.correlation.sums[0].size)
        if weights.ndim > 1 and len(weights) > most:
            parts = [weights[i : i + most] for i in range(0, len(weights), most)]
            solved = on_all_cores(lambda part: self._solve(part, symmetry, first, stride), parts)
            found = tuple(np.concatenate(values) for values in zip(*solved))
        else:
            found = self._solve(weights, symmetry, first, stride)
        if sum(a.size for kept in (*self.known.values(), found) for a in kept) <= _MOST_KNOWN:
            self.known[asked] = found
        return found

    def _solve(self, weights: np.ndarray, symmetry: Symmetry, first: int, stride: int) -> tuple[np.ndarray, ...]:
        change, integral, _ = (c[..., 1:, :, :, :] for c in self.curves(weights, symmetry, first, stride))
        phi = symmetry.joined(np.linalg.solve(integral, change), self.correlation.sums.shape[-1])
        return phi, change[..., 0, :, :, :].copy(), integral[..., 0, :, :, :].copy()

    def _frames(self, symmetry: Symmetry) -> list[Frame]:
        """The directions in which (x, s) varies, from all of the data, so that they stay while blocks are left out."""
        if symmetry not in self.frames:
            joint = cast(LaggedMoments, self.joint).mean()
            self.frames[symmetry] = [spanning_frame(block) for block in _joint_blocks(joint[0], symmetry)]
        return self.frames[symmetry]


def _joint_blocks(joint: Matrix, symmetry: Symmetry) -> np.ndarray:
    """The blocks of < (x, s)(t + tau) (x, s)(t)^T > at one lag, (..., block, 2n, 2n)."""
    quarters = [[symmetry.blocks(part) for part in np.split(half, 2, axis=-1)] for half in np.split(joint, 2, axis=-2)]
    return np.concatenate([np.concatenate(row, axis=-1) for row in quarters], axis=-2)
