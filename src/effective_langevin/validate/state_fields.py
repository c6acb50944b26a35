"""Current and diffusion of a state-dependent model beside increments of the data, both averaged over cells of states.

The data's own estimates are increments over one sampling interval h, binned by the state they start from,

    < x(t + h) - x(t) | x(t) > / h  for the drift,   < (x(t + h) - x(t))^2 | x(t) > / 2h  for D,
    < x(t + h) - x(t - h) | x(t) > / 2h  for nu.

They are biased at coarse sampling, where the model's fields need not be.
"""

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np

from .._core.types import Samples
from ..data import TimeSeries
from ..model import LangevinModel
from ..statistics.conditional_means import conditional_means, equal_bins
from .curves import Curve

BINS, CELLS = 24, 15
_STATES, _DRAWN = 100_000, 24
_DRAWN_AT = 10_000
_FEWEST = 30  # states in a cell that is shown
_FLAT = 1e-5
_INNER = (0.005, 0.995)


class _Profile(NamedTuple):
    """Entry `entry` of a field against variable `axis`."""

    quantity: str
    entry: int
    axis: int


class _Steps(NamedTuple):
    """States of the data with what moves them: steps to the next sample, and velocities from both neighbours."""

    states: Samples
    steps: Samples
    velocities: Samples


def plane(model: LangevinModel) -> tuple[int, int]:
    """Return the two variables that are drawn: those least correlated."""
    if model.dimension == 2:
        return 0, 1
    correlation = np.abs(np.corrcoef(model.states.T)) + 2 * np.tri(model.dimension)
    i, j = np.unravel_index(int(np.argmin(correlation)), correlation.shape)
    return int(i), int(j)


def field_profiles(model: LangevinModel, data: TimeSeries | None) -> Curve:
    """Return drift and D of one variable, or nu and D of two, by state, in bins of equally many samples."""
    states = _thinned(model, data)
    found = _steps(model, data)
    drawn = _profiles(model, states)
    parts = [_of_model(model, states, profile) for profile in drawn]
    measured = [_of_data(found, profile, part[0], model.dt) for profile, part in zip(drawn, parts)]
    names, units, per = model.names, model.units, model.time_unit
    coords = {
        "state": (("profile", "bin"), np.array([part[1] for part in parts])),
        "quantity": (("profile",), [profile.quantity for profile in drawn]),
        "variable": (("profile",), [names[profile.entry] for profile in drawn]),
        "unit": (("profile",), [units[profile.entry] for profile in drawn]),
        "against": (("profile",), [names[profile.axis] for profile in drawn]),
        "against_unit": (("profile",), [units[profile.axis] for profile in drawn]),
        "interval": ((), model.dt),
    }
    data_side, data_error = (np.array(side) for side in zip(*measured))
    values = data_side, np.array([part[2] for part in parts])
    errors = data_error, np.array([part[3] for part in parts])
    return Curve(("profile", "bin"), *values, *errors, coords=coords, units={"interval": per})


def field_arrows(model: LangevinModel, data: TimeSeries | None) -> Curve | None:
    """Return nu in the plane of two variables: mean velocities over the states in each cell; None of one variable."""
    if model.dimension == 1:
        return None
    pair, states, found = list(plane(model)), _thinned(model, data), _steps(model, data)
    low, high = np.quantile(states[:, pair], _INNER, axis=0)
    edges = np.linspace(low, high, CELLS + 1).T
    cell, inside = _cells(states[:, pair], edges)
    trace = np.trace(model.diffusion(states) / np.outer(model.standardizer.std, model.standardizer.std), 0, 1, 2)
    values = np.column_stack([model.current(states)[:, pair], trace])
    means, _ = conditional_means(values[inside], cell[inside], CELLS**2)
    means[np.bincount(cell[inside], minlength=CELLS**2) < _FEWEST] = np.nan
    measured, error = np.full((2, CELLS**2, 2), np.nan)
    if found is not None:
        cell, inside = _cells(found.states[:, pair], edges)
        measured, error = conditional_means(found.velocities[inside][:, pair], cell[inside], CELLS**2)
        measured, error = (np.where(np.isnan(means[:, :1]), np.nan, part) for part in (measured, error))
    shape = (CELLS, CELLS)
    coords = {
        "edges": (("component", "edge"), edges),
        "component": (("component",), [model.names[k] for k in pair]),
        "unit": (("component",), [model.units[k] for k in pair]),
        "trace": (("row", "column"), means[:, 2].reshape(shape)),
        "interval": ((), model.dt),
    }
    arrows = (part.reshape(*shape, 2) for part in (measured, means[:, :2], error, np.zeros((CELLS**2, 2))))
    return Curve(("row", "column", "component"), *arrows, coords=coords, units={"interval": model.time_unit})


