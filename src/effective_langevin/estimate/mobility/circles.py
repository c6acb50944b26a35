"""The integrated response of smooth functions on circles, for variables that are angles.

With f = cos and sin of each angle and the other variables as they are, f_n a function of x_j alone,

    C_mn(T) - C_mn(0) = sum_i Phi_ij int_0^T < f_m(t + tau) [s_i f_n' + delta_ij f_n''](t) > dtau

at every T, as on the line, where f = x leaves s_i alone in the brackets. Each column of Phi has as many equations as
there are pairs m, n for its variable; it is their least-squares solution, with f_m as independent of each other as
they can be made.
"""

from dataclasses import dataclass

import numpy as np

from ..._core.types import LagMatrices, Samples
from ...data import LaggedMoments, TimeSeries, lagged_moments
from ..circles import Circles
from ..symmetry import Symmetry
from .quadrature import Exponentials, integrated, spanning_frame


@dataclass(frozen=True)
class CircleMoments:
    """Correlations of f and its responses, in groups of time; (f, f) and the brackets beside each other in `joint`."""

    joint: LaggedMoments
    slopes: np.ndarray
    whitening: np.ndarray
    dt: float
    owners: tuple[int, ...]

    @classmethod
    def of(
        cls, series: TimeSeries, scores: list[Samples], circles: Circles, lags: np.ndarray, groups: int
    ) -> "CircleMoments":
        """From a standardised series and the score on its samples."""
        mean = circles.embedded(series.stacked()).mean(axis=0)
        features = [circles.embedded(s) - mean for s in series.segments]
        both = [
            np.concatenate([f, _brackets(x, s, circles)], axis=1)
            for f, x, s in zip(features, series.segments, scores)
        ]
        slopes = circles.embedded(series.stacked(), 1)
        square = slopes.T @ slopes / len(slopes)
        covariance = lagged_moments(features, features, [0]).mean()[0]
        values, vectors = np.linalg.eigh(covariance)
        whitening = (vectors / np.sqrt(np.maximum(values, 1e-6 * values[-1]))).T
        return cls(lagged_moments(both, both, lags, groups), square, whitening, series.dt, tuple(circles.owners))

    @property
    def groups(self) -> int:
        """Number of groups of time."""
        return len(self.joint.sums)

    @property
    def tau(self) -> np.ndarray:
        """Lag times."""
        return self.dt * self.joint.lags

    @property
    def variables(self) -> int:
        """Number of variables."""
        return self.owners[-1] + 1

    def phi_by_horizon(self, weights: np.ndarray, symmetry: Symmetry, first: int = 0, stride: int = 1) -> LagMatrices:
        """Phi(T) for every horizon T beyond the lag `first`; no symmetry but that of the circles."""
        moments, size = self.joint.mean(weights), len(self.owners)
        chosen = slice(first, None, stride)
        c, g, tau = moments[chosen, :size, :size], moments[chosen, :size, size:], self.tau[chosen]
        integral = self._integrals(moments[chosen][:2], g, tau)
        change, integral, start = (self.whitening @ a for a in (c - c[0], integral, moments[0, :size, size:]))
        columns = [self._column(j, change[1:], integral[1:], start) for j in range(self.variables)]
        return np.stack(columns, axis=-1)

    def _integrals(self, ends: np.ndarray, response: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """The integrated response, along the exponentials of the process where the sampling allows for them."""
        found = Exponentials.through(*ends, tau[1] - tau[0], spanning_frame(self.joint.mean()[0]))
        if found is None:
            return integrated(response, tau)
        value, integral = (np.real(a) for a in found.at(tau - tau[0], len(self.owners)))
        return integral + integrated(response - value, tau)

    def _column(self, j: int, change: np.ndarray, integral: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Phi_ij for all i, at every horizon, scaled such that the response begins where Stein's identity has it."""
        own, size = [n for n, owner in enumerate(self.owners) if owner == j], self.variables
        blocks = [slice(n * size, (n + 1) * size) for n in own]
        target = np.concatenate([self.whitening @ self._start(n) for n in own])
        scaling = np.linalg.lstsq(np.concatenate([start[:, b] for b in blocks]), target, rcond=None)[0]
        design = np.concatenate([integral[..., b] for b in blocks], axis=-2) @ scaling
        wanted = np.concatenate([change[..., n] for n in own], axis=-1)
        return np.einsum("tij,tj->ti", np.linalg.pinv(design), wanted)

    def _start(self, n: int) -> np.ndarray:
        """-< d_i f_m f_n' >: what < f_m [s_i f_n' + delta_ij f_n''] > is for the exact score."""
        start = np.zeros((len(self.owners), self.variables))
        for m, owner in enumerate(self.owners):
            start[m, owner] = -self.slopes[m, n]
        return start


def _brackets(x: Samples, score: Samples, circles: Circles) -> Samples:
    """s_i f_n' + delta_ij f_n'' for every n and, within it, every i."""
    first, second = circles.embedded(x, 1), circles.embedded(x, 2)
    out = first[:, :, None] * np.asarray(score, float)[:, None, :]
    for n, owner in enumerate(circles.owners):
        out[:, n, owner] += second[:, n]
    return out.reshape(len(x), -1)
