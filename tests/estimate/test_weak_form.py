"""The weak form: nu(x) and D(x) of diffusive series, at any sampling interval, with exact scores."""

import jax.numpy as jnp
import numpy as np
import pytest
from oracles.processes import autoregressive, with_noise
from scipy.stats import gamma, norm

import effective_langevin as el
from effective_langevin.estimate.closure.polynomials import monomials
from effective_langevin.estimate.closure.weak_form import WeakSolver
from effective_langevin.estimate.closure.weak_lags import Lags, hides_smooth_motion
from effective_langevin.estimate.closure.weak_moments import ClosureShape, EarlierFunctions, impose_stein
from effective_langevin.estimate.mobility.quadrature import PropagatedIntegral
from effective_langevin.estimate.space import StateSpace
from effective_langevin.statistics.resampling import drawn_weights, jackknife

ROTATING = el.systems.OrnsteinUhlenbeck.rotating(2)


def standardised(system, series):
    """The standardised series with its exact scores, and the units."""
    units = el.Standardizer.from_series(series)
    scores = [system.score_function(x) * units.std for x in series.segments]
    return series.map(units.to_standard), scores, units


def solver_of(system, series):
    standard, scores, units = standardised(system, series)
    return WeakSolver.of(standard, scores, StateSpace((None,) * series.dimension)), units


def mean_mobility(form):
    return jackknife(form.mobility, form.groups)


def fields_of(form):
    return form.fields(np.ones(form.groups))


def residuals(form):
    """Root mean square of the equations at each horizon, in units of their standard errors."""
    problem, groups = form.problem, form.groups
    left = problem.target - problem.design @ form.coefficients(np.ones(groups))
    left = problem.moments.shares @ left / problem.scales[0] * np.sqrt(groups)
    return np.sqrt(np.mean(left.reshape(problem.moments.targets.shape[1:]) ** 2, axis=(0, 2)))


