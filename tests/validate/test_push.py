"""What is left of a small push: exp(-A t) for dx = -A x dt + noise, whatever the noise."""

import numpy as np
import pytest
from scipy.linalg import expm

import effective_langevin as el

DRIFT = np.array([[1.0, 0.8], [-0.3, 0.5]])


@pytest.fixture(scope="module")
def result():
    series = el.systems.OrnsteinUhlenbeck(DRIFT).simulate(500.0, dt=0.1, members=10, seed=1)
    model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation(), compare_estimators=False, check="off")
    return el.validate(model, series, members=100, duration=300.0, seed=2)


def test_the_response_to_a_push_is_that_of_the_linear_process(result):
    curve = result.curves["response"]
    exact = np.array([expm(-DRIFT * lag) for lag in curve["lag"]])
    assert exact[:, 0, 1].min() < -0.2  # a push on x2 moves x1: the two indices cannot be exchanged
    for values, error in curve.sides:
        off = np.abs(values - exact)[1:] / error[1:]
        assert np.mean(off < 2) > 0.85
        assert off.max() < 5
        assert error.max() < 0.06
    np.testing.assert_allclose(curve.data[0], np.eye(2), atol=1e-12)


def test_a_panel_for_each_variable_shows_its_own_response(result):
    axes, curve = el.plots.plot_push(result), result.curves["response"]
    assert [ax.get_title() for ax in axes] == ["push on x1", "push on x2"]
    drawn = [np.array([line.get_ydata() for line in ax.lines if len(line.get_ydata()) > 2]) for ax in axes]
    for v, lines in enumerate(drawn):
        np.testing.assert_allclose(lines, [curve.data[:, v, v], curve.model[:, v, v]])


def test_models_with_memory_and_of_many_variables_have_none():
    series = el.systems.OrnsteinUhlenbeck.rotating(5).simulate(100.0, dt=0.1, members=4, seed=1)
    model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation(), compare_estimators=False, check="off")
    assert "response" not in el.validate(model, series, members=20, duration=20.0, seed=2).curves
