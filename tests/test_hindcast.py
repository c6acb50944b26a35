from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.hindcast import align
from effective_langevin.statistics.forecast_scores import (
    choose_starts,
    energy_scores,
    member_quantiles,
    ranked_scores,
    squared_errors_of_mean,
)

PROCESS = el.systems.OrnsteinUhlenbeck.rotating(2)
LEADS = [0.2, 0.6]


@pytest.fixture(scope="module")
def parts():
    return PROCESS.simulate(4000.0, dt=0.2, seed=1).split(0.4, blocks=1)


@pytest.fixture(scope="module")
def linear(parts):
    return el.fit(parts[0], score=el.Gaussian(), mobility=el.LogCorrelation(), seed=0)


@pytest.fixture(scope="module")
def found(parts, linear):
    return el.hindcast(linear, parts[1], LEADS, train=parts[0], members=40, starts=2000, seed=1)


def test_scores_of_a_linear_process_are_the_exact_ones(found):
    """Errors are Gaussian with covariance C - e^{-At} C e^{-A^T t}: rms s, CRPS s / sqrt(pi), 90 % in their band.
    Four standard errors from groups of starts, and 1 % for what the fit leaves."""
    ours = found.scores["model"]
    for k, lead in enumerate(LEADS):
        step = expm(-PROCESS.drift_matrix * lead)
        width = np.sqrt(np.diagonal(PROCESS.covariance - step @ PROCESS.covariance @ step.T))
        for value, exact, by_group in (
            (ours.rmse[k], width, np.sqrt(ours.squared_error[:, k])),
            (ours.spread[k], width, np.sqrt(ours.variance[:, k])),
            (ours.crps[k], width / np.sqrt(np.pi), ours.ranked[:, k]),
            (ours.coverage[k], 0.9, ours.inside[:, k]),
        ):
            error = by_group.std(axis=0, ddof=1) / np.sqrt(len(by_group))
            assert (np.abs(value - exact) < 4 * error + 0.01 * exact).all()
    assert found.scores["model"].ranks.sum(axis=0) == pytest.approx(1.0)
    assert np.abs(ours.ranks - 0.1).max() < 0.04


def test_scores_are_means_over_starts_whose_number_no_group_divides(parts, linear):
    """Persistence has no chance in it: its CRPS is the mean absolute change from each start."""
    found = el.hindcast(linear, parts[1], LEADS, train=parts[0], members=10, starts=101)
    values, steps = parts[1].stacked(), [1, 3]
    rows = choose_starts([len(segment) for segment in parts[1].segments], 3, 101)
    exact = np.array([np.abs(values[rows + step] - values[rows]).mean(axis=0) for step in steps])
    np.testing.assert_allclose(found.scores["persistence"].crps, exact, rtol=1e-5)


def test_the_linear_inverse_model_is_as_good_as_the_linear_model(found):
    for score in ("crps", "rmse"):
        ratio = found.ratio("linear", score)
        assert (np.abs(ratio.value - 1) < 4 * ratio.standard_error + 0.005).all()
        assert (ratio.low <= ratio.value).all()
        assert (ratio.value <= ratio.high).all()
        assert ratio.standard_error.max() < 0.02


def test_climatology_and_persistence_have_their_exact_errors(found):
    """Climatology: the spread of the data. Persistence: |x(t) - x(0)|^2 = 2 (C(0) - C(t))."""
    spread = np.sqrt(np.diagonal(PROCESS.covariance))
    later = [expm(-PROCESS.drift_matrix * t) @ PROCESS.covariance for t in LEADS]
    still = [np.sqrt(2 * np.diagonal(PROCESS.covariance - c)) for c in later]
    for way, exact in (("climatology", spread), ("persistence", np.array(still))):
        scores = found.scores[way]
        error = np.sqrt(scores.squared_error).std(axis=0, ddof=1) / np.sqrt(len(scores.squared_error))
        assert (np.abs(scores.rmse - exact) < 4 * error + 0.01).all()
    assert np.isnan(found.scores["persistence"].coverage).all()
    assert (found.ratio("climatology").high < 1).all()


@pytest.mark.slow
def test_a_forecast_that_ignores_the_circulation_is_worse_than_the_linear_inverse_model(parts, linear):
    """Without the antisymmetric part of Phi the means turn too little: worse by many standard errors."""
    still = replace(linear, mobility=replace(linear.mobility, matrix=linear.mobility.symmetric))
    ratio = el.hindcast(still, parts[1], LEADS, train=parts[0], members=20, starts=1000).ratio()
    assert (ratio.value - 1 > 3 * ratio.standard_error).any()


def test_outcomes_are_those_of_the_series_at_the_same_time():
    """Delays cost the first rows of every stretch; gaps part stretches."""
    values = np.random.default_rng(0).normal(size=(300, 1)).cumsum(axis=0)
    values[[100, 180, 182]] = np.nan
    series = el.TimeSeries(values, 0.5, start=7.0)
    model = el.fit(
        series,
        preprocess=el.preprocess.DelayEmbedding([2]),
        score=el.Gaussian(),
        mobility=el.LogCorrelation(),
        check="off",
    )
    own, seen = align(model, series)
    np.testing.assert_array_equal(own.stacked()[:, :1], seen)


def test_starts_have_room_for_the_longest_lead():
    rows = choose_starts([5, 2, 4], 3, 100)
    assert rows.tolist() == [0, 1, 7]
    assert choose_starts([1000], 10, 4).tolist() == [0, 329, 659, 989]


def test_ranked_scores_are_energy_scores_of_one_variable():
    rng = np.random.default_rng(0)
    members, outcome = rng.normal(size=(12, 30, 1)), rng.normal(size=(30, 1))
    expected = energy_scores(members, outcome)
    np.testing.assert_allclose(ranked_scores(members - outcome)[:, 0], expected)
    some = np.concatenate([members, np.full((3, 30, 1), np.nan)])
    np.testing.assert_allclose(ranked_scores(some - outcome)[:, 0], expected)


def test_the_error_of_the_mean_does_not_depend_on_the_number_of_members():
    """Members and outcome from one law: the mean of infinitely many is off by one variance."""
    rng = np.random.default_rng(1)
    squared, variance = squared_errors_of_mean(rng.normal(size=(3, 20000)) - rng.normal(size=20000))
    assert abs(squared.mean() - 1) < 4 * squared.std() / np.sqrt(20000)
    assert abs(variance.mean() - 1) < 4 * variance.std() / np.sqrt(20000)


def test_quantiles_of_members_leave_out_those_that_diverged():
    rng = np.random.default_rng(2)
    members = rng.normal(size=(39, 4))
    holes = np.concatenate([members, np.full((2, 4), np.nan)])
    wanted = np.quantile(members, [0.05, 0.5, 0.9], axis=0, method="weibull")
    np.testing.assert_allclose(member_quantiles(holes, [0.05, 0.5, 0.9]), wanted)


def test_a_series_without_room_for_the_leads_is_refused(linear, parts):
    with pytest.raises(el.DataError, match="Ask for shorter leads"):
        el.hindcast(linear, parts[1], [10000.0])


def test_a_hindcast_describes_and_draws_itself(found):
    assert "coverage of 90 %, model" in found.summary()
    assert len(found.plot()) == 3
    with pytest.raises(el.ArgumentError, match="Argument `reference`"):
        found.ratio("model")
