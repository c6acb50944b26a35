"""Findings on how much data there is."""

import numpy as np

from ..._core.format import count, listed, measured, percent
from ..findings.finding import Finding, Quantity
from ..survey import Survey

# Relative error of the covariance matrix: worth knowing, a problem, hopeless.
_COVARIANCE_ERROR = (0.1, 0.3, 1.0)
_SINGULAR, _NEARLY = 1e-8, 1e-4
_LOST_PAIRS = 0.2


def gaps(survey: Survey) -> Finding:
    """What was dropped, and how much of the lagged pairs that costs."""
    series = survey.series
    lag = int(np.searchsorted(survey.lags, survey.times.max() / series.dt).clip(1, len(survey.lags) - 1))
    pairs = survey.moments.pairs.sum(axis=0)
    lost = 1 - pairs[lag] / pairs[0]
    segments, longest = len(series.segments), max(len(s) for s in series.segments)
    numbers = {
        "dropped_rows": Quantity(series.dropped),
        "segments": Quantity(segments),
        "longest_segment": Quantity(longest, unit="samples"),
        "pairs_lost": Quantity(lost),
    }
    if segments == 1 and not series.dropped:
        return Finding("gaps", "ok", f"One record of {series.n_samples} samples without gaps.", "", numbers)
    rows = f"{count(series.dropped, 'row')} with NaN dropped." if series.dropped else "No rows with NaN."
    meaning = (
        f"{rows} {count(segments, 'segment')}, the longest of {longest} samples. "
        f"No lag crosses a border: {percent(lost)} of the pairs one integral time apart are lost."
    )
    if lost > _LOST_PAIRS:
        advice = "The segments are short beside the memory. Fill short gaps, or use longer records."
        return Finding("gaps", "warning", meaning, advice, numbers)
    advice = "Nothing: gaps are handled. Make sure that they do not depend on the state (sensors that fail in storms)."
    return Finding("gaps", "note" if series.dropped else "ok", meaning, advice, numbers)


def sample_size(survey: Survey) -> Finding:
    """Integral times, effective sample size, and what that means for a covariance matrix of this dimension."""
    series, least = survey.series, int(np.argmax(survey.times))
    unit, names = series.time_unit, series.names
    independent = survey.effective_samples
    relative = survey.time_errors / survey.times
    error = float(np.sqrt((series.dimension + 1) / independent.min()))
    numbers = {
        "integral_times": Quantity(survey.times, survey.time_errors, unit),
        "effective_samples": Quantity(independent, independent * relative),
        "least_effective_samples": Quantity(independent[least], independent[least] * relative[least]),
        "covariance_error": Quantity(error),
    }
    slow = measured(survey.times[least], survey.time_errors[least], unit)
    times = f"Integral time {slow}"
    if series.dimension > 1:
        fast = int(np.argmin(survey.times))
        quick = measured(survey.times[fast], survey.time_errors[fast], unit)
        times = f"Integral times from {quick} ({names[fast]}) to {slow} ({names[least]})"
    whose = "" if series.dimension == 1 else f" of {names[least]}"
    meaning = (
        f"{times}. The {series.n_samples} samples are worth {measured(round(independent[least]))} independent ones"
        f"{whose}: a covariance matrix of {count(series.dimension, 'variable')} is known to about {percent(error)}."
    )
    level = ("ok", "note", "warning", "stop")[int(np.searchsorted(_COVARIANCE_ERROR, error))]
    advice = (
        "The sample is too small for this many variables. Record for longer, or keep fewer variables (the leading "
        "principal components). Fit little: `Gaussian()` with `LogCorrelation()`. Look at the standard errors first."
        if level in ("warning", "stop")
        else "Enough for a fit, but check the standard errors of the mobility."
    )
    return Finding("sample size", level, meaning, advice, numbers)


def redundancy(survey: Survey) -> Finding:
    """Directions in which nothing moves."""
    values, vectors = np.linalg.eigh(survey.at(0)[0])
    share = np.maximum(values, 0) / values.sum()
    kept = int(np.searchsorted(np.cumsum(share[::-1]), 0.99) + 1)
    numbers = {
        "least_variance": Quantity(float(values[0])),
        "directions_for_99_percent": Quantity(min(kept, len(values))),
    }
    if values[0] > _NEARLY:
        least = f"the least varied direction has variance {measured(values[0])}"
        return Finding("redundant variables", "ok", f"No variable repeats the others: {least}.", "", numbers)
    involved = [survey.series.names[i] for i in np.argsort(-np.abs(vectors[:, 0])) if abs(vectors[i, 0]) > 0.1]
    what = "constant" if values[0] < _SINGULAR else "nearly constant"
    meaning = (
        f"A combination of {listed(involved)} is {what} (variance {measured(max(values[0], 0.0))} where 1 is usual). "
        f"{count(min(kept, len(values)), 'direction')} of {len(values)} hold 99 % of the variance."
    )
    advice = (
        "Leave out one variable per constant combination, or use principal components: no score exists there."
        if values[0] < _SINGULAR
        else "The score is steep in that direction. Principal components may serve better."
    )
    return Finding("redundant variables", "warning" if values[0] < _SINGULAR else "note", meaning, advice, numbers)
