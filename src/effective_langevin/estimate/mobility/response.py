"""The integrated response: a mobility without derivative, partition or simulation, right at coarse sampling.

For a stationary diffusion with constant mobility, at every tau,

    d/dtau C(tau) = G(tau) Phi,   G(tau) = < x(t + tau) s(x(t))^T >,   G(0) = -I,

so that (int_0^T G) Phi = C(T) - C(0) for every horizon T. T -> 0 is -dC/dt(0+), T -> infinity is Green-Kubo. If the
mobility depends on the state, Phi(T) drifts with T and only its limit at T -> 0 is the mean mobility <M>. All matrices
are split into the independent blocks of the symmetry, on a ring one per Fourier mode, and solved block by block.
"""

import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from ..._core import checks
from ..._core.errors import EstimateWarning
from ..._core.types import LagMatrices, Matrix, Samples
from ...data import TimeSeries
from ...data.lazy import mapped
from ...statistics.integral_time import error_groups, integral_times
from ...statistics.lags import longest_lag, require_lag
from ...statistics.nugget import signs_of_doubt
from ...statistics.regime import BALLISTIC, quadratic_variation_slope
from ...statistics.resampling import OverWeights, for_each, jackknife, left_out
from ..score import ScoreFit
from ..score.calibration import noise_like
from ..space import StateSpace
from ..symmetry import Symmetry
from .angles import CircleMoments, infer_effective_of_angles
from .ballistic import infer_effective
from .base import Inference, MobilityStrategy, regime_of, times_of
from .evidence import HorizonEvidence
from .horizon_selection import Combination, candidate_weights, held_out_error, quadrature_error, select_combination
from .responses import Moments

_WITNESS, _RANK = 3.0, 1e-6
_NOISY_COST = 3.0
_REACH = 3.0


