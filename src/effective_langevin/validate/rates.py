"""Basins of one or two variables, and the times between them, of data and model."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from ..data import TimeSeries
from ..model import LangevinModel
from ..model.rates import Landscape
from ..statistics.passage import passage_times
from ..statistics.resampling import GROUPS, jackknife
from .curves import Curve

_PLANE = 2  # variables: up to so many, the equation is put on a grid
_BASINS = (2, 6)  # fewest and most that are shown
_REPLICAS, _FEW_POINTS = 8, {1: 401, 2: 51}  # for errors, and for the ratio of sampled times to those of the equation
_MOST_STARTS = 20_000  # samples from which passages are counted: neighbours say nearly the same


def find_landscape(model: LangevinModel) -> Landscape | None:
    """Return the equation on a grid, if it has some basins; they are looked for in one or two observed variables."""
    if model.dimension > _PLANE or model.space.angles or model.space.hidden:
        return None
    grid = Landscape.of(model)
    try:
        solved = bool(np.isfinite(grid.equation.density).all())
    except RuntimeError:  # singular: no noise acts somewhere
        return None
    return grid if solved and _BASINS[0] <= len(grid.watersheds[1]) <= _BASINS[1] else None


def share_curve(model: LangevinModel, grid: Landscape, series: Sequence[TimeSeries]) -> Curve:
    """Return how much of data and model lies in each basin of the equation, and where its bottom is."""
    number = len(grid.watersheds[1])

    def shares(side: TimeSeries) -> tuple[np.ndarray, np.ndarray]:
        parts = np.array_split(grid.labels[grid.locate(side.stacked().astype(float))], GROUPS)
        counts = np.array([np.bincount(part, minlength=number) for part in parts], float)
        return jackknife(lambda w: w @ counts / (w @ counts.sum(axis=1)), GROUPS)

    (data, data_error), (paths, path_error) = map(shares, series)
    coords = {
        "centre": (("basin", "axis"), grid.equation.states[grid.watersheds[1]]),
        "axis": (("axis",), list(model.names)),
        "axis_unit": (("axis",), list(model.units)),
    }
    return Curve(("basin",), data, paths, data_error, path_error, coords)


def passage_curve(model: LangevinModel, grid: Landscape, data: TimeSeries) -> Curve:
    """Return mean times from the core of a basin (`from`) to that of another (`to`); on the diagonal, to any other.

    Those of the data are counted between samples, which miss what happens between two of them; those of the model are
    the times to the first sample in the core at the same sampling interval. The coordinate `equation` is the time of
    the equation itself, which misses nothing.
    """
    cores = np.array([grid.core(k) for k in range(len(grid.watersheds[1]))])
    rows = [grid.locate(s.astype(float)) for s in data.segments]
    found = np.full((5, len(cores), len(cores)), np.nan)
    for i, j in np.ndindex(len(cores), len(cores)):
        target = cores[j] if i != j else _others(cores, i)
        begun, reached = ([states[r] for r in rows] for states in (cores[i], target))
        found[:2, i, j] = passage_times(_thinned(begun), reached, data.dt)
    coarse, *drawn = (
        Landscape.of(one, _FEW_POINTS[model.dimension]) for one in (model, *islice(model.replicas(), _REPLICAS))
    )
    seen = cores[:, grid.locate(coarse.equation.states)]
    found[3] = _times(grid, cores)
    found[2] = found[3] * _times(coarse, seen, data.dt) / _times(coarse, seen)
    if len(drawn) > 1:
        times = np.array([_times(replica, seen) for replica in drawn])
        found[4] = found[2] * times.std(axis=0, ddof=1) / times.mean(axis=0)
    value, error, sampled, exact, scatter = found
    units = {"value": model.time_unit, "equation": model.time_unit}
    return Curve(("from", "to"), value, sampled, error, scatter, {"equation": (("from", "to"), exact)}, units)


def _others(cores: np.ndarray, basin: int) -> np.ndarray:
    return np.logical_or.reduce(np.delete(cores, basin, axis=0))


def _times(grid: Landscape, cores: np.ndarray, dt: float | None = None) -> np.ndarray:
    """Return the times of all passages on a grid, (from, to)."""
    weights = np.where(cores, grid.density, 0.0)
    to_core = np.array([grid.times_to(core, dt) for core in cores])
    to_others = np.array([grid.times_to(_others(cores, i), dt) for i in range(len(cores))])
    times = weights @ to_core.T
    np.fill_diagonal(times, np.sum(weights * to_others, axis=1))
    return times / weights.sum(axis=1, keepdims=True)


def _thinned(begun: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return which samples a passage is counted from: every one of a few, every second of more, and so on."""
    every = max(1, -(-sum(int(part.sum()) for part in begun) // _MOST_STARTS))
    return [part & (np.cumsum(part) % every == 0) for part in begun]
