"""Findings on short times: the regime, measurement noise, the sampling interval."""

import numpy as np

from ..._core.format import listed, measured, percent
from ...statistics.resampling import critical
from ..findings.finding import Finding, Quantity
from ..regime import BALLISTIC, COARSE, Regime
from ..short_time import Nugget, Variation
from ..survey import Survey

_MEANING = {
    "diffusive": "Over one sampling interval the series moves like a diffusion.",
    "ballistic": "Over one sampling interval the series is smooth: it moves in straight lines, not by diffusion.",
    "mixed": "Some variables move smoothly over one sampling interval ({smooth}), the others do not.",
    "measurement noise": "Over one sampling interval the motion is hidden by noise on each sample.",
    "coarse": "Much of the motion happens between two samples.",
    "white noise / unresolved": (
        "Nothing is left of a sample one interval later: this is white noise, or its memory is shorter than dt."
    ),
}
_SMOOTH = "Nothing, for an effective model over a longer horizon. For the smooth motion itself, sample more often."
_ADVICE = {
    "diffusive": "",
    "ballistic": (
        "The diffusion at h -> 0 is undefined. Use `IntegratedResponse` with a horizon of at least {plateau}, and take "
        "the result as an effective noise over that time; or sample every {plateau}."
    ),
    "mixed": "The noise acts on some variables only. Fit with a finite horizon, or leave out the smooth variables.",
    "measurement noise": "See `measurement noise`. Quadratic variation at lag 1 measures the instrument here.",
    "coarse": "See `sampling interval`. Do not use quadratic variation.",
    "white noise / unresolved": "There is no dynamics to fit. Sample more often.",
}


def regime(survey: Survey, found: Regime, variation: Variation) -> Finding:
    """The slope of quadratic variation, and what it says."""
    unit = survey.series.time_unit
    slope = measured(variation.slopes[0], variation.slope_errors[0])
    slower = variation.lags[1:][variation.slopes < BALLISTIC]
    plateau = float(slower[0] if len(slower) else variation.lags[-1]) * survey.series.dt
    numbers = {
        "slope": Quantity(variation.slopes[0], variation.slope_errors[0]),
        "slopes": Quantity(variation.slopes, variation.slope_errors),
        "lags": Quantity(variation.lags[:-1] * survey.series.dt, unit=unit),
        "slope_by_variable": Quantity(variation.by_variable, variation.by_variable_error),
        "smooth_below": Quantity(plateau if found.name in ("ballistic", "mixed") else 0.0, unit=unit),
    }
    smooth = [n for n, is_smooth in zip(survey.series.names, found.smooth) if is_smooth]
    text = _MEANING[found.name].format(smooth=listed(smooth) if smooth else "")
    meaning = f"{text} Slope of log(QV/h) at the shortest lags: {slope} (0 diffusion, 1 smooth, -1 noise)."
    level = {"diffusive": "ok", "coarse": "note", "white noise / unresolved": "stop"}.get(found.name, "warning")
    return Finding("regime", level, meaning, _ADVICE[found.name].format(plateau=measured(plateau, None, unit)), numbers)


def measurement_noise(survey: Survey, found: Regime, missing: Nugget) -> Finding:
    """The noise on each sample, in per cent of the standard deviation."""
    spread, error = missing.spread
    numbers = {
        "noise_percent_of_std": Quantity(100 * spread, 100 * error),
        "noise_std": Quantity(spread * survey.units.std, error * survey.units.std),
        "missing_variance": Quantity(missing.variance, missing.error),
        "noisy": Quantity(found.noisy),
    }
    names = survey.series.names
    if found.noisy.any():
        worst = np.flatnonzero(found.noisy)[np.argsort(-spread[found.noisy])]
        sizes = listed([f"{names[i]} {percent(float(spread[i]), float(error[i]))}" for i in worst])
        meaning = (
            f"Each sample carries noise of its own, in per cent of the standard deviation: {sizes}. "
            "C(tau) extrapolated to zero falls short of C(0) by that much."
        )
        advice = (
            "Leave lag 0 out: `CorrelationFit` on lags >= 1, or `IntegratedResponse` over long horizons. Average "
            "neighbouring samples if they are close. Motion much faster than dt would look the same."
        )
        return Finding("measurement noise", "warning", meaning, advice, numbers)
    short = missing.variance > critical(survey.groups, len(names)) * missing.error
    if short.any() and not found.white:
        share = float(missing.variance[short].max())
        meaning = (
            f"No sign of measurement noise, but up to {percent(share)} of the variance is gone within one sampling "
            "interval: motion that is faster than dt."
        )
        return Finding("measurement noise", "ok", meaning, "See `sampling interval`.", numbers)
    if found.white:
        meaning = "White noise and measurement noise are the same thing: all of this series may be that."
        return Finding("measurement noise", "ok", meaning, "", numbers)
    limit = float(np.sqrt(np.maximum(missing.variance, 0) + 2 * missing.error).max())
    meaning = f"No sign of measurement noise: below {percent(limit)} of the standard deviation."
    return Finding("measurement noise", "ok", meaning, "", numbers)


def sampling_interval(survey: Survey, found: Regime) -> Finding:
    """dt against the fastest time seen."""
    series = survey.series
    worst = int(np.argmax(found.coarseness))
    value, error = float(found.coarseness[worst]), float(found.coarseness_error[worst])
    who = series.names[worst] if worst < series.dimension else "the fastest direction"
    numbers = {
        "dt": Quantity(series.dt, unit=series.time_unit),
        "dt_over_fastest_time": Quantity(found.coarseness[:-1], found.coarseness_error[:-1]),
        "dt_over_fastest_direction": Quantity(found.coarseness[-1], found.coarseness_error[-1]),
        "dt_over_integral_time": Quantity(series.dt / survey.times, survey.time_errors * series.dt / survey.times**2),
    }
    dt = measured(series.dt, None, series.time_unit)
    if found.white:
        meaning = f"dt = {dt} is longer than any memory in the series."
        return Finding("sampling interval", "stop", meaning, "Sample at least ten times more often.", numbers)
    if value < 3 * error:
        meaning = f"dt = {dt} is short beside every time seen (ratio {measured(value, error)}). That is fine."
        return Finding("sampling interval", "ok", meaning, "", numbers)
    time = measured(series.dt / value, series.dt * error / value**2, series.time_unit)
    meaning = f"dt = {dt} is {measured(value, error)} of the fastest time seen, {time} ({who})."
    level = "warning" if value > COARSE[1] else "note" if value > COARSE[0] else "ok"
    if found.name == "ballistic" and level != "ok":
        return Finding(
            "sampling interval", "note", f"{meaning} The smooth motion is barely resolved.", _SMOOTH, numbers
        )
    if level == "ok":
        return Finding("sampling interval", level, f"{meaning} That is fine.", "", numbers)
    meaning += " That is too coarse." if level == "warning" else " That is on the coarse side."
    advice = (
        f"Sample every {measured(0.2 * series.dt / value, None, series.time_unit)} or faster. If you cannot: keep "
        "`IntegratedResponse` (or `LogCorrelation` for a linear system), and compare the result at dt and at 2 dt."
    )
    return Finding("sampling interval", level, meaning, advice, numbers)
