"""Relaxation times, rotations and entropy production against closed forms of linear dynamics and quadrature."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from oracles.fields import exact_series
from oracles.models import exact_model
from scipy.linalg import sqrtm

import effective_langevin as el
from effective_langevin.estimate.mobility.evidence import Agreement
from effective_langevin.model import analysis
from effective_langevin.statistics.resampling import drawn_weights, scatter_of_draws

SCALE = np.array([3.0, 0.2, 40.0])
DRIFT = np.array([[1.0, 1.7, 0.0], [-0.9, 1.5, 0.4], [0.2, -0.3, 0.35]])
NOISE = np.array([[1.0, 0.0, 0.0], [0.3, 0.8, 0.0], [0.0, 0.5, 1.2]])


@pytest.fixture(scope="module")
def process():
    """Three variables, one of them slow, two of them turning; no symmetry that could hide a transpose."""
    return el.systems.OrnsteinUhlenbeck(DRIFT, NOISE)


@pytest.fixture(scope="module")
def model(process):
    return exact_model(process, SCALE)


def test_timescales_are_those_of_the_drift_matrix_in_any_units(model):
    rates = np.linalg.eigvals(DRIFT)
    rates = rates[np.argsort(rates.real)]
    found = model.timescales()
    np.testing.assert_allclose(found.value, 1 / rates.real, rtol=1e-9)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found.period, 2 * np.pi / np.abs(rates.imag), rtol=1e-9)
    assert np.isfinite(found.period).tolist() == [False, True, True]
    np.testing.assert_allclose(found.standard_error, 0, atol=1e-9)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
    assert found.shares[0].argmax() == 2


def test_the_frequency_of_a_round_rotation_is_the_one_put_in_and_its_sense_too():
    """dx = -(a + omega J) x dt with round noise, J = [[0, -1], [1, 0]]: x turns clockwise, from the second variable to
    the first. Units must not change it."""
    turn = el.systems.OrnsteinUhlenbeck(0.5 * np.eye(2) + 1.3 * np.array([[0.0, -1.0], [1.0, 0.0]]))
    found = exact_model(turn, np.array([3.0, 0.2])).circulation()
    assert found.frequency == pytest.approx([1.3])
    assert found.period == pytest.approx([2 * np.pi / 1.3])
    first, second = found.planes[0] / [3.0, 0.2]
    assert first[0] * second[1] - first[1] * second[0] == pytest.approx(-turn.covariance[0, 0])
    np.testing.assert_allclose(np.linalg.norm([first, second], axis=1) ** 2, turn.covariance[0, 0], rtol=1e-9)


def test_rotations_are_the_antisymmetric_part_of_the_whitened_drift(process, model):
    """C^-1/2 A C^1/2 has the antisymmetric part C^-1/2 Phi_A C^-1/2, in any basis in which C is round."""
    root = np.real(sqrtm(process.covariance))
    whitened = np.linalg.solve(root, DRIFT @ root)
    expected = np.abs(np.linalg.eigvals(0.5 * (whitened - whitened.T)).imag).max()
    found = model.circulation()
    # Standardised and unscaled variables differ by more than a rotation only if C is not the same: it is.
    assert found.frequency == pytest.approx([expected], rel=1e-9)
    speed = -np.linalg.solve(np.diag(SCALE) @ process.covariance @ np.diag(SCALE), found.planes[0].T)
    moved = model.mobility.antisymmetric @ speed
    np.testing.assert_allclose(moved[:, 0], expected * found.planes[0, 1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(moved[:, 1], -expected * found.planes[0, 0], rtol=1e-6, atol=1e-9)


def test_entropy_production_of_linear_dynamics_is_the_closed_form(process, model):
    """< f^T D^-1 f > - tr A with f = -A x: see tests/README.md; it does not use Phi."""
    diffusion = NOISE @ NOISE.T
    exact = np.trace(DRIFT.T @ np.linalg.solve(diffusion, DRIFT) @ process.covariance) - np.trace(DRIFT)
    found = model.entropy_production()
    assert found.value == pytest.approx(exact, rel=1e-5)
    assert found.bias == pytest.approx(0, abs=1e-5)


def test_entropy_production_of_a_round_rotation():
    turn = el.systems.OrnsteinUhlenbeck(0.5 * np.eye(2) + 1.3 * np.array([[0.0, -1.0], [1.0, 0.0]]))
    assert exact_model(turn, np.ones(2)).entropy_production().value == pytest.approx(2 * 1.3**2 / 0.5, rel=1e-5)


@pytest.mark.slow
def test_entropy_production_of_the_wells_uses_the_score_beyond_its_gaussian_part(wells, wells_model):
    """0.8^2 < |s|^2 > with Phi = [[1, -0.8], [0.8, 1]]; < |s|^2 > over 2e5 exact scores is known to 1 %. The Gaussian
    of this covariance has 1.5 instead of 10.3. Smoothing by sigma = 0.05 and a short training cost a few per cent."""
    states = wells.simulate(500.0, dt=0.05, members=20, seed=9).stacked()
    exact = 0.64 * np.mean(np.sum(wells.score_function(states) ** 2, axis=1))
    found = wells_model.entropy_production()
    assert found.value == pytest.approx(exact, abs=4 * found.standard_error + 0.08 * exact)
    assert found.standard_error < 0.1 * exact


def test_modes_of_equal_rates_do_not_turn_by_rounding():
    """On a ring every wave comes twice; rounding makes complex pairs of equal eigenvalues."""
    ring = el.Translations()
    modes, size = np.arange(17.0)[:, None, None], 32
    rates, noise = ring.joined(1.0 + modes**2, size), ring.joined(1 + np.sqrt(modes), size)
    covariance = np.linalg.inv(rates) @ noise @ noise.T
    rounding = 1 + 1e-15 * np.random.default_rng(0).standard_normal((size, size))  # some libraries round to real pairs
    draws = analysis.Draws(noise @ noise.T * rounding, covariance, np.empty((0, size, size)), np.empty((0, size, size)))
    assert np.iscomplex(np.linalg.eigvals(draws.phi @ np.linalg.inv(draws.covariance))).any()
    assert np.isinf(analysis.relaxation(draws).period).all()


def test_one_variable_relaxes_and_does_not_turn():
    single = exact_model(el.systems.OrnsteinUhlenbeck([[2.0]]), np.array([3.0]))
    assert single.timescales().value == pytest.approx([0.5])
    assert single.circulation().frequency.shape == (0,)
    assert single.circulation().planes.shape == (0, 2, 1)
    assert single.entropy_production().value == 0


@pytest.mark.slow
def test_errors_are_the_scatter_over_independent_records(monkeypatch):
    """30 records of 400 relaxation times: the scatter is known to 13 %, the error of each from few blocks is noisy; the
    mean error must lie within half and twice the scatter. Without that of C, times would look three times too sure."""
    no_other_estimators = Agreement(())  # they would take most of the time
    monkeypatch.setattr(import_module("effective_langevin.fit"), "cross_check", lambda *_: no_other_estimators)
    turn = el.systems.OrnsteinUhlenbeck(np.array([[1.0, 1.0], [-1.0, 2.0]]))
    series = exact_series(turn, dt=0.05, members=30, steps=8000, seed=4)
    models = [
        el.fit(el.TimeSeries(record, 0.05), score=el.Gaussian(), mobility=el.QuadraticVariation())
        for record in series.values
    ]
    for what in ("timescales", "circulation", "entropy_production"):
        found = [getattr(m, what)() for m in models]
        value = np.array([getattr(f, "frequency", None) if what == "circulation" else f.value for f in found])
        scatter, error = value.std(axis=0, ddof=1), np.mean([f.standard_error for f in found], axis=0)
        assert np.all(error < 2 * scatter)
        assert np.all(error > 0.5 * scatter)


def test_a_reversible_process_has_no_entropy_production_beyond_noise():
    """Its value is positive, as a square is; the bias says how much of it noise explains."""
    still = el.systems.OrnsteinUhlenbeck(np.diag([1.0, 2.0]))
    series = exact_series(still, dt=0.1, members=4, steps=5000, seed=5)
    found = el.fit(series, score=el.Gaussian(), mobility=el.QuadraticVariation()).entropy_production()
    assert 0 <= found.value < found.bias + 4 * found.standard_error
    assert found.bias > 0


def test_they_survive_storage(tmp_path, linear_model):
    linear_model.save(tmp_path / "m.safetensors")
    stored = el.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(stored.timescales().standard_error, linear_model.timescales().standard_error)
    assert stored.entropy_production() == linear_model.entropy_production()


def test_the_error_of_a_time_includes_that_of_the_covariance(linear_model):
    """Phi alone, with C taken as known, would leave most of the error out."""
    mobility = linear_model.mobility
    certain = replace(
        mobility, covariances=np.repeat(mobility.covariances.mean(axis=0)[None], len(mobility.replicas), 0)
    )
    alone = replace(linear_model, mobility=certain).timescales().standard_error
    assert not np.allclose(alone, linear_model.timescales().standard_error, rtol=0.05)


# Entropy production of fields.


def sampled(system, count=20_000, seed=0):
    """States of a two-variable system drawn from its Fokker-Planck density, exact nu and D there."""
    plane = el.systems.FokkerPlanck.from_system(system, [(-2.0, 2.0)] * 2, 81)
    chances = np.maximum(plane.density, 0)
    states = plane.states[np.random.default_rng(seed).choice(len(chances), count, p=chances / chances.sum())]
    return system.current(states), system.diffusion(states)


@pytest.mark.slow
@pytest.mark.parametrize(
    "system", [el.systems.NoisyLimitCycle(), el.systems.AffineNoise()], ids=lambda s: type(s).__name__
)
def test_entropy_production_of_fields_is_the_exact_one(system):
    """20000 independent states: four standard errors of the mean over them, plus 1 % for the grid."""
    exact = system.entropy_production
    found = analysis.entropy_of_fields(*sampled(system))
    assert found.value == pytest.approx(exact, abs=4 * found.standard_error + 0.01 * exact)
    assert 0 < found.standard_error < 0.05 * exact
    assert found.bias == 0


def test_a_constant_diffusion_may_be_given_once():
    current, diffusion = sampled(el.systems.NoisyLimitCycle(), 100)
    assert analysis.entropy_of_fields(current, diffusion[0]) == analysis.entropy_of_fields(current, diffusion)


def test_error_and_bias_of_fields_come_from_the_replicas():
    """nu times 1 + 0.1 z: < (1 + 0.1 z)^2 > = 1.01, and the scatter is 0.2 of the value; over 400 draws, 4 of their
    errors."""
    current, diffusion = sampled(el.systems.NoisyLimitCycle(), 5000)
    factors = 1 + 0.1 * np.random.default_rng(1).normal(size=400)
    found = analysis.entropy_of_fields(current, diffusion, ((f * current, diffusion) for f in factors))
    assert found.standard_error == pytest.approx(0.2 * found.value, rel=4 / np.sqrt(800))
    assert found.bias == pytest.approx(0.01 * found.value, abs=4 * 0.2 * found.value / 20)


def test_entropy_production_of_fields_is_undefined_where_no_noise_acts_along_the_current():
    """Noise on the second variable alone: a current along it is allowed, one along the first is not."""
    along, across = (np.outer(np.linspace(-1, 1, 50), axis) for axis in ([0.0, 1.0], [1.0, 0.0]))
    single = np.diag([0.0, 0.5])
    found = analysis.entropy_of_fields(along, single)
    assert found.value == pytest.approx(np.mean(np.linspace(-1, 1, 50) ** 2) / 0.5)
    assert found.defined
    lost = analysis.entropy_of_fields(along + 0.01 * across, single)
    assert np.isnan(lost.value)
    assert lost.summary() == f"entropy production undefined: {lost.reason}"
    assert "no noise acts along the current" in lost.reason


def test_noise_that_vanishes_at_some_states_only_leaves_it_undefined_if_there_is_a_current_there():
    current, noise = np.array([[1.0], [0.5], [0.0]]), np.array([1.0, 0.0, 0.0])[:, None, None]
    assert not analysis.entropy_of_fields(current, noise).defined
    current[1] = 0
    assert analysis.entropy_of_fields(current, noise).value == pytest.approx(1 / 3)


def test_noise_that_cannot_be_told_from_none_leaves_it_undefined():
    current, diffusion = np.ones((10, 1)), np.ones((10, 1, 1))
    found = analysis.entropy_of_fields(current, diffusion, [(current, diffusion), (current, 0 * diffusion)])
    assert not found.defined
    assert "cannot be told from none" in found.reason


def test_a_constant_mobility_without_noise_in_some_direction_is_fine_if_nothing_flows_there():
    """Three variables, rotation in the first two, no noise on the third."""
    phi = np.array([[1.0, 0.5, 0.0], [-0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
    states = np.random.default_rng(0).normal(size=(100, 3))
    none = np.empty((0, 3, 3))
    found = analysis.entropy_production(analysis.Draws(phi, np.eye(3), none, none), states, -states)
    assert found.value == pytest.approx(2 * 0.25)
    phi[0, 2], phi[2, 0] = 0.1, -0.1
    assert not analysis.entropy_production(analysis.Draws(phi, np.eye(3), none, none), states, -states).defined


def test_circulation_and_entropy_production_are_withheld_after_a_lift_of_eigenvalues(linear_model):
    evidence = replace(linear_model.mobility.evidence, lifted_by=0.19)
    lifted = replace(linear_model, mobility=replace(linear_model.mobility, evidence=evidence))
    for found in (lifted.entropy_production(), lifted.circulation()):
        assert not found.defined
        assert "moved by 19 % to make it so" in found.summary()


def test_a_diffusion_that_nearly_vanishes_along_the_current_leaves_both_withheld():
    """(x, v) of an oscillator: no noise acts on x, sampling errors make its diffusion small and positive."""
    phi = np.array([[1e-3, 1.0], [-1.0, 1.0]])
    phis = phi + np.random.default_rng(0).normal(size=(200, 2, 2)) * 1e-3
    draws = analysis.Draws(phi, np.eye(2), phis, np.tile(np.eye(2), (200, 1, 1)))
    states = np.random.default_rng(1).normal(size=(500, 2))
    assert "cannot be told from none" in analysis.entropy_production(draws, states, -states).summary()
    assert not analysis.rotations(draws, np.ones(2), draws.degenerate).defined
    certain = replace(draws, phi=phi + 0.5 * np.eye(2), phis=phis + 0.5 * np.eye(2))
    assert analysis.entropy_production(certain, states, -states).defined


def test_the_interval_of_a_relaxation_time_is_that_of_student_in_its_logarithm():
    found = analysis.Timescales(*np.array([[2.0], [0.5], [np.inf], [0.0], [1.0]]), blocks=4)
    low, high = found.interval(0.95)
    factor = np.exp(3.1824463 * 0.25)
    np.testing.assert_allclose([low[0], high[0]], [2 / factor, 2 * factor], rtol=1e-6)


def test_few_blocks_drawn_with_replacement_scatter_as_the_mean_of_as_many():
    """Drawing n values with replacement gives their mean (n - 1) / n of its variance."""
    values = np.array([1.0, 2.0, 4.0, 9.0])
    drawn = drawn_weights(4, 20_000) @ values / 4
    assert scatter_of_draws(drawn, 4) == pytest.approx(values.std(ddof=1) / 2, rel=0.02)
