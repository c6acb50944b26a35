"""The regime: how the series moves over one sampling interval, decided from the evidence on short times.

Noise on each sample makes C(0) larger, motion blur makes it smaller than lags >= 1 extrapolate to (`nugget`). Motion
that is over within one sampling interval makes it larger, too. Only noise and blur make the past informative once the
present is known, with a positive and a negative sign (see `markov`), which tells them from other motion.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri

from .._core.format import listed, measured, percent
from .._core.types import LagMatrices
from ..statistics.nugget import Nugget, extrapolate_to_zero, signs_of_doubt
from ..statistics.regime import BALLISTIC, is_smooth, least_eigenvalue, variation_slopes
from ..statistics.resampling import FALSE_ALARM, critical
from . import thresholds
from .finding import Finding, Level, Quantity
from .markov import CellMemory, LinearMemory
from .moments import SeriesMoments, autocorrelation


@dataclass(frozen=True, eq=False)
class Regime:
    """The name of the regime and what it rests on.

    `slopes` are those of log(QV / h) at `lags` that double, per variable and (last) of all together; `coarseness` is dt
    over the fastest time seen, per variable and (last) over all directions.
    """

    name: str
    white: bool
    noisy: Bool[np.ndarray, " var"]
    blurred: Bool[np.ndarray, " var"]
    smooth: Bool[np.ndarray, " var"]
    lags: np.ndarray
    slopes: Float[np.ndarray, "octave var_and_all"]
    slope_errors: Float[np.ndarray, "octave var_and_all"]
    nugget: Nugget
    coarseness: Float[np.ndarray, " var_and_all"]
    coarseness_error: Float[np.ndarray, " var_and_all"]


def decide_regime(moments: SeriesMoments, linear: LinearMemory, cells: CellMemory | None) -> Regime:
    """Decide in the order white noise, noise, blur, smooth motion, coarse sampling: each masks the later ones."""
    lags, slopes, slope_errors = measure_variation(moments)
    nugget = measure_nugget(moments)
    by_variable = slopes[0, :-1]
    smooth, all_smooth = by_variable > thresholds.CLEARLY_SMOOTH, is_smooth(moments.at(np.arange(4)).mean())
    doubt = doubt_lag_zero(moments, nugget, linear, cells)
    noisy, blurred = doubt > 0, (doubt < 0) & ~smooth & (not all_smooth)
    noise = np.where(noisy | blurred, np.clip(nugget.variance, None, 0.9), 0.0)
    coarseness, error = step_over_fastest(moments, noise, by_variable > BALLISTIC, all_smooth)
    white = is_white(moments)
    if white:
        name = "white noise / unresolved"
    elif noisy.any():
        name = "measurement noise"
    elif blurred.any():
        name = "motion blur"
    elif all_smooth:
        name = "mixed" if (by_variable < -2 * slope_errors[0, :-1]).any() else "ballistic"
    elif smooth.any():
        name = "mixed"
    else:
        name = "coarse" if coarseness.max() > thresholds.COARSE[1] else "diffusive"
    return Regime(name, white, noisy, blurred, smooth, lags, slopes, slope_errors, nugget, coarseness, error)


def measure_variation(moments: SeriesMoments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lags 1, 2, 4, ... up to four integral times of the slowest variable, the slopes between them, their errors."""
    longest = max(len(s) for s in moments.excerpt.segments) // 2 if moments.series.is_lazy else moments.lags[-1]
    last = min(4 * moments.times.max() / moments.series.dt, moments.lags[-1], longest)
    lags = 2 ** np.arange(max(2, int(np.log2(max(last, 4))) + 1))
    lags = lags[lags <= moments.lags[-1]]
    return lags, *variation_slopes(moments.excerpt.segments, lags, moments.groups)


def measure_nugget(moments: SeriesMoments) -> Nugget:
    """Variance at lag 0 that no other lag has."""
    consecutive = int(np.sum(moments.lags == np.arange(len(moments.lags))))
    return extrapolate_to_zero(moments.jackknifed_acf, consecutive)