@dataclass(frozen=True)
class IntegratedResponse(MobilityStrategy):
    """The combination of all horizons up to `lags` samples that has the least estimated error.

    The score is evaluated on the data and scaled so that G(0) = -I holds in the sample. This removes the first-order
    effect of the smoothing width and most of the sampling error. The response is integrated as a sum of exponentials
    with the rates of the process, plus a spline for the rest (`quadrature`). Phi is the limit T -> 0 of a polynomial
    through Phi(T). Its degree and reach have the least sum of sampling error, trend and quadrature error
    (`horizon_selection`). If C(0) is not what Phi predicts from C(h), lag 0 is left out: too large a C(0) is
    measurement noise, new in every sample, too small a one is motion blur, each sample being a mean over an exposure.
    Phi is then that of the variable as observed, `Mobility.of_motion` that of the motion beneath.

    A ballistic series (smooth at short times, its quadratic variation growing faster than time) has no such limit:
    Phi(T) rises with T from zero. The effective Phi is taken where the rise ends, in each block, or where the response
    G changes sign; beyond that lag the integral no longer defines a mobility (`ballistic`). A series that is smooth
    beneath measurement noise is treated alike, without lag 0. Where the smoothing width exceeds the spread of the data
    in some direction, clean samples say nothing about the score there. G is then evaluated at x + sigma z, averaged
    over z and -z, and Phi gets its typical value in such directions.

    For angles the response of their cos and sin is used (`angles`).

    Parameters
    ----------
    lags : int, optional
        The longest horizon, in sampling intervals, at least 6. Default: half the shortest integral time, from 8 to 24,
        or three times the longest integral time of a ballistic series.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, seed=1)
    >>> el.fit(series, score=el.Gaussian(), mobility=el.IntegratedResponse(lags=10)).mobility.method
    'IntegratedResponse'
    """

    lags: int | None = None

    def __post_init__(self):
        if self.lags is not None:
            checks.integer_at_least("lags", self.lags, 6)

    def supports(self, space: StateSpace) -> bool:
        return True

    def check(self, series: TimeSeries) -> None:
        """Lags 1 to 3 are needed, to tell what one sampling interval costs and whether lag 0 is in doubt."""
        require_lag(series.segments, 3, advice=" `el.QuadraticVariation()` needs pairs of samples only.")

    def infer(self, series: TimeSeries, score: ScoreFit, *, space: StateSpace, key: jax.Array) -> Inference:
        at_clean = score.resolved or not regime_of(series).ballistic

        def smoothed(x: Samples) -> Samples:
            # Another key for each block that is read, told by its numbers.
            own = jax.random.fold_in(key, zlib.crc32(np.ascontiguousarray(x).data)) if series.is_lazy else key
            return smoothed_score(score, x, space.symmetry, own)

        scores = along(series, score.function.over if at_clean else smoothed)
        found = self.infer_from(series, scores, space, score.spread, at_clean)
        if found.evidence.horizon and (doubt := found.evidence.horizon.doubt()):
            warnings.warn(doubt, EstimateWarning, stacklevel=4)
        return found

    def infer_from(
        self, series: TimeSeries, scores: list[Samples], space: StateSpace, spread: Matrix, at_clean: bool = True
    ) -> Inference:
        """The regime, then correlations and responses on one set of lags, then one Phi out of all horizons.

        `spread` is that of the noise the score was learned with, a symmetric square root of its covariance.
        """
        if space.angles:
            return self._of_angles(series, scores, space)
        symmetry = space.symmetry
        times, regime = times_of(series), regime_of(series)
        lags = self.choose_lags(series, times, regime.ballistic)
        moments = Moments.of(series, scores, lags, error_groups(series.segments, series.dt, times), at_clean)
        if not regime.ballistic:
            moments = moments.with_rates(series, scores)
        infer = partial(infer_effective, spread=spread, first=int(regime.noisy)) if regime.ballistic else _instantaneous
        estimate, evidence = infer(moments, symmetry)
        return Inference.of(
            estimate,
            moments.groups,
            **evidence,
            integral_times=times,
            quadratic_variation_slope=regime.slope,
            antisymmetry_before_projection=_before_projection(infer, moments, symmetry),
        )

    def choose_lags(self, series: TimeSeries, times: np.ndarray, ballistic: bool) -> np.ndarray:
        """Far and widening for smooth motion, otherwise an even number up to half the shortest integral time."""
        if ballistic:
            return widening_lags(self.lags or int(max(_REACH * times.max() / series.dt, 16)), series)
        wanted = self.lags or int(np.clip(0.5 * times.min() / series.dt, 8, 24))
        return np.arange(min(2 * (wanted // 2), longest_lag(series.segments)) + 1)

    def _of_angles(self, series: TimeSeries, scores: list[Samples], space: StateSpace) -> Inference:
        """Infer the same from smooth functions on the circles, whose regime and integral times count."""
        mean = space.embed(series.stacked()).mean(axis=0)
        smooth = [space.embed(s) - mean for s in series.segments]
        times, slope = integral_times(smooth, series.dt), quadratic_variation_slope(smooth)
        lags = self.choose_lags(series, times, slope > BALLISTIC)
        moments = CircleMoments.of(series, scores, space, lags, error_groups(smooth, series.dt, times))
        return infer_on_circles(moments, slope, times)


def infer_on_circles(moments: CircleMoments, slope: float, times: np.ndarray) -> Inference:
    """Return Phi, or D where the current is known, from the moments of angles.

    `slope` is that of the quadratic variation, `times` are the integral times of cos and sin.
    """
    symmetry = moments.space.symmetry
    if slope > BALLISTIC:
        estimate, horizon = infer_effective_of_angles(moments)
        evidence: dict[str, Any] = {"horizon": horizon}
    else:
        found = Combined.of(moments, symmetry, 0)
        estimate, evidence = found.phi, found.evidence()
    return Inference.of(
        estimate,
        moments.groups,
        **evidence,
        integral_times=times,
        quadratic_variation_slope=slope,
        left_after_one_step=moments.left_after_one_step(),
    )


def along(series: TimeSeries, function: Callable[[Samples], Samples]) -> list[Any]:
    """Return a function of the samples for each segment: at once in memory, block by block where it is read so."""
    if series.is_lazy:
        return [mapped(s, function) for s in series.segments]
    return np.split(function(series.stacked()), np.cumsum([len(s) for s in series.segments])[:-1])


def smoothed_score(score: ScoreFit, x: Samples, symmetry: Symmetry, key: jax.Array) -> Samples:
    """Mean of the score at x + noise and, through the mirror of the symmetry, at x - noise.

    A learned score respects a reflection only nearly, and its handedness would show as a circulation.
    """
    x = x.astype(np.float32)
    noise = noise_like(x, score.spread, key=key)
    return 0.5 * (score.function.over(x + noise) + symmetry.mirrored(score.function.over(symmetry.mirrored(x - noise))))


def widening_lags(reach: int, series: TimeSeries) -> np.ndarray:
    """Every lag up to 16, then lags that grow by a tenth each, up to `reach` or a quarter of the longest record."""
    last = max(6, min(reach, max(len(s) for s in series.segments) // 4))
    last = min(last, longest_lag(series.segments))
    growing = np.geomspace(16, max(last, 16), 1 + int(np.ceil(np.log(max(last / 16, 1)) / np.log(1.1))))
    lags = np.unique(np.concatenate([np.arange(17), growing.round().astype(int)]))
    return lags[lags <= last]


def _instantaneous(moments: Moments, symmetry: Symmetry):
    """Return the best combination of Phi(T), from lag 1 on where lag 0 is in doubt, and the evidence."""
    found, witness = Combined.of(moments, symmetry, 0), _signs_of_memory(moments)
    noise, blur = np.zeros(len(witness)), np.zeros(len(witness))
    if witness.any():
        clean, without = found, Combined.of(moments, symmetry, 1)
        too_large, too_small = (_doubts(clean, phi, witness) for phi in (without.phi, without.first))
        # Smooth motion looks like noise to one step, but without lag 0 its mobility is then badly known.
        affordable = without.combination.error <= _NOISY_COST * clean.combination.error
        noise = np.sqrt(np.where(affordable, np.maximum(too_large, 0), 0.0))
        blur = np.where(too_small < 0, np.maximum(_lost_to_blur(moments.correlation.mean()), 0), 0.0)
        found = without if noise.any() or blur.any() else clean
    return found.phi, {**found.evidence(), "measurement_noise": noise, "blur": blur}


def _doubts(clean: "Combined", phi: Callable[[np.ndarray], Matrix], witness: np.ndarray) -> np.ndarray:
    """C(0) less what Phi makes of C(h), per variable, where it is beyond its error; zero elsewhere.

    A mobility that depends on the state makes Phi(T) drift as well; so memory must be a witness, of the same sign.
    """
    moments, symmetry = clean.moments, clean.symmetry
    assert isinstance(moments, Moments)

    def excess_at_lag_zero(weights: np.ndarray) -> np.ndarray:
        change, integral = moments.first_step(weights, symmetry)
        drop = integral @ symmetry.blocks(for_each(phi, weights)) - change
        return np.diagonal(symmetry.joined(drop, clean.by_horizon.shape[-1]), axis1=-2, axis2=-1)

    excess, error = jackknife(OverWeights(excess_at_lag_zero), moments.groups)
    # How much of C(0) - C(h) the quadrature may have missed.
    coarse = moments.phi_by_horizon(np.ones(moments.groups), symmetry, 0, 2)
    missed = moments.dt * np.abs(quadrature_error(clean.by_horizon, coarse)[0])
    doubt = signs_of_doubt(excess, np.hypot(error, np.diagonal(missed)), moments.groups)
    return np.where(doubt * witness > 0, excess, 0.0)


def _signs_of_memory(moments: Moments) -> np.ndarray:
    """Sign of C(2h) - C(h) C(0)^-1 C(h) of each variable beyond its error: positive with noise, negative with blur.

    The past then tells more than the present.
    """
    first = moments.correlation.at(slice(0, 3))

    def memory(weights: np.ndarray) -> np.ndarray:
        now, once, twice = np.moveaxis(first.mean(weights), -3, 0)
        later = once @ np.linalg.pinv(now, rcond=_RANK, hermitian=True) @ once
        return np.diagonal(twice - later, axis1=-2, axis2=-1)

    found, error = jackknife(OverWeights(memory), moments.groups)
    return np.sign(found) * (np.abs(found) > _WITNESS * error)


def _lost_to_blur(correlation: LagMatrices) -> np.ndarray:
    """C(h) C(2h)^-1 C(h), which for linear dynamics is C(0) of the motion, over C(0), less one, of each variable."""
    now, once, twice = correlation[:3]
    return np.diagonal(once @ np.linalg.pinv(twice, rcond=_RANK) @ once) / np.diagonal(now) - 1


@dataclass(frozen=True)
class Combined:
    """The best combination of Phi(T) beyond the lag `start`."""

    moments: "Moments | CircleMoments"
    symmetry: Symmetry
    start: int
    by_horizon: LagMatrices
    combination: Combination

    @classmethod
    def of(cls, moments: "Moments | CircleMoments", symmetry: Symmetry, first: int) -> "Combined":
        tau, everything = moments.tau[first:], np.ones(moments.groups)
        fine, coarse = (moments.phi_by_horizon(everything, symmetry, first, stride) for stride in (1, 2))
        others = left_out(OverWeights(lambda w: moments.phi_by_horizon(w, symmetry, first)), moments.finer)
        return cls(moments, symmetry, first, fine, select_combination(fine, others, coarse, cls.candidates(tau)))

    @staticmethod
    def candidates(tau: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Without lag 0 a parabola reaches too far beyond its horizons: its error is badly known."""
        return candidate_weights(tau[0] + tau[1:], (0, 1, 2) if tau[0] == 0 else (0, 1))

    @property
    def horizons(self) -> OverWeights:
        return OverWeights(lambda weights: self.moments.phi_by_horizon(weights, self.symmetry, self.start))

    @property
    def phi(self) -> OverWeights:
        """Phi for any weighting of the blocks of time."""
        combined = np.trim_zeros(self.combination.weights, "b")
        return OverWeights(lambda weights: np.tensordot(self._up_to(len(combined), weights), combined, (1, 0)))

    @property
    def first(self) -> OverWeights:
        """Phi of the first horizon alone, whose sampling error is least."""
        return OverWeights(lambda weights: self._up_to(1, weights)[:, 0])

    def _up_to(self, reach: int, weights: np.ndarray) -> np.ndarray:
        """Phi(T) at the first horizons, as many as `reach`, for many weightings."""
        return self.moments.phi_by_horizon(weights, self.symmetry, self.start, reach=reach)

    def evidence(self) -> dict[str, Any]:
        """Return Phi(T) with its errors, how they were combined, and how that does on parts held out."""
        size = float(np.linalg.norm(np.tensordot(self.combination.weights, self.by_horizon, 1)))
        tau = self.moments.tau[self.start :]
        chosen, unbiased = [self.combination.weights], self.candidates(tau)[-1][1]
        (held_out,) = held_out_error(self.horizons, self.moments.groups, chosen, unbiased)
        horizon = HorizonEvidence(
            horizons=tau[1:],
            phi=self.by_horizon,
            standard_error=jackknife(self.horizons, self.moments.groups)[1],
            held_out_error=float(held_out / size),
            held_out_expected=self.combination.expected_held_out / size,
            **self.combination.evidence(size),
        )
        return {"horizon": horizon, "discretisation_bias": self.combination.bias}


def _before_projection(infer, moments: Moments, symmetry: Symmetry) -> float | None:
    """Return |Phi_A| / |Phi_S| inferred with translations alone, which reflections average away."""
    translations = symmetry.without_reflections()
    if translations is None:
        return None
    phi = infer(moments, translations)[0](np.ones(moments.groups))
    return float(np.linalg.norm(phi - phi.T) / np.linalg.norm(phi + phi.T))
