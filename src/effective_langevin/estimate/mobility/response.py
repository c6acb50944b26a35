"""The integrated response: a mobility without derivative, partition or simulation, right at coarse sampling.

For a stationary diffusion with constant mobility, at every tau,

    d/dtau C(tau) = G(tau) Phi,   G(tau) = < x(t + tau) s(x(t))^T >,   G(0) = -I,

so that (int_0^T G) Phi = C(T) - C(0) for every horizon T. T -> 0 is -dC/dt(0+), T -> infinity is Green-Kubo. If the
mobility depends on the state, Phi(T) drifts with T and only its limit at T -> 0 is the mean mobility <M>. All matrices
are split into the independent blocks of the symmetry, on a ring one per Fourier mode, and solved block by block.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from ..._core import checks
from ..._core.errors import EstimateWarning
from ..._core.types import LagMatrices, Matrix, Samples
from ...data import TimeSeries
from ...statistics.integral_time import error_groups, integral_times
from ...statistics.lags import lagged_moments
from ...statistics.resampling import jackknife, jackknife_error, left_out
from ..circles import Circles
from ..score import ScoreFit
from ..score.calibration import perturbed
from ..symmetry import Symmetry, Translations, TranslationsAndReflections
from .base import Inference
from .circles import CircleMoments, where_the_rise_ends
from .effective import effective
from .horizons import Combination, best_combination, candidate_weights, held_out_error, quadrature_error
from .moments import Moments

_SIGNIFICANT = 4.0
_NOISY_COST = 3.0
_BALLISTIC = 0.3
_REACH = 3.0
_UNSTABLE = 0.3
_STILL_RISING = 0.1


@dataclass(frozen=True)
class IntegratedResponse:
    """The combination of all horizons up to `lags` samples that has the least estimated error.

    The score is evaluated on the data and scaled so that G(0) = -I holds in the sample, which removes the first-order
    effect of the noise level and most of the sampling error. The integral is that of exponentials with the rates of the
    process and a spline for the rest (`quadrature`). Phi is the limit T -> 0 of a polynomial through Phi(T), whose
    degree and reach are those with the least sum of sampling error, trend and error of quadrature (`horizons`). Where
    C(0) exceeds what Phi makes of C(h) there is measurement noise, new in every sample: lag 0 is then left out.

    A ballistic series (smooth at short times, its quadratic variation growing faster than time) has no such limit.
    Phi(T) then rises with T from zero; the effective Phi is taken where the rise ends, in each block on its own, or
    where the response G changes sign: beyond that the motion swings back, and no mobility follows. A series that is
    smooth beneath measurement noise is treated alike, with lag 0 left out. Where the noise level exceeds the spread of
    the data in some direction, clean samples say nothing about the score there: G is then evaluated at x + sigma z,
    averaged over z and -z, and Phi gets its typical value in such directions.

    Of angles it is the response of their cos and sin that is followed (`circles`).
    """

    lags: int | None = None

    def __post_init__(self):
        if self.lags is not None:
            checks.integer_at_least("lags", self.lags, 6)

    def knows_angles(self, periods: Sequence[float | None]) -> bool:
        """Whether the mobility can be one of angles: of any."""
        return True

    def infer(self, series: TimeSeries, score: ScoreFit, *, symmetry: Symmetry, key: jax.Array) -> Inference:
        """The score on the data, then what follows from both."""
        at_clean = score.resolved or smoothness_of(series) <= _BALLISTIC
        samples = series.stacked()
        values = score.function.over(samples) if at_clean else smoothed_score(score, samples, symmetry, key)
        scores = np.split(values, np.cumsum([len(s) for s in series.segments])[:-1])
        found = self.infer_from(series, scores, symmetry, score.spread, at_clean)
        if doubt := in_doubt(found.diagnostics):
            warnings.warn(doubt, EstimateWarning, stacklevel=4)
        return found

    def infer_from(
        self, series: TimeSeries, scores: list[Samples], symmetry: Symmetry, spread: Matrix, at_clean: bool = True
    ) -> Inference:
        """The regime, then correlations and responses on one set of lags, then one Phi out of all horizons.

        `spread` is that of the noise the score was learned with, a symmetric square root of its covariance.
        """
        if isinstance(symmetry, Circles):
            return self._of_angles(series, scores, symmetry)
        times, smoothness, beneath = (
            integral_times(series.segments, series.dt),
            smoothness_of(series),
            smoothness_beneath_noise(series),
        )
        noisy = smoothness < -_BALLISTIC and beneath > _BALLISTIC
        ballistic, smoothness = (True, beneath) if noisy else (smoothness > _BALLISTIC, smoothness)
        lags = self._lags(series, times, ballistic)
        moments = Moments.of(series, scores, lags, error_groups(series.segments, series.dt, times), at_clean)
        if not ballistic:
            moments = moments.with_rates(series, scores)
        infer = partial(effective, spread=spread, first=int(noisy)) if ballistic else _instantaneous
        estimate, evidence = infer(moments, symmetry)
        return Inference.of(
            estimate,
            moments.groups,
            **{"horizon": (series.dt * lags[1:]).tolist(), **evidence},
            integral_times=times.tolist(),
            quadratic_variation_slope=smoothness,
            **_before_projection(infer, moments, symmetry),
        )

    def _lags(self, series: TimeSeries, times: np.ndarray, ballistic: bool) -> np.ndarray:
        """Far and widening for smooth motion, otherwise an even number up to half the shortest integral time."""
        if ballistic:
            return widening_lags(self.lags or int(max(_REACH * times.max() / series.dt, 16)), series)
        return np.arange(2 * ((self.lags or int(np.clip(0.5 * times.min() / series.dt, 8, 24))) // 2) + 1)

    def _of_angles(self, series: TimeSeries, scores: list[Samples], circles: Circles) -> Inference:
        """The same from the smooth functions on the circles, whose regime and integral times count."""
        mean = circles.embedded(series.stacked()).mean(axis=0)
        smooth = TimeSeries([circles.embedded(s) - mean for s in series.segments], series.dt)
        times, smoothness = integral_times(smooth.segments, smooth.dt), smoothness_of(smooth)
        lags = self._lags(smooth, times, smoothness > _BALLISTIC)
        moments = CircleMoments.of(series, scores, circles, lags, error_groups(smooth.segments, smooth.dt, times))
        if smoothness > _BALLISTIC:
            estimate, evidence = where_the_rise_ends(moments)
        else:
            found = _Combined.of(moments, circles, 0)
            estimate, evidence = found.phi, found.evidence()
        found_in = {"integral_times": times.tolist(), "quadratic_variation_slope": smoothness}
        found_in["left_after_one_step"] = moments.left_after_one_step().tolist()
        return Inference.of(estimate, moments.groups, **{"horizon": moments.tau[1:].tolist(), **evidence}, **found_in)


def in_doubt(evidence: dict[str, Any]) -> str:
    """That no horizon is stable, and what was taken all the same; else nothing."""
    rising = evidence.get("rising_share", 0.0)
    if rising > _STILL_RISING:
        return (
            f"Phi(T) still rises at the longest horizon, T = {evidence['horizon'][-1]:g}, in directions that hold "
            f"{100 * rising:.0f} % of the variance: the effective mobility was taken there and may be too small. "
            "Allow longer horizons by `IntegratedResponse(lags=...)`, or give a longer series."
        )
    error = float(np.linalg.norm([evidence.get(f"{part}_error", 0.0) for part in ("sampling", "trend", "quadrature")]))
    if error > _UNSTABLE:
        return (
            "Phi(T) is stable over no range of horizons: the combination with the least error was taken, uncertain by "
            f"{100 * error:.0f} % of |Phi|. Give a longer or more finely sampled series."
        )
    return ""


def smoothed_score(score: ScoreFit, x: Samples, symmetry: Symmetry, key: jax.Array) -> Samples:
    """Mean of the score at x + noise and, through the mirror of the symmetry, at x - noise.

    A learned score respects a reflection only nearly, and its handedness would show as a circulation.
    """
    x = x.astype(np.float32)
    noise = perturbed(np.zeros_like(x), score.spread, key=key)
    return 0.5 * (score.function.over(x + noise) + symmetry.mirrored(score.function.over(symmetry.mirrored(x - noise))))


def widening_lags(reach: int, series: TimeSeries) -> np.ndarray:
    """Every lag up to 16, then lags that grow by a tenth each, up to `reach` or a quarter of the longest record."""
    last = max(6, min(reach, max(len(s) for s in series.segments) // 4))
    growing = np.geomspace(16, max(last, 16), 1 + int(np.ceil(np.log(max(last / 16, 1)) / np.log(1.1))))
    lags = np.unique(np.concatenate([np.arange(17), growing.round().astype(int)]))
    return lags[lags <= last]


def smoothness_of(series: TimeSeries) -> float:
    """The slope of the quadratic variation of a series."""
    return quadratic_variation_slope(lagged_moments(series.segments, series.segments, [0, 1, 2]).mean())


def smoothness_beneath_noise(series: TimeSeries) -> float:
    """The slope of the quadratic variation from lag 1 on, where noise that is new in every sample does not show.

    The smaller of those over two to four and over four to eight lags; minus infinity where a record is too short.
    """
    if max(len(s) for s in series.segments) < 16:
        return -np.inf
    moments = lagged_moments(series.segments, series.segments, [1, 3, 5, 9]).mean()
    decay = np.trace(moments[0] - moments[1:], axis1=1, axis2=2)
    return float(np.min(np.log2(decay[1:] / decay[:-1]) - 1)) if (decay > 0).all() else -np.inf


def quadratic_variation_slope(correlation: LagMatrices) -> float:
    """d log(<|dx|^2> / h) / d log h between one and two lags: about 0 for a diffusion, 1 for smooth motion."""
    decay = np.trace(correlation[0] - correlation[1:3], axis1=1, axis2=2)
    return float(np.log2(decay[1] / decay[0]) - 1)


def _instantaneous(moments: Moments, symmetry: Symmetry):
    """Phi of a diffusive series: the best combination of Phi(T); from lag 1 on where there is measurement noise."""
    clean, noisy = (_Combined.of(moments, symmetry, first) for first in (0, 1))
    nugget, error = jackknife(lambda weights: _nugget(moments, symmetry, weights, noisy.phi(weights)), moments.groups)
    tolerance = _SIGNIFICANT * np.hypot(error, _first_step_error(clean))
    variance = np.where(np.diagonal(nugget) > np.diagonal(tolerance), np.diagonal(nugget), 0.0)
    # Smooth motion looks like noise to one step, but without lag 0 its mobility is then badly known.
    if not variance.any() or noisy.combination.error > _NOISY_COST * clean.combination.error:
        return clean.phi, {**clean.evidence(), "measurement_noise": np.zeros(len(nugget)).tolist()}
    return noisy.phi, {**noisy.evidence(), "measurement_noise": np.sqrt(variance).tolist()}


@dataclass(frozen=True)
class _Combined:
    """The best combination of Phi(T) beyond the lag `first`."""

    moments: "Moments | CircleMoments"
    symmetry: Symmetry
    first: int
    by_horizon: LagMatrices
    others: np.ndarray
    combination: Combination

    @classmethod
    def of(cls, moments: "Moments | CircleMoments", symmetry: Symmetry, first: int) -> "_Combined":
        tau, everything = moments.tau[first:], np.ones(moments.groups)
        fine, coarse = (moments.phi_by_horizon(everything, symmetry, first, stride) for stride in (1, 2))
        others = left_out(lambda weights: moments.phi_by_horizon(weights, symmetry, first), moments.groups)
        best = best_combination(fine, others, coarse, tau[0] + tau[1:])
        return cls(moments, symmetry, first, fine, others, best)

    def phi(self, weights: np.ndarray) -> Matrix:
        """Phi for any weighting of the blocks of time."""
        by_horizon = self.moments.phi_by_horizon(weights, self.symmetry, self.first)
        return np.tensordot(self.combination.weights, by_horizon, 1)

    def evidence(self) -> dict[str, Any]:
        """Phi(T) with its errors, and how they were combined."""
        phi = np.tensordot(self.combination.weights, self.by_horizon, 1)
        return {
            "horizon": self.moments.tau[self.first + 1 :].tolist(),
            "phi_by_horizon": self.by_horizon.tolist(),
            "sampling_error_by_horizon": jackknife_error(self.others).tolist(),
            "discretisation_bias": self.combination.bias.tolist(),
            **self.combination.described(float(np.linalg.norm(phi))),
            **self._cross_validated(float(np.linalg.norm(phi))),
        }

    def _cross_validated(self, size: float) -> dict[str, float]:
        """How far the combination is off on parts of the series held out, found and expected, relative to |Phi|."""
        tau = self.moments.tau[self.first :]
        unbiased = candidate_weights(tau[0] + tau[1:])[-1][1]
        (found,) = held_out_error(
            lambda weights: self.moments.phi_by_horizon(weights, self.symmetry, self.first),
            self.moments.groups,
            [self.combination.weights],
            unbiased,
        )
        return {
            "held_out_error": float(found / size),
            "held_out_expected": self.combination.expected_held_out / size,
        }


def _nugget(moments: Moments, symmetry: Symmetry, weights: np.ndarray, phi: Matrix) -> Matrix:
    """C(0) less what Phi makes of C(h): the covariance of noise that is new in every sample."""
    change, integral, _ = moments.curves(weights, symmetry)
    drop = integral[1] @ symmetry.blocks(phi) - change[1]
    return symmetry.joined(drop, len(phi))


def _first_step_error(clean: _Combined) -> Matrix:
    """How much of C(0) - C(h) the quadrature may have missed."""
    coarse = clean.moments.phi_by_horizon(np.ones(clean.moments.groups), clean.symmetry, 0, 2)
    return clean.moments.dt * np.abs(quadrature_error(clean.by_horizon, coarse)[0])


def _before_projection(infer, moments: Moments, symmetry: Symmetry) -> dict[str, float]:
    """|Phi_A| / |Phi_S| of the mobility inferred with translations alone: what the reflections average away."""
    if not isinstance(symmetry, TranslationsAndReflections):
        return {}
    phi = infer(moments, Translations(symmetry.channels))[0](np.ones(moments.groups))
    return {"antisymmetry_before_projection": float(np.linalg.norm(phi - phi.T) / np.linalg.norm(phi + phi.T))}
