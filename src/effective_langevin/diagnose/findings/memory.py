"""Findings on memory: Chapman-Kolmogorov on correlations, and on a partition."""

import numpy as np

from ..._core.format import listed, measured
from ...statistics.lags import longest_lag
from ...statistics.resampling import critical
from ...statistics.time_reversal import compare_with_reverse
from ..markov import CellMemory, LinearMemory
from ..moments import FEW_PAIRS, SeriesMoments
from ..regime import Regime
from ..thresholds import THRESHOLDS
from .finding import Finding, Quantity

_MOST_LAGS = 8  # of the comparison with the reverse, doubling


def _largest(found: LinearMemory | CellMemory, groups: int) -> tuple[int, ...] | None:
    """Where the largest significant entry (lag, future, past) worth a note is; half of the chance is the diagonal's."""
    lags, width, _ = found.value.shape
    limit = np.full((width, width), critical(groups, 2 * found.value.size))
    np.fill_diagonal(limit, critical(groups, 2 * lags * width))
    significant = np.where(np.abs(found.value) > limit * found.error, np.abs(found.value), 0.0)
    if significant.max() == 0 or significant.max() < THRESHOLDS.memory[0]:
        return None
    return tuple(int(k) for k in np.unravel_index(significant.argmax(), found.value.shape))


def linear_markov(moments: SeriesMoments, found: LinearMemory, cells: CellMemory | None) -> Finding:
    """C(2h) against C(h) C(0)^-1 C(h); where it fails, the partition says why."""
    unit, dt, name = moments.series.time_unit, moments.series.dt, "linear Markov test"
    peaks = [np.unravel_index(np.abs(v).argmax(), v.shape) for v in found.value]
    numbers = {
        "lags": Quantity(found.lags * dt, unit=unit),
        "largest_partial_correlation": Quantity(
            [float(v[peak]) for v, peak in zip(found.value, peaks)],
            [float(e[peak]) for e, peak in zip(found.error, peaks)],
        ),
    }
    at = _largest(found, moments.groups)
    if at is None:
        meaning = "C(2h) equals C(h) C(0)^-1 C(h) within errors, as in a linear Markov process."
        typical = float(np.median(found.error))
        if typical > THRESHOLDS.memory[0]:
            meaning += f" But the errors are large, {measured(typical)}, so this says little."
        return Finding(name, "ok", meaning, "", numbers)
    meaning = (
        f"C(2h) differs from C(h) C(0)^-1 C(h): over h = {measured(found.lags[at[0]] * dt, None, unit)} the past adds "
        f"a correlation of {measured(float(found.value[at]), float(found.error[at]))} to the prediction by a linear "
        "function of the present. Memory does that, but so does nonlinear motion without memory."
    )
    why = "No partition is affordable to tell the two apart: compare fits of `series` and of `series.thin(2)`."
    if cells is not None:
        nonlinear = _largest(cells, moments.groups) is None
        why = f"The Markov test says that {'it is nonlinear motion, not memory' if nonlinear else 'there is memory'}."
    return Finding(name, "note", meaning, f"A linear inverse model is not exact here. {why}", numbers)


def markov(moments: SeriesMoments, found: CellMemory, regime: Regime) -> Finding:
    """Memory that is left once the present is known to within a cell."""
    unit, dt, at = moments.series.time_unit, moments.series.dt, _largest(found, moments.groups)
    numbers = {
        "cells": Quantity(found.cells),
        "lags": Quantity(np.array(found.lags) * dt, unit=unit),
        "partial_correlations": Quantity(found.value, found.error),
        "implied_times": Quantity(found.implied_times, found.implied_errors, unit),
    }
    given = f"Given the present (in {found.cells} cells), the past"
    times = listed([measured(t, e, unit) for t, e in zip(found.implied_times, found.implied_errors)])
    lag = measured(found.lags[-1] * dt, None, unit)
    implied = f"Slowest implied time scales at h, 2h and 4h, h = {lag}: {times}."
    if at is None:
        peak = np.unravel_index(np.abs(found.value).argmax(), found.value.shape)
        most = measured(float(found.value[peak]), float(found.error[peak]))
        return Finding("Markov test", "ok", f"{given} adds nothing: at most {most}. {implied}", "", numbers)
    value, error = float(found.value[at]), float(found.error[at])
    meaning = (
        f"{given} still adds a correlation of {measured(value, error)} over h = "
        f"{measured(found.lags[at[0]] * dt, None, unit)}: the variables are not Markov at that lag. {implied}"
    )
    # Memory that is gone after one sample is worth a note; memory that lasts, or is strong, is a problem.
    lasting = np.abs(found.value[-1]).max() if len(found.lags) > 1 else 0.0
    level = "warning" if max(lasting, 0.5 * abs(value)) > THRESHOLDS.memory[1] else "note"
    if regime.noisy.any() and value > 0:
        advice = "Measurement noise explains it at short lags. `el.IntegratedResponse()` leaves out lag 0."
    elif regime.name in ("ballistic", "mixed") or value < 0:
        advice = "The motion has inertia. Add velocities, or delayed copies by `el.preprocess.DelayEmbedding()`."
    else:
        advice = "A slow variable is missing. Add it, or delayed copies by `el.preprocess.DelayEmbedding()`."
    return Finding("Markov test", level, meaning, advice, numbers)


def time_reversal(moments: SeriesMoments) -> Finding:
    """The series against its reverse, in moments of second and third order."""
    series, name = moments.series, "time reversal"
    longest = min(moments.times.max() / series.dt, longest_lag(series.segments, FEW_PAIRS))
    lags = 2 ** np.arange(min(int(np.log2(max(longest, 1))) + 1, _MOST_LAGS))
    found = compare_with_reverse(series.segments, lags, moments.groups)
    order, size, (lag, i, j) = found.clearest
    time = measured(float(lags[lag] * series.dt), None, series.time_unit)
    numbers = {
        "lags": Quantity(lags * series.dt, unit=series.time_unit),
        "second_order": Quantity(found.second, found.second_error),
        "third_order": Quantity(found.third, found.third_error),
        "limit": Quantity(found.limit),
    }
    if not found.irreversible:
        seen = "second and third order" if found.third.size else "second order"
        reach = measured(float(lags[-1] * series.dt), None, series.time_unit)
        meaning = (
            f"Cannot tell the series from its reverse by moments of {seen} at lags up to {reach}: a difference of "
            f"about {measured(found.visible)} (standardised) would have been seen."
        )
        return Finding(name, "ok", meaning, "", numbers)
    a, b = series.names[i], series.names[j]
    if order == 2:
        meaning = f"Not the same backwards: {a} and {b} turn around each other ({measured(size)} errors, h = {time})."
        return Finding(name, "ok", meaning, "", numbers)
    meaning = (
        f"Not the same backwards: < {a}(t)^2 {b}(t + h) > differs from its reverse by {measured(size)} errors at h = "
        f"{time}, as with slow rises and fast falls. Second moments do not show it."
    )
    advice = (
        "A constant mobility does not reproduce it, and in one variable no Langevin equation does: see "
        "`el.StateDependent()` and `el.preprocess.DelayEmbedding`."
    )
    return Finding(name, "note", meaning, advice, numbers)
