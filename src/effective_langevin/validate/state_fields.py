"""Current and diffusion of a state-dependent model beside increments of the data, both averaged over cells of states.

The data's own estimates are increments over one sampling interval h, binned by the state they start from,

    < x(t + h) - x(t) | x(t) > / h  for the drift,   < (x(t + h) - x(t))^2 | x(t) > / 2h  for D,
    < x(t + h) - x(t - h) | x(t) > / 2h  for nu.

They are biased at coarse sampling, where the model's fields need not be.
"""

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from scipy.ndimage import gaussian_filter

from .._core.types import Samples
from ..data import TimeSeries
from ..model import LangevinModel
from ..statistics.conditional_means import conditional_means, equal_bins
from .curves import Curve

BINS = 24
_CELLS, _FEWEST_CELLS = 15, 6  # of the arrows in each direction
_STATES, _DRAWN = 100_000, 24
_DRAWN_AT = 10_000
_FEWEST = 30  # states in a cell that is shown, or a quarter of their mean number
_FLAT = 1e-5
_INNER = (0.005, 0.995)
_GRID = 40  # cells of the potential in each direction
_SMOOTHED, _PER_SPREAD = 1.2, 8.0  # cells: the least width of its smoothing, and those in a standard deviation


def plane(model: LangevinModel) -> tuple[int, int]:
    """Return the two variables that are drawn: those least correlated."""
    if model.dimension == 2:
        return 0, 1
    correlation = np.abs(np.corrcoef(model.states.T)) + 2 * np.tri(model.dimension)
    i, j = np.unravel_index(int(np.argmin(correlation)), correlation.shape)
    return int(i), int(j)


