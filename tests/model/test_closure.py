"""The closure of a model: current velocity and diffusion, also where noise acts in one direction only."""

import jax.numpy as jnp
import numpy as np
import pytest
from oracles.models import exact_model

import effective_langevin as el
from effective_langevin._core.matrices import square_root
from effective_langevin.estimate.closure.fields import Fields, RotatedScore
from effective_langevin.estimate.closure.polynomials import PolynomialDiffusion
from effective_langevin.estimate.score import Score
from effective_langevin.model.closure import ConstantClosure, FieldClosure

PULL = np.array([[0.0, -1.3], [0.8, 0.9]])
"""Position and velocity: dx = 1.3 v dt, dv = -(0.8 x + 0.9 v) dt + sqrt(2) 0.7 dW."""


@pytest.fixture(scope="module")
def oscillator():
    return exact_model(el.systems.OrnsteinUhlenbeck(PULL, np.array([[0.0], [0.7]])), np.array([3.0, 0.2]), members=2000)


def test_the_drift_is_current_plus_diffusion_times_score_plus_divergence(wells_model, wells_series):
    x, closure = wells_series.stacked()[:12].reshape(3, 4, 2), wells_model.closure
    phi = wells_model.mobility.matrix
    parts = closure.current(x) + np.einsum("...ij,...j", closure.diffusion(x), wells_model.score_function(x))
    np.testing.assert_allclose(parts + closure.divergence(x), wells_model.drift(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wells_model.current(x), wells_model.score_function(x) @ (phi - phi.T).T / 2, rtol=1e-12)
    factor = closure.noise_factor(x)
    np.testing.assert_allclose(factor @ np.swapaxes(factor, -1, -2), wells_model.diffusion(x), rtol=1e-12)
    assert not closure.divergence(x).any()
    np.testing.assert_array_equal(closure.phi, phi)


def test_the_current_carries_no_probability_away(wells_model, wells_series):
    """div(p nu) = 0, so < nu . grad g > = 0 for every g; with g = x_i x_j the mean of nu x^T is antisymmetric."""
    x = wells_series.stacked()[::10]
    flow = wells_model.current(x).T @ (x - x.mean(axis=0)) / len(x)
    assert np.linalg.norm(flow + flow.T) < 0.1 * np.linalg.norm(flow)


@pytest.mark.parametrize("matrix", [np.diag([2.0, 0.0]), np.array([[4.0, 6.0], [6.0, 9.0]]), np.zeros((2, 2))])
def test_the_square_root_of_a_singular_matrix_is_symmetric(matrix):
    root = square_root(matrix)
    np.testing.assert_allclose(root @ root.T, matrix, atol=1e-12)
    np.testing.assert_allclose(root, root.T, atol=1e-12)


def test_a_negative_diffusion_is_refused():
    with pytest.raises(el.ArgumentError, match="cannot have a negative eigenvalue"):
        ConstantClosure(np.negative, np.diag([1.0, -0.5])).noise_factor(np.zeros(2))


@pytest.mark.parametrize("stepper", [el.StochasticHeun(), el.ExponentialEuler()])
def test_noise_in_one_direction_keeps_the_covariance_of_the_lyapunov_equation(oscillator, stepper):
    """2000 members, 20 relaxation times: 3 % is the standard error of a variance; 4 of them are allowed."""
    np.testing.assert_allclose(oscillator.closure.noise_factor(np.zeros(2)), np.diag([0.0, 0.7 * 0.2]), atol=1e-9)
    start = np.zeros((2000, 2))
    late = oscillator.simulate(30.0, members=2000, seed=3, dt=1.0, step=0.05, initial=start, stepper=stepper)
    ends = np.stack([segment[-1] for segment in late.segments])
    process = el.systems.OrnsteinUhlenbeck(PULL, np.array([[0.0], [0.7]]))
    expected = process.covariance * np.outer([3.0, 0.2], [3.0, 0.2])
    spread = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(
        np.cov(ends.T) / np.outer(spread, spread), expected / np.outer(spread, spread), atol=0.12
    )


def test_only_the_velocity_is_kicked(oscillator):
    """One Euler step: the position goes where the drift says, whatever the noise."""
    start, stepper = np.tile([0.6, 0.1], (200, 1)), el.EulerMaruyama()
    run = oscillator.simulate(0.01, members=200, seed=1, dt=0.01, step=0.01, initial=start, stepper=stepper)
    moved = np.stack([segment[-1] for segment in run.segments])
    np.testing.assert_allclose(moved[:, 0], 0.6 + 0.01 * oscillator.drift(start[0])[0], rtol=1e-5)
    assert moved[:, 1].std() == pytest.approx(np.sqrt(2 * 0.01) * 0.7 * 0.2, rel=0.2)


def test_entropy_production_is_undefined_where_no_noise_acts_along_the_current(oscillator):
    found = oscillator.entropy_production()
    assert np.isnan(found.value)
    assert "entropy production undefined: no noise acts along the current" in oscillator.summary()
    assert np.isfinite(oscillator.timescales().value).all()


def test_replicas_of_a_model_have_the_mobilities_drawn_with_replacement(linear_model):
    drawn = [model.mobility.matrix for model in linear_model.replicas()]
    np.testing.assert_array_equal(drawn, linear_model.mobility.replicas)


def test_a_field_of_diffusion_adds_its_divergence_to_the_drift():
    """Diffusion that grows along the first variable: D = Phi_S (1 + x_1), div D = Phi_S e_1."""
    even, odd = np.array([[1.0, 0.1], [0.1, 2.0]]), np.array([[0.0, -0.6], [0.6, 0.0]])
    entries = even[[0, 1, 1], [0, 0, 1]]
    diffusion = PolynomialDiffusion.of(np.outer(entries, [1, 1, 0]), 1e-4, np.full(2, -5.0), np.full(2, 5.0))
    fields = Fields(RotatedScore(jnp.asarray(odd, jnp.float32)), diffusion)
    closure = FieldClosure(Score.linear(np.eye(2)), fields, el.Standardizer(np.zeros(2), np.ones(2)))
    x = np.array([[0.2, -0.3], [1.0, 2.0]])
    expected = [odd @ -p + (1 + p[0]) * even @ -p + even[:, 0] for p in x]
    np.testing.assert_allclose(closure.drift(x), expected, rtol=1e-5)
    np.testing.assert_allclose(closure.divergence(x), [even[:, 0]] * 2, rtol=1e-5)
