"""The held-out check of a fit: a closure from the first part of a record predicts the correlations of the rest.

The density is that of the whole record; `el.predict_held_out` learns it from the first part too, and takes longer.
"""

import warnings
from collections.abc import Callable

import jax
import numpy as np

from ._core.errors import DataError, DivergenceError, EstimateWarning
from .data import TimeSeries
from .data.preprocess.pointwise import embed_angles
from .estimate.mobility.base import ClosureFit, ClosureStrategy
from .estimate.mobility.evidence import HeldOutCheck
from .estimate.score import ScoreFit
from .estimate.space import StateSpace
from .model import LangevinModel
from .statistics.densities import comparison_lags, histogram_edges, series_statistics
from .statistics.integral_time import error_groups, integral_times
from .validate.fields_view import FieldsView
from .validate.findings.aspects import time_scales
from .validate.sides import Sides
from .validate.variables_view import VariablesView

_SHARE = 0.3
_LEAST_GROUPS = 10  # independent parts of the held-out samples, each ten integral times long
_MEMBERS, _SAMPLES, _MOST_VALUES = 256, (50_000, 200_000), 4_000_000


def check_held_out(
    series: TimeSeries,
    strategy: ClosureStrategy,
    score: ScoreFit,
    space: StateSpace,
    model_of: Callable[[ClosureFit], LangevinModel],
    *,
    seed: int,
    key: jax.Array,
) -> HeldOutCheck | None:
    """Close the equation on the first 70 % of a standardised series, and compare correlations of the rest.

    `model_of` returns the model with a closure. None where the rest is too short to tell, or nothing can be inferred.
    """
    used, kept = series.split(held_out=_SHARE, blocks=1)
    times = integral_times(kept.segments, kept.dt)
    groups = error_groups(kept.segments, kept.dt, times)
    if groups < _LEAST_GROUPS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EstimateWarning)  # the closure of the whole series warns for itself
            closure = strategy.close(used, score, space, key=key)
            model = model_of(closure)
            sides = _simulate(model, kept, times, seed)
    except (DataError, DivergenceError):
        return None
    error = np.linalg.norm(closure.mobility.standard_error) / np.linalg.norm(closure.mobility.matrix)
    view = (FieldsView if space.channels else VariablesView)(model, sides)
    names = [str(name) for name in view.labels()["variable"][1]]
    found = time_scales(sides, names, groups, float(error))
    outcome = found.outcomes[1]
    sizes = (used.n_samples, kept.n_samples, found.compared, found.within)
    return HeldOutCheck(*sizes, found.words(), outcome.p_small, outcome.p_large)


def _simulate(model: LangevinModel, kept: TimeSeries, times: np.ndarray, seed: int) -> Sides:
    """Return held-out samples and paths that begin at states of the data, in the model's variables."""
    data = embed_angles(model.space.declare(kept.map(model.standardizer.to_physical)))
    lags = comparison_lags(times, data.segments, data.dt)
    samples = int(min(np.clip(2 * data.n_samples, *_SAMPLES), _MOST_VALUES / data.dimension))
    frames = max(2 * int(lags[-1]), samples // _MEMBERS)
    paths = embed_angles(model.simulate(frames * data.dt, members=_MEMBERS, seed=seed))
    edges = histogram_edges(data.stacked())
    ours, theirs = (series_statistics(s.segments, s.dt, edges, lags) for s in (data, paths))
    return Sides(data, paths, ours, theirs, times, model.standardizer.to_standard, None)
