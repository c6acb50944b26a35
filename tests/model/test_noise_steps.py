"""Steps fine enough for noise that reaches the observed variables through hidden ones."""

import jax.numpy as jnp
import numpy as np
import pytest

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