def is_white(moments: SeriesMoments) -> bool:
    """Whether nothing at lag 1 correlates with anything, within errors."""
    value, error = moments.jackknifed(lambda c: c[1] / np.sqrt(np.outer(np.diag(c[0]), np.diag(c[0]))), 0, 1)
    # The error of a correlation of white samples is known; it is larger if their spread varies.
    error = np.maximum(error, 1 / np.sqrt(moments.series.n_samples))
    return bool((np.abs(value) < -ndtri(0.5 * FALSE_ALARM / value.size) * error).all())


def doubt_lag_zero(
    moments: SeriesMoments, nugget: Nugget, linear: LinearMemory, cells: CellMemory | None
) -> Int[np.ndarray, " var"]:
    """1 for variables with noise on each sample, -1 for blurred ones, else 0.

    C(0) differs from its extrapolation, and the past tells more than the present, with the sign that belongs to it.
    Without a partition, a nonlinear process sampled coarsely would pass for noise; so the sampling must be fine as
    well. Blur must show linearly, too.
    """

    def remembered(memory: LinearMemory) -> np.ndarray:
        value, error = np.diag(memory.value[0]), np.diag(memory.error[0])
        return signs_of_doubt(value, error, moments.groups, thresholds.LEAST_MEMORY)

    doubt = signs_of_doubt(nugget.variance, nugget.error, moments.groups, thresholds.LEAST_NOISE)
    doubt = np.where(doubt == remembered(cells or linear), doubt, 0)
    doubt = np.where((doubt > 0) | (remembered(linear) < 0), doubt, 0)
    if cells is not None:
        return doubt
    rho, coarse = moments.acf[1:4], thresholds.COARSE[0]
    decay = np.maximum(-np.diff(rho, axis=0), 1e-6)
    fine = (rho[0] > 1 - coarse) | (nugget.variance > 0.5 * (1 - rho[0]))
    return np.where((doubt < 0) | fine & (np.log(decay[0] / decay[1]) < coarse), doubt, 0)


def step_over_fastest(
    moments: SeriesMoments, noise: np.ndarray, smooth: Bool[np.ndarray, " var"], all_smooth: bool
) -> tuple[np.ndarray, np.ndarray]:
    """dt over the fastest time seen, per variable and last of all directions together, with errors.

    Of a variable: the larger of -ln rho(1) and ln (rho(0) - rho(1)) / (rho(1) - rho(2)), the decay of the curve and of
    its slope; both are dt / tau for an exponential. Of a smooth one: sqrt(2 - 2 rho(1)), from rho = 1 - tau^2 / 2. Of
    all: the same of the eigenvalue of C(h) C(0)^-1 of least modulus, in the directions that hold 99 % of the variance.
    `noise` is the share of measurement noise to take off C(0) first.
    """

    def ratios(correlation: LagMatrices) -> np.ndarray:
        correlation = correlation.copy()
        correlation[0] -= np.diag(noise * np.diag(correlation[0]))
        rho = np.clip(autocorrelation(correlation), 1e-3, None)
        first, second = np.maximum(-np.diff(rho, axis=0), 1e-6)
        rough = np.maximum(-np.log(rho[1]), np.log(first / second))
        least = least_eigenvalue(correlation[0], correlation[1])
        overall = np.sqrt(2 * max(1 - least, 0.0)) if all_smooth else -np.log(least)
        return np.append(np.where(smooth, np.sqrt(np.maximum(2 - 2 * rho[1], 0)), rough), overall)

    return moments.jackknifed(ratios, 0, 1, 2)


