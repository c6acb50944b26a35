from dataclasses import replace

import numpy as np
import pytest
from oracles.processes import autoregressive, ornstein_uhlenbeck, with_noise
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.diagnose.markov import linear_memory, partial_correlations
from effective_langevin.diagnose.moments import measure_moments
from effective_langevin.diagnose.regime import (
    check_sampling_interval,
    decide_regime,
    is_white,
    measure_nugget,
    measure_variation,
    step_over_fastest,
)
from effective_langevin.statistics.nugget import shortfall
from effective_langevin.statistics.regime import least_eigenvalue, squared_steps

NO_NOISE, ROUGH = np.zeros(1), np.zeros(1, bool)


@pytest.mark.parametrize("tau", [3.0, 30.0])
def test_the_slope_of_quadratic_variation_of_a_diffusion(tau):
    """1 - rho(h) with rho = a^h: slope log2 (1 + a^h) - 1 between h and 2h."""
    lags, slopes, errors = measure_variation(measure_moments(ornstein_uhlenbeck(50_000, tau)))
    expected = np.log2(1 + np.exp(-lags[:-1] / tau)) - 1
    assert (np.abs(slopes.T - expected) < 4 * errors.T).all()
    assert errors[0].max() < 0.02


def test_the_slope_of_smooth_motion_and_of_noise():
    smooth = np.cumsum(autoregressive(20_000, 20.0)[0], axis=0)
    smooth = smooth - np.convolve(np.pad(smooth[:, 0], 500, mode="edge"), np.ones(1001) / 1001, "valid")[:, None]
    assert measure_variation(measure_moments(el.TimeSeries(smooth, 1.0)))[1][0, -1] == pytest.approx(1.0, abs=0.05)
    noise = np.random.default_rng(0).normal(size=(20_000, 2))
    assert measure_variation(measure_moments(el.TimeSeries(noise, 1.0)))[1][0, -1] == pytest.approx(-1.0, abs=0.05)


def test_squared_steps_are_summed_within_records_and_by_origin():
    x, y = np.arange(6.0)[:, None] ** 2, 10 * np.arange(4.0)[:, None]
    sums, pairs = squared_steps([x, y], np.array([1, 4]), 2)
    # Origins 0-4 and 5-9; steps of x at lag 1: 1, 3, 5, 7, 9, at lag 4: 16, 24; of y at lag 1: 10, 10, 10.
    assert sums[:, :, 0].tolist() == [[1 + 9 + 25 + 49 + 81, 16**2 + 24**2], [300, 0]]
    assert pairs.tolist() == [[5, 2], [3, 0]]


def test_dt_over_the_fastest_time_is_dt_over_tau_for_an_exponential():
    for tau in (2.0, 10.0):
        value, error = step_over_fastest(measure_moments(ornstein_uhlenbeck(50_000, tau)), NO_NOISE, ROUGH, False)
        assert (np.abs(value - 1 / tau) < 4 * error).all()
        assert error[0] < 0.1 / tau


def test_the_least_eigenvalue_is_that_of_the_propagator():
    a = np.array([[1.0, 1.0, 0.0], [-1.0, 1.5, 0.3], [0.0, 0.2, 3.0]])
    system = el.systems.OrnsteinUhlenbeck(a, np.diag([1.0, 1.0, 2.0]))
    exact = np.exp(-np.linalg.eigvals(a).real.max() * 0.1)
    assert least_eigenvalue(system.covariance, expm(-0.1 * a) @ system.covariance) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize(("degree", "lags"), [(1, 2), (2, 4), (3, 6), (4, 12)])