def field_profiles(model: LangevinModel, data: TimeSeries | None) -> Curve:
    """Return drift and D of one variable, or nu and D of two, by state, in bins of equally many samples."""
    states, seen = _thinned(model, data), _measured(model, data)
    drawn, rows, empty = _profiles(model, states), [], np.full((2, BINS), np.nan)
    for quantity, entry, axis in drawn:
        edges, field = equal_bins(states[:, axis], BINS), FIELDS[quantity]
        cell = np.searchsorted(edges, states[:, axis])
        (state, mean), (_, error) = _means([states[:, axis], field(model, states, entry)], cell)
        some = slice(None, None, max(1, len(states) // _DRAWN_AT))
        replicas = [field(m, states[some], entry) for m in islice(model.replicas(), _DRAWN)]
        spread = np.std(_means(replicas, cell[some])[0], axis=0) if replicas else 0.0
        one, one_error = empty
        if seen:
            beside = np.searchsorted(edges, seen["state"][:, axis])
            (one,), (one_error,) = _means([seen[quantity][:, entry]], beside)
        rows.append((state, one, mean, one_error, np.hypot(error, spread)))
    state, *values = (np.array(part) for part in zip(*rows))
    quantities, entries, axes = (list(part) for part in zip(*drawn))
    coords = {
        "state": (("profile", "bin"), state),
        "quantity": (("profile",), quantities),
        "variable": (("profile",), [model.names[k] for k in entries]),
        "against": (("profile",), [model.names[k] for k in axes]),
        "unit": (("profile",), [model.units[k] for k in entries]),
        "against_unit": (("profile",), [model.units[k] for k in axes]),
        "interval": ((), model.dt),
    }
    return Curve(("profile", "bin"), *values, coords=coords, units={"interval": model.time_unit})


def field_arrows(model: LangevinModel, data: TimeSeries | None) -> Curve | None:
    """Return nu in the plane of two variables: mean velocities over the states in each cell; None of one variable.

    The drift and the trace of D, both of the model, are coordinates.
    """
    if model.dimension == 1:
        return None
    pair, states, seen = list(plane(model)), _thinned(model, data), _measured(model, data)
    low, high = np.quantile(states[:, pair], _INNER, axis=0)
    number = int(np.clip(np.sqrt(len(states) / _FEWEST), _FEWEST_CELLS, _CELLS))
    edges, grid = (np.linspace(low, high, cells + 1).T for cells in (number, _GRID))
    trace = np.trace(model.diffusion(states) / np.outer(model.standardizer.std, model.standardizer.std), 0, 1, 2)
    values = np.column_stack([model.current(states)[:, pair], model.drift(states)[:, pair], trace])
    means, _ = _cell_means(states[:, pair], values, edges, min(_FEWEST, len(states) // (4 * number**2)))
    width = max(_SMOOTHED, _PER_SPREAD * len(states) ** (-1 / 6))  # Scott's rule in two dimensions
    counts = gaussian_filter(np.histogram2d(*states[:, pair].T, bins=[*grid])[0], width)
    measured, error = np.full((2, number, number, 2), np.nan)
    if seen:
        measured, error = _cell_means(seen["state"][:, pair], seen["current"][:, pair], edges)
        measured, error = (np.where(np.isnan(means[..., :1]), np.nan, part) for part in (measured, error))
    coords = {
        "edges": (("component", "edge"), edges),
        "component": (("component",), [model.names[k] for k in pair]),
        "unit": (("component",), [model.units[k] for k in pair]),
        "drift": (("row", "column", "component"), means[..., 2:4]),
        "trace": (("row", "column"), means[..., 4]),
        "grid": (("component", "grid_edge"), grid),
        "potential": (("x", "y"), -np.log(np.maximum(counts, 1e-9) / counts.max())),
        "interval": ((), model.dt),
    }
    current, exact = means[..., :2], np.zeros((number, number, 2))
    units = {"interval": model.time_unit}
    return Curve(("row", "column", "component"), measured, current, error, exact, coords, units)


def _profiles(model: LangevinModel, states: Samples) -> list[tuple[str, int, int]]:
    """Return what is drawn: a field, which entry of it, and against which variable."""
    if model.dimension == 1:
        return [("drift", 0, 0), ("diffusion", 0, 0)]
    i, j = plane(model)
    diffusion = model.diffusion(states[:: max(1, len(states) // 500)])
    varies = np.ptp(diffusion, axis=0).max() > _FLAT * np.abs(diffusion).max()
    return [("current", i, j), ("current", j, i), *(("diffusion", k, k) for k in (i, j) if varies)]


def _means(values: Sequence[np.ndarray], cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means of quantities in each bin and their errors, (value, bin)."""
    mean, error = conditional_means(np.array(values).T, cell, BINS)
    return mean.T, error.T


FIELDS: dict[str, Callable[[LangevinModel, Samples, int], np.ndarray]] = {
    "drift": lambda model, x, i: model.drift(x)[:, i],
    "diffusion": lambda model, x, i: model.diffusion(x)[:, i, i],
    "current": lambda model, x, i: model.current(x)[:, i],
}


def _thinned(model: LangevinModel, data: TimeSeries | None) -> Samples:
    states = model.states if data is None else data.stacked()
    return states[:: max(1, len(states) // _STATES)].astype(float)


def _measured(model: LangevinModel, data: TimeSeries | None) -> dict[str, Samples]:
    """Return states with both neighbours, and the fields by increments there; angles by the shorter way round."""
    long = [] if data is None else [s for s in data.segments if len(s) > 2]
    if data is None or not long:
        return {}
    periods = np.array([period or 0.0 for period in model.space.periods])
    jumps = [np.diff(s.astype(float), axis=0) for s in long]
    jumps = [d - periods * np.round(d / np.where(periods, periods, 1.0)) for d in jumps]
    before, after = (np.concatenate(parts) for parts in zip(*((d[:-1], d[1:]) for d in jumps)))
    fields = {"drift": after / model.dt, "diffusion": after**2 / (2 * model.dt)}
    return {"state": np.concatenate([s[1:-1] for s in long]), **fields, "current": (before + after) / (2 * data.dt)}


def _cell_means(states: Samples, values: Samples, edges: np.ndarray, fewest: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return means over the states in each cell, (row, column, value), and errors; NaN with fewer than `fewest`."""
    number = edges.shape[1] - 1
    row, column = (np.searchsorted(edge, x, side="right") - 1 for edge, x in zip(edges, states.T))
    inside = (np.minimum(row, column) >= 0) & (np.maximum(row, column) < number)
    cell = (row * number + column)[inside]
    few = np.bincount(cell, minlength=number**2) < fewest
    means = (np.where(few[:, None], np.nan, part) for part in conditional_means(values[inside], cell, number**2))
    mean, error = (part.reshape(number, number, -1) for part in means)
    return mean, error