# Level, meaning and advice of each regime.
_REGIMES: dict[str, tuple[Level, str, str]] = {
    "diffusive": ("ok", "Over one sampling interval the series moves like a diffusion.", ""),
    "ballistic": (
        "warning",
        "Over one sampling interval the series is smooth: it moves in straight lines, not by diffusion.",
        "The diffusion at h -> 0 is undefined. `el.IntegratedResponse()`, the default, takes an effective mobility at "
        "a longer horizon, here {plateau} or more; or sample every {plateau} with `series.thin({stride})`.",
    ),
    "mixed": (
        "warning",
        "Some variables move smoothly over one sampling interval ({smooth}), the others do not.",
        "The noise acts on some variables only. Leave out the smooth variables, or sample every {plateau} with "
        "`series.thin({stride})`.",
    ),
    "measurement noise": (
        "warning",
        "Over one sampling interval, noise on each sample hides the motion.",
        "See `measurement noise`. `el.QuadraticVariation()` would measure the noise of the instrument.",
    ),
    "motion blur": (
        "note",
        "Each sample is a mean over a part of the sampling interval: it moves less than the motion itself.",
        "See `motion blur`. `el.QuadraticVariation()` would give too small a diffusion.",
    ),
    "coarse": (
        "note",
        "Much of the motion happens between two samples.",
        "See `sampling interval`. Do not use `el.QuadraticVariation()`.",
    ),
    "white noise / unresolved": (
        "stop",
        "Successive samples are uncorrelated: this is white noise, or its memory is shorter than dt.",
        "There are no dynamics to fit. Sample more often.",
    ),
}


def describe_regime(moments: SeriesMoments, found: Regime) -> Finding:
    """Say what the slope of the quadratic variation means."""
    series, unit = moments.series, moments.series.time_unit
    slopes, errors = found.slopes[:, -1], found.slope_errors[:, -1]
    slower = found.lags[1:][slopes < BALLISTIC]
    stride = int(slower[0] if len(slower) else found.lags[-1])
    plateau = float(stride) * series.dt
    numbers = {
        "slope": Quantity(slopes[0], errors[0]),
        "slopes": Quantity(slopes, errors),
        "lags": Quantity(found.lags[:-1] * series.dt, unit=unit),
        "slope_by_variable": Quantity(found.slopes[0, :-1], found.slope_errors[0, :-1]),
        "smooth_below": Quantity(plateau if found.name in ("ballistic", "mixed") else 0.0, unit=unit),
    }
    level, text, advice = _REGIMES[found.name]
    smooth = listed([name for name, is_smooth in zip(series.names, found.smooth) if is_smooth])
    meaning = (
        f"{text.format(smooth=smooth)} Slope of log(QV/h) at the shortest lags: {measured(slopes[0], errors[0])} "
        "(0 diffusion, 1 smooth, -1 noise)."
    )
    advice = advice.format(plateau=measured(plateau, None, unit), stride=stride)
    return Finding("regime", level, meaning, advice, numbers)


def check_measurement_noise(moments: SeriesMoments, found: Regime) -> Finding:
    """Give the noise on each sample, in per cent of the standard deviation."""
    nugget, names = found.nugget, moments.series.names
    spread, error = nugget.spread
    numbers = {
        "noise_percent_of_std": Quantity(100 * spread, 100 * error),
        "noise_std": Quantity(spread * moments.units.std, error * moments.units.std),
        "missing_variance": Quantity(nugget.variance, nugget.error),
        "noisy": Quantity(found.noisy),
    }
    if found.noisy.any():
        worst = np.flatnonzero(found.noisy)[np.argsort(-spread[found.noisy])]
        sizes = listed([f"{names[i]} {percent(float(spread[i]), float(error[i]))}" for i in worst])
        meaning = (
            f"Each sample carries independent noise, in per cent of the standard deviation: {sizes}. C(tau) "
            "extrapolated to zero falls short of C(0) by that much."
        )
        advice = (
            "`el.IntegratedResponse()`, the default, leaves out lag 0 by itself; so does "
            "`el.CorrelationFit(skip_zero=True)`. Motion much faster than dt would look the same."
        )
        return Finding("measurement noise", "warning", meaning, advice, numbers)
    short = (nugget.variance > critical(moments.groups, len(names)) * nugget.error) & (nugget.variance < 1)
    if found.white:
        meaning = "White noise and measurement noise look the same: the whole series may be measurement noise."
        return Finding("measurement noise", "ok", meaning, "", numbers)
    if short.any():
        meaning = (
            f"No sign of measurement noise, but up to {percent(float(nugget.variance[short].max()))} of the variance "
            "decays within one sampling interval: motion faster than dt."
        )
        return Finding("measurement noise", "ok", meaning, "See `sampling interval`.", numbers)
    limit = float(np.sqrt(np.maximum(nugget.variance, 0) + 2 * nugget.error).max())
    meaning = f"No sign of measurement noise: below {percent(limit)} of the standard deviation."
    return Finding("measurement noise", "ok", meaning, "", numbers)


