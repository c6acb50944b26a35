"""`el.fit` as a driver: it diagnoses and transforms the series once, and follows one policy for bad series."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.data.preprocess import temporal

QUICK = {"score": el.Gaussian(), "mobility": el.QuadraticVariation()}


@pytest.fixture(scope="module")
def random_walk():
    return el.TimeSeries(np.cumsum(np.random.default_rng(0).normal(size=(4000, 1)), axis=0), 1.0)


def test_a_series_that_is_not_stationary_is_fitted_with_a_warning_and_remembered(random_walk):
    with pytest.warns(el.EstimateWarning, match="stationary|random walk|trend"):
        model = el.fit(random_walk, **QUICK)
    assert model.provenance["forced"] == model.diagnosis.finding("stationarity").meaning


def test_it_is_refused_on_request(random_walk):
    with pytest.raises(el.DataError, match='check="warn"'):
        el.fit(random_walk, **QUICK, check="error")


def test_it_is_not_looked_at_on_request(random_walk):
    model = el.fit(random_walk, **QUICK, check="off")
    assert model.diagnosis is None
    assert "forced" not in model.provenance


def test_another_policy_is_refused(random_walk):
    with pytest.raises(el.ArgumentError, match="check"):
        el.fit(random_walk, check="maybe")


@pytest.mark.filterwarnings("ignore::effective_langevin.EstimateWarning")
def test_transforms_that_would_treat_an_angle_as_a_number_are_refused():
    """A trend of degrees means nothing; cos and sin of the angle may have one, and a transform beside it is fine."""
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.uniform(0, 360, 600), np.exp(rng.normal(size=600))])
    series = el.TimeSeries(values, 1.0, names=["wind", "rain"], periods=[360, None])
    for transform in (el.preprocess.Detrend(), el.preprocess.PCA(components=1)):
        with pytest.raises(el.DataError, match=r"'wind' is an angle.*Periodic\(\['wind'\], period=360\)"):
            el.fit(series, preprocess=transform, **QUICK)
    before = [el.preprocess.Periodic(["wind"], period=360), el.preprocess.Detrend()]
    assert el.fit(series, preprocess=before, check="off", **QUICK).names == ("cos(wind)", "sin(wind)", "rain")
    score = el.DenoisingScore(el.MLP((8,)), noise_level=0.3, epochs=1, epoch_samples=2000)
    log = el.preprocess.Log(["rain"])
    beside = el.fit(series, preprocess=log, score=score, mobility=el.IntegratedResponse(), check="off")
    assert beside.space.periods == (360.0, None)


def test_the_series_is_transformed_once(linear_series, monkeypatch):
    calls, apply = [], temporal.FittedDetrend.apply
    monkeypatch.setattr(temporal.FittedDetrend, "apply", lambda self, series: calls.append(1) or apply(self, series))
    el.fit(linear_series, preprocess=el.preprocess.Detrend(), **QUICK)
    assert len(calls) == 1
