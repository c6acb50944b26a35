"""The effect of the smoothing width: taken back from the score, and shown for the mobility."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.estimate.mobility.cross_check import blurred_further
from effective_langevin.estimate.networks import scale
from effective_langevin.estimate.score import LearnedScore, Score, ScoreFit, ScoreStrategy, estimate_score
from effective_langevin.estimate.space import StateSpace

KEY, NONE = jax.random.key(0), StateSpace((None, None))
SAMPLES = np.random.default_rng(0).normal(size=(4000, 2))


class Pull(eqx.Module):
    """-factor x."""

    factor: jax.Array

    def __call__(self, x):
        return -self.factor * x


@scale.register
def _(network: Pull, factor):
    return Pull(factor * network.factor)


@dataclass(frozen=True)
class ExactBlur(ScoreStrategy):
    """The exact score of a standard normal density blurred by the noise level: -x / (1 + sigma^2)."""

    noise_level: float
    calibrate: bool = False
    narrowest: float = np.inf

    def learn(self, train, held_out, *, space, key):
        network = Pull(jnp.float32(1 / (1 + self.noise_level**2)))
        return LearnedScore(Score.trained_on(train, network, self.noise_level), self.noise_level)


@pytest.mark.parametrize("level", [0.1, 0.3])
def test_what_is_left_of_the_noise_level_is_of_fourth_order(level):
    """2 / (1 + v) - 1 / (1 + 2 v) = 1 - 2 v^2 + ..., v = sigma^2, where the plain score has 1 - v."""
    series, v = el.TimeSeries(SAMPLES, dt=1.0), level**2
    fit = estimate_score(series, el.Extrapolated(ExactBlur(level)), NONE, key=KEY)
    found = -fit.function.over(np.array([[0.5, -0.5]], np.float32))[0, 0] / 0.5
    assert found == pytest.approx(2 / (1 + v) - 1 / (1 + 2 * v), abs=1e-6)
    assert abs(found - 1) < 2.1 * v**2
    assert fit.noise_level == 0
    assert fit.evidence.extrapolated_from == level


@pytest.mark.slow
def test_wells_blurred_by_a_wide_noise_are_recovered():
    """p ~ exp(-2 (x^2 - 1)^2): at sigma = 0.15 the exact blurred force is off by 2.99, extrapolated by 1.32."""
    grid = np.linspace(-2.2, 2.2, 4001)
    weights = np.cumsum(np.exp(-2 * (grid**2 - 1) ** 2))
    draws = np.interp(np.random.default_rng(1).random(60000), weights / weights[-1], grid)
    series = el.TimeSeries(draws[:, None], dt=1.0)
    x = np.linspace(-1.2, 1.2, 41, dtype=np.float32)[:, None]
    exact, plain = -8 * x * (x**2 - 1), el.KGMM(noise_level=0.15, hidden=(32, 32), steps=1500)
    errors = [
        np.linalg.norm(estimate_score(series, strategy, NONE, key=KEY).function.over(x) - exact)
        for strategy in (plain, el.Extrapolated(plain))
    ]
    assert errors[1] < 0.6 * errors[0]
    assert errors[0] == pytest.approx(2.99, rel=0.25)


@pytest.mark.slow
def test_an_extrapolated_model_is_the_same_after_a_round_trip(tmp_path):
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(duration=300.0, dt=0.1, seed=0)
    score = el.Extrapolated(el.KGMM(noise_level=0.2, cells=20, hidden=(8,), steps=50))
    model = el.fit(series, score=score, seed=0)
    model.save(tmp_path / "model.safetensors")
    first, second = (
        m.simulate(3.0, members=4, seed=1).values for m in (model, el.load(tmp_path / "model.safetensors"))
    )
    np.testing.assert_array_equal(first, second)


def test_only_a_score_with_a_noise_level_can_be_extrapolated():
    with pytest.raises(el.ArgumentError, match="score"):
        el.Extrapolated(3)


def test_the_score_of_data_blurred_further_follows_from_the_score():
    """-(C + 2 sigma^2)^-1 x from -(C + sigma^2)^-1 x: the mean over 32 pairs, within the scatter of that mean."""
    covariance, level = np.array([[1.0, 0.6], [0.6, 1.0]]), 0.2
    blurred, further = (covariance + n * level**2 * np.eye(2) for n in (1, 2))
    score = ScoreFit(Score.linear(np.linalg.inv(blurred)), level, -np.eye(2), 0.0, blurred)
    x = np.random.default_rng(2).multivariate_normal([0, 0], covariance, 3000)
    found, trusted = blurred_further(score, x, score.function.over(x), key=KEY, pairs=32)
    exact = -np.linalg.solve(further, x.T).T
    slope = np.linalg.lstsq(x, found, rcond=None)[0]
    assert trusted
    np.testing.assert_allclose(slope, -np.linalg.inv(further), atol=0.02)
    assert np.linalg.norm(found - exact) < 0.15 * np.linalg.norm(exact)
    # What was to be found is well beyond that tolerance.
    assert np.abs(np.linalg.inv(blurred) - np.linalg.inv(further)).max() > 0.08


def test_it_is_not_trusted_where_the_noise_covers_the_data():
    wide = ScoreFit(Score.linear(100.0 * np.eye(2)), 1.0, -np.eye(2), 0.0, 0.01 * np.eye(2))
    assert not blurred_further(wide, SAMPLES, wide.function.over(SAMPLES), key=KEY)[1]


def test_without_noise_there_is_no_row_about_it():
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(duration=300.0, dt=0.1, seed=0)
    rows = el.fit(series, score=el.Gaussian(), seed=0).mobility.diagnostics["agreement"]
    assert len(rows) > 4
    assert not [row for row in rows if "smoothing width" in row["estimator"]]


@pytest.mark.slow
def test_the_table_of_agreement_shows_what_more_noise_would_do():
    """For a linear process the mobility does not depend on the noise level at all."""
    process = el.systems.OrnsteinUhlenbeck.rotating(2)
    series = process.simulate(duration=2000.0, dt=0.1, seed=0)
    model = el.fit(series, score=el.KGMM(noise_level=0.3, hidden=(16,), steps=300), seed=0)
    row = next(r for r in model.mobility.diagnostics["agreement"] if "smoothing width" in r["estimator"])
    change = np.linalg.norm(row["phi"] - model.mobility.matrix) / np.linalg.norm(model.mobility.matrix)
    assert change < 0.03
    assert row["dt"] == series.dt
