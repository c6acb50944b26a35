"""The effective mobility of a ballistic series: one that is smooth at short times and has no Phi at T -> 0."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from ..._core.types import Matrix
from ..symmetry import Symmetry
from .evidence import HorizonEvidence
from .responses import Moments

_PER_LAG = 8
_NOTHING = 3e-5
_CURVE_DIMENSIONS = 8


def infer_effective(moments: Moments, symmetry: Symmetry, spread: Matrix, first: int = 0):
    """Return Phi of a ballistic series at the horizon where its rise ends, in each block, and the evidence.

    With measurement noise the horizons begin at the lag `first`.
    """
    size, tau = moments.correlation.sums.shape[-1], moments.tau[first:]
    variances = symmetry.blocks(moments.correlation.mean()[0])
    blocks = [_Resolved.of(*pair) for pair in zip(variances, symmetry.blocks(spread))]
    change, integral, response = moments.curves(np.ones(moments.groups), symmetry, first)
    curves = [
        (block.correlation(change[:, b]), block.response(integral[:, b]), block.response(response[:, b]))
        for b, block in enumerate(blocks)
    ]
    horizons = [_end_of_rise(tau, c, g, r, block.back) for block, (c, g, r) in zip(blocks, curves)]

    def estimate(weights: np.ndarray) -> Matrix:
        change, integral = (CubicSpline(tau, c, axis=0) for c in moments.curves(weights, symmetry, first)[:2])
        parts = []
        for b, (block, horizon) in enumerate(zip(blocks, horizons)):
            c, g = block.correlation(change(horizon)[b]), block.response(integral(horizon)[b])
            parts.append(np.linalg.solve(g, c))
        typical = np.median(np.concatenate([np.real(np.diagonal(part)) for part in parts]))
        joined = [block.completed(part, typical) for block, part in zip(blocks, parts)]
        return symmetry.joined(np.array(joined), size)

    everything = np.ones(moments.groups)
    horizon = HorizonEvidence(
        rule="finite",
        horizons=tau[1:],
        chosen=np.array(horizons),
        rising_share=_rising_share(np.real(np.trace(variances, axis1=1, axis2=2)), horizons, tau, blocks, curves),
        unresolved_directions=sum(block.lost for block in blocks),
    )
    if symmetry.channels:
        modes = [_phi_trace(c[1:], g[1:], block.back) for block, (c, g, _) in zip(blocks, curves)]
        of_mode = np.real(np.trace(symmetry.blocks(estimate(everything)), axis1=1, axis2=2))
        horizon = replace(horizon, phi_by_mode=np.array(modes), phi_of_mode=of_mode)
    elif size <= _CURVE_DIMENSIONS:
        horizon = replace(horizon, phi=moments.phi_by_horizon(everything, symmetry, first))
    if not first:
        return estimate, {"horizon": horizon}
    c = moments.correlation.mean()
    noise = np.sqrt(np.maximum(np.diagonal(c[0] - 2 * c[1] + c[2]), 0))
    return estimate, {"horizon": horizon, "measurement_noise": noise}


@dataclass(frozen=True)
class _Resolved:
    """The directions in which a block of the data spreads further than the noise of the score, in units of the noise.

    Elsewhere the data say nothing, and Phi gets its typical value there, in the same units: what is narrower by nature
    has less mobility.
    """

    into: np.ndarray
    back: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, variance: Matrix, spread: Matrix) -> "_Resolved":
        scale = spread if np.any(spread) else _NOTHING * np.eye(len(variance))
        inverse = np.linalg.inv(scale)
        values, vectors = np.linalg.eigh(inverse @ variance @ inverse)
        kept, others = vectors[:, values > 1], vectors[:, values <= 1]
        return cls(kept.conj().T @ inverse, scale @ kept, scale @ others)

    @property
    def lost(self) -> int:
        return self.rest.shape[1]

    def correlation(self, matrices: np.ndarray) -> np.ndarray:
        """< x x^T > in these directions."""
        return self.into @ matrices @ self.into.conj().T

    def response(self, matrices: np.ndarray) -> np.ndarray:
        """< x s^T > in these directions."""
        return self.into @ matrices @ self.back

    def completed(self, phi: Matrix, typical: float) -> Matrix:
        """Phi in all directions, from that in these and a typical one."""
        return self.back @ phi @ self.back.conj().T + typical * self.rest @ self.rest.conj().T


def _phi_trace(change: np.ndarray, integral: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Mean diagonal entry of Phi(T) at each horizon, standardised; not a number where nothing is resolved."""
    if change.shape[-1] == 0:
        return np.full(len(change), np.nan)
    phi = back @ np.linalg.solve(integral, change) @ back.conj().T
    return np.trace(phi.real, axis1=1, axis2=2) / change.shape[-1]


def _rising_share(held: np.ndarray, horizons: list[float], tau: np.ndarray, blocks, curves) -> float:
    """Share of the variance `held` in blocks where Phi(T) rises to the end, by a quarter over its second half."""
    late = tau[1:] >= 0.5 * tau[-1]
    second_halves = (_phi_trace(c[1:][late], g[1:][late], block.back) for block, (c, g, _) in zip(blocks, curves))
    rising = [horizon >= tau[-1] and phi[-1] > 1.25 * phi[0] for horizon, phi in zip(horizons, second_halves)]
    return float(held @ rising / held.sum())


def _end_of_rise(
    tau: np.ndarray, change: np.ndarray, integral: np.ndarray, response: np.ndarray, back: np.ndarray
) -> float:
    """The horizon where Phi(T) stops rising or the response changes sign, whichever comes first.

    At the former Phi(T) does not depend on T, at the latter the integrated response is largest. Beyond that lag the
    response is negative and the integral no longer defines a mobility.
    """
    if change.shape[-1] == 0:
        return float(tau[1])
    places = np.arange(_PER_LAG, _PER_LAG * (len(tau) - 1) + 1) / _PER_LAG
    fine = np.interp(places, np.arange(len(tau)), tau)
    c, g, r = (CubicSpline(tau, a, axis=0)(fine) for a in (change, integral, response))
    rising = np.diff(_phi_trace(c, g, back), append=np.inf) > 0
    following = -np.trace(r.real, axis1=1, axis2=2) > 0
    ends = np.flatnonzero(~(rising & following))
    return float(fine[ends[0]] if len(ends) else fine[-1])
