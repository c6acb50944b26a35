"""Findings on short times: the regime, measurement noise, the sampling interval."""

import numpy as np

from ..._core.format import listed, measured, percent
from ...statistics.regime import BALLISTIC
from ...statistics.resampling import critical
from ..moments import SeriesMoments
from ..regime import Regime
from ..thresholds import THRESHOLDS
from .finding import Finding, Level, Quantity

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


def regime(moments: SeriesMoments, found: Regime) -> Finding:
    """The slope of quadratic variation, and what it says."""
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


def measurement_noise(moments: SeriesMoments, found: Regime) -> Finding:
    """The noise on each sample, in per cent of the standard deviation."""
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


def motion_blur(moments: SeriesMoments, found: Regime) -> Finding:
    """What C(0) lacks of its extrapolation from lags >= 1, in per cent of C(0)."""
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
    limit = percent(float(np.maximum(lost + 2 * error, 0).max()))
    return Finding("motion blur", "ok", f"No sign of motion blur: below {limit} of the variance.", "", numbers)


def sampling_interval(moments: SeriesMoments, found: Regime) -> Finding:
    """dt against the fastest time seen."""
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
    if value < 3 * error:
        return finding(
            "ok", f"is short compared with every time scale seen (ratio {measured(value, error)}). That is fine."
        )
    fastest = measured(series.dt / value, series.dt * error / value**2, unit)
    who = series.names[worst] if worst < series.dimension else "the fastest direction"
    meaning = f"is {measured(value, error)} of the fastest time scale seen, {fastest} ({who})."
    note, warning = THRESHOLDS.coarse
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
