"""Spectra and return times against closed forms: Lorentzian, white noise, counted crossings, Rice's formula."""

import numpy as np
import pytest
from oracles.fields import exact_series

import effective_langevin as el
from effective_langevin.validate.views import return_time_curve, spectrum_curve, variable_coords


def compare_spectra(data, paths, slowest, points=1):
    return spectrum_curve(data, paths, slowest, variable_coords(data, range(0, data.dimension, points)), points)


def compare_return_times(data, paths, levels, points=1):
    return return_time_curve(data, paths, levels, variable_coords(data, range(0, data.dimension, points)), points)


@pytest.fixture(scope="module")
def pair():
    """Two independent samples of dx = -x dt + sqrt(2) dW and dy = -3 y dt + sqrt(6) dW, unit variances."""
    process = el.systems.OrnsteinUhlenbeck(np.diag([1.0, 3.0]), np.diag(np.sqrt([1.0, 3.0])))
    return [exact_series(process, dt=0.1, members=10, steps=8000, seed=seed) for seed in (1, 2)]


def sampled_lorentzian(frequency, rate, dt):
    """One-sided spectrum of x(t + dt) = a x(t) + noise of unit variance, a = exp(-rate dt): aliasing included."""
    a = np.exp(-rate * dt)
    return 2 * dt * (1 - a**2) / (1 - 2 * a * np.cos(2 * np.pi * frequency * dt) + a**2)


def test_the_spectrum_of_an_autoregression_is_the_closed_form_within_its_errors(pair):
    """Curves at 60 frequencies times two: the root mean square deviation in standard errors is 1 within 0.35."""
    found = compare_spectra(*pair, slowest=1.0)
    for v, rate in enumerate((1.0, 3.0)):
        for curve, error in ((found.data, found.data_error), (found.model, found.model_error)):
            deviation = (curve[:, v] - sampled_lorentzian(found["frequency"], rate, 0.1)) / error[:, v]
            assert np.sqrt(np.mean(deviation**2)) == pytest.approx(1.1, abs=0.35)


def test_a_spectrum_integrates_to_the_variance():
    noise = el.TimeSeries(np.random.default_rng(0).normal(size=(50_000, 1)) * 3, dt=0.5)
    found = compare_spectra(noise, noise, slowest=50.0)
    # white noise of variance 9 sampled every 0.5: 2 dt variance = 9 at every frequency
    np.testing.assert_allclose(found.data.mean(), 9.0, rtol=0.05)


def test_pooled_spectra_are_means_over_points(pair):
    apart, pooled = (compare_spectra(*pair, slowest=1.0, points=n) for n in (1, 2))
    np.testing.assert_allclose(pooled.data[:, 0], apart.data.mean(axis=1))


def test_records_too_short_for_a_window_have_no_spectrum():
    short = el.TimeSeries(np.random.default_rng(0).normal(size=(50, 10, 2)), dt=1.0)
    assert compare_spectra(short, short, slowest=3.0) is None


def test_few_windows_give_a_spectrum_without_errors():
    once = el.TimeSeries(np.random.default_rng(0).normal(size=(300, 1)), dt=1.0)
    found = compare_spectra(once, once, slowest=10.0)
    assert found.data_error is None
    assert np.isfinite(found.data).all()


def test_crossings_are_counted_one_by_one():
    """Against a double loop over pairs and levels, with a gap that no pair may cross."""
    rng = np.random.default_rng(3)
    segments = [rng.normal(size=(n, 2)) for n in (4000, 3000)]
    series, levels = el.TimeSeries(segments, dt=0.5), np.array([np.linspace(-2, 2, 9), np.linspace(-1, 1, 9)])
    found = compare_return_times(series, series, levels)
    for v in range(2):
        crossed = sum(((s[:-1, v, None] <= levels[v]) & (s[1:, v, None] > levels[v])).sum(axis=0) for s in segments)
        np.testing.assert_allclose(found.data[v], 0.5 * (7000 - 2) / crossed, rtol=1e-12)


def test_return_times_of_independent_samples_are_the_closed_form(pair):
    """White noise crosses u upwards with chance F(u) (1 - F(u)) per step; 4 standard errors at each level."""
    rng, levels = np.random.default_rng(4), np.array([[0.1, 0.5, 0.9, 0.99]])
    series = el.TimeSeries(rng.uniform(size=(200_000, 1)), dt=2.0)
    found = compare_return_times(series, series, levels)
    exact = 2.0 / (levels * (1 - levels))
    assert (np.abs(found.data - exact) < 4 * found.data_error).all()
    assert (found.data_error < 0.1 * exact).all()


def test_a_level_that_is_hardly_reached_has_no_return_time():
    series = el.TimeSeries(np.random.default_rng(4).uniform(size=(1000, 1)), dt=1.0)
    found = compare_return_times(series, series, np.array([[0.5, 2.0]]))
    assert np.isfinite(found.data[0]).tolist() == [True, False]


def test_pooled_return_times_weigh_all_points_alike(pair):
    levels = np.linspace(-1, 1, 5)
    apart = compare_return_times(*pair, np.array([levels, levels]))
    pooled = compare_return_times(*pair, levels[None], points=2)
    np.testing.assert_allclose(1 / pooled.data[0], (1 / apart.data).mean(axis=0))


def test_their_figures_take_axes_and_give_axes_back(pair):
    from matplotlib.figure import Figure

    given = Figure().subplots(1, 2)
    axes = el.plots.plot_spectrum(compare_spectra(*pair, slowest=1.0), given)
    assert list(axes) == list(given)
    assert axes[0].get_xscale() == axes[0].get_yscale() == "log"
    levels = np.array([np.linspace(-1, 1, 5)] * 2)
    own = el.plots.plot_return_time(compare_return_times(*pair, levels))
    assert own[0].get_xlabel() == pair[0].names[0]
