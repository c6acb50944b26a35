"""Hindcasts: forecasts of a series that is known, scored against what came, beside three simple references.

Climatology draws states of the training data. Persistence keeps the state. A linear inverse model, x' = G x + noise
with G = C(h) C(0)^-1, is the best that linear dynamics can do from one sampling interval. All three live in the model's
variables, so that a season, a trend or delays that the model knows are known to them too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ._core import checks, keys
from ._core.errors import DataError
from ._core.format import count, listed, rounded
from ._core.types import Paths, Samples
from .data import TimeSeries
from .model import LangevinModel
from .model.forecast import Forecast, Propagate, count_leads, forecast_from, shortest
from .statistics.forecast_scores import (
    choose_starts,
    member_quantiles,
    ranked_scores,
    ranks_of_outcome,
    squared_errors_of_mean,
)
from .statistics.integral_time import error_groups
from .statistics.resampling import moving_blocks, scatter_of_draws

_BINS = 10
_FEWEST = 8
_CELLS = 8  # groups of starts in a block

ByLead = Float[np.ndarray, "lead var"]


@dataclass(frozen=True, eq=False)
class ForecastScores:
    """Scores of one way to forecast, (group of starts, lead, var), in units of the series.

    The mean over groups is that over starts. `inside` is the share of outcomes within the band; `ranks` (bin, lead,
    var) the share of outcomes at each rank among the members, even for a right forecast. Without spread, both are NaN.
    """

    squared_error: Float[np.ndarray, "group lead var"]
    variance: Float[np.ndarray, "group lead var"]
    ranked: Float[np.ndarray, "group lead var"]
    inside: Float[np.ndarray, "group lead var"]
    ranks: Float[np.ndarray, "bin lead var"]

    @property
    def rmse(self) -> ByLead:
        """Root mean squared error of the ensemble mean."""
        return np.sqrt(np.maximum(self.squared_error.mean(axis=0), 0.0))

    @property
    def spread(self) -> ByLead:
        """Root mean variance of the members: as large as `rmse` for a right forecast."""
        return np.sqrt(self.variance.mean(axis=0))

    @property
    def crps(self) -> ByLead:
        """Continuous ranked probability score: the mean absolute error, for a forecast without spread."""
        return self.ranked.mean(axis=0)

    @property
    def coverage(self) -> ByLead:
        """Share of the outcomes within the band."""
        return self.inside.mean(axis=0)


@dataclass(frozen=True, eq=False)
class SkillRatio:
    """Score of the model over that of a reference, with its standard error and an interval of 95 %, for each lead."""

    value: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Hindcast:
    """Scores by way of forecasting: `model`, `climatology`, `persistence` and `linear` (linear inverse model).

    `unit` (var,) is the spread of each variable, in which scores of several variables are pooled. `level` is that of
    the band whose coverage is counted. Errors come from `blocks` blocks of consecutive groups of starts.
    """

    scores: Mapping[str, ForecastScores]
    leads: Float[np.ndarray, " lead"]
    names: tuple[str, ...]
    time_unit: str
    unit: Float[np.ndarray, " var"]
    level: float
    starts: int
    members: int
    diverged: int
    blocks: int

    def ratio(self, reference: str = "linear", score: str = "crps", *, variable: str | None = None) -> SkillRatio:
        """Return the score of the model over that of a reference: below one, the model is better.

        Errors come from blocks of consecutive starts that begin anywhere, drawn with replacement.

        Parameters
        ----------
        reference : {"linear", "climatology", "persistence"}, default "linear"
            With what to compare.
        score : {"crps", "rmse"}, default "crps"
            Which score.
        variable : str, optional
            One variable; default: all, each in units of its spread.

        Returns
        -------
        SkillRatio
            Arrays by lead.
        """
        checks.one_of("reference", reference, [name for name in self.scores if name != "model"])
        checks.one_of("score", score, ("crps", "rmse"))
        part, power = ("ranked", 1) if score == "crps" else ("squared_error", 2)
        weights = self.unit ** -float(power)
        if variable is not None:
            checks.known_names("variable", variable, self.names, "the hindcast")
            weights = np.where([name == variable for name in self.names], weights, 0.0)
        ours, theirs = (getattr(self.scores[name], part) @ weights for name in ("model", reference))

        def ratio(counts: np.ndarray) -> np.ndarray:
            return (counts @ ours / (counts @ theirs)) ** (1 / power)

        drawn = ratio(moving_blocks(len(ours), self.blocks, draws=1000))
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
        return SkillRatio(ratio(np.ones(len(ours))), scatter_of_draws(drawn, self.blocks), low, high)

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores of all ways to forecast against the lead, and the coverage of the bands.

        Parameters
        ----------
        ax : array of three Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        array of Axes
        """
        from .validate.plots import plot_hindcast

        return plot_hindcast(self, ax)

    def pooled(self, way: str, part: str) -> Float[np.ndarray, " lead"]:
        """Return rmse, spread or crps of one way to forecast over all variables, each in units of its spread.

        Parameters
        ----------
        way : str
            One of the names in `scores`.
        part : {"rmse", "spread", "crps", "coverage"}
            Which score; the coverage is the mean over variables.

        Returns
        -------
        array, shape (lead,)
        """
        value = getattr(self.scores[way], part)
        if part == "coverage":
            return value.mean(axis=1)
        value = value / self.unit
        return value.mean(axis=1) if part == "crps" else np.sqrt((value**2).mean(axis=1))

    def summary(self) -> str:
        """Return the scores at a few leads, as text; of several variables, each in units of its spread."""
        shown = np.unique(np.geomspace(1, len(self.leads), 6).round().astype(int) - 1)
        unit = f" {self.time_unit}" if self.time_unit else ""
        lines = [repr(self), "", f"{'':26s}" + "".join(f"{rounded(t) + unit:>14s}" for t in self.leads[shown])]
        rows = {f"{part}, {way}": self.pooled(way, part) for part in ("rmse", "crps") for way in self.scores}
        rows["spread / rmse, model"] = self.pooled("model", "spread") / self.pooled("model", "rmse")
        rows[f"coverage of {100 * self.level:g} %, model"] = self.pooled("model", "coverage")
        lines += [f"{name:26s}" + "".join(f"{v:14.3f}" for v in values[shown]) for name, values in rows.items()]
        found = self.ratio()
        texts = [f"{v:.3f} ± {e:.3f}" for v, e in zip(found.value[shown], found.standard_error[shown])]
        return "\n".join([*lines, f"{'crps, model / linear':26s}" + "".join(f"{text:>14s}" for text in texts)])

    def __repr__(self) -> str:
        lost = f"; {count(self.diverged, 'member')} diverged" if self.diverged else ""
        size = f"{count(self.starts, 'start')}, {count(self.members, 'member')}{lost}"
        skill = self.ratio()
        worst = int(np.argmax(skill.value))
        against = f"{skill.value[worst]:.2f} ± {skill.standard_error[worst]:.2f}"
        return f"Hindcast({listed(self.names)}; {size}; crps over that of a linear inverse model at most {against})"


