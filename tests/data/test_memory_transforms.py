"""Velocities and delays as transforms: what they are made of, what they lose, and how they come back."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin._core.differences import derivative_weights
from effective_langevin.data.preprocess.base import from_dict


def waves(count=400, dt=0.05):
    time = dt * np.arange(count)
    return el.TimeSeries(np.column_stack([np.sin(time), 2 * np.cos(1.7 * time + 0.3)]), dt, names=["x", "y"])


def driven_oscillator(dt=0.1, samples=100_000, friction=0.5, seed=1):
    """Return x and v of dv = (-x - friction v) dt + sqrt(2 friction) dW, exact at every sample."""
    from scipy.linalg import expm

    step = expm(dt * np.array([[0.0, 1.0], [-1.0, -friction]]))
    noise = np.linalg.cholesky(np.eye(2) - step @ step.T)
    draw, members = np.random.default_rng(seed), 100
    state, states = draw.normal(size=(members, 2)), []
    for _ in range(samples // members):
        states.append(state)
        state = state @ step.T + draw.normal(size=state.shape) @ noise.T
    return np.array(states).transpose(1, 0, 2)


def test_velocity_of_smooth_motion_is_exact_to_third_order():
    series = waves()
    own = el.Velocity().fit(series).apply(series)
    time = own.times[0]
    exact = np.column_stack([np.cos(time), -3.4 * np.sin(1.7 * time + 0.3)])
    assert own.names == ("x", "y", "dx/dt", "dy/dt")
    assert np.abs(own.values[:, 2:] - exact).max() < 2e-3
    assert time[0] == pytest.approx(3 * 0.05)


def test_accelerations_of_smooth_motion_are_exact_to_fourth_order():
    """The error of a backward difference over five steps is below (1.7 dt)^4 times the largest acceleration, 5.8."""
    series = waves()
    fitted = el.Velocity(2).fit(series)
    own = fitted.apply(series)
    time = own.times[0]
    moving = np.column_stack([np.cos(time), -3.4 * np.sin(1.7 * time + 0.3)])
    bending = np.column_stack([-np.sin(time), -5.78 * np.cos(1.7 * time + 0.3)])
    assert own.names == ("x", "y", "dx/dt", "dy/dt", "d2x/dt2", "d2y/dt2")
    assert np.abs(own.values[:, 2:4] - moving).max() < 1e-4
    assert np.abs(own.values[:, 4:] - bending).max() < 5.8 * (1.7 * 0.05) ** 4
    assert time[0] == pytest.approx(5 * 0.05)
    assert fitted.errors.max() < 5.8 * (1.7 * 0.05) ** 4


def test_units_of_derivatives_count_powers_of_time():
    series = el.TimeSeries(np.sin(0.1 * np.arange(99.0)), 0.1, names=["x"], units=["m"], time_unit="s")
    assert el.Velocity(2).fit(series).apply(series).units == ("m", "m/s", "m/s^2")


@pytest.mark.parametrize(
    ("places", "order", "exact"),
    [(range(4), 1, [-11 / 6, 3, -3 / 2, 1 / 3]), ((-1, 0, 1), 2, [1, -2, 1]), ((1, 2, 3), 0, [3, -3, 1])],
)
def test_weights_of_derivatives_are_those_of_the_textbook(places, order, exact):
    assert derivative_weights(places, order) == pytest.approx(exact, abs=1e-12)


def test_velocity_needs_the_past_alone():
    series = waves()
    fitted = el.Velocity().fit(series)
    shorter = el.TimeSeries(series.values[:200], series.dt, names=series.names)
    assert np.array_equal(fitted.apply(shorter).values, fitted.apply(series).values[:197])


def test_velocity_driven_by_noise_is_as_good_as_three_differences_can_tell():
    """v(t) = v_hat + error: the error is not correlated with v_hat, and its size is the one stated."""
    states = driven_oscillator()
    series = el.TimeSeries(states[..., :1], 0.1, names=["x"])
    fitted = el.Velocity().fit(series)
    found = np.stack(fitted.apply(series).segments)[..., 1]
    error = states[:, 3:, 1] - found
    assert abs(np.corrcoef(error.ravel(), found.ravel())[0, 1]) < 0.03
    assert fitted.errors[0] == pytest.approx(error.std(), rel=0.1)
    backward = (3 * states[:, 3:, 0] - 4 * states[:, 2:-1, 0] + states[:, 1:-2, 0]) / 0.2
    assert error.std() < 0.95 * (states[:, 3:, 1] - backward).std()


def test_delays_keep_the_present_and_add_what_it_does_not_tell():
    series = waves(2000)
    fitted = el.Delays(4, 3).fit(series)
    own = fitted.apply(series)
    hidden = own.values[:, 2:]
    assert np.array_equal(own.values[:, :2], series.values[12:])
    assert hidden.shape[1] >= 2  # two waves have two velocities
    assert np.abs(np.corrcoef(own.values.T)[:2, 2:]).max() < 0.05


@pytest.mark.parametrize("memory", [el.Velocity(), el.Velocity(2), el.Delays(3, 2)])
def test_memory_comes_back_from_plain_data_and_inverts_to_the_observed(memory):
    series = waves()
    fitted = memory.fit(series)
    again = from_dict(fitted.to_dict())
    own = again.apply(series)
    assert np.array_equal(own.values, fitted.apply(series).values)
    back = again.invert(own)
    assert back.names == series.names
    assert np.array_equal(back.values, series.values[-len(back.values) :])


def test_memory_crosses_no_gap():
    values = np.sin(0.05 * np.arange(300.0))
    values[100] = np.nan
    own = el.Delays(2, 4).fit(series := el.TimeSeries(values, 0.05, names=["x"])).apply(series)
    assert [len(s) for s in own.segments] == [92, 191]


@pytest.mark.parametrize("given", [{"count": 0}, {"lag": 0}, {"count": 1.5}])
def test_delays_refuse_what_is_no_count(given):
    with pytest.raises(el.ArgumentError, match="must be"):
        el.Delays(**given)
