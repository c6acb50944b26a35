"""The closure of a state (x, v): x moves with its velocity, without noise, and forces, friction and noise act on v.

    dx = v dt          dv = [ a(x, v) + D s_v(x, v) ] dt + sqrt(2 D) dW

a is the mean acceleration at (x, v). It is that of a centred difference, so that friction, which changes its sign with
the direction of time, is no part of it: friction is D s_v, -D v / < v^2 > for a Gaussian velocity.

Velocities and accelerations come from three neighbouring samples: v_c = [x(t+h) - x(t-h)] / 2h and
a_c = [x(t+h) - 2 x(t) + x(t-h)] / h^2. White noise leaves errors in both, which are not correlated with one another.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._core.matrices import positive_part
from ..._core.types import Matrix, Samples, Vector
from ...data import TimeSeries
from ...statistics.integral_time import error_groups
from ...statistics.lags import lagged_moments
from ..mobility.evidence import HorizonEvidence
from ..score import ScoreFit
from ..symmetry import NoSymmetry
from .polynomials import InertialCurrent
from .regression import CurrentRegression
from .residual import ResidualDiffusion, integrate_rest

_WHITE = 0.3  # correlation of accelerations two samples apart: 0 for white noise, 1 for smooth motion
_HORIZONS = np.arange(2, 9)  # in samples; differences overlap below two
_USED = 1  # the shortest: its error is least
_LOST = 2 / 3  # part of a sampling interval that differences of three samples take from an integral over a kink
_ROUNDS = 20


class Motion:
    """States (x, v_c), their scores and accelerations a_c of a standardised series of (x, v), with groups of time."""

    def __init__(self, series: TimeSeries, score: ScoreFit, rates: Sequence[float]):
        size, self.dt, self.rates = len(rates), series.dt, np.array(rates)
        paths = [segment[:, :size].astype(float) for segment in series.segments if len(segment) > 2]
        self.states, self.accelerations = [], []
        for x in paths:
            after, before = x[2:] - x[1:-1], x[1:-1] - x[:-2]
            velocity = (after + before) / (2 * self.dt * self.rates)
            self.states.append(np.hstack([x[1:-1], velocity]))
            self.accelerations.append((after - before) / (self.dt**2 * self.rates))
        self.cuts = np.cumsum([len(s) for s in self.states])[:-1]
        self.scores = np.split(score.function.over(np.concatenate(self.states)).astype(float), self.cuts)
        self.groups = error_groups(paths, self.dt)

    @property
    def velocities(self) -> list[Samples]:
        """d(x, v)/dt at every state."""
        size = len(self.rates)
        return [np.hstack([z[:, size:] * self.rates, a]) for z, a in zip(self.states, self.accelerations)]

    def regress(self, degree: int | None) -> CurrentRegression:
        """Regress the acceleration on polynomials and the score."""
        return CurrentRegression.from_motion(self.states, self.scores, self.velocities, self.groups, degree)

    def field(
        self,
        regression: CurrentRegression,
        weights: np.ndarray,
        box: tuple[Vector, Vector],
        noise: Matrix | None = None,
    ) -> InertialCurrent:
        """Return the current from groups of time counted `weights` times each.

        White noise of v before t is both in a_c and in x: < a_c phi(x) > is too large by h D < phi' > / 3, so that
        -h D s_x / 3 is no force. It is taken away where `noise`, D of (x, v), is given.
        """
        size, found = len(self.rates), regression.coefficients(weights)
        force, by_score = found[: -2 * size, size:].T, found[-2 * size :, size:].T.copy()
        if noise is not None:
            by_score[:, :size] += self.dt / 3 * noise[size:, size:] * self.rates
        return InertialCurrent.of(force, by_score, self.rates.tolist(), *box)

    def infer_noise(self, current: InertialCurrent) -> ResidualDiffusion:
        """Infer D of v from what the mean acceleration leaves over; no noise acts on x."""
        size = len(self.rates)
        given = (jnp.asarray(np.concatenate(part), jnp.float32) for part in (self.states, self.scores))
        forces = np.split(np.asarray(current.in_batch(*given), float)[:, size:], self.cuts)
        rest = [a - nu for a, nu in zip(self.accelerations, forces)]
        moments = lagged_moments(rest, rest, [0, 2])
        start, later = np.trace(moments.mean(), axis1=1, axis2=2)
        if later > _WHITE * start:
            found = integrate_rest(rest, self.dt, NoSymmetry(), self.groups)
        else:
            found = _white_noise(rest, [part[:, size:] for part in self.scores], self.dt, self.groups)
        return _of_velocities(found, size)


def _white_noise(rest: Sequence[Samples], scores: Sequence[Samples], dt: float, groups: int) -> ResidualDiffusion:
    """Infer D of white noise beside friction D s_v from r = a_c - a, what the mean acceleration leaves over.

    int_0^T < r(tau) r(0)^T > dtau = D [1 + int_0^T < s_v(tau) r(0)^T > dtau] at every horizon T: all of the noise is
    within two samples of lag 0. The second integrand jumps from zero to -< s_v s_v^T > D there. Differences of three
    samples smooth the jump, which takes 2/3 of a sampling interval from its integral, and no more for a linear force.
    """
    lags = np.arange(_HORIZONS[-1] + 1)
    squares, answers = (lagged_moments(part, rest, lags, groups) for part in (rest, scores))
    inverse = lagged_moments(scores, scores, [0], groups)

    def solve(weights: np.ndarray) -> Float[np.ndarray, "horizon var var"]:
        left, right = (_integrate(moments.mean(weights), dt)[_HORIZONS - 1] for moments in (squares, answers))
        fisher = inverse.mean(weights)[0]
        return np.array([_solve(a, b, _LOST * dt * fisher) for a, b in zip(left, right)])

    def estimate(weights: np.ndarray) -> Matrix:
        return positive_part(solve(weights)[:_USED].mean(axis=0))

    horizon = HorizonEvidence(
        rule="mean", horizons=dt * _HORIZONS, phi=solve(np.ones(groups)), used=_USED, chosen=dt * _HORIZONS[:1]
    )
    return ResidualDiffusion(estimate, groups, horizon, True)


def _integrate(values: Float[np.ndarray, "lag var var"], dt: float) -> Float[np.ndarray, "horizon var var"]:
    """Integrate up to each lag but the first, by trapezoids."""
    return np.cumsum(0.5 * dt * (values[1:] + values[:-1]), axis=0)


def _solve(left: Matrix, right: Matrix, lost: Matrix) -> Matrix:
    """Solve left = D (1 + right - lost D) for D, symmetric, by iteration."""
    one = np.eye(len(left))
    found = left
    for _ in range(_ROUNDS):
        found = np.linalg.solve((one + right - lost @ found).T, left.T).T
        found = 0.5 * (found + found.T)
    return found


def _of_velocities(found: ResidualDiffusion, size: int) -> ResidualDiffusion:
    """Return D of (x, v) from that of v."""

    def widen(matrix: np.ndarray) -> np.ndarray:
        whole = np.zeros((*matrix.shape[:-2], 2 * size, 2 * size))
        whole[..., size:, size:] = matrix
        return whole

    phi = found.horizon.phi
    horizon = replace(found.horizon, phi=None if phi is None else widen(phi))
    return ResidualDiffusion(lambda weights: widen(found.estimate(weights)), found.groups, horizon, found.white)
