"""Validation by prediction: fit on one part of a series, predict the statistics of the other, count what held.

The prediction of a curve has three errors: the mobility is known to some error (its replicas are simulated), the
simulation is finite, and the density was learned from a finite part. The observation has a sampling error, too.
A band that adds them all should hold the observation as often as it says.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from ._core import checks
from .data import TimeSeries
from .fit import fit
from .model import LangevinModel
from .statistics.densities import SeriesStatistics, series_statistics
from .statistics.resampling import GROUPS, jackknife
from .validate import Validation, validate

_REPLICAS = 8
_BINS = 25
_SHARE = 8


@dataclass(frozen=True, eq=False)
class Band:
    """A predicted curve with its error, what was observed with its own, and the level at which they are compared."""

    predicted: np.ndarray
    prediction_error: np.ndarray
    observed: np.ndarray
    observation_error: np.ndarray
    level: float

    @property
    def half_width(self) -> np.ndarray:
        """Half the width of the band in which an observation is expected."""
        return ndtri(0.5 * (1 + self.level)) * np.hypot(self.prediction_error, self.observation_error)

    @property
    def coverage(self) -> float:
        """Share of the observations within the band."""
        return float(np.mean(np.abs(self.observed - self.predicted) <= self.half_width))


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """A model of one part of a series, its validation on the other, and bands: `acf` (lag, var), `pdf` (var, bin)."""

    model: LangevinModel
    validation: Validation
    tau: Float[np.ndarray, " lag"]
    acf: Band
    pdf: Band

    @property
    def coverage(self) -> dict[str, float]:
        """Share of the held-out autocorrelations and densities within their bands."""
        return {"acf": self.acf.coverage, "pdf": self.pdf.coverage}

    def __repr__(self) -> str:
        return f"Prediction(coverage of {100 * self.acf.level:g} % bands: {self.coverage})"

    def summary(self) -> str:
        """Describe the coverage and the validation on the held-out part."""
        shares = ", ".join(f"{100 * share:.0f} % of the {name}" for name, share in self.coverage.items())
        return (
            f"Bands of {100 * self.acf.level:g} % hold {shares} of the part that was not used.\n\n"
            f"{self.validation.summary()}"
        )


def predict_held_out(
    series: TimeSeries, *, share: float = 0.5, level: float = 0.95, seed: int = 0, **options: Any
) -> Prediction:
    """Fit on the first part of a series, predict the rest, and count how often the stated bands hold.

    The parts are consecutive in time; of several records, the first ones are used.

    Parameters
    ----------
    series : TimeSeries
        The whole series.
    share : float, default 0.5
        The share to fit.
    level : float, default 0.95
        Confidence level of the bands.
    seed : int, default 0
        Seed of fit and simulation.
    **options : object
        Options of `el.fit`.

    Returns
    -------
    Prediction
        With `model`, `validation`, `coverage`, and the bands `acf` (lag, var) and `pdf` (var, bin).

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(400.0, dt=0.2, seed=1)
    >>> found = el.predict_held_out(series, score=el.Gaussian(), mobility=el.LogCorrelation())
    >>> sorted(found.coverage)
    ['acf', 'pdf']
    """
    checks.instance_of("series", series, (TimeSeries,), "Wrap your array first: el.TimeSeries(values, dt=...).")
    share, level = checks.fraction("share", share), checks.fraction("level", level)
    used, kept = series.split(held_out=1 - share, blocks=1)
    model = fit(used, seed=seed, **options)
    validation = validate(model, kept, seed=seed + 1)
    return Prediction(model, validation, validation.data_statistics.tau, *_bands(model, validation, used, level, seed))


def _bands(model: LangevinModel, validation: Validation, used: TimeSeries, level: float, seed: int) -> list[Band]:
    """The predicted autocorrelations and densities, with all their errors."""
    data, predicted = validation.data_statistics, validation.model_statistics
    known = model.space.embed_observed(model.to_model_variables(used))
    learned = series_statistics(known.segments, known.dt, data.edges, data.lagged.lags)

    def acf(statistics: SeriesStatistics) -> tuple[np.ndarray, np.ndarray]:
        return jackknife(statistics.acf, GROUPS)

    def pdf(statistics: SeriesStatistics) -> tuple[np.ndarray, np.ndarray]:
        def shares(weights: np.ndarray) -> np.ndarray:
            wide = statistics.histogram(weights).reshape(len(data.edges), _BINS, -1).sum(axis=2)
            return wide / wide.sum(axis=1, keepdims=True)

        return jackknife(shares, GROUPS)

    spread = _spread_of_replicas(model, validation, seed)
    return [
        Band(acf(predicted)[0], np.hypot(acf(predicted)[1], spread), *acf(data), level),
        Band(pdf(predicted)[0], np.hypot(pdf(predicted)[1], pdf(learned)[1]), *pdf(data), level),
    ]


def _spread_of_replicas(model: LangevinModel, validation: Validation, seed: int) -> np.ndarray:
    """Scatter of the autocorrelations over replicas of the mobility, driven by the same noise."""
    statistics, paths = validation.model_statistics, validation.paths
    members = max(8, len(paths.segments) // _SHARE)
    duration = (len(paths.segments[0]) - 1) * paths.dt
    curves = []
    for replica in islice(model.replicas(), _REPLICAS):
        own = replica.simulate(duration, members=members, seed=seed + 1, dt=paths.dt, transformed=True)
        simulated = model.space.embed_observed(own)
        found = series_statistics(simulated.segments, simulated.dt, statistics.edges, statistics.lagged.lags)
        curves.append(found.acf(np.ones(GROUPS)))
    return np.std(curves, axis=0, ddof=1)