def relative(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


@pytest.fixture(scope="module")
def rotating():
    """2e4 samples of a linear process, rates times dt up to 0.6."""
    return solver_of(ROTATING, ROTATING.simulate(200.0, dt=0.2, members=20, seed=1, step=0.01))


def test_functions_of_the_earlier_state_multiply_and_differentiate():
    """Row vectors of functions against finite differences and products of their values."""
    rng = np.random.default_rng(0)
    functions, x, s = EarlierFunctions(2, 3, 2), rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    quadratic = np.zeros(len(functions))
    quadratic[:6] = rng.normal(size=6)
    values, step = functions.evaluate(x, s) @ quadratic, 1e-5
    for i in range(2):
        moved = [functions.evaluate(x + sign * step * np.eye(2)[i], s) @ quadratic for sign in (1, -1)]
        found = (
            functions.evaluate(x, s)
            @ np.stack([quadratic @ m[i] for m in (functions.slope, functions.times, functions.by_score)]).T
        )
        expected = (moved[0] - moved[1]) / (2 * step), x[:, i] * values, s[:, i] * values
        np.testing.assert_allclose(found.T, expected, atol=1e-8)


def test_steins_identity_holds_on_the_sample_after_it_was_imposed():
    rng = np.random.default_rng(1)
    x = [rng.gamma(3.0, size=(4000, 1)) - 3.0, rng.gamma(3.0, size=(1000, 1)) - 3.0]
    scores = impose_stein(x, [-0.2 * part for part in x])
    assert [len(s) for s in scores] == [4000, 1000]
    x, s = np.concatenate(x), np.concatenate(scores)
    found = monomials(x, 4).T @ s[:, 0]
    np.testing.assert_allclose(found[1:], [-k * np.sum(x ** (k - 1)) for k in range(1, 5)], rtol=1e-6)


def test_integrals_of_a_linear_process_are_exact_at_coarse_sampling():
    """< x(tau) x(0) > = exp(-A tau): the integral is A^-1 (1 - exp(-A T)), rates times dt up to 2."""
    rates, modes = np.array([0.5, 2.0]), np.array([[1.0, 0.4], [0.2, 1.0]])
    tau, inverse = np.arange(5.0), np.linalg.inv(modes)
    moments = np.einsum("ir,tr,rj->tij", modes, np.exp(-np.outer(tau, rates)), inverse)
    expected = np.einsum("ir,tr,rj->tij", modes, (1 - np.exp(-np.outer(tau, rates))) / rates, inverse)
    np.testing.assert_allclose(PropagatedIntegral(moments, 1.0)(moments), expected, atol=1e-10)


@pytest.mark.parametrize("shape", [ClosureShape(0), ClosureShape(1), ClosureShape(2, "full", 2)])
def test_the_mean_mobility_is_within_four_standard_errors(rotating, shape):
    solver, units = rotating
    found, error = mean_mobility(solver.solve(shape))
    exact = units.mobility_to_standard(ROTATING.mobility)
    assert (error < 0.05 * np.linalg.norm(exact)).all()
    assert (np.abs(found - exact) < 4 * error).all()


def test_a_linear_process_gets_a_constant_mobility(rotating):
    form = rotating[0].choose()
    assert form.shape == ClosureShape(0, "full", 0)
    assert residuals(form).max() < 1.5
    value, error = form.current_error()
    assert value < 3 * error < 0.1


def test_noise_that_grows_with_the_state_is_found():
    """D = gamma x of the Cox-Ingersoll-Ross process, 1e5 samples, dt = 0.2: .005 to .033 over eight seeds."""
    system = el.systems.CoxIngersollRoss()
    series = system.simulate(1000.0, dt=0.2, members=20, seed=2)
    solver, units = solver_of(system, series)
    form = solver.choose()
    assert form.shape.degree >= 1
    x = series.stacked()[::50]
    found = np.asarray(fields_of(form)[1].in_batch(jnp.asarray(units.to_standard(x), jnp.float32)))[:, 0, 0]
    exact = system.diffusion(x)[:, 0, 0] / units.std[0] ** 2
    assert np.std(found - exact) < 0.06 * np.std(exact)
    replicas = np.array([form.coefficients(weights) for weights in drawn_weights(form.groups, 20)])
    assert replicas.shape == (20, form.shape.size(1))
    assert (replicas.std(axis=0) > 0).all()


@pytest.mark.slow
def test_the_current_of_a_limit_cycle_is_found_at_coarse_sampling():
    """1e5 samples, dt = 0.2: over eight seeds nu was off by .002 to .008, D by .004 to .009."""
    system = el.systems.NoisyLimitCycle()
    series = system.simulate(400.0, dt=0.2, members=50, seed=3)
    standard, scores, units = standardised(system, series)
    form = WeakSolver.of(standard, scores, StateSpace((None, None)), largest=(1, 1)).choose(diffusion=False)
    assert form.shape == ClosureShape(1, "full", 0)
    states, s = (np.concatenate(part)[::50] for part in (standard.segments, scores))
    current, diffusion = fields_of(form)
    found = current.in_batch(jnp.asarray(states, jnp.float32), jnp.asarray(s, jnp.float32))
    exact = system.current(units.to_physical(states)) / units.std
    assert relative(np.asarray(found), exact) < 0.03
    whole = np.asarray(diffusion.in_batch(jnp.zeros((1, 2))))[0]
    assert relative(whole, units.mobility_to_standard(system.diffusion(np.zeros(2)))) < 0.03


def test_equations_without_the_current_that_is_there_are_not_solved():
    system = ROTATING
    standard, scores, units = standardised(system, system.simulate(200.0, dt=0.2, members=20, seed=4, step=0.01))
    phi = units.mobility_to_standard(system.mobility)
    solver = WeakSolver.of(standard, scores, StateSpace((None, None)), (1, 1))
    form = solver.solve(ClosureShape(0))
    found = np.asarray(fields_of(form)[1].in_batch(jnp.zeros((1, 2))))[0]
    assert relative(found, 0.5 * (phi + phi.T)) < 0.03
    assert residuals(solver.solve(ClosureShape(None))).max() > 3 * residuals(form).max()


def test_noise_on_each_sample_does_not_bias_lags_from_one_on():
    """A rotating linear process with 20 % noise: its relaxation matrix A stays, so that Phi = A C of the noisy data."""
    series = with_noise(ROTATING.simulate(200.0, dt=0.1, members=20, seed=6, step=0.01), 0.2)
    units, covariance = el.Standardizer.from_series(series), np.cov(series.stacked().T)
    standard = series.map(units.to_standard)
    scores = [-np.linalg.solve(covariance, (x - units.mean).T).T * units.std for x in series.segments]
    exact = units.mobility_to_standard(ROTATING.drift_matrix @ covariance)
    deviations = []
    for first in (0, 1):
        solver = WeakSolver.of(standard, scores, StateSpace((None, None)), lags=Lags(first))
        found, error = mean_mobility(solver.solve(ClosureShape(0)))
        deviations.append(np.abs(found - exact) / error)
    assert deviations[0].max() > 8
    assert deviations[1].max() < 4
    assert (error < 0.1 * np.linalg.norm(exact)).all()


@pytest.mark.slow
def test_noise_that_grows_with_the_state_is_found_beneath_measurement_noise():
    """D = gamma x, 10 % noise, 1e5 samples; D is that of the variable as observed, larger by 1 %."""
    system = el.systems.CoxIngersollRoss()
    clean = system.simulate(1000.0, dt=0.2, members=20, seed=2)
    series = with_noise(clean, 0.1)
    units, sigma = el.Standardizer.from_series(series), 0.1 * clean.stacked().std()
    law = gamma(system.rate * system.level / system.noise, scale=system.noise / system.rate)
    grid, inside = np.linspace(-6 * sigma, 8.0, 2000), np.linspace(1e-4, 8.0, 4000)
    density = norm.pdf(grid[:, None], inside, sigma) @ law.pdf(inside)
    score = np.gradient(np.log(density), grid)
    standard = series.map(units.to_standard)
    scores = [np.interp(x, grid, score) * units.std for x in series.segments]
    form = WeakSolver.of(standard, scores, StateSpace((None,)), lags=Lags(1)).choose()
    x = clean.stacked()[::50]
    found = np.asarray(fields_of(form)[1].in_batch(jnp.asarray(units.to_standard(x), jnp.float32)))[:, 0, 0]
    exact = system.diffusion(x)[:, 0, 0] / units.std[0] ** 2
    assert np.std(found - exact) < 0.06 * np.std(exact)
    assert abs(found.mean() / exact.mean() - 1.01) < 0.02


@pytest.mark.parametrize(("relaxation", "stride"), [(3, 1), (100, 16)])
def test_lags_are_so_far_apart_that_the_state_moves_more_than_the_noise(relaxation, stride):
    """30 % noise is 0.09 of the variance: the motion over nine samples if relaxation takes 100."""
    series = with_noise(el.TimeSeries(autoregressive(50_000, relaxation, seed=7), 1.0), 0.3)
    assert Lags.beyond_noise(series.segments) == Lags(1, stride)


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_lags_begin_where_smooth_motion_has_become_a_diffusion(width):
    """Means over some samples are smooth up to there."""
    path = autoregressive(50_000, 50, seed=7)[0, :, 0]
    smooth = np.convolve(path, np.full(width, 1 / width), "valid")[:, None]
    assert Lags.beyond_smooth_motion([smooth]) == Lags(width // 2, width // 2)


@pytest.mark.parametrize("level", [0.05, 0.1, 0.2])
def test_smooth_motion_beneath_noise_is_seen_where_both_together_look_diffusive(level):
    flow = el.systems.StochasticLorenz63(noise=0.0).simulate(50.0, dt=0.01, members=4, seed=1)
    assert hides_smooth_motion(with_noise(flow, level).segments)
    assert not hides_smooth_motion(flow.segments)
    assert not hides_smooth_motion(with_noise(el.TimeSeries(autoregressive(50_000, 30, seed=8), 1.0), level).segments)


def test_borders_of_records_are_never_crossed():
    """100 independent records of 40 samples, rate 1; laid end to end, their jumps raise the diffusion by a quarter."""
    paths, space = autoregressive(40, 10, members=100, seed=5), StateSpace((None,))
    records, joined = el.TimeSeries(paths, 0.1), el.TimeSeries(paths.reshape(-1, 1), 0.1)
    found = [
        WeakSolver.of(series, [-s for s in series.segments], space, (1, 1)).solve(ClosureShape(None))
        for series in (records, joined)
    ]
    (right, error), (wrong, _) = (mean_mobility(form) for form in found)
    assert abs(right[0, 0] - 1) < 4 * error[0, 0] < 0.2
    assert wrong[0, 0] > right[0, 0] + 4 * error[0, 0]


def test_angles_and_many_variables_are_refused():
    series = el.TimeSeries(np.random.default_rng(0).normal(size=(200, 4)), 0.1)
    with pytest.raises(el.ArgumentError, match="1 to 3 variables"):
        WeakSolver.of(series, [-s for s in series.segments], StateSpace((None,) * 4))