def test_the_extrapolation_is_exact_for_polynomials(degree, lags):
    tau = np.arange(lags + 2.0)
    curve = 1 - sum(0.1**k * tau**k for k in range(1, degree + 1)) / 3
    curve[0] += 0.25
    assert shortfall(curve[:, None] / curve[0], degree, lags)[0] == pytest.approx(0.25 / 1.25, abs=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_the_nugget_is_the_variance_of_the_noise(share):
    found = measure_nugget(measure_moments(with_noise(ornstein_uhlenbeck(50_000, 20.0), share)))
    assert abs(found.variance[0] - share**2 / (1 + share**2)) < 4 * found.error[0]
    assert found.error[0] < 0.3 * share**2


def test_no_nugget_without_noise():
    for seed in range(10):
        found = measure_nugget(measure_moments(ornstein_uhlenbeck(20_000, 20.0, seed=seed)))
        assert abs(found.variance[0]) < 4 * found.error[0]
        assert found.error[0] < 0.01


def test_noise_is_taken_off_before_the_sampling_is_judged():
    noisy = measure_moments(with_noise(ornstein_uhlenbeck(50_000, 20.0), 0.5))
    raw = step_over_fastest(noisy, NO_NOISE, ROUGH, False)[0]
    clean, error = step_over_fastest(noisy, np.array([0.2]), ROUGH, False)
    assert raw[0] > 1.0
    assert abs(clean[0] - 0.05) < 4 * error[0]


def test_white_is_white_and_a_weak_correlation_is_not():
    rng = np.random.default_rng(1)
    assert sum(is_white(measure_moments(el.TimeSeries(rng.normal(size=(2000, 3)), 1.0))) for _ in range(40)) >= 39
    assert not is_white(measure_moments(ornstein_uhlenbeck(20_000, 0.4)))


def test_a_few_samples_of_a_slow_process_are_not_white():
    values = np.concatenate([autoregressive(500, 8.0, seed=k)[0] for k in range(10)], axis=1)
    assert not is_white(measure_moments(el.TimeSeries(values, 1.0)))


def test_a_linear_markov_process_leaves_no_partial_correlation():
    a = np.array([[1.0, 1.0], [-1.0, 1.5]])
    c = el.systems.OrnsteinUhlenbeck.rotating(2).covariance
    moments = np.array([expm(-a * h) @ c for h in (0.0, 0.1, 0.2, 0.4)])
    np.testing.assert_allclose(partial_correlations(moments), 0, atol=1e-12)


def test_noise_leaves_the_partial_correlation_of_the_formula():
    """c0 = 1 + nu, c1 = a, c2 = a^2: a^2 nu / ((1 + nu)^2 - a^2)."""
    a, nu = 0.9, 0.2
    moments = np.array([1 + nu, a, a * a])[:, None, None]
    assert partial_correlations(moments)[0, 0, 0] == pytest.approx(a * a * nu / ((1 + nu) ** 2 - a * a))


def test_rows_are_the_future_and_columns_the_past():
    """y(t + 1) = x(t - 1): only the future of y knows the past of x."""
    x = np.random.default_rng(0).normal(size=5000)
    found = measure_moments(el.TimeSeries(np.column_stack([x[2:], x[:-2]]), 1.0))
    partial = partial_correlations(found.jackknifed(lambda c: c, 0, 1, 2)[0])[0]
    np.testing.assert_allclose(partial, [[0, 0], [1, 0]], atol=0.06)


def test_a_fastest_time_that_is_infinite_without_an_error_divides_by_nothing():
    """Noise that hides a cycle can leave a C(0) that falls no faster than C(1), in every group of samples."""
    moments = measure_moments(ornstein_uhlenbeck(2000, 10.0))
    found = decide_regime(moments, linear_memory(moments), None)
    none = replace(found, white=False, coarseness=np.zeros(2), coarseness_error=np.zeros(2))
    assert check_sampling_interval(moments, none).level == "ok"


def test_noise_leaves_no_size_of_motion_blur_to_state():
    noisy = with_noise(ornstein_uhlenbeck(5000, 10.0), 0.3)
    assert el.diagnose(noisy).finding("motion blur").meaning == (
        "No sign of motion blur: C(0) is not below its extrapolation."
    )
