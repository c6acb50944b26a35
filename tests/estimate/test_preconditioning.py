"""Noise that goes along with the spread of the data: the frame, the score in it, and the way back to clean states."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.estimate.mobility import estimate_mobility
from effective_langevin.estimate.score import Score, ScoreFit, estimate_score
from effective_langevin.estimate.score.preconditioning import noise_frame, restoring_map
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import Translations

KEY = jax.random.key(0)
NONE = StateSpace((None, None))
TURN = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
COVARIANCE = TURN * [4.0, 0.5, 0.01] @ TURN.T
QUICK = el.DenoisingScore(el.MLP((32,)), noise_level=0.3, epochs=8, epoch_samples=32000, batch=512)


@pytest.fixture(scope="module")
def series():
    """2e4 independent samples of a Gaussian, 4 in variance along one direction, 0.01 along another."""
    return el.TimeSeries(np.random.default_rng(0).multivariate_normal(np.zeros(3), COVARIANCE, 20000), dt=1.0)


def in_frame(level, narrowest=0.1, covariance=COVARIANCE):
    """The exact score of the Gaussian blurred in its frame."""
    frame = noise_frame(covariance, narrowest)
    bare = ScoreFit(Score.linear(np.eye(3)), level, -np.eye(3), 0.0, covariance, frame=frame)
    blurred = covariance + bare.blur
    return replace(bare, function=Score.linear(np.linalg.inv(blurred)), covariance=blurred)


def test_in_its_frame_the_data_spread_alike_in_all_but_the_narrowest_directions():
    frame = noise_frame(COVARIANCE, 0.1)
    np.testing.assert_allclose(np.linalg.eigvalsh(frame @ COVARIANCE @ frame), [0.1, 1.0, 1.0], rtol=1e-10)
    np.testing.assert_allclose(frame, frame.T, atol=1e-12)
    assert noise_frame(COVARIANCE, np.inf) is None


def test_the_frame_of_a_ring_moves_with_it():
    """A function of a circulant matrix is circulant."""
    ring = Translations()
    circulant = ring.joined(np.array([2.0, 1.0, 0.01])[:, None, None], 5)
    frame = noise_frame(circulant, 0.1)
    np.testing.assert_allclose(frame, ring.project(frame), atol=1e-12)


def test_a_score_in_a_frame_is_that_of_the_stretched_states_pulled_back():
    """s(x) = W s_w(W x): with s_w(w) = -P w, s = -W P W x."""
    frame, precision = noise_frame(COVARIANCE, 0.1), np.diag([1.0, 2.0, 3.0])
    x = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)
    found = Score.linear(precision).in_frame(frame).over(x)
    np.testing.assert_allclose(found, -x @ (frame @ precision @ frame), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("level", [0.3, 0.0])
def test_the_noise_has_the_shape_of_the_data(level):
    """sigma^2 B, B the covariance with 0.01 lifted to 0.1."""
    exact = level**2 * TURN * [4.0, 0.5, 0.1] @ TURN.T
    np.testing.assert_allclose(in_frame(level).blur, exact, atol=1e-12)


def test_what_is_resolved_is_told_in_units_of_the_noise():
    """Noise of 0.09 x 0.1 = 0.009 along the direction of variance 0.01; equal noise of 0.09 covers it."""
    assert in_frame(0.3).resolved
    assert not in_frame(0.4).resolved
    assert not replace(in_frame(0.3), frame=None).resolved


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [QUICK, el.KGMM(noise_level=0.3, hidden=(32,), steps=600)], ids=["net", "cells"])
def test_the_learned_score_is_that_of_the_data_blurred_in_their_shape(series, strategy):
    """-(C + sigma^2 B)^-1 y within 0.15 of its size; the score of equally blurred data is off by 0.6."""
    fit = estimate_score(series, strategy, NONE, key=KEY)
    exact = in_frame(0.3, covariance=np.cov(series.stacked().T))
    np.testing.assert_allclose(fit.covariance, exact.covariance, rtol=0.01, atol=0.01)
    y = np.random.default_rng(1).multivariate_normal(np.zeros(3), exact.covariance, 4000).astype(np.float32)
    truth = exact.function.over(y)
    equally = Score.linear(np.linalg.inv(COVARIANCE + 0.09 * np.eye(3))).over(y)
    size = np.linalg.norm(truth)
    assert np.linalg.norm(fit.function.over(y) - truth) < 0.15 * size
    assert np.linalg.norm(equally - truth) > 0.5 * size
    assert fit.stein_error < 4 * fit.stein_standard_error + 0.02


@pytest.mark.slow
def test_wells_across_a_narrow_direction_are_seen():
    """u is wide, v = +-0.1 with width 0.03; x = u +- v. In the middle between the wells the score points outwards."""
    rng = np.random.default_rng(5)
    u, v = rng.normal(size=40000), 0.1 * rng.choice([-1, 1], 40000) + 0.03 * rng.normal(size=40000)
    series = el.TimeSeries(np.stack([u + v, u - v], axis=1) / np.sqrt(1.01), dt=1.0)
    strategy = el.KGMM(noise_level=0.1, hidden=(64,), steps=1000, narrowest=0.01)
    outwards = {}
    for name, narrowest in (("shaped", 0.01), ("equal", np.inf)):
        fit = estimate_score(series, replace(strategy, narrowest=narrowest), NONE, key=KEY)
        score = fit.function.over(np.array([[0.04, -0.04]], np.float32))[0]
        outwards[name] = (score[0] - score[1]) / np.sqrt(2)
    assert outwards["shaped"] > 1
    assert outwards["equal"] < 0.5 * outwards["shaped"]


def test_the_restoring_map_gives_back_the_covariance():
    rng = np.random.default_rng(2)
    clean, expected = (a @ a.T for a in rng.normal(size=(2, 3, 3)) * 0.2 + np.eye(3))
    restore = restoring_map(expected, clean)
    np.testing.assert_allclose(restore @ expected @ restore, clean, rtol=1e-8)
    np.testing.assert_allclose(restore, restore.T, atol=1e-10)


def test_what_is_all_but_lost_is_amplified_by_no_more_than_two():
    np.testing.assert_allclose(restoring_map(np.diag([1.0, 1e-4]), np.eye(2)), np.diag([1.0, 2.0]), rtol=1e-8)


@pytest.mark.slow
def test_clean_states_are_expected_with_the_spread_of_the_data(series):
    """Without restoring, the variance along the narrow direction is C^2 / (C + blur) = 0.53 C."""
    fit = estimate_score(series, QUICK, NONE, key=KEY)
    x = series.stacked().astype(np.float32)
    y = x + (np.random.default_rng(8).normal(size=x.shape) @ fit.spread).astype(np.float32)
    narrow = TURN[:, 2]
    exact = narrow @ np.cov(x.T) @ narrow
    restored, plain = (np.cov((of.expected_clean(y)).T) for of in (fit, replace(fit, restoring=None)))
    np.testing.assert_allclose(restored, np.cov(x.T), atol=0.08)
    assert narrow @ restored @ narrow == pytest.approx(exact, rel=0.1)
    assert narrow @ plain @ narrow < 0.7 * exact


def test_the_linear_inverse_model_of_shaped_data_has_the_drift_of_the_process():
    """Phi = A (C + blur), so that the drift of the blurred equation is -A y, for any shape of the noise."""
    process = el.systems.OrnsteinUhlenbeck.rotating(3)
    series = process.simulate(duration=4000.0, dt=0.2, seed=1)
    exact = np.cov(series.stacked().T)
    score = in_frame(0.4, narrowest=0.3, covariance=exact)
    phi = estimate_mobility(series, score, el.LogCorrelation(), NONE, key=KEY)
    plain = estimate_mobility(series, replace(score, noise_level=0.0, frame=None), el.LogCorrelation(), NONE, key=KEY)
    np.testing.assert_allclose(
        phi.matrix @ np.linalg.inv(score.covariance), plain.matrix @ np.linalg.inv(exact), rtol=0.01, atol=0.01
    )


@pytest.mark.slow
def test_a_model_learned_in_a_frame_is_the_same_after_a_round_trip(series, tmp_path):
    model = el.fit(series, score=replace(QUICK, epochs=1), mobility=el.QuadraticVariation(), seed=0)
    model.save(tmp_path / "model.safetensors")
    back = el.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(back.score.frame, model.score.frame)
    first, second = (m.simulate(5.0, members=3, seed=1, dt=1.0, denoise=True).values for m in (model, back))
    np.testing.assert_array_equal(first, second)
