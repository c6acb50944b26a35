"""Correlations and responses in groups of time, and Phi(T) out of them."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._core.types import LagMatrices, Samples
from ...data import TimeSeries
from ...execution.batches import on_all_cores
from ...statistics.lags import LaggedMoments, SideBySide, lagged_moments
from ...statistics.resampling import rating_groups
from ..symmetry import Symmetry
from .base import correlations_of
from .quadrature import Exponentials, Frame, integrated, integrated_along, spanning_frame

_MOST_KNOWN = 1 << 25  # numbers that are remembered: 256 MiB
_AT_ONCE = 1 << 20  # values of the curves of all draws that are worked on together


@dataclass(frozen=True)
class Moments:
    """Correlations and responses at increasing lags from 0 on; `of_scores` is < s(t + tau) (x, s)(t)^T > at a few lags.

    Error bars come from `groups` of time, ratings of candidates from `finer` ones. `carried` are the correlations of x
    with the current nu at the same lags, where one is known.
    """

    correlation: LaggedMoments
    response: LaggedMoments
    dt: float
    groups: int
    normalised: bool
    of_scores: LaggedMoments | None = None
    carried: LaggedMoments | None = None
    frames: dict[Symmetry, list[Frame]] = field(default_factory=dict)
    known: dict[tuple[Any, ...], tuple[np.ndarray, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, series: TimeSeries, scores: list[Samples], lags: np.ndarray, groups: int, normalised: bool
    ) -> "Moments":
        response = lagged_moments(series.segments, scores, lags, rating_groups(groups))
        return cls(correlations_of(series, lags, groups), response, series.dt, groups, normalised)

    def with_current(self, series: TimeSeries, currents: list[Samples]) -> "Moments":
        """The same, with the correlations of the states with the current."""
        lags = self.correlation.lags
        return replace(self, carried=lagged_moments(series.segments, currents, lags, self.finer), known={})

    def with_rates(self, series: TimeSeries, scores: list[Samples]) -> "Moments":
        """The same, with what the exponentials between samples need."""
        both = [SideBySide(x, s) for x, s in zip(series.segments, scores)]
        return replace(self, of_scores=lagged_moments(scores, both, range(4), self.finer), known={})

    @property
    def finer(self) -> int:
        return len(self.correlation.sums)

    @property
    def tau(self) -> np.ndarray:
        return self.dt * self.correlation.lags

    def curves(
        self, weights: np.ndarray, symmetry: Symmetry, first: int = 0, stride: int = 1, reach: int | None = None
    ) -> tuple[np.ndarray, ...]:
        """C(T) - C(T_0), int_{T_0}^T G and G at every lag T from T_0 on or `reach` more, in blocks of the symmetry.

        Weights of one draw of the groups, or of many: (draw, group) gives (draw, lag, block, n, n).

        With a current, int < x(tau) nu(x(0))^T > is added to the first: what is left is due to the diffusion.
        """
        c, raw = (symmetry.blocks(m.mean(weights)) for m in (self.correlation, self.response))
        scaling = -np.linalg.inv(raw[..., 0, :, :, :]) if self.normalised else None
        chosen = (..., slice(first, None, stride), *3 * (slice(None),))
        c, raw, tau = c[chosen], raw[chosen], self.tau[first::stride]
        g = raw if scaling is None else raw @ scaling[..., None, :, :, :]
        number = len(tau) if reach is None else reach + 1
        change = c[..., :number, :, :, :] - c[..., :1, :, :, :]
        if self.carried is not None:
            change += integrated(symmetry.blocks(self.carried.mean(weights))[chosen], tau, number, axis=-4)
        if self.of_scores is None or scaling is None:
            return change, integrated(g, tau, number, axis=-4), g
        now, later = self._joint(c, raw, symmetry, weights, slice(first, first + stride + 1, stride))
        parts = []
        for b, frame in enumerate(self._frames(symmetry)):
            between = Exponentials.through(now[..., b, :, :], later[..., b, :, :], tau[1] - tau[0], frame)
            parts.append(integrated_along(g[..., b, :, :], tau, between, scaling[..., b, :, :], number))
        return change, np.stack(parts, axis=-3), g

    def phi_by_horizon(
        self, weights: np.ndarray, symmetry: Symmetry, first: int = 0, stride: int = 1, reach: int | None = None
    ) -> LagMatrices:
        """Phi(T) = (int G)^-1 (C(T) - C(T_0)) for every horizon T beyond T_0, or the first `reach` of them.

        For many draws, (draw, horizon, n, n).
        """
        return self._solved(weights, symmetry, first, stride, reach)[0]

    def first_step(self, weights: np.ndarray, symmetry: Symmetry) -> tuple[np.ndarray, ...]:
        """C(h) - C(0) and int_0^h G over one sampling interval, in the blocks of the symmetry."""
        return self._solved(weights, symmetry, 0, 1, 1)[1:]

    def _solved(
        self, weights: np.ndarray, symmetry: Symmetry, first: int, stride: int, reach: int | None
    ) -> tuple[np.ndarray, ...]:
        """Phi(T), and both sides of its equation at the first horizon; remembered: many statistics ask for the same."""
        if weights.ndim == 1:
            return tuple(a[0] for a in self._solved(weights[None], symmetry, first, stride, reach))
        asked = (weights.tobytes(), weights.shape, symmetry, first, stride)
        for every in (None, reach):
            if (*asked, every) in self.known:
                phi, *sides = self.known[*asked, every]
                return phi[:, :reach], *sides
        number = -(-len(weights) * self.correlation.sums[0].size // _AT_ONCE)
        parts = np.array_split(weights, min(number, len(weights)))
        solved = on_all_cores(lambda part: self._solve(part, symmetry, first, stride, reach), parts)
        found = tuple(np.concatenate(values) for values in zip(*solved))
        if sum(a.size for kept in (*self.known.values(), found) for a in kept) <= _MOST_KNOWN:
            self.known[*asked, reach] = found
        return found

    def _solve(
        self, weights: np.ndarray, symmetry: Symmetry, first: int, stride: int, reach: int | None
    ) -> tuple[np.ndarray, ...]:
        change, integral, _ = (c[..., 1:, :, :, :] for c in self.curves(weights, symmetry, first, stride, reach))
        phi = symmetry.joined(np.linalg.solve(integral, change), self.correlation.sums.shape[-1])
        return phi, change[..., 0, :, :, :].copy(), integral[..., 0, :, :, :].copy()

    def _frames(self, symmetry: Symmetry) -> list[Frame]:
        """The directions in which (x, s) varies, from all of the data, so that they stay while blocks are left out."""
        if symmetry not in self.frames:
            weights, start = np.ones(1), slice(0, 1)
            c, g = (symmetry.blocks(m.at(start).mean(weights)) for m in (self.correlation, self.response))
            (now,) = self._joint(c, g, symmetry, weights, start)
            self.frames[symmetry] = [spanning_frame(block) for block in now]
        return self.frames[symmetry]

    def _joint(
        self, c: np.ndarray, g: np.ndarray, symmetry: Symmetry, weights: np.ndarray, lags: slice
    ) -> list[np.ndarray]:
        """Blocks of < (x, s)(t + tau) (x, s)(t)^T > at some lags, (..., block, 2n, 2n); c and g begin at these lags."""
        assert self.of_scores is not None
        halves = np.split(self.of_scores.at(lags).mean(weights), 2, axis=-1)
        a, b = (np.moveaxis(symmetry.blocks(half), -4, 0) for half in halves)
        c, g = (np.moveaxis(part, -4, 0) for part in (c, g))
        return [np.block([[c[k], g[k]], [a[k], b[k]]]) for k in range(len(a))]
