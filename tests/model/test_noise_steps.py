"""Steps fine enough for noise that reaches the observed variables through hidden ones."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.model.noise_steps import variance_of_steps
from effective_langevin.simulate import Equation, StochasticMidpoint


@pytest.mark.parametrize("steps", [1, 3])
def test_the_variance_of_midpoint_steps_is_known(steps):
    """A linear equation takes unit vectors, and unit draws, to the columns of what it does to any state."""
    rates, factor = np.array([[0.3, -0.5], [0.4, 0.2]]), np.array([[0.1, 0.0], [0.2, 0.4]])
    equation = Equation(lambda x: -jnp.asarray(rates) @ x, jnp.asarray(factor))
    advance, one = StochasticMidpoint().advance(equation, 1 / steps), np.eye(2)
    decay = np.asarray(advance(jnp.asarray(one), jnp.zeros((2, 4)))).T
    kick = np.asarray(advance(jnp.zeros((4, 2)), jnp.asarray(np.eye(4) / np.sqrt(steps)))).T
    powers = [np.linalg.matrix_power(decay, k) @ kick for k in range(steps)]
    expected = np.diagonal(sum(power @ power.T for power in powers))
    assert variance_of_steps(rates, factor @ factor.T, 1.0, steps) == pytest.approx(expected, rel=1e-5)


def test_forecasts_over_one_interval_beside_a_delay_have_the_variance_of_the_equation():
    """To 1 % by the choice of the step, and to as much again by the number of members; with one step it is far off."""
    noise = np.random.default_rng(0).normal(size=20_000)
    series = el.TimeSeries(lfilter([1.0], [1.0, -1.6, 0.8], noise)[100:, None], 1.0)
    model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation(), memory="delays:1", check="off")
    covariance = model.standardizer.mobility_to_physical(model.score.covariance)
    decay = expm(-model.mobility.matrix @ np.linalg.inv(covariance))
    exact = (covariance - decay @ covariance @ decay.T)[0, 0]

    def spread(**given):
        start = np.broadcast_to(series.values[:2], (50_000, 2, 1))
        return np.var(model.simulate(1.0, members=50_000, initial=start, seed=1, **given).values[:, -1, 0])

    assert spread() == pytest.approx(exact, rel=0.02)
    assert abs(spread(step=1.0) / exact - 1) > 0.1
