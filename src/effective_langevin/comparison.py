"""Comparison of models by their forecasts of one series, from the same states, in the variables of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ._core import checks
from ._core.errors import DataError
from ._core.format import after_number, count, listed, rounded
from .choice import take_simplest
from .data import TimeSeries
from .model import LangevinModel
from .model.forecast import count_leads, forecast_from, shortest
from .statistics.forecast_scores import choose_starts, energy_scores
from .statistics.integral_time import integral_times

_LEADS, _LONGEST, _FEWEST = 5, 64, 20


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models by the energy score of their forecasts, relative to the first: less is better.

    `excess` is the score less that of the best, with its `standard_error`, from groups of consecutive starts.
    `simplest` is the first model within one standard error of the best. A model with diverged members has an infinite
    score.
    """

    names: tuple[str, ...]
    score: Float[np.ndarray, " model"]
    excess: Float[np.ndarray, " model"]
    standard_error: Float[np.ndarray, " model"]
    by_lead: Float[np.ndarray, "model lead"]
    leads: Float[np.ndarray, " lead"]
    starts: int
    time_unit: str
    simplest: str

    @property
    def best(self) -> str:
        """The model with the least score."""
        return self.names[int(np.argmin(self.score))]

    def plot(self, ax: Any = None) -> Any:
        """Draw the score of every model against the lead.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        array of Axes
        """
        from .validate.plots import plot_comparison

        return plot_comparison(self, ax)

    def summary(self) -> str:
        """Return the table, as text."""
        width = max(len(name) for name in self.names) + 2
        lines = [repr(self), f"{'':{width}s}{'energy score':>14s}{'above the best':>20s}"]
        for name, score, excess, error in zip(self.names, self.score, self.excess, self.standard_error):
            gap = f"{excess:.4f} ± {error:.4f}" if np.isfinite(excess) else "members diverged"
            lines.append(f"{name:{width}s}{score:14.4f}{gap if name != self.best else 'best':>20s}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        longest = f"{rounded(float(self.leads[-1]))}{after_number(self.time_unit)}"
        ahead = f"{count(self.starts, 'start')}, leads up to {longest}"
        words = f"best {self.best}, simplest within its error {self.simplest}"
        return f"Comparison({listed(self.names)}; {ahead}; {words})"


def compare(
    models: Mapping[str, LangevinModel],
    series: TimeSeries,
    leads: float | Sequence[float] | None = None,
    *,
    members: int = 20,
    starts: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Compare models by ensemble forecasts of one series, best one that none of them has seen.

    The energy score is proper: on average no forecast beats the right one. Models may have other transforms and delays
    than one another; all forecast the variables of the data from the same times.

    Parameters
    ----------
    models : dict of LangevinModel
        Models by name, the simplest first.
    series : TimeSeries
        The series to forecast; `series.split(0.3, blocks=1)` holds out the last part of a record.
    leads : float or sequence of float, optional
        Times ahead, multiples of the sampling interval; default: five up to an integral time of the series.
    members : int, default 20
        Members of each ensemble.
    starts : int, default 1000
        Most starts, spread evenly over the series.
    seed : int, default 0
        Seed of all ensembles.

    Returns
    -------
    Comparison
        A table with `score`, `excess` and `standard_error` by model, `best`, `simplest` and `plot`.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(1000.0, dt=0.2, seed=1)
    >>> train, test = series.split(0.3, blocks=1)
    >>> options = {"score": el.Gaussian(), "check": "off"}
    >>> models = {name: el.fit(train, mobility=m, **options) for name, m in
    ...           {"log": el.LogCorrelation(), "increments": el.QuadraticVariation()}.items()}
    >>> el.compare(models, test, leads=[0.2, 0.6]).best
    'log'
    """
    checks.not_empty("models", list(models), "a dict of models by name")
    for name, model in models.items():
        checks.instance_of(f"models[{name!r}]", model, (LangevinModel,))
    checks.instance_of("series", series, (TimeSeries,), "Wrap your array first: el.TimeSeries(values, dt=...).")
    members, starts = checks.integer_at_least("members", members, 2), checks.integer_at_least("starts", starts, _FEWEST)
    centred = series.map(lambda segment: segment - series.stacked().mean(axis=0))
    steps = default_leads(centred) if leads is None else count_leads(leads, series.dt)
    unit = series.stacked().std(axis=0)
    scores = score_forecasts(models, series, steps, unit, members=members, starts=starts, seed=seed)
    return tabulate(scores, steps * series.dt, series.time_unit)


def score_forecasts(
    models: Mapping[str, LangevinModel],
    series: TimeSeries,
    steps: np.ndarray,
    unit: np.ndarray,
    *,
    members: int = 20,
    starts: int = 1000,
    seed: int = 0,
) -> dict[str, Float[np.ndarray, "start lead"]]:
    """Return the energy scores of the forecasts of every model, in `unit` of each variable, from the same times."""
    rows = choose_starts([len(s) for s in series.segments], int(steps[-1]), series.n_samples)
    first = min(series.starts)
    keys = _moments(series, first)
    sides = {name: model.to_model_variables(series) for name, model in models.items()}
    for own in sides.values():
        rows = rows[np.isin(keys[rows], _moments(own, first))]
    if len(rows) < _FEWEST:
        raise DataError(
            f"The models have {count(len(rows), 'common state')} with {steps[-1]} sampling intervals without a gap "
            f"after it; a comparison needs {_FEWEST}. Ask for shorter leads, or give a longer series."
        )
    rows = rows[np.linspace(0, len(rows) - 1, min(starts, len(rows))).astype(int)]
    outcome = np.stack([series.stacked()[rows + k] for k in steps], axis=1)
    scores = {}
    for name, model in models.items():
        own = sides[name]
        place = np.searchsorted(_moments(own, first), keys[rows])
        states = model.standardizer.to_standard(own.stacked()[place])
        found = forecast_from(model, states, np.concatenate(own.times)[place], steps, members=members, seed=seed)
        errors = np.moveaxis(shortest(found.values - outcome[:, None], found.periods) / unit, 1, 0)
        scores[name] = np.stack(
            [energy_scores(errors[:, :, k], np.zeros_like(outcome[:, k])) for k in range(len(steps))], 1
        )
    return scores


def tabulate(scores: Mapping[str, np.ndarray], leads: np.ndarray, time_unit: str, spared: float = 0.0) -> Comparison:
    """Return the comparison, from scores of the same starts; models with diverged members come last.

    `simplest` may be worse than the best by the share `spared` of the first score beside one standard error.
    """
    sound = {name: score for name, score in scores.items() if np.isfinite(score).all()}
    choice = take_simplest(sound, spared)
    known = {c.kind: (c.loss, c.excess, c.standard_error) for c in choice.candidates}
    score, excess, error = np.array([known.get(name, (np.inf, np.inf, np.nan)) for name in scores]).T
    by_start = np.array(list(scores.values()))
    starts = by_start.shape[1]
    return Comparison(tuple(scores), score, excess, error, by_start.mean(axis=1), leads, starts, time_unit, choice.kind)


def default_leads(series: TimeSeries) -> np.ndarray:
    """Return five leads in samples, up to an integral time of a series of mean zero."""
    forgets = float(np.mean(integral_times(series.segments, series.dt)) / series.dt)
    return np.unique(np.geomspace(1, np.clip(round(forgets), 1, _LONGEST), _LEADS).round().astype(int))


def _moments(series: TimeSeries, first: float) -> np.ndarray:
    """Return a number for the record and the time since `first` of every sample, rising."""
    number = [np.rint((t - first) / series.dt) for t in series.times]
    return np.concatenate([record * 1e10 + n for record, n in zip(series.records, number)])