def _profiles(model: LangevinModel, states: Samples) -> list[_Profile]:
    if model.dimension == 1:
        return [_Profile("drift", 0, 0), _Profile("diffusion", 0, 0)]
    i, j = plane(model)
    found = [_Profile("current", i, j), _Profile("current", j, i)]
    diffusion = model.diffusion(states[:: max(1, len(states) // 500)])
    varies = np.ptp(diffusion, axis=0).max() > _FLAT * np.abs(diffusion).max()
    return found + [_Profile("diffusion", k, k) for k in (i, j) if varies]


def _of_model(model: LangevinModel, states: Samples, profile: _Profile) -> tuple[np.ndarray, ...]:
    """Return edges of the bins, mean states, mean values of the model and their errors."""
    edges, value = equal_bins(states[:, profile.axis], BINS), FIELDS[profile.quantity]
    cell = np.searchsorted(edges, states[:, profile.axis])
    values = np.column_stack([states[:, profile.axis], value(model, states, profile.entry)])
    mean, of_states = conditional_means(values, cell, BINS)
    some = slice(None, None, max(1, len(states) // _DRAWN_AT))
    drawn = [value(m, states[some], profile.entry) for m in islice(model.replicas(), _DRAWN)]
    spread = np.std(conditional_means(np.array(drawn).T, cell[some], BINS)[0], axis=1) if drawn else 0.0
    return edges, mean[:, 0], mean[:, 1], np.hypot(of_states[:, 1], spread)


def _of_data(found: _Steps | None, profile: _Profile, edges: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return means over the increments of the data and their errors."""
    if found is None:
        empty = np.full(BINS, np.nan)
        return empty, empty
    steps = found.steps[:, profile.entry]
    values = {
        "drift": lambda: steps / dt,
        "diffusion": lambda: steps**2 / (2 * dt),
        "current": lambda: found.velocities[:, profile.entry],
    }[profile.quantity]()
    cell = np.searchsorted(edges, found.states[:, profile.axis])
    mean, error = conditional_means(values[:, None], cell, BINS)
    return mean[:, 0], error[:, 0]


FIELDS: dict[str, Callable[[LangevinModel, Samples, int], np.ndarray]] = {
    "drift": lambda model, x, i: model.drift(x)[:, i],
    "diffusion": lambda model, x, i: model.diffusion(x)[:, i, i],
    "current": lambda model, x, i: model.current(x)[:, i],
}


def _thinned(model: LangevinModel, data: TimeSeries | None) -> Samples:
    states = model.states if data is None else data.stacked()
    return states[:: max(1, len(states) // _STATES)].astype(float)


def _steps(model: LangevinModel, data: TimeSeries | None) -> _Steps | None:
    """Return states with both neighbours, and the motion there; angles by the shorter way round."""
    long = [] if data is None else [s for s in data.segments if len(s) > 2]
    if data is None or not long:
        return None
    periods = np.array([period or 0.0 for period in model.space.periods])
    jumps = [np.diff(s.astype(float), axis=0) for s in long]
    jumps = [d - periods * np.round(d / np.where(periods, periods, 1.0)) for d in jumps]
    before, after = (np.concatenate(parts) for parts in zip(*((d[:-1], d[1:]) for d in jumps)))
    return _Steps(np.concatenate([s[1:-1] for s in long]), after, (before + after) / (2 * data.dt))


def _cells(states: Samples, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cell of each state, row by row, and whether it lies within the edges."""
    places = [np.searchsorted(edge, column, side="right") - 1 for edge, column in zip(edges, states.T)]
    inside = np.all([(place >= 0) & (place < CELLS) for place in places], axis=0)
    return places[0] * CELLS + places[1], inside
