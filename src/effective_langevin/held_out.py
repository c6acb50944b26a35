"""Closures inferred from four fifths of a series, and how well they forecast the rest."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import jax
import numpy as np
from jaxtyping import Float

from ._core.errors import DataError, EstimateWarning
from .data import TimeSeries
from .estimate.closure.evidence import HeldOutCheck
from .estimate.mobility.base import ClosureFit, ClosureStrategy
from .estimate.score import ScoreFit
from .estimate.space import StateSpace
from .forecast_skill import MEMBERS, Forecasts
from .model import LangevinModel
from .statistics.integral_time import integral_times
from .statistics.joint_tests import StudentNull
from .statistics.resampling import GROUPS, jackknife

LEAST_INDEPENDENT = 100  # samples of the whole series
_SMALL_SHARE, _SMALL_SLOPE = 0.02, 0.05  # smaller departures do not matter
_LEAST_SIGNAL = 0.01  # share of the variance that a forecast must foresee for its slope to be tested
_SPREAD_TO_SHARE = 0.44  # change of the share within the range of ten draws from a normal law, per relative spread


def count_independent(series: TimeSeries) -> float:
    """Return the number of independent samples of the slowest variable of a series of mean zero."""
    return series.n_samples * series.dt / (2 * integral_times(series.segments, series.dt).max())


@dataclass(eq=False)
class Trials:
    """Closures without the held-out stretches of a standardised series, each inferred and simulated once.

    The score is that of the whole series. `model_of` returns the model with a closure.
    """

    series: TimeSeries
    score: ScoreFit
    space: StateSpace
    model_of: Callable[[ClosureFit], LangevinModel]
    key: jax.Array
    forecasts: Forecasts | None = None
    _closures: dict[int, ClosureFit] = field(default_factory=dict)
    _ensembles: dict[int, np.ndarray | None] = field(default_factory=dict)

    @cached_property
    def parts(self) -> tuple[TimeSeries, TimeSeries]:
        """The series without the held-out stretches, and those."""
        return self.series.split()

    @cached_property
    def independent(self) -> float:
        """Number of independent samples of the slowest variable."""
        return count_independent(self.series)

    def close(self, strategy: ClosureStrategy) -> ClosureFit:
        """Infer a closure without the held-out stretches; the one that is taken in the end warns for itself."""
        if id(strategy) not in self._closures:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EstimateWarning)
                self._closures[id(strategy)] = strategy.close(self.parts[0], self.score, self.space, key=self.key)
        return self._closures[id(strategy)]

    def forecast(self, *strategies: ClosureStrategy) -> list[np.ndarray | None]:
        """Return ensembles (member, start, lag, var) from held-out states; None where a member diverged.

        The first call sets the states and lags, from the finest step among its models.
        """
        models = {id(s): self.model_of(self.close(s)) for s in strategies if id(s) not in self._ensembles}
        if self.forecasts is None:
            step = min(model.automatic_step() for model in models.values())
            self.forecasts = Forecasts.of(self.parts[1], self.space, step)
        self._ensembles |= {which: self.forecasts.ensemble(model) for which, model in models.items()}
        return [self._ensembles[id(s)] for s in strategies]

    def equate(self, simpler: ClosureStrategy, richer: ClosureStrategy) -> None:
        """Let a strategy that infers the same closure as another share its results."""
        self._closures[id(simpler)] = self._closures[id(richer)]
        self._ensembles[id(simpler)] = self._ensembles[id(richer)]


def check_by_forecasts(trials: Trials, strategy: ClosureStrategy) -> HeldOutCheck | None:
    """Compare ten forecasts from each held-out state with what came after, at all lags and for all variables together.

    Two things are tested: the share of outcomes between the lowest and the highest forecast, which tells of the spread,
    and the slope of outcomes against mean forecasts, one for right time scales. The error of the mobility counts: a
    relative error r changes a spread by r / 2 at most, and a slope by r within an integral time. None where the record
    is too short, or where lag 0 is in doubt: one cannot forecast from a state that is known with noise or blur.
    """
    if trials.independent < LEAST_INDEPENDENT:
        return None
    try:
        mobility = trials.close(strategy).mobility
        (ensemble,) = trials.forecast(strategy)
    except DataError:
        return None
    if ensemble is None or mobility.evidence.noisy or mobility.evidence.blurred:
        return None
    forecasts = cast(Forecasts, trials.forecasts)
    fields = trials.space.channels or ensemble.shape[-1]
    known = float(np.nan_to_num(np.linalg.norm(mobility.standard_error) / np.linalg.norm(mobility.matrix)))
    by_start = _statistics(ensemble, forecasts.outcomes, fields)
    groups = min(GROUPS, len(forecasts.states))

    def estimate(weights: np.ndarray) -> np.ndarray:
        shares, products, squares = np.tensordot(weights, by_group, 1) / weights.sum()
        return np.stack([shares, products / np.maximum(squares, _LEAST_SIGNAL)])

    by_group = np.array([part.mean(axis=0) for part in np.array_split(by_start, groups)])
    found, scatter = jackknife(estimate, groups)
    limits = np.array([_SMALL_SHARE, _SMALL_SLOPE])[:, None, None]
    expected = np.array([(MEMBERS - 1) / (MEMBERS + 1), 1.0])[:, None, None]
    errors = np.hypot(scatter, known * np.array([0.5 * _SPREAD_TO_SHARE, 1.0])[:, None, None])
    sizes = (np.abs(found - expected) - limits) / errors
    sizes[1] = np.where(by_group[:, 2].mean(axis=0) > _LEAST_SIGNAL, sizes[1], -np.inf)
    kind, lag, variable = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
    return HeldOutCheck(
        lags=tuple(float(lag * trials.series.dt) for lag in forecasts.lags),
        starts=len(forecasts.states),
        members=MEMBERS,
        kind=("share", "slope")[kind],
        variable=_names(trials.series, trials.space)[variable],
        lag=float(forecasts.lags[lag] * trials.series.dt),
        expected=float(expected[kind, 0, 0]),
        value=float(found[kind, lag, variable]),
        error=float(errors[kind, lag, variable]),
        p=StudentNull(groups, sizes.size).chance(float(sizes.max())),
        **_skill(forecasts, ensemble, groups),
        shares=tuple(found[0].mean(axis=1).tolist()),
    )


def _skill(
    forecasts: Forecasts, ensemble: Float[np.ndarray, "member start lag var"], groups: int
) -> dict[str, tuple[float, ...]]:
    """Return the energy scores of forecasts over those of climatology and of persistence, with their errors."""
    scores = np.stack([forecasts.scores(ensemble), forecasts.climatology(0), forecasts.persistence()], axis=1)
    by_group = np.array([part.mean(axis=0) for part in np.array_split(scores, groups)])

    def ratios(weights: np.ndarray) -> np.ndarray:
        own, *others = np.tensordot(weights, by_group, 1)
        return own / others

    (climatology, persistence), errors = jackknife(ratios, groups)
    found = {"climatology": (climatology, errors[0]), "persistence": (persistence, errors[1])}
    values = {f"of_{name}": value for name, (value, _) in found.items()}
    values |= {f"of_{name}_error": error for name, (_, error) in found.items()}
    return {name: tuple(value.tolist()) for name, value in values.items()}


def _names(series: TimeSeries, space: StateSpace) -> list[str]:
    """Return the names of what is compared: fields, or variables with cos and sin of the angles last."""
    if space.channels:
        return ["the field"] if space.channels == 1 else [f"field {k + 1}" for k in range(space.channels)]
    labels = list(zip(series.names, space.periods))[: space.observed]
    lines = [name for name, period in labels if period is None]
    angles = [name for name, period in labels if period is not None]
    return [*lines, *(f"{way}({name})" for name in angles for way in ("cos", "sin"))]


def _statistics(
    ensemble: Float[np.ndarray, "member start lag var"], outcome: Float[np.ndarray, "start lag var"], fields: int
) -> Float[np.ndarray, "start kind lag field"]:
    """Return whether the range holds the outcome, outcome times mean, and the squared mean without that of the scatter.

    Fields are averaged over their points.
    """
    members, mean = len(ensemble), ensemble.mean(axis=0)
    squared_mean = mean**2 - ensemble.var(axis=0, ddof=1) / members
    inside = (ensemble.min(axis=0) <= outcome) & (outcome <= ensemble.max(axis=0))
    found = np.stack([inside, outcome * mean, squared_mean], axis=1)
    return found.reshape(*found.shape[:3], fields, -1).mean(axis=-1)
