import numpy as np
import pytest
from oracles.models import exact_model
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import effective_langevin as el

PROCESS = el.systems.OrnsteinUhlenbeck.rotating(2)
SCALE = np.array([3.0, 0.2])
RATES = PROCESS.drift_matrix * SCALE[:, None] / SCALE


@pytest.fixture(scope="module")
def exact():
    return exact_model(PROCESS, SCALE)


def pushed(model, forcing, **options):
    """The difference of paths with and without a push, driven by the same noise."""
    paths = [model.simulate(2.0, members=3, seed=5, forcing=f, step=0.01, **options).values for f in (forcing, None)]
    return paths[0] - paths[1]


def test_a_constant_push_moves_a_linear_process_by_the_exact_response(exact):
    """A^-1 (1 - e^{-A t}) f for every path; 1e-3 for steps of 0.01 in single precision."""
    push = np.array([0.5, -0.3])
    times = 0.1 * np.arange(21)
    exactly = np.array([np.linalg.solve(RATES, (np.eye(2) - expm(-RATES * t)) @ push) for t in times])
    difference = pushed(exact, push)
    assert np.abs(difference - exactly).max() < 1e-3 * np.abs(exactly).max() + 1e-4
    assert np.abs(exactly).max() > 0.1


@pytest.mark.parametrize("start", [0.0, 3.0])
def test_a_push_that_changes_with_time_is_taken_at_the_right_time(exact, start):
    def forcing(times):
        return np.stack([np.sin(4 * times), np.cos(2 * times)], axis=1)

    times = start + 0.1 * np.arange(21)
    solved = solve_ivp(
        lambda t, x: -RATES @ x + forcing(np.array([t]))[0],
        times[[0, -1]],
        np.zeros(2),
        t_eval=times,
        rtol=1e-8,
        atol=1e-10,
    )
    difference = pushed(exact, forcing, start=start)
    assert np.abs(difference - solved.y.T).max() < 2e-3 * np.abs(solved.y).max()


@pytest.mark.parametrize("forcing", [[1.0], np.ones((2, 2)), [np.nan, 0.0], lambda t: np.ones(2)])
def test_a_push_of_another_shape_is_refused(exact, forcing):
    with pytest.raises(el.ArgumentError, match="Argument `forcing`"):
        exact.simulate(1.0, forcing=forcing)
