"""Cross-check of a mobility: other estimators, and every second or fourth sample only.

A right estimate does not change by more than the stated errors at the same interval and at twice that interval.
"""

import warnings
from contextlib import suppress

import jax
import numpy as np

from ..._core.errors import EstimateWarning
from ..._core.types import Samples
from ...data import TimeSeries
from ...data.lazy import MOST_NUMBERS
from ...statistics.lags import longest_lag
from ..score import ScoreFit
from ..score.calibration import noise_like
from ..space import StateSpace
from .base import Inference, Mobility, MobilityStrategy
from .correlation import CorrelationFit, LogCorrelation, QuadraticVariation
from .evidence import Agreement, Estimate
from .response import IntegratedResponse

INTERVALS = (1, 2, 4)
ESTIMATORS = (IntegratedResponse(), QuadraticVariation(), CorrelationFit(), LogCorrelation())
_MOST_SAMPLES = 200_000
_ENOUGH_LAGS = 374  # a record of 500 samples
_EFFECTIVE, _STEEP = 0.5, 100.0


def cross_check(series: TimeSeries, score: ScoreFit, mobility: Mobility, space: StateSpace) -> Agreement:
    """Compare the mobility with other estimators and with coarser sampling of the same standardised series.

    The mobility that is used comes first; the others see only the beginning of a long series. A ballistic series has no
    mobility at short times to agree on, and one that is constant in some direction has none there.
    """
    used = Estimate(mobility.method, series.dt, mobility.matrix, mobility.standard_error, mobility.discretisation_error)
    some = series.excerpt().segments[0]
    spread = np.linalg.eigvalsh(np.cov(some.T).reshape(series.dimension, series.dimension))
    if mobility.evidence.ballistic or not spread.min() > 1e-9 * spread.max():
        return Agreement((used,))
    beginning = _beginning(series)
    values = score.function.over(beginning.stacked())
    others = _estimates(beginning, score, values, space, known=used.estimator)
    noisier = _with_more_noise(beginning, score, values, space)
    return Agreement((used, *others, *noisier), _disagreement(used, others))


def _estimates(series: TimeSeries, score: ScoreFit, values: Samples, space: StateSpace, known: str) -> list[Estimate]:
    """Every estimator at every interval that leaves enough samples in a record, but that known at the first."""
    segments, scores, found = list(series.segments), _split_like(series, values), []
    for every in INTERVALS:
        if longest_lag(segments) < _ENOUGH_LAGS * every:
            continue
        coarse, own = series, scores
        if every > 1:
            coarse = TimeSeries(_interleaved(segments, every), series.dt * every)
            own = _interleaved(scores, every)
        seen = {}
        for strategy in (e for e in ESTIMATORS if e.supports(space)):
            if every > 1 or type(strategy).__name__ != known:
                # A comparison that has no answer, with variables that nearly repeat each other, is left out.
                with suppress(np.linalg.LinAlgError):
                    seen[type(strategy).__name__] = _asked(strategy, coarse, own, score, space)
        # Smooth motion may be all that a coarser sampling sees; its effective mobility is another quantity.
        found += [
            _estimate(name, coarse.dt, inference)
            for name, inference in seen.items()
            if not inference.evidence.ballistic
        ]
    return found


def _with_more_noise(series: TimeSeries, score: ScoreFit, values: Samples, space: StateSpace) -> list[Estimate]:
    """Estimate Phi with sqrt 2 times the smoothing width, to show its effect."""
    if score.noise_level == 0 or longest_lag(series.segments) < _ENOUGH_LAGS:
        return []
    blurred, trusted = blurred_further(score, series.stacked(), values, key=jax.random.key(1))
    if not trusted:
        return []
    inference = IntegratedResponse().infer_from(series, _split_like(series, blurred), space, score.spread)
    return [_estimate("IntegratedResponse, smoothing width x 1.41", series.dt, inference)]


