"""Findings on memory: Chapman-Kolmogorov on correlations, and on a partition."""

import numpy as np

from ..._core.format import listed, measured
from ...statistics.resampling import critical
from ..findings.finding import Finding, Quantity
from ..markov import CellMemory, LinearMemory
from ..survey import Survey

# Partial correlation of future and past given the present: worth knowing, and too much for a Markov model.
_MEMORY = (0.03, 0.1)


def _largest(value: np.ndarray, error: np.ndarray, groups: int) -> tuple[int, ...] | None:
    """Where the largest significant entry (lag, future, past) is, or None; half of the chance goes to the diagonal."""
    lags, width, _ = value.shape
    limit = np.full((width, width), critical(groups, 2 * value.size))
    np.fill_diagonal(limit, critical(groups, 2 * lags * width))
    significant = np.where(np.abs(value) > limit * error, np.abs(value), 0.0)
    return (
        None if significant.max() == 0 else tuple(int(k) for k in np.unravel_index(significant.argmax(), value.shape))
    )


def linear_test(survey: Survey, found: LinearMemory, cells: CellMemory | None) -> Finding:
    """C(2h) against C(h) C(0)^-1 C(h); where it fails, the partition says why."""
    unit, dt = survey.series.time_unit, survey.series.dt
    at = _largest(found.value, found.error, survey.groups)
    worst = np.array([np.unravel_index(np.abs(v).argmax(), v.shape) for v in found.value])
    peak = [(float(v[i, j]), float(e[i, j])) for v, e, (i, j) in zip(found.value, found.error, worst)]
    numbers = {
        "lags": Quantity(found.lags * dt, unit=unit),
        "largest_partial_correlation": Quantity([v for v, _ in peak], [e for _, e in peak]),
    }
    if at is None or abs(found.value[at]) < _MEMORY[0]:
        meaning = (
            "C(2h) is C(h) C(0)^-1 C(h) within errors: the correlations could be those of a linear Markov process."
        )
        typical = float(np.median(found.error))
        if typical > _MEMORY[0]:
            meaning += f" But the errors are large, {measured(typical)}: this says little."
        return Finding("linear Markov test", "ok", meaning, "", numbers)
    value, error = float(found.value[at]), float(found.error[at])
    meaning = (
        f"C(2h) is not C(h) C(0)^-1 C(h): over h = {measured(found.lags[at[0]] * dt, None, unit)} the past adds a "
        f"correlation of {measured(value, error)} to what a linear function of the present says. Memory does that, but "
        "so does nonlinear motion without memory."
    )
    advice = "A linear inverse model will not be exact."
    if cells is None:
        advice += " No partition is affordable to tell the two apart: compare fits at h and at 2 h."
    elif _remembers(survey, cells) is None:
        advice += " The Markov test says that it is nonlinear motion, not memory."
    else:
        advice += " The Markov test says that there is memory."
    return Finding("linear Markov test", "note", meaning, advice, numbers)


def _remembers(survey: Survey, found: CellMemory) -> tuple[int, ...] | None:
    """Where the largest memory is, if there is any worth speaking of."""
    at = _largest(found.value, found.error, survey.groups)
    return None if at is None or abs(found.value[at]) < _MEMORY[0] else at


def partition_test(survey: Survey, found: CellMemory, noisy: np.ndarray, smooth: bool) -> Finding:
    """Memory that is left once the present is known to within a cell."""
    unit, dt = survey.series.time_unit, survey.series.dt
    at = _remembers(survey, found)
    numbers = {
        "cells": Quantity(found.cells),
        "lags": Quantity(np.array(found.lags) * dt, unit=unit),
        "partial_correlations": Quantity(found.value, found.error),
        "implied_times": Quantity(found.implied_times, found.implied_errors, unit),
    }
    times = listed([measured(t, e, unit) for t, e in zip(found.implied_times, found.implied_errors)])
    lag = measured(found.lags[-1] * dt, None, unit)
    implied = f"Slowest implied times at h, 2h and 4h, h = {lag}: {times}."
    if at is None:
        peak = np.unravel_index(np.abs(found.value).argmax(), found.value.shape)
        most = measured(float(found.value[peak]), float(found.error[peak]))
        meaning = f"Given the present (in {found.cells} cells), the past adds nothing: at most {most}. {implied}"
        return Finding("Markov test", "ok", meaning, "", numbers)
    value, error = float(found.value[at]), float(found.error[at])
    meaning = (
        f"Given the present (in {found.cells} cells), the past still adds a correlation of {measured(value, error)} "
        f"over h = {measured(found.lags[at[0]] * dt, None, unit)}: the variables are not Markov at that lag. {implied}"
    )
    return Finding("Markov test", _level(found, at), meaning, _advice(value, noisy, smooth), numbers)


def _level(found: CellMemory, at: tuple[int, ...]) -> str:
    """What is over after one sample is worth knowing; memory that lasts, or is strong, is a problem."""
    lasting = np.abs(found.value[-1]).max() if len(found.lags) > 1 else 0.0
    return "warning" if max(lasting, 0.5 * abs(found.value[at])) > _MEMORY[1] else "note"


def _advice(value: float, noisy: np.ndarray, smooth: bool) -> str:
    if noisy.any() and value > 0:
        return "The measurement noise explains it at short lags. Fit on lags beyond it."
    if smooth or value < 0:
        return "The motion has inertia. Add velocities or delayed copies as variables, or fit over a longer horizon."
    return "Something slow is not among the variables. Add it, or delayed copies of those there are."
