"""`settled`: a linear term in the score makes the variances of the steady state those of the data."""

from dataclasses import replace

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.estimate.score import Score
from effective_langevin.model.variance_correction import tilted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rotating():
    """A model of a correlated, circulating linear process."""
    series = el.systems.OrnsteinUhlenbeck.rotating(3).simulate(duration=500.0, dt=0.1, members=4, seed=0)
    return el.fit(series, score=el.Gaussian(), seed=0)


def spoilt(model):
    """The same with a score that pulls too little in one direction, and has 1.6 times the variance there."""
    score = model.score
    variances, directions = np.linalg.eigh(score.covariance)
    wrong = np.linalg.inv(directions * (variances * [1.0, 1.0, 1.6]) @ directions.T)
    return replace(model, score=replace(score, function=Score.linear(wrong)))


def test_a_wrong_variance_is_put_right(rotating):
    """Within 4 standard errors of the simulations, 3 %."""
    before = spoilt(rotating)
    after = el.match_variances(before, duration=40.0, members=2000, seed=1, rounds=4)
    ratios = after.score.diagnostics["settled"]["variance_ratio"]
    assert ratios[0][-1] == pytest.approx(1.6, rel=0.1)
    np.testing.assert_allclose(ratios[-1], 1, atol=0.03)
    np.testing.assert_allclose(
        np.linalg.inv(after.score.function.precision), rotating.score.covariance, rtol=0.05, atol=0.03
    )


def test_nothing_but_the_score_changes_and_stein_is_accounted_for(rotating):
    """s' = s - L y: V' = V - L C."""
    tilt = np.diag([0.1, 0.0, -0.05])
    changed = tilted(rotating.score, tilt)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(changed.function.over(x), rotating.score.function.over(x) - x @ tilt, atol=1e-5)
    np.testing.assert_allclose(changed.stein, rotating.score.stein - tilt @ rotating.score.covariance)
    after = el.match_variances(rotating, duration=5.0, members=50, rounds=1)
    np.testing.assert_array_equal(after.mobility.matrix, rotating.mobility.matrix)


@pytest.mark.parametrize("precondition", [True, False])
def test_a_network_in_a_frame_is_tilted_in_the_variables_of_the_series(precondition, tmp_path):
    rng = np.random.default_rng(4)
    series = el.TimeSeries(rng.multivariate_normal([0, 0], [[1.0, 0.9], [0.9, 1.0]], 4000), dt=1.0)
    score = el.DenoisingScore(el.MLP((8,)), noise_level=0.3, epochs=1, epoch_samples=2048, precondition=precondition)
    model = el.fit(series, score=score, mobility=el.QuadraticVariation(), seed=0)
    tilt = np.array([[0.2, 0.1], [0.1, 0.3]])
    x = 0.3 * rng.normal(size=(6, 2)).astype(np.float32)
    changed = replace(model, score=tilted(model.score, tilt))
    np.testing.assert_allclose(
        changed.score.function.over(x), model.score.function.over(x) - x @ tilt, rtol=1e-4, atol=1e-4
    )
    changed.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        el.load(tmp_path / "model.safetensors").score.function.over(x), changed.score.function.over(x)
    )


def test_directions_that_a_symmetry_makes_alike_are_tilted_alike():
    ring = el.Translations()
    matrix = ring.joined(np.array([0.5, 2.0, 0.2])[:, None, None], 5)
    values = np.random.default_rng(1).multivariate_normal(np.zeros(5), matrix, (3, 4000))
    series = el.TimeSeries(values, dt=0.1)
    model = el.fit(series, score=el.Gaussian(), mobility=el.QuadraticVariation(), symmetry=ring, seed=0)
    after = el.match_variances(model, duration=20.0, members=20, rounds=1)
    precision = np.asarray(after.score.function.precision, float)
    np.testing.assert_allclose(precision, ring.project(precision), atol=1e-5)


def test_the_verdict_says_that_it_was_done(rotating):
    """And that the covariance then proves nothing."""
    after = el.match_variances(spoilt(rotating), duration=20.0, members=500, rounds=2)
    series = rotating.simulate(duration=50.0, members=4, seed=3)
    words = el.validate(after, series, seed=4, members=8, duration=50.0).summary()
    assert "Variance correction: a linear term in the score" in words
    assert "tuned in 2 simulation rounds" in words
    assert "no evidence" in words


def test_bad_settings_are_refused(rotating):
    with pytest.raises(el.ArgumentError, match="rounds"):
        el.match_variances(rotating, rounds=0)
    with pytest.raises(el.ArgumentError, match="duration"):
        el.match_variances(rotating, duration=-1.0)