def blurred_further(
    score: ScoreFit, x: Samples, here: Samples, *, key: jax.Array, pairs: int = 4
) -> tuple[Samples, bool]:
    """The score of p_{sqrt 2 sigma} from that of p_sigma, which is `here` at x, and whether it can be trusted.

    p_{sqrt 2 sigma} is p_sigma blurred once more, so that its score at x is the mean of s_sigma at x + noise, weighted
    by the density there, which is known relative to that at x from the score on the way: ln p(b) - ln p(a) is
    (s(a) + s(b)) (b - a) / 2 to third order.
    """
    x = x.astype(np.float32)
    total, weights = np.zeros(x.shape), []
    for pair in range(pairs):
        noise = noise_like(x, score.spread, key=jax.random.fold_in(key, pair))
        for step in (noise, -noise):
            there = score.function.over(x + step)
            weights.append(np.exp(np.clip(0.5 * np.sum((here + there) * step, axis=1, dtype=float), -_STEEP, _STEEP)))
            total += weights[-1][:, None] * there
    whole, squares = np.sum(weights, axis=0), np.sum(np.square(weights), axis=0)
    return total / whole[:, None], bool(np.mean(whole**2 / squares) > _EFFECTIVE * len(weights))


def _asked(
    strategy: MobilityStrategy, series: TimeSeries, scores: list[np.ndarray], score: ScoreFit, space: StateSpace
) -> Inference:
    """What an estimator says; the score on the samples is known already to the one that needs it."""
    if isinstance(strategy, IntegratedResponse):
        return strategy.infer_from(series, scores, space, score.spread)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        return strategy.infer(series, score, space=space, key=jax.random.key(0))


def _estimate(name: str, dt: float, inference: Inference) -> Estimate:
    bias = inference.evidence.discretisation_bias
    error = np.zeros_like(inference.phi) if bias is None else np.abs(bias)
    return Estimate(name, dt, inference.phi, inference.standard_error, error)


def _beginning(series: TimeSeries) -> TimeSeries:
    """Whole segments from the start, and the beginning of the one after them, up to a bounded number of samples."""
    kept, left = [], min(_MOST_SAMPLES, MOST_NUMBERS // 2 // series.dimension) if series.is_lazy else _MOST_SAMPLES
    if series.n_samples <= left and not series.is_lazy:
        return series
    for segment in series.segments:
        if left > 0:
            kept.append(segment[:left])
            left -= len(segment)
    return TimeSeries(kept, series.dt)


def _split_like(series: TimeSeries, values: Samples) -> list[Samples]:
    return np.split(values, np.cumsum([len(s) for s in series.segments])[:-1])


def _interleaved(segments: list[np.ndarray], every: int) -> list[np.ndarray]:
    """Every `every`-th sample, from each of the first samples on; only what is left alone is lost."""
    pieces = (segment[start::every] for segment in segments for start in range(every))
    return [piece for piece in pieces if len(piece) > 1]


def _disagreement(chosen: Estimate, others: list[Estimate]) -> str:
    """A sentence about the estimate that differs most from the chosen one, in units of the stated errors.

    At twice the interval only the chosen kind of estimator is held to its errors: the others are known to be biased
    there. At four times it says little (`Agreement.contradicting`).
    """
    same_interval = [e for e in others if np.isclose(e.dt, chosen.dt)]
    worst = max(same_interval + Agreement((chosen, *others)).contradicting, key=chosen.excess, default=None)
    if worst is None or chosen.excess(worst) <= 1:
        return ""
    apart = f"{100 * chosen.distance(worst) / np.linalg.norm(chosen.phi):.2g} %, more than its standard errors explain"
    if worst in same_interval:
        return (
            f"Estimators of the mobility disagree: {worst.estimator} differs from {chosen.estimator} by {apart}. "
            "The mobility may depend on the state, the process may have memory, or the score may be off."
        )
    change = f"Taking every second sample only changes the mobility by {apart}"
    if np.trace(worst.phi) > np.trace(chosen.phi):
        return (
            f"{change}: it grows with the sampling interval, as with inertia or motion blur. Longer lags are nearer to "
            "the truth, not more frequent samples: try `series.thin(2)`. Intervals hold both."
        )
    return (
        f"{change}: it falls with the sampling interval. The sampling may be too coarse for the fastest motion, the "
        "mobility may depend on the state, or the process has memory. Sample more often if you can. Intervals hold "
        "both."
    )
