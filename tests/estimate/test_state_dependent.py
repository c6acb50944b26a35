"""`StateDependent`: nu and D against exact ones, for smooth series, diffusions and fields."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.processes import autoregressive, with_noise

import effective_langevin as el
from effective_langevin.estimate.closure.residual import infer_diffusion
from effective_langevin.estimate.closure.state_dependent import _explains_lag_zero
from effective_langevin.estimate.closure.weak_form import WeakSolver
from effective_langevin.estimate.closure.weak_lags import Lags
from effective_langevin.estimate.score.score import OutputsOf, evaluate_everywhere
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry

LORENZ = el.systems.StochasticLorenz63(noise=0.0)


@pytest.fixture(scope="module")
def flow():
    """A smooth series without noise, and its model."""
    series = LORENZ.simulate(20.0, dt=0.01, members=8, seed=1)
    return series, el.fit(series, score=el.Gaussian(), mobility=el.StateDependent(), check="off")


def test_regression_finds_the_equation_of_a_flow(flow):
    series, model = flow
    states = series.stacked()[::50]
    exact = np.asarray(LORENZ.drift(states))
    found = model.mobility.evidence.closure
    assert (found.kind, found.degree) == ("current", 2)
    assert np.linalg.norm(model.current(states) - exact) < 1e-3 * np.linalg.norm(exact)
    assert found.current_error < 3 * found.current_error_se + 1e-3
    assert min(found.explained) > 0.9999
    # No noise is left over: D is nothing beside the variance over the time of one turn.
    assert np.trace(model.diffusion(states[0])) < 1e-4 * series.stacked().var(axis=0).sum()


def test_fields_are_stored_and_can_be_compiled(flow, tmp_path):
    series, model = flow
    states = series.stacked()[:7]
    model.save(tmp_path / "model.safetensors")
    again = el.load(tmp_path / "model.safetensors")
    for function in ("drift", "current", "diffusion", "score_function"):
        expected = getattr(model, function)(states)
        np.testing.assert_array_equal(getattr(again, function)(states), expected)
        traced = jax.jit(getattr(model, function))(jnp.asarray(states))
        np.testing.assert_allclose(traced, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())
    assert len(list(again.replicas())) == len(list(model.replicas())) > 10
    assert again.mobility.evidence.closure == model.mobility.evidence.closure


def test_entropy_production_is_undefined_without_noise(flow):
    assert not flow[1].entropy_production().defined


def test_white_noise_beside_a_known_current_gives_its_diffusion():
    system = el.systems.OrnsteinUhlenbeck([[1.0, 2.0], [-2.0, 1.0]])
    series = system.simulate(4000.0, dt=0.05, members=1, seed=3)
    scores = [-s for s in series.segments]  # the covariance is the identity
    currents = [np.asarray(system.current(s)) for s in series.segments]
    found = infer_diffusion(series, scores, currents, NoSymmetry())
    spread = np.std([found.estimate(1.0 - np.eye(found.groups)[g]) for g in range(found.groups)], axis=0)
    error = spread * np.sqrt(found.groups)
    assert found.white
    assert np.all(np.abs(found.estimate(np.ones(found.groups)) - np.eye(2)) < 4 * error)
    assert error.max() < 0.05
    # D(T) does not depend on T, and nothing turns that the current does not explain.
    assert np.abs(found.horizon.phi - np.eye(2)).max() < 0.1


def test_a_linear_diffusion_keeps_a_constant_mobility():
    system = el.systems.OrnsteinUhlenbeck.rotating(2)
    series = system.simulate(4000.0, dt=0.1, seed=2)
    model = el.fit(series, score=el.Gaussian(), mobility=el.StateDependent())
    assert model.mobility.evidence.closure.kind == "constant"
    deviation = np.abs(model.mobility.matrix - system.mobility)
    assert np.all(deviation < 4 * model.mobility.standard_error)


def test_measurement_noise_is_left_out_of_the_fields():
    """20 % noise; the mobility is that of the variable as observed, A C with the covariance of the noisy data."""
    system = el.systems.OrnsteinUhlenbeck.rotating(2)
    series = with_noise(system.simulate(4000.0, dt=0.1, seed=2), 0.2)
    model = el.fit(series, score=el.Gaussian(), mobility=el.StateDependent())
    assert model.mobility.evidence.noisy
    assert model.mobility.evidence.closure.kind == "constant"
    exact = system.drift_matrix @ np.cov(series.stacked().T)
    assert np.all(np.abs(model.mobility.matrix - exact) < 4 * model.mobility.standard_error)


@pytest.mark.parametrize(("level", "explained"), [(0.0, True), (0.15, False)])
def test_fields_of_longer_lags_tell_whether_lag_zero_is_in_doubt(level, explained):
    """A limit cycle, of which no constant mobility predicts the steps over one interval."""
    system = el.systems.NoisyLimitCycle()
    clean = system.simulate(200.0, dt=0.05, members=10, seed=3)
    series, scores = with_noise(clean, level), [np.asarray(system.score_function(x)) for x in clean.segments]
    solvers = [
        WeakSolver.of(series, scores, StateSpace((None, None)), lags=Lags(first), largest=(1, 1)) for first in (0, 1)
    ]
    assert _explains_lag_zero(solvers[1].choose(diffusion=False), solvers[0].moments) == explained


def test_one_smooth_variable_gets_the_diffusion_of_longer_lags():
    """Means over four samples of an exponential relax as it does from lag 4 on; from lag 0 the rate is a third."""
    path = autoregressive(40_000, 8.0, seed=3)[0, :, 0]
    smooth = np.convolve(path, np.full(4, 0.25), "valid")[:, None]
    model = el.fit(el.TimeSeries(smooth, 1.0), score=el.Gaussian(), mobility=el.StateDependent(), check="off")
    rate = model.mobility.matrix[0, 0] / smooth.var()
    assert model.mobility.evidence.closure.kind == "constant"
    assert abs(rate - 1 / 8) < 0.15 / 8


def test_a_driven_ring_turns():
    system = el.systems.DrivenRing()
    series = system.simulate(4000.0, dt=0.1, seed=1)
    model = el.fit(series, mobility=el.StateDependent(), check="off")
    found = model.entropy_production()
    assert abs(found.value - system.entropy_production) < 4 * found.standard_error
    assert found.standard_error < 0.3 * system.entropy_production


def test_one_variable_on_the_line_has_no_current():
    """Also where the series is smooth: here the first variable of a flow."""
    flow = LORENZ.simulate(20.0, dt=0.01, members=8, seed=1)
    series = el.TimeSeries([s[:, :1] for s in flow.segments], 0.01)
    options = {"check": "off", "compare_estimators": False}
    model = el.fit(series, score=el.Gaussian(), mobility=el.StateDependent(), **options)
    assert np.all(model.current(series.stacked()[::100]) == 0)


def test_what_cannot_be_inferred_is_refused_in_words():
    series = el.systems.OrnsteinUhlenbeck.rotating(4).simulate(100.0, dt=0.1, seed=1)
    with pytest.raises(el.ArgumentError, match="diffusive and has 4 variables"):
        el.fit(series, score=el.Gaussian(), mobility=el.StateDependent())


def test_several_angles_are_refused_as_the_variables_that_they_become():
    rng = np.random.default_rng(0)
    angles = el.TimeSeries(
        np.cumsum(rng.normal(size=(500, 2)), axis=0), 1.0, names=["phi", "psi"], periods=[6.28, 6.28]
    )
    with pytest.raises(el.ArgumentError, match=r"4 variables .*phi.*psi.*Use IntegratedResponse"):
        el.fit(angles, score=el.Gaussian(), mobility=el.StateDependent(), check="off")


@pytest.fixture(scope="module")
def waves():
    """Waves that travel around a ring at speed 1: dx/dt is minus the slope, whatever the state."""
    rng, points, members = np.random.default_rng(0), 16, 300
    time, place = np.arange(40)[:, None] * 0.25, 2 * np.pi * np.arange(points) / points
    phase = rng.uniform(0, 2 * np.pi, (members, 3, 1, 1))
    size = rng.rayleigh(1.0, (members, 3, 1, 1)) / np.array([1, 2, 4])[:, None, None]
    mode = np.arange(1, 4)[:, None, None]
    values = np.sum(size * np.cos(mode * (place - time) + phase), axis=1)
    slope = -np.sum(size * mode * np.sin(mode * (place - time) + phase), axis=1)
    series = el.TimeSeries(values, 0.25)
    score = el.DenoisingScore(
        el.UNet1D(base=4, multipliers=(1, 2)), noise_level=0.3, batch=128, epochs=4, epoch_samples=25_600
    )
    options = {"symmetry": el.Translations(), "check": "off", "seed": 1}
    return series, -slope, el.fit(series, score=score, mobility=el.StateDependent(), **options)


@pytest.mark.slow
def test_a_network_learns_the_current_beside_the_score(waves):
    series, velocity, model = waves
    found = model.current(series.stacked())
    rest = np.mean((found - velocity.reshape(found.shape)) ** 2) / np.mean(velocity**2)
    assert rest < 0.01
    speed = np.sum(found * velocity.reshape(found.shape)) / np.sum(velocity**2)
    assert abs(speed - 1) < 0.05  # as learned at perturbed states it would be too slow
    assert model.mobility.evidence.closure.current_by == "the score's network"
    assert model.mobility.evidence.closure.current_error < 0.05
    # The waves have modes 1 to 3: the mean of the field does not move, and nothing may carry it.
    assert np.square(found.mean(axis=1)).mean() < 1e-6 * np.mean(velocity**2)
    horizon, symmetry = model.mobility.evidence.horizon, model.space.symmetry
    assert horizon.phi_by_mode.shape == (9, len(horizon.horizons))
    standard = model.standardizer.mobility_to_standard(model.mobility.symmetric)
    np.testing.assert_allclose(horizon.phi_of_mode, symmetry.blocks(standard)[:, 0, 0].real, rtol=1e-6)
    values = np.linalg.eigvalsh(model.diffusion(series.stacked()[0]))
    assert values.min() > 0  # the thermostat acts in all directions


@pytest.mark.slow
def test_the_fast_form_of_a_network_has_the_same_outputs(waves, tmp_path):
    series, _, model = waves
    states = model.standardizer.to_standard(series.stacked()[:64])
    plain, fast = (
        evaluate_everywhere(OutputsOf(f), states) for f in (model.score.function, model.score.function.lower())
    )
    assert plain.shape == (64, 32)
    phi = np.diag(np.arange(1.0, 17.0)).astype(np.float32)  # as a constant mobility uses it
    np.testing.assert_allclose(
        model.score.function.in_batch(jnp.asarray(states, jnp.float32), jnp.asarray(phi)),
        plain[:, :16] @ phi,
        rtol=1e-3,
        atol=1e-3 * np.abs(plain).max(),
    )
    np.testing.assert_allclose(fast, plain, rtol=1e-3, atol=1e-3 * np.abs(plain).max())
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        el.load(tmp_path / "model.safetensors").drift(series.stacked()[:5]), model.drift(series.stacked()[:5])
    )


@pytest.mark.slow
def test_a_noisy_flow_gives_its_diffusion_and_its_correlations():
    system = el.systems.StochasticLorenz63()
    series = system.simulate(50.0, dt=0.01, members=60, seed=4)
    model = el.fit(series, mobility=el.StateDependent(), check="off")
    exact = 12.5 * np.eye(3)
    assert np.linalg.norm(model.diffusion(series.stacked()[0]) - exact) < 0.1 * np.linalg.norm(exact)
    metrics = el.validate(model, series, seed=5).metrics
    assert metrics["acf_rmse"] < metrics["acf_rmse_floor"] + 4 * metrics["acf_rmse_se"]
    assert metrics["acf_rmse"] < 0.05  # a constant mobility: 0.19


def test_fields_are_drawn_and_constant_ones_refused_in_many_variables(flow):
    axes = el.plots.plot_fields(flow[1])
    assert axes[0].get_xlabel() in flow[1].names
    assert any(type(artist).__name__ == "Quiver" for artist in axes[0].collections)
    series = el.systems.OrnsteinUhlenbeck.rotating(3).simulate(200.0, dt=0.1, seed=1)
    space = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
    with pytest.raises(el.ArgumentError, match="constant mobility"):
        el.plots.plot_fields(space)


@pytest.mark.slow
def test_the_report_of_a_current_speaks_of_its_diffusion(flow, tmp_path):
    series, model = flow
    el.validate(model, series, seed=1).report(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "Diffusion by horizon" in html
    assert "what the current leaves over" in html


@pytest.mark.slow
def test_the_report_of_a_field_with_a_current_can_be_drawn(waves, tmp_path):
    series, _, model = waves
    el.validate(model, series, seed=1).report(tmp_path / "report.html")
    assert "a current that depends on the state" in (tmp_path / "report.html").read_text()