def check_motion_blur(moments: SeriesMoments, found: Regime) -> Finding:
    """Give what C(0) lacks of its extrapolation from lags >= 1, in per cent of C(0)."""
    names, lost, error = moments.series.names, -found.nugget.variance, found.nugget.error
    numbers = {"lost_variance": Quantity(lost, error), "blurred": Quantity(found.blurred)}
    if found.blurred.any():
        sizes = [f"{n} {percent(lost[i], error[i])}" for i, n in enumerate(names) if found.blurred[i]]
        meaning = (
            f"Motion blur: C(0) lies below its extrapolation from longer lags, in per cent of C(0): {listed(sizes)}. "
            "Each sample is a mean over an exposure, or the motion has inertia shorter than dt."
        )
        advice = (
            "`el.IntegratedResponse()`, the default, leaves out lag 0 by itself. The model is that of the observed "
            "variable; `model.mobility.of_motion` is the mobility of the motion beneath. Sampling more often does not "
            "help: a shorter exposure does, or longer lags."
        )
        return Finding("motion blur", "note", meaning, advice, numbers)
    if found.smooth.any() or found.white:
        return Finding("motion blur", "ok", "Cannot tell: blur does not show beside this motion.", "", numbers)
    most = float((lost + 2 * error).max())
    size = f"below {percent(most)} of the variance" if most > 0 else "C(0) is not below its extrapolation"
    return Finding("motion blur", "ok", f"No sign of motion blur: {size}.", "", numbers)


def check_sampling_interval(moments: SeriesMoments, found: Regime) -> Finding:
    """Compare dt with the fastest time seen."""
    series, unit = moments.series, moments.series.time_unit
    worst = int(np.argmax(found.coarseness))
    value, error = float(found.coarseness[worst]), float(found.coarseness_error[worst])
    numbers = {
        "dt": Quantity(series.dt, unit=unit),
        "dt_over_fastest_time": Quantity(found.coarseness[:-1], found.coarseness_error[:-1]),
        "dt_over_fastest_direction": Quantity(found.coarseness[-1], found.coarseness_error[-1]),
        "dt_over_integral_time": Quantity(
            series.dt / moments.times, moments.time_errors * series.dt / moments.times**2
        ),
    }

    def finding(level: Level, meaning: str, advice: str = "") -> Finding:
        return Finding("sampling interval", level, f"dt = {measured(series.dt, None, unit)} {meaning}", advice, numbers)

    if found.white:
        return finding("stop", "is longer than any memory in the series.", "Sample at least ten times more often.")
    if value <= 3 * error:
        words = f"is short compared with every time scale seen (ratio {measured(value, error)})"
        return finding("ok", f"{words}. That is fine.")
    fastest = measured(series.dt / value, series.dt * error / value**2, unit)
    who = series.names[worst] if worst < series.dimension else "the fastest direction"
    meaning = f"is {measured(value, error)} of the fastest time scale seen, {fastest} ({who})."
    note, warning = thresholds.COARSE
    if value <= note:
        return finding("ok", f"{meaning} That is fine.")
    if found.name == "ballistic":
        advice = "An effective model over a longer horizon needs no more. For the smooth motion, sample more often."
        return finding("note", f"{meaning} The smooth motion is barely resolved.", advice)
    advice = (
        f"Sample every {measured(0.2 * series.dt / value, None, unit)} or faster. If you cannot, keep "
        "`el.IntegratedResponse()` (or `el.LogCorrelation()` for a linear system), and compare the result with that "
        "of `series.thin(2)`."
    )
    if value > warning:
        return finding("warning", f"{meaning} That is too coarse.", advice)
    return finding("note", f"{meaning} That is on the coarse side.", advice)
