"""Integrals of a response that is known at the sampling times only.

Between samples the response decays at the rates of the process, which at coarse sampling no polynomial follows. The
states and their scores f = (x, s) give those rates: the propagator F(h) F(0)^-1 of F(tau) = < f(t + tau) f(t)^T > has a
logarithm, and with it every entry of F is a sum of exponentials that meets the data at two lags. These are integrated
exactly; a cubic spline takes what they leave. For a linear process they leave nothing, at any sampling interval.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float
from scipy.interpolate import CubicSpline

from ..._core.types import Matrix

_RANK = 1e-8
_FASTEST, _TURN = 0.01, 0.75 * np.pi
_FADED, _SMALL, _GROWING = 0.003, 0.1, 1.05


def integrated(response: np.ndarray, tau: np.ndarray, number: int | None = None, *, axis: int = 0) -> np.ndarray:
    """int_0^T G for every T in `tau`, or the first ones, along that axis, by a cubic spline."""
    spline = _spline_integrals(tuple(tau.tolist()))[:number]
    return np.moveaxis(np.tensordot(spline, response, (1, axis)), 0, axis)


@lru_cache(maxsize=64)
def _spline_integrals(tau: tuple[float, ...]) -> Matrix:
    """Return the matrix that integrates a cubic spline through values at the times `tau`, from the first to each."""
    return CubicSpline(tau, np.eye(len(tau)), axis=0).antiderivative()(tau)


@dataclass(frozen=True)
class Exponentials:
    """< x s^T > = sum_r left[:, r] exp(rate_r t) right[r, :], t from the first of the two lags on; many sums at once.

    `usable` tells which of them the sampling is fine enough for: no factor is near zero, or so near the negative axis
    that its logarithm is ambiguous. Nor does one grow: that is chance, and would be without limit after many steps.
    """

    rates: Float[np.ndarray, "... rate"]
    left: Float[np.ndarray, "... n rate"]
    right: Float[np.ndarray, "... rate n"]
    usable: Bool[np.ndarray, "..."]

    @classmethod
    def through(cls, now: np.ndarray, later: np.ndarray, interval: float, frame: "Frame") -> "Exponentials":
        """The part < x s^T > of F(t) = exp(t log(later now^-1) / interval) now, within a frame; f = (x, s)."""
        states, scores = np.split(frame.back, 2)
        start, end = (frame.whitening.conj().T @ m @ frame.whitening for m in (now, later))
        factors, modes, usable = _decomposed(np.linalg.solve(start.mT, end.mT).mT)
        right = start @ scores.conj().T
        return cls(
            np.log(factors) / interval,
            states @ modes,
            np.linalg.solve(modes, right) if usable.any() else right,
            usable,
        )

    def missed_by_spline(self, tau: np.ndarray, number: int | None = None) -> np.ndarray:
        """How much a spline through each exponential at the times `tau` misses of its integral, (..., time, rate)."""
        t, spline = tau - tau[0], _spline_integrals(tuple(tau.tolist()))[:number]
        missed = _grown(t[:number], self.rates) - spline @ np.exp(t[:, None] * self.rates[..., None, :])
        return np.where(self.usable[..., None, None], missed, 0.0)

    def summed(self, missed: np.ndarray, scaling: np.ndarray, real: bool) -> np.ndarray:
        """sum_r left[:, r] missed[time, r] right[r, :] scaling, (..., time, n, n).

        Where that is real, rates come in conjugate pairs: one of a pair gives the product of the real parts of both
        factors, the other that of the imaginary parts.
        """
        left, right, missed = self.left[..., None, :, :], self.right, missed[..., None, :]
        if real:
            turns = np.imag(self.rates)
            second, twice = (turns < 0)[..., None, None, :], np.where(turns != 0, 2.0, 1.0)[..., None, None, :]
            a, b = np.real(missed) * twice, np.imag(missed) * twice
            left = np.real(left) * np.where(second, b, a) + np.imag(left) * np.where(second, a, -b)
            right = np.where(turns[..., None] < 0, -np.imag(right), np.real(right))
        else:
            left = left * missed
        shape = left.shape[:-1]
        return (left.reshape(*shape[:-2], shape[-2] * shape[-1], -1) @ (right @ scaling)).reshape(*shape, -1)


def _decomposed(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of propagators where they are usable, ones elsewhere, and where that is.

    Where the first one is not, the others hardly are: their eigenvalues are looked at before their vectors.
    """
    usable = np.ones(steps.shape[:-2], bool)
    factors, modes = np.ones(steps.shape[:-1], complex), np.zeros(steps.shape, complex)
    modes[:] = np.eye(steps.shape[-1])
    first = steps.reshape(-1, *steps.shape[-2:])[0]
    if not _are_usable(np.linalg.eigvals(first)):
        usable = _are_usable(np.linalg.eigvals(steps))
    if usable.any():
        found, vectors = np.linalg.eig(steps[usable])
        kept = _are_usable(found)
        usable[usable] = kept
        factors[usable], modes[usable] = found[kept], vectors[kept]
    return factors, modes, usable


