"""Findings on how much data there is."""

import numpy as np

from .._core.format import count, listed, measured, percent
from . import thresholds
from .finding import LEVELS, Finding, Quantity
from .moments import SeriesMoments


def check_gaps(moments: SeriesMoments) -> Finding:
    """Say what was dropped, and how many of the lagged pairs that costs."""
    series, pairs = moments.series, moments.pairs.sum(axis=0)
    lag = int(np.searchsorted(moments.lags, moments.times.max() / series.dt).clip(1, len(moments.lags) - 1))
    lost, segments, longest = 1 - pairs[lag] / pairs[0], len(series.segments), max(len(s) for s in series.segments)
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
    if lost > thresholds.LOST_PAIRS:
        advice = "The segments are short compared with the memory. Fill short gaps, or use longer records."
        return Finding("gaps", "warning", meaning, advice, numbers)
    advice = "Gaps are handled. Make sure that they do not depend on the state (sensors that fail in storms)."
    return Finding("gaps", "note" if series.dropped else "ok", meaning, advice, numbers)


def check_sample_size(moments: SeriesMoments) -> Finding:
    """Give integral times, effective sample size, and what that means for a covariance matrix of this dimension."""
    series, times, errors = moments.series, moments.times, moments.time_errors
    slowest, fastest = int(np.argmax(times)), int(np.argmin(times))
    independent = moments.effective_samples
    error = float(np.sqrt((series.dimension + 1) / independent.min()))
    uncertain = independent * (errors / times)
    numbers = {
        "integral_times": Quantity(times, errors, series.time_unit),
        "effective_samples": Quantity(independent, uncertain),
        "least_effective_samples": Quantity(independent[slowest], uncertain[slowest]),
        "covariance_error": Quantity(error),
    }
    slow, fast = (measured(times[k], errors[k], series.time_unit) for k in (slowest, fastest))
    opening, whose = f"Integral time {slow}", ""
    if series.dimension > 1:
        opening = f"Integral times from {fast} ({series.names[fastest]}) to {slow} ({series.names[slowest]})"
        whose = f" of {series.names[slowest]}"
    meaning = (
        f"{opening}. The {series.n_samples} samples are worth {measured(round(independent[slowest]))} independent ones"
        f"{whose}: a covariance matrix of {count(series.dimension, 'variable')} is known to about {percent(error)}."
    )
    level = LEVELS[int(np.searchsorted(thresholds.COVARIANCE_ERROR, error))]
    advice = "Enough for a fit, but check the standard errors of the mobility."
    if level in ("warning", "stop"):
        fewer = ", or keep the leading components with `el.preprocess.PCA(variance=0.9)`" * (series.dimension > 1)
        advice = (
            f"The sample is too small for {count(series.dimension, 'variable')}. Record for longer{fewer}. Fit few "
            "parameters: `el.fit(..., score=el.Gaussian(), mobility=el.LogCorrelation())`."
        )
    return Finding("sample size", level, meaning, advice, numbers)


def check_redundancy(moments: SeriesMoments) -> Finding:
    """Find directions in which nothing moves."""
    values, vectors = np.linalg.eigh(moments.at(np.array([0])).mean()[0])
    share = np.maximum(values, 0) / values.sum()
    kept = min(int(np.searchsorted(np.cumsum(share[::-1]), 0.99) + 1), len(values))
    numbers = {"least_variance": Quantity(float(values[0])), "directions_for_99_percent": Quantity(kept)}
    nearly, singular = thresholds.LEAST_VARIANCE
    if values[0] > nearly:
        meaning = f"No variable repeats the others: the least varied direction has variance {measured(values[0])}."
        return Finding("redundant variables", "ok", meaning, "", numbers)
    involved = [moments.series.names[i] for i in np.argsort(-np.abs(vectors[:, 0])) if abs(vectors[i, 0]) > 0.1]
    constant = values[0] < singular
    meaning = (
        f"A combination of {listed(involved)} is {'' if constant else 'nearly '}constant (variance "
        f"{measured(max(values[0], 0.0))} where 1 is usual). "
        f"{count(kept, 'direction')} of {len(values)} hold 99 % of the variance."
    )
    advice = (
        "There is no score in a constant direction. Leave out one variable for each, or use "
        f"`preprocess=[el.preprocess.PCA({kept})]`."
        if constant
        else f"The score is steep in that direction. Consider `preprocess=[el.preprocess.PCA({kept})]`."
    )
    return Finding("redundant variables", "warning" if constant else "note", meaning, advice, numbers)
