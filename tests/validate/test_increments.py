"""Mean squared increments: < (x(t + kh) - x(t))^2 > = 2 [C(0) - C(kh)] for every stationary process."""

import numpy as np
import pytest
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.statistics import distances
from effective_langevin.statistics.densities import INCREMENT_LAGS, histogram_edges, series_statistics
from effective_langevin.statistics.resampling import GROUPS, jackknife

OU = el.systems.OrnsteinUhlenbeck([[1.0]])
DT = 0.05


def statistics_of(series):
    return series_statistics(series.segments, series.dt, histogram_edges(series.stacked()), np.array([0, 1]))


@pytest.fixture(scope="module")
def series():
    return OU.simulate(400.0, dt=DT, members=10, seed=1)


@pytest.fixture(scope="module")
def model(series):
    return el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())


@pytest.fixture(scope="module")
def result(model, series):
    return el.validate(model, series, seed=2)


def test_increments_of_the_data_are_exact(series):
    """Rate 1 and variance 1: 2 (1 - exp(-k dt)), to four standard errors."""
    value, error = jackknife(statistics_of(series).increments, GROUPS)
    exact = 2 * (1 - np.exp(-INCREMENT_LAGS * DT))
    assert np.all(np.abs(value[:, 0] - exact) < 4 * error[:, 0])


def test_no_increment_crosses_the_border_of_a_record():
    """Two constant records far apart, one of them too short for the longer lags."""
    found = statistics_of(el.TimeSeries([np.zeros((30, 1)), np.full((5, 1), 9.0)], 1.0))
    np.testing.assert_array_equal(found.increments(np.ones(GROUPS)), 0.0)
    assert found.pairs.sum(axis=0).tolist() == [29 + 4, 28 + 3, 26 + 1, 22]


def test_fields_are_pooled_over_their_points():
    paths = np.random.default_rng(0).normal(size=(3, 50, 6))
    found = statistics_of(el.TimeSeries(paths, 1.0))
    each, pooled = found.increments(np.ones(GROUPS)), found.increments(np.ones(GROUPS), points=3)
    np.testing.assert_allclose(pooled, each.reshape(4, 2, 3).mean(axis=2))


def test_the_error_is_the_largest_relative_difference_that_is_known():
    data = np.array([[1.0, 2.0], [4.0, 0.0], [np.nan, 1.0]])
    model = np.array([[1.1, 1.5], [4.0, 5.0], [3.0, np.nan]])
    assert distances.increment_error(data, model) == pytest.approx(0.25)
    assert distances.increment_error(data * np.nan, model) == 0


def test_a_model_stepped_by_default_has_the_increments_of_the_data(result):
    metrics = result.metrics
    assert metrics["increment_error"] < 0.03
    assert metrics["increment_error"] < metrics["increment_error_floor"] + 3 * metrics["increment_error_se"]
    found = next(f for f in result.verdict.findings if f.name == "increments")
    assert (found.level, found.advice) == ("ok", "")
    assert result.verdict.level == "good"
    curve = result.curves["increment"]
    np.testing.assert_allclose(curve["interval"], DT * INCREMENT_LAGS)
    np.testing.assert_allclose(curve.model, curve.data, rtol=0.03)


@pytest.mark.filterwarnings("ignore:LeimkuhlerMatthews is right in the steady state only")
def test_wrong_increments_are_a_warning_with_advice(model, series):
    """One step per interval with averaged noise: half of the squared increment is missing, the density is right."""
    result = el.validate(model, series, seed=2, simulation={"stepper": el.LeimkuhlerMatthews(), "step": DT})
    assert result.metrics["increment_error"] == pytest.approx(0.5, abs=0.03)
    found = next(f for f in result.verdict.findings if f.name == "increments")
    assert found.level == "warning"
    assert "the mean squared increment of x1 over 0.05 is 0.5" in found.meaning
    assert found.p < 0.001
    assert result.verdict.level == "usable"
    assert "the mean squared increment" in result.verdict.headline


def test_a_diffusion_in_place_of_smooth_motion_is_advised_to_remember():
    """Two filters in a row, seen through the last: smooth at the sampling interval, with a hidden variable."""
    noise = np.random.default_rng(0).normal(size=(8, 5000))
    paths = lfilter([1.0], [1.0, -0.95], lfilter([1.0], [1.0, -0.6], noise))[:, 500:, None]
    smooth = el.TimeSeries(paths, 0.1, names=["x"])
    model = el.fit(smooth, score=el.Gaussian(), mobility=el.IntegratedResponse(), check="off", compare_estimators=False)
    verdict = el.validate(model, smooth, seed=2).verdict
    assert verdict.level == "usable"
    assert "mean squared increment" in verdict.headline
    assert 'memory="auto"' in verdict.next_step


def test_a_validation_from_a_file_gives_the_same_verdict_and_one_without_tests_none(result, tmp_path):
    result.save(tmp_path / "curves.nc")
    again = el.Validation.load(tmp_path / "curves.nc", result.model)
    assert again.verdict.sentences == result.verdict.sentences
    assert again.verdict.details() == result.verdict.details()
    old = el.Validation(again.metrics, again.model, again.curves, again.comparison, again.view)
    assert old.verdict.level == "undecided"
    assert "Validate again" in old.verdict.headline


@pytest.mark.slow
def test_no_alarm_about_a_right_model_of_a_short_series():
    """20 series of 100 relaxation times each; a fifth of them has an error above 10 %, none beyond sampling errors."""
    large = 0
    for seed in range(20):
        short = OU.simulate(100.0, dt=0.1, seed=seed)
        fitted = el.fit(short, score=el.Gaussian(), mobility=el.LogCorrelation(), check="off")
        result = el.validate(fitted, short, seed=seed + 1000)
        large += result.metrics["increment_error"] > 0.1
        assert next(f for f in result.verdict.findings if f.name == "increments").level == "ok"
    assert large > 1