def hindcast(
    model: LangevinModel,
    series: TimeSeries,
    leads: float | Sequence[float],
    *,
    train: TimeSeries | None = None,
    members: int = 50,
    starts: int = 1000,
    level: float = 0.9,
    seed: int = 0,
) -> Hindcast:
    """Forecast from many states of a known series and score the forecasts, beside simple references.

    Score a series that the model has not seen: `train, test = series.split(0.3, blocks=1)` holds out its last part,
    `el.fit(train)` learns from the first.

    Parameters
    ----------
    model : LangevinModel
        The model.
    series : TimeSeries
        The series to forecast, in the variables of the one that was learned from.
    leads : float or sequence of float
        Times ahead, multiples of the sampling interval; a number stands for all of them up to it.
    train : TimeSeries, optional
        What the references learn from; default: `series`, an advantage that the model does not have.
    members : int, default 50
        Members of each ensemble.
    starts : int, default 1000
        Most starts, spread evenly over the series.
    level : float, default 0.9
        Level of the bands whose coverage is counted.
    seed : int, default 0
        Seed of all ensembles.

    Returns
    -------
    Hindcast
        `scores` of the model, climatology, persistence and a linear inverse model; `ratio`, `summary` and `plot`.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(2000.0, dt=0.2, seed=1)
    >>> train, test = series.split(0.3, blocks=1)
    >>> model = el.fit(train, score=el.Gaussian(), mobility=el.LogCorrelation())
    >>> found = el.hindcast(model, test, leads=[0.2, 1.0, 2.0], train=train)
    >>> found.scores["model"].rmse.shape
    (3, 2)
    """
    checks.instance_of("model", model, (LangevinModel,))
    checks.instance_of("series", series, (TimeSeries,), "Wrap your array first: el.TimeSeries(values, dt=...).")
    level, steps = checks.fraction("level", level), count_leads(leads, model.dt)
    members, most = checks.integer_at_least("members", members, 10), checks.integer_at_least("starts", starts, _FEWEST)
    own, seen = align(model, series)
    rows = choose_starts([len(s) for s in own.segments], int(steps[-1]), most)
    if len(rows) < _FEWEST:
        raise DataError(
            f"The series has {count(len(rows), 'state')} with {steps[-1]} sampling intervals without a gap after it; a "
            f"hindcast needs at least {_FEWEST}. Ask for shorter leads, or give a longer series."
        )
    states, times = model.standardizer.to_standard(own.stacked())[rows], np.concatenate(own.times)[rows]
    outcome = np.stack([seen[rows + step] for step in steps], axis=1)
    learned = own if train is None else model.to_model_variables(train)
    learned = [model.standardizer.to_standard(segment) for segment in learned.segments]
    blocks = error_groups([segment - seen.mean(axis=0) for segment in series.segments], series.dt)
    groups = blocks * max(1, min(_CELLS, len(rows) // blocks))
    scores, lost = {}, 0
    for way, propagate in _references(learned).items():
        size = 1 if way == "persistence" else members
        found = forecast_from(model, states, times, steps, members=size, seed=seed, propagate=propagate)
        lost += int(found.diverged.sum())
        scores[way] = _score(found, outcome, groups, level)
    unit = seen.std(axis=0)
    labels = (steps * model.dt, series.names, series.time_unit, unit, level)
    return Hindcast(scores, *labels, len(rows), members, lost, min(blocks, len(rows)))


def align(model: LangevinModel, series: TimeSeries) -> tuple[TimeSeries, Samples]:
    """Return the series in the model's variables, and for each of its samples that of the data at the same time."""
    own, parts = model.to_model_variables(series), []
    for segment, record, start in zip(own.segments, own.records, own.starts):
        rows = ((start - begin) / series.dt for begin in series.starts)
        places = zip(series.segments, series.records, (round(row) for row in rows))
        parts += [
            whole[row : row + len(segment)] for whole, of, row in places if of == record and 0 <= row < len(whole)
        ]
    return own, np.concatenate(parts)


def _references(learned: Sequence[Samples]) -> dict[str, Propagate | None]:
    """Return the ways to go on from standardised states; None is the model."""
    samples = np.concatenate(learned)
    centre = samples.mean(axis=0)
    before, after = (np.concatenate([s[part] for s in learned]) - centre for part in (slice(-1), slice(1, None)))
    step = after.T @ before @ np.linalg.pinv(before.T @ before)
    covariance = np.cov(samples.T, bias=True).reshape(len(step), -1)
    values, vectors = np.linalg.eigh(covariance - step @ covariance @ step.T)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))

    def draw(states: Samples, frames: int, key: jax.Array) -> Paths:
        rows = np.asarray(jax.random.choice(keys.named(key, "climatology"), len(samples), (len(states),)))
        return np.repeat(samples[rows][:, None], frames + 1, axis=1)

    def keep(states: Samples, frames: int, key: jax.Array) -> Paths:
        return np.repeat(states[:, None], frames + 1, axis=1)

    def linear(states: Samples, frames: int, key: jax.Array) -> Paths:
        noise = np.asarray(jax.random.normal(keys.named(key, "linear"), (frames, *states.shape)))
        paths = [states - centre]
        for drawn in noise:
            paths.append(paths[-1] @ step.T + drawn @ factor.T)
        return np.stack(paths, axis=1) + centre

    return {"model": None, "climatology": draw, "persistence": keep, "linear": linear}


def _score(found: Forecast, outcome: Float[np.ndarray, "start lead var"], groups: int, level: float) -> ForecastScores:
    """Score forecasts of which the outcome is known, in groups of consecutive starts."""
    errors = np.moveaxis(shortest(found.values - outcome[:, None], found.periods), 1, 0)
    squared, variance = squared_errors_of_mean(errors)
    parts: dict[str, np.ndarray] = {"squared_error": squared, "variance": variance, "ranked": ranked_scores(errors)}
    low, high = member_quantiles(errors, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    sharp = len(errors) == 1
    parts["inside"] = np.where(sharp, np.nan, (low <= 0) & (high >= 0))
    place = np.minimum((_BINS * ranks_of_outcome(errors)).astype(int), _BINS - 1)
    counts = np.stack([(place == k).mean(axis=0) for k in range(_BINS)])
    groups = min(groups, len(outcome))
    grouped = {  # groups may differ by one start: their mean is that over starts
        name: np.stack([part.sum(axis=0) for part in np.array_split(value, groups)]) * (groups / len(outcome))
        for name, value in parts.items()
    }
    return ForecastScores(**grouped, ranks=np.where(sharp, np.nan, counts))
