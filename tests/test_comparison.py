import numpy as np
import pytest

import effective_langevin as el

PROCESS = el.systems.OrnsteinUhlenbeck.rotating(2)
LINEAR = {"score": el.Gaussian(), "check": "off"}


@pytest.fixture(scope="module")
def parts():
    return PROCESS.simulate(4000.0, dt=0.2, seed=1).split(0.4, blocks=1)


@pytest.fixture(scope="module")
def models(parts):
    """The right linear model, twice; increments over 0.2, which are biased, without and with a delay."""
    train, _ = parts
    delay = el.preprocess.DelayEmbedding([1])
    return {
        "increments": el.fit(train, mobility=el.QuadraticVariation(), **LINEAR),
        "log": el.fit(train, mobility=el.LogCorrelation(), **LINEAR),
        "again": el.fit(train.split(0.1)[0], mobility=el.LogCorrelation(), **LINEAR),
        "delay": el.fit(train, preprocess=delay, mobility=el.QuadraticVariation(), **LINEAR),
    }


@pytest.mark.slow
def test_the_biased_model_is_worse_beyond_errors_and_the_right_ones_are_not_told_apart(parts, models):
    found = el.compare(models, parts[1], [0.2, 0.6, 1.2], members=20, starts=3000)
    assert found.best in ("log", "again")
    worse = found.names.index("increments")
    assert found.excess[worse] > 3 * found.standard_error[worse]
    same = [found.names.index(name) for name in ("log", "again")]
    assert (found.excess[same] <= 3 * found.standard_error[same] + 1e-12).all()
    assert found.simplest in ("log", "again")
    assert found.by_lead.shape == (4, 3)
    assert "above the best" in found.summary()
    assert found.plot()[0].get_ylabel() == "energy score / increments"


def test_models_with_and_without_delays_forecast_from_the_same_times():
    """A series with gaps: the score of a model does not depend on how its states are found."""
    values = PROCESS.simulate(300.0, dt=0.2, seed=2).values.copy()
    values[[200, 700, 703]] = np.nan
    series = el.TimeSeries(values, 0.2, start=11.0)
    plain = el.fit(series, mobility=el.LogCorrelation(), **LINEAR)
    one = el.compare({"a": plain, "b": plain}, series, [0.4], starts=400)
    np.testing.assert_allclose(one.by_lead[0], one.by_lead[1])
    assert one.excess.tolist() == [0.0, 0.0]


def test_what_is_not_a_model_is_refused(parts):
    with pytest.raises(el.ArgumentError, match="models"):
        el.compare({}, parts[1])
    with pytest.raises(el.ArgumentError, match="models"):
        el.compare({"a": 1}, parts[1])