def _are_usable(factors: np.ndarray) -> np.ndarray:
    """Tell which sets of factors all have a logarithm, and decay."""
    size, turned = np.abs(factors), np.abs(np.angle(factors)) > _TURN
    return np.asarray(((size >= _FASTEST) & (size < _GROWING) & ~turned).all(axis=-1))


@dataclass(frozen=True)
class Frame:
    """Columns that whiten < f f^T >, and those that lead back."""

    whitening: np.ndarray
    back: np.ndarray


def spanning_frame(now: Matrix) -> Frame:
    """The frame of < f f^T >, without the directions in which the scores repeat the states."""
    scale = 1 / np.sqrt(np.maximum(np.real(np.diagonal(now)), 1e-300))
    values, vectors = np.linalg.eigh(0.5 * (now + now.conj().T) * scale[:, None] * scale)
    kept = values > _RANK * values[-1]
    directions, spread = vectors[:, kept], np.sqrt(values[kept])
    return Frame(scale[:, None] * directions / spread, directions * spread / scale[:, None])


def integrated_along(
    response: Float[np.ndarray, "... lag n n"],
    tau: np.ndarray,
    exponentials: Exponentials,
    scaling: Float[np.ndarray, "... n n"],
    number: int | None = None,
) -> np.ndarray:
    """The integral of one block of the response from the first lag to each, or to the first ones.

    A spline through all of it, and what the spline misses of the exponentials. `scaling` is what the scores were scaled
    by.
    """
    along = integrated(response, tau, number, axis=-3)
    if not exponentials.usable.any():
        return along
    missed = exponentials.missed_by_spline(tau, number)
    return along + exponentials.summed(missed, scaling, real=not np.iscomplexobj(response))


class PropagatedIntegral:
    """int_0^T K for K(tau) = < f(t + tau) g(t)^T >, linear in K, with the rates of the functions f.

    The propagator P of K(h) = P K(0) gives every f a sum of exponentials, which is integrated exactly; a cubic spline
    takes what they leave. A factor of P below `_FADED`, or a small one of the wrong sign, counts as decayed; one that
    grows or turns by more than `_TURN` is left to the spline. P is that of all the data, so that the parts of K in
    blocks of time can be integrated first and summed afterwards.
    """

    def __init__(self, moments: Float[np.ndarray, "lag f g"], dt: float):
        tau = dt * np.arange(len(moments))
        self.spline = _spline_integrals(tuple(tau.tolist()))
        rows, columns = (1 / np.sqrt(np.mean(moments[0] ** 2, axis=axis) + 1e-300) for axis in (1, 0))
        now, later = (m * rows[:, None] * columns for m in moments[:2])
        left, sizes, right = np.linalg.svd(now, full_matrices=False)
        kept = sizes > _RANK * sizes[0]
        left, sizes, right = left[:, kept], sizes[kept], right[kept]
        factors, modes = np.linalg.eig(left.T @ later @ right.T / sizes)
        size, turned = np.abs(factors), np.abs(np.angle(factors)) > _TURN
        followed = (size < _GROWING) & ~(turned & (size > _SMALL))
        decay = np.where(turned | (size < _FADED), np.clip(size, _FADED, None), factors)[followed]
        rates = np.log(decay.astype(complex)) / dt
        into, out = np.linalg.inv(modes)[followed] @ left.T * rows, (left @ modes[:, followed]) / rows[:, None]
        value = np.real(np.einsum("ir,tr,rj->tij", out, np.exp(np.outer(tau, rates)), into))
        self.start = np.real(np.einsum("ir,tr,rj->tij", out, _grown(tau, rates), into))
        self.start -= np.tensordot(self.spline, value, 1)
        self.factors = factors

    def __call__(self, moments: Float[np.ndarray, "... lag f g"]) -> Float[np.ndarray, "... lag f g"]:
        """Integrate from 0 to every lag."""
        by_rates = np.einsum("tij,...jk->...tik", self.start, moments[..., 0, :, :])
        return by_rates + np.einsum("Tt,...tik->...Tik", self.spline, moments)


def _grown(t: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """int_0^t exp(rate t'), (..., time, rate)."""
    slow = (np.abs(rates) * np.abs(t).max(initial=0.0) < 1e-12)[..., None, :]  # whatever the unit of time
    rates = np.where(slow, 1, rates[..., None, :])
    return np.where(slow, t[:, None], np.expm1(t[:, None] * rates) / rates)
