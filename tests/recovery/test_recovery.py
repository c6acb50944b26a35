"""Exact answers recovered from long series, with the defaults of `el.fit`. Slow: minutes in all."""

import jax
import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

import effective_langevin as el
from effective_langevin.estimate.mobility import estimate_mobility
from effective_langevin.estimate.space import StateSpace
from effective_langevin.statistics.distances import matrix_error

pytestmark = pytest.mark.slow
WELLS = el.systems.AsymmetricWells()


def wells_series(dt: float, seed: int) -> el.TimeSeries:
    return WELLS.simulate(1e4 * dt, dt=dt, members=50, seed=seed)


@pytest.fixture(scope="module")
def wells_at_005():
    series = wells_series(0.05, 11)
    return series, el.fit(series, seed=12)


@pytest.mark.parametrize("dt", [0.02, 0.1])
def test_the_default_mobility_is_right_at_fine_and_coarse_sampling(dt):
    model = el.fit(wells_series(dt, 10), seed=3)
    assert matrix_error(model.mobility.matrix, WELLS.mobility) <= 0.03


def test_the_published_recipe_is_biased_where_the_default_is_not(wells_at_005):
    series, model = wells_at_005
    standard = series.map(model.standardizer.to_standard)
    naive = estimate_mobility(
        standard,
        model.score,
        el.FiniteVolume(cells=761, correction="none"),
        StateSpace((None, None)),
        key=jax.random.key(0),
    )
    assert matrix_error(model.mobility.matrix, WELLS.mobility) <= 0.02
    # A finite difference at h = 0.05 has the truncation bias (h/2) C''(0): 20 % on this system.
    assert 0.15 < matrix_error(naive.to_physical(model.standardizer).matrix, WELLS.mobility) < 0.25


def test_the_learned_wells_model_has_the_steady_state_and_the_clock_of_the_data(wells_at_005):
    series, model = wells_at_005
    metrics = el.validate(model, series, seed=4, exact_mobility=WELLS.mobility).metrics
    assert metrics["stein_error"] <= 0.03
    assert metrics["pdf_kl_max"] <= 0.005
    assert metrics["acf_rmse"] <= 0.02


def test_model_and_system_follow_the_same_path_under_the_same_noise(wells_at_005):
    _, model = wells_at_005
    start = WELLS.simulate(1.0, dt=1.0, members=64, seed=21).values[:, -1]
    truth, noise = WELLS.simulate_with_noise(5.0, dt=0.01, members=64, seed=22, step=0.005, initial=start)
    path = model.simulate(5.0, members=64, dt=0.01, step=0.005, initial=start, noise=noise)
    a, b = (s.values - s.values.mean(axis=1, keepdims=True) for s in (truth, path))
    correlation = np.sum(a * b, (1, 2)) / np.sqrt(np.sum(a**2, (1, 2)) * np.sum(b**2, (1, 2)))
    assert np.median(correlation) >= 0.98


def test_the_scalar_system_gets_its_mean_mobility_and_its_density():
    system = el.systems.ScalarMultiplicative()
    series = system.simulate(500.0, dt=0.05, members=100, seed=31)
    model = el.fit(series, seed=32)
    mean = system.expectation(lambda x: x)
    variance = system.expectation(lambda x: (x - mean) ** 2)
    np.testing.assert_allclose(system.mobility / variance, 1.81784, rtol=1e-5)
    np.testing.assert_allclose(model.mobility.matrix / variance, 1.81784, rtol=0.03)
    assert el.validate(model, series, seed=33).metrics["pdf_kl_max"] <= 0.01


def test_a_five_dimensional_rotating_process_is_recovered_within_its_errors():
    system = el.systems.OrnsteinUhlenbeck.rotating(5)
    series = system.simulate(2000.0, dt=0.1, members=50, seed=41)
    model = el.fit(series, score=el.Gaussian(), seed=42)
    deviation = np.abs(model.mobility.matrix - system.mobility) / model.mobility.standard_error
    assert deviation.max() <= 4
    # the model's drift -A (x - mu) and its noise must keep the covariance of the data: A C + C A^T = 2 Sigma Sigma^T
    mean, factor = model.standardizer.mean, model.mobility.noise_factor
    rates = -(model.drift(mean + np.eye(5)) - model.drift(mean)).T
    covariance = np.cov(series.stacked().T, bias=True)
    kept = solve_continuous_lyapunov(rates, 2 * factor @ factor.T)
    np.testing.assert_allclose(kept, covariance, atol=1e-6 * np.abs(covariance).max())


@pytest.mark.filterwarnings("ignore:Without every second sample")
def test_the_diffusion_of_lorenz_63_is_the_limit_of_short_horizons():
    """The circulation depends strongly on the state, so Phi(T) drifts; at T -> 0 the diffusion is 5^2 / 2."""
    system = el.systems.StochasticLorenz63()
    series = system.simulate(10.0, dt=0.001, members=100, seed=51, step=0.001)
    model = el.fit(series, score=el.KGMM(noise_level=0.05), mobility=el.IntegratedResponse(), seed=52)
    assert model.mobility.diagnostics["horizon_rule"] == "limit"
    np.testing.assert_allclose(np.diagonal(model.mobility.matrix), 12.5, rtol=0.1)
