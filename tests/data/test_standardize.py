import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effective_langevin as el

CASES = given(dimension=st.integers(1, 4), seed=st.integers(0, 2**31))


def drawn(dimension, seed):
    """Units of very different size, a point, and a mobility with a positive symmetric part."""
    rng = np.random.default_rng(seed)
    units = el.Standardizer(rng.normal(size=dimension) * 10, np.exp(rng.normal(size=dimension) * 2))
    factor = rng.normal(size=(dimension, dimension)) + 2 * np.eye(dimension)
    skew = rng.normal(size=(dimension, dimension))
    return rng, units, factor @ factor.T + skew - skew.T


def log_density(x, precision):
    """ln p of a correlated, non-Gaussian, skewed density, up to a constant."""
    return -0.5 * x @ precision @ x - 0.1 * np.sum(x**4) + 0.3 * np.sum(np.sin(x))


def score(x, precision):
    return -0.5 * (precision + precision.T) @ x - 0.4 * x**3 + 0.3 * np.cos(x)


@CASES
def test_the_physical_score_is_the_gradient_of_the_physical_log_density(dimension, seed):
    rng, units, precision = drawn(dimension, seed)
    u = units.to_physical(rng.normal(size=dimension))
    gradient = np.empty(dimension)
    for i in range(dimension):
        step = np.zeros(dimension)
        step[i] = 1e-5 * units.std[i]
        ahead, behind = (log_density(units.to_standard(u + sign * step), precision) for sign in (1, -1))
        gradient[i] = (ahead - behind) / (2 * step[i])
    # Central differences with 1e-5 of a standard deviation: rounding 1e-16 / 1e-5 of the log-density, which is < 1e3.
    np.testing.assert_allclose(
        units.score_to_physical(score(units.to_standard(u), precision)) * units.std, gradient * units.std, atol=1e-6
    )


@CASES
def test_mobility_is_scaled_on_both_sides(dimension, seed):
    _, units, phi = drawn(dimension, seed)
    scale = np.diag(units.std)
    np.testing.assert_allclose(units.mobility_to_physical(phi), scale @ phi @ scale, rtol=1e-13)
    np.testing.assert_allclose(units.mobility_to_standard(scale @ phi @ scale), phi, rtol=1e-12)


@CASES
def test_the_drift_does_not_depend_on_the_units(dimension, seed):
    """du/dt = S dx/dt: Phi_u s_u = S Phi_x s_x."""
    rng, units, phi = drawn(dimension, seed)
    s = rng.normal(size=dimension)
    np.testing.assert_allclose(
        units.mobility_to_physical(phi) @ units.score_to_physical(s), units.std * (phi @ s), rtol=1e-9, atol=1e-9
    )


@CASES
def test_the_physical_noise_factor_squares_to_the_physical_diffusion(dimension, seed):
    _, units, phi = drawn(dimension, seed)
    sigma = units.noise_factor_to_physical(np.linalg.cholesky(0.5 * (phi + phi.T)))
    physical = units.mobility_to_physical(phi)
    np.testing.assert_allclose(sigma @ sigma.T, 0.5 * (physical + physical.T), rtol=1e-9, atol=1e-12)


@CASES
def test_states_survive_the_round_trip(dimension, seed):
    rng, units, _ = drawn(dimension, seed)
    x = rng.normal(size=(7, dimension))
    np.testing.assert_allclose(units.to_standard(units.to_physical(x)), x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(units.to_physical(np.zeros(dimension)), units.mean)


@given(dimension=st.integers(1, 4), seed=st.integers(0, 2**31))
def test_standardised_samples_have_mean_zero_and_variance_one_over_all_segments(dimension, seed):
    rng, units, _ = drawn(dimension, seed)
    series = el.TimeSeries([units.to_physical(rng.normal(size=(n, dimension))) for n in (20, 35)], dt=1.0)
    samples = series.map(el.Standardizer.from_series(series).to_standard).stacked()
    np.testing.assert_allclose(samples.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(samples.std(axis=0), 1, rtol=1e-10)


@pytest.mark.parametrize("level", [0.0, 3.0, 1e9, 0.1])
def test_a_constant_variable_is_named_and_refused(level):
    values = np.column_stack([np.random.default_rng(0).normal(size=200), np.full(200, level)])
    series = el.TimeSeries(values, dt=1.0, names=["wind", "gauge"])
    message = rf"Variable 'gauge' is constant \(always {level:g}\).*Drop it"
    with pytest.raises(el.DataError, match=message.replace("+", r"\+")):
        el.Standardizer.from_series(series)
    with pytest.raises(el.DataError, match="Variable 'gauge' is constant"):
        el.fit(series, score=el.Gaussian())


def test_a_tiny_but_varying_variable_is_not_called_constant():
    """Pressures in bar, concentrations in mol: units must not decide whether a variable varies."""
    values = 1e-13 * np.random.default_rng(0).normal(size=(200, 1))
    units = el.Standardizer.from_series(el.TimeSeries(values, dt=1.0))
    assert units.std[0] == pytest.approx(values.std())


@pytest.mark.parametrize(("offset", "spread"), [(1e15, 100.0), (1e8, 1e-5), (0.0, 1e70), (0.0, 1e-70)])
def test_no_offset_and_no_unit_changes_the_standardised_samples(offset, spread):
    """Float64 holds 1e15 to 0.125: a thousandth of the spread."""
    x = np.random.default_rng(0).normal(size=(500, 2))
    series = el.TimeSeries(offset + spread * x, dt=1.0)
    found = series.map(el.Standardizer.from_series(series).to_standard).stacked()
    rounding = np.spacing(offset) / spread
    np.testing.assert_allclose(found, (x - x.mean(axis=0)) / x.std(axis=0), atol=1e-10 + 2 * rounding)


@pytest.mark.parametrize("scale", [1e-160, 1e160, 1e300])
def test_units_that_float64_cannot_square_twice_are_refused(scale):
    series = el.TimeSeries(scale * np.random.default_rng(0).normal(size=(500, 1)), dt=1.0)
    with pytest.raises(el.DataError, match=r"Variable 'x1' varies by .* Give it in another unit"):
        el.Standardizer.from_series(series)
