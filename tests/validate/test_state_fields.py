"""Fields of a model beside increments of the data, binned by state."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.statistics.conditional_means import conditional_means
from effective_langevin.validate.state_fields import field_arrows


def test_conditional_means_are_those_of_each_cell_with_the_errors_of_independent_samples():
    rng = np.random.default_rng(0)
    cell, noise = rng.integers(0, 4, 40_000), rng.normal(size=(40_000, 2))
    means, errors = conditional_means(noise + cell[:, None], cell, 5)
    for k in range(4):
        np.testing.assert_allclose(means[k], (noise[cell == k] + k).mean(axis=0), rtol=1e-12)
    assert np.isnan(means[4]).all()
    # A mean of 10 000 samples has an error of 0.01, which 20 groups give to 16 % (four of these are allowed for).
    np.testing.assert_allclose(errors[:4], 0.01, rtol=0.64)


@pytest.fixture(scope="module")
def line():
    series = el.systems.ScalarMultiplicative().simulate(200.0, dt=0.02, members=20, seed=1)
    model = el.fit(series, score=el.Gaussian(), mobility=el.StateDependent(), check="off", compare_estimators=False)
    return series, el.validate(model, series, members=20, duration=20.0)


@pytest.mark.slow
def test_binned_increments_follow_the_exact_fields(line):
    system, curve = el.systems.ScalarMultiplicative(), line[1].curves["field_profiles"]
    states = curve["state"][0][:, None]
    assert list(curve["quantity"]) == ["drift", "diffusion"]
    for k, exact in enumerate((system.drift(states)[:, 0], system.diffusion(states)[:, 0, 0])):
        inner = slice(1, -1)  # within the outermost bins the fields are far from linear
        # Four errors, and a share for what changes within dt (rates of 2 to 7 per unit of time).
        allowed = 4 * curve.data_error[k] + 0.15 * np.abs(exact)
        assert np.all(np.abs(curve.data[k] - exact)[inner] < allowed[inner])


@pytest.mark.slow
def test_binned_increments_are_drawn_and_kept(line, tmp_path):
    _, result = line
    axes = el.plots.plot_fields(result)
    markers = [artist for artist in axes[2].get_lines() if artist.get_marker() == "o"]  # after potential and drift
    np.testing.assert_array_equal(markers[0].get_ydata(), result.curves["field_profiles"].data[1])
    result.save(tmp_path / "curves.nc")
    again = el.Validation.load(tmp_path / "curves.nc", result.model)
    np.testing.assert_array_equal(again.curves["field_profiles"].data, result.curves["field_profiles"].data)
    el.plots.plot_fields(again)


def test_a_few_hundred_samples_have_arrows():
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(50.0, dt=0.1, members=1, seed=1)
    model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation(), check="off")
    arrows = field_arrows(model, series)
    assert len(series.segments[0]) < 600
    assert np.isfinite(arrows.model).all(axis=-1).sum() > 12


@pytest.mark.slow
def test_arrows_of_data_and_model_turn_alike():
    system = el.systems.NoisyLimitCycle()
    series = system.simulate(100.0, dt=0.05, members=10, seed=2)
    model = el.fit(series, score=el.Gaussian(), mobility=el.StateDependent(), check="off", compare_estimators=False)
    curve = el.validate(model, series, members=10, duration=10.0).curves["field_arrows"]
    shown = np.isfinite(curve.data).all(axis=-1)
    assert shown.sum() > 50
    both = np.sum(curve.data[shown] * curve.model[shown])
    assert both / np.sqrt(np.sum(curve.data[shown] ** 2) * np.sum(curve.model[shown] ** 2)) > 0.97
    assert len(el.plots.plot_fields(model)) == 4  # drift, current, and the current against each variable


@pytest.mark.slow
def test_an_angle_moves_by_the_shorter_way():
    series = el.systems.DrivenRing().simulate(200.0, dt=0.1, members=4, seed=1)
    model = el.fit(series, mobility=el.StateDependent(), check="off", compare_estimators=False)
    curve = el.validate(model, series, members=10, duration=20.0).curves["field_profiles"]
    assert np.abs(curve.data[0]).max() < 5  # turns counted as jumps would give velocities of 60
