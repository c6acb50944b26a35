from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.models import exact_model
from scipy.linalg import expm
from scipy.sparse.linalg import expm_multiply

import effective_langevin as el
from effective_langevin.simulate import Equation, StochasticHeun, integrate

PROCESS = el.systems.OrnsteinUhlenbeck.rotating(2)
SCALE = np.array([3.0, 0.2])
RATES = PROCESS.drift_matrix * SCALE[:, None] / SCALE
PUSH = np.array([0.5, 0.04])
LEADS = [0.1, 0.5, 1.0, 2.0]


@pytest.fixture(scope="module")
def exact():
    return exact_model(PROCESS, SCALE, members=4000)


def test_the_response_of_a_linear_process_is_exact_in_both_ways(exact):
    """A^-1 (1 - e^{-A t}) f: four standard errors from fluctuations, 5e-3 from pushed paths, which do not scatter."""
    found = exact.response(None, PUSH, LEADS, members=1000, seed=1)
    exactly = np.array([np.linalg.solve(RATES, (np.eye(2) - expm(-RATES * t)) @ PUSH) for t in LEADS])
    assert (np.abs(found.fluctuation - exactly) < 4 * found.fluctuation_error).all()
    assert (found.fluctuation_error < 0.1 * np.abs(exactly).max(axis=0)).all()
    np.testing.assert_allclose(found.simulation, exactly, rtol=0.0, atol=5e-3 * np.abs(exactly).max())
    assert found.agrees
    assert len(found.plot()) == 2


def test_a_push_for_a_while_is_a_convolution(exact):
    """f sin(3 t): the integral of e^{-A (t - u)} f sin(3 u) by fine quadrature; four standard errors."""

    def forcing(times):
        return np.sin(3 * times)[:, None] * PUSH

    found = exact.response(None, forcing, LEADS, members=1000, seed=2)
    for k, lead in enumerate(LEADS):
        u = np.linspace(0, lead, 401)
        exactly = np.trapezoid([expm(-RATES * (lead - v)) @ PUSH * np.sin(3 * v) for v in u], u, axis=0)
        assert (np.abs(found.fluctuation[k] - exactly) < 4 * found.fluctuation_error[k] + 1e-3 * np.abs(PUSH)).all()
        assert (np.abs(found.simulation[k] - exactly) < 5e-3 * np.abs(PUSH)).all()


def test_an_observable_that_is_not_linear(exact):
    """< x_i x_j > does not answer to a constant push to first order: the steady state is symmetric."""
    found = exact.response(lambda x: x[:, 0] * x[:, 1], PUSH, [0.5, 1.0], members=1000, seed=3)
    assert found.names == ("A",)
    assert (np.abs(found.fluctuation) < 4 * found.fluctuation_error).all()
    assert (np.abs(found.simulation) < 4 * found.simulation_error + 1e-3).all()


@pytest.mark.slow
def test_ways_that_disagree_say_so(exact):
    found = exact.response(None, PUSH, [0.5], members=1000, seed=1)
    wrong = replace(found, simulation=2 * found.simulation + 1)
    assert not wrong.agrees
    assert "DISAGREE" in repr(wrong)


@pytest.mark.parametrize("observable", ["x", lambda x: x[:3], lambda x: np.ones((len(x), 2, 2))])
def test_an_observable_must_be_a_function_of_states(exact, observable):
    with pytest.raises(el.ArgumentError, match="Argument `observable`"):
        exact.response(observable, PUSH, [0.5], members=100)


WELL_LEADS = [0.5, 1.0, 2.0, 4.0]
WELL_PUSH = np.array([0.2, -0.1])


@pytest.mark.slow
def test_the_response_of_the_wells_is_that_of_their_fokker_planck_equation(wells):
    """The mean after a push begins, from the generator with and without it; 10 % of the largest, or 3 s.e."""
    series = wells.simulate(duration=500.0, dt=0.05, members=40, seed=1)
    model = el.fit(series, score=el.KGMM(noise_level=0.05), mobility=el.IntegratedResponse(), seed=0)
    found = model.response(None, WELL_PUSH, WELL_LEADS, series=series, members=20000, seed=1)
    plain = el.systems.FokkerPlanck.from_system(wells, [(-3.2, 2.6), (-3.4, 3.0)], points=101)
    pushed = el.systems.FokkerPlanck(plain.axes, plain.drift + WELL_PUSH, plain.diffusion)
    later = plain.states - plain.mean()
    for k, (lead, more) in enumerate(zip(WELL_LEADS, np.diff(WELL_LEADS, prepend=0.0))):
        later = expm_multiply(pushed.generator * more, later)
        exactly = plain.density @ later
        allowed = 0.1 * np.abs(exactly).max()
        for value, error in (
            (found.fluctuation[k], found.fluctuation_error[k]),
            (found.simulation[k], found.simulation_error[k]),
        ):
            assert (np.abs(value - exactly) < np.maximum(allowed, 3 * error)).all(), (lead, value, error, exactly)


@pytest.mark.slow
def test_the_response_of_lorenz_63_is_that_of_pushed_paths_of_the_system():
    """A constant push on y, for leads in which pushed paths stay near; 10 % of the largest, or 3 s.e., in both ways."""
    system = el.systems.StochasticLorenz63()
    series = system.simulate(duration=50.0, dt=0.01, members=30, seed=1)
    score, settings = el.KGMM(noise_level=0.05, steps=1000, max_draws=8), {"check": "off", "compare_estimators": False}
    model = el.fit(series, score=score, mobility=el.StateDependent(), seed=0, **settings)
    push, leads = np.array([0.0, 4.0, 0.0]), [0.05, 0.1, 0.2, 0.3]
    found = model.response(None, push, leads, series=series, members=4000, seed=1)
    start = series.stacked()[:: series.n_samples // 4000][:4000]
    ends = [_pushed(system, start, sign * push, leads[-1])[:, [round(t / 0.01) for t in leads]] for sign in (1, -1)]
    half = 0.5 * (ends[0] - ends[1])
    exactly, scatter = half.mean(axis=0), half.std(axis=0) / np.sqrt(len(half))
    allowed = 0.1 * np.abs(exactly).max(axis=0)
    for value, error in ((found.fluctuation, found.fluctuation_error), (found.simulation, found.simulation_error)):
        assert (np.abs(value - exactly) < np.maximum(allowed, 3 * np.hypot(error, scatter))).all(), (value, exactly)
    assert (found.fluctuation_error < 0.1 * np.abs(exactly[:, :2]).max()).all()  # sharp enough to tell


def _pushed(system, start, push, duration):
    """Paths of a system with a push, from given states, saved every 0.01; the noise is the same for every push."""
    noise = jnp.asarray(system.noise_factor(np.zeros(3)), jnp.float32)
    advance = StochasticHeun().advance(Equation(lambda x: system._drift(x) + push, noise), 0.002)
    key, frames = jax.random.key(3), round(duration / 0.01)
    return integrate(advance, start, frames=frames, save_every=5, step=0.002, brownian=3, key=key).paths
