"""Weak order of the steppers for noise that depends on the state: from the Markov operator of one step, no sampling.

Moments of an equation with affine drift and noise close: L maps polynomials of degree 2 to such polynomials, so that
E p(x(t)) = exp(L t) p exactly. One step of a stepper does the same with another matrix, since its noise is Gaussian.
"""

from dataclasses import replace
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import effective_langevin as el
from benchmarks.invariance import cubic_weights
from effective_langevin.estimate.closure.fields import Fields, RotatedScore
from effective_langevin.estimate.closure.polynomials import PolynomialDiffusion, exponents
from effective_langevin.model.simulation import fastest_rates
from effective_langevin.simulate import Equation, integrate

LINEAR, FORCE = np.array([[-1.0, -1.2], [0.8, -1.5]]), np.array([0.3, -0.2])
NOISE = np.array([[[0.6, 0.1], [0.08, 0.55]], [[0.48, 0.16], [0.2, -0.08]], [[-0.12, 0.28], [0.24, 0.4]]]) / np.sqrt(2)
POWERS = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
STATES = np.random.default_rng(0).normal(size=(6, 2))


class AffineField(eqx.Module):
    """A noise field as the closures have it: matrices of a batch of states. The columns do not commute."""

    matrices: jax.Array

    def factor(self, x):
        return self.matrices[0] + jnp.tensordot(x, self.matrices[1:], 1)


def affine_drift(x):
    return jnp.asarray(LINEAR, x.dtype) @ x + jnp.asarray(FORCE, x.dtype)


AFFINE = Equation(affine_drift, AffineField(jnp.asarray(NOISE, jnp.float32)))


def monomials(x):
    return np.stack([x[:, 0] ** i * x[:, 1] ** j for i, j in POWERS], axis=1)


def generator():
    """L of each monomial at six states, as coefficients of monomials."""
    drift = STATES @ LINEAR.T + FORCE
    factor = NOISE[0] + np.tensordot(STATES, NOISE[1:], 1)
    diffusion = factor @ np.swapaxes(factor, 1, 2)
    x, y = STATES.T
    gradients = np.array(
        [[0 * x, 0 * x], [1 + 0 * x, 0 * x], [0 * x, 1 + 0 * x], [2 * x, 0 * x], [y, x], [0 * x, 2 * y]]
    )
    second = np.zeros((6, 2, 2))
    second[3, 0, 0], second[5, 1, 1], second[4] = 2.0, 2.0, [[0, 1], [1, 0]]
    values = np.einsum("ni,kin->nk", drift, gradients) + np.einsum("nij,kij->nk", diffusion, second)
    return np.linalg.solve(monomials(STATES), values)


def gaussian_nodes(size, nodes):
    """Nodes of `size` independent standard normals and their weights."""
    roots, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    return np.array(list(product(roots, repeat=size))), np.prod(list(product(weights, repeat=size)), axis=1)


def one_step(stepper, equation, step, states, brownian, nodes):
    """All states after one step, (state, node, var), and the weights of the nodes. In float64."""
    advance = eqx.filter_jit(stepper.advance(equation, step))
    kicks, weights = gaussian_nodes(stepper.advance(equation, step).draws * brownian, nodes)
    with jax.enable_x64(True):
        moved = advance(np.repeat(states, len(kicks), 0), jnp.asarray(np.sqrt(step) * np.tile(kicks, (len(states), 1))))
    return np.asarray(moved, float).reshape(len(states), len(kicks), -1), weights


def moments_after(stepper, steps):
    """E of all monomials at time 1 from the state (0.5, 1)."""
    after, weights = one_step(stepper, AFFINE, 1 / steps, STATES, 2, 4)
    values = np.stack([weights @ monomials(x) for x in after])
    operator = np.linalg.matrix_power(np.linalg.solve(monomials(STATES), values), steps)
    return monomials(np.array([[0.5, 1.0]])) @ operator


@pytest.mark.parametrize(("stepper", "order"), [(el.EulerMaruyama(), 1), (el.StochasticMidpoint(), 2)])
def test_weak_order_with_noise_in_two_directions_that_do_not_commute(stepper, order):
    """Halving the step divides the error by 2^order, to the next order in the step: 8 %."""
    exact = monomials(np.array([[0.5, 1.0]])) @ expm(generator())
    coarse, fine = (np.abs(moments_after(stepper, steps) - exact).max() for steps in (16, 32))
    assert coarse / fine == pytest.approx(2**order, rel=0.08)
    assert fine < (0.02 if order == 1 else 5e-4)


CUBIC = el.systems.ScalarMultiplicative(a=-0.5, b=0.3, c=1.0, A=0.3, B=-0.6, sigma=0.3)


def law(stepper, system, step, grid, nodes):
    """Mean and variance of the law that a stepper samples: invariant under its Markov operator on a grid."""
    equation = Equation(system._drift, system._noise)
    after, weights = one_step(stepper, equation, step, grid[:, None], system.brownian_dimension, nodes)
    columns, shares = cubic_weights(grid, np.clip(after.ravel(), grid[0], grid[-1]))
    rows = np.repeat(np.arange(len(grid)), len(weights))[:, None]
    shares = shares * np.tile(weights, len(grid))[:, None]
    operator = np.bincount((rows * len(grid) + columns).ravel(), shares.ravel(), len(grid) ** 2).reshape(len(grid), -1)
    # Probabilities p with p P = p and sum 1; one of the equations p P = p is redundant.
    balance = np.vstack([(operator.T - np.eye(len(grid)))[1:], np.ones(len(grid))])
    found = np.linalg.solve(balance, np.eye(len(grid))[-1])
    mean = found @ grid
    return np.array([mean, found @ grid**2 - mean**2])


@pytest.mark.parametrize(("stepper", "order"), [(el.EulerMaruyama(), 1), (el.StochasticMidpoint(), 2)])
def test_weak_order_of_the_steady_state_with_a_cubic_drift(stepper, order):
    """The exact law by quadrature. Two Brownian motions, of which one depends on the state."""
    exact_mean = CUBIC.expectation(lambda x: x)
    exact = np.array([exact_mean, CUBIC.expectation(lambda x: x**2) - exact_mean**2])
    grid = np.linspace(-2.5, 2.5, 201)
    coarse, fine = (np.linalg.norm(law(stepper, CUBIC, h, grid, 5) - exact) for h in (0.1, 0.05))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35)


def test_weak_order_of_the_law_of_a_positive_variable():
    """CIR: mean theta, variance theta gamma / k. With noise sqrt(x) the step must not reach below zero."""
    system = el.systems.CoxIngersollRoss(noise=0.05)
    grid = np.linspace(1e-3, 3.0, 241)
    coarse, fine = (np.abs(law(el.StochasticMidpoint(), system, h, grid, 8) - [1.0, 0.05]) for h in (0.4, 0.2))
    assert coarse.max() / fine.max() > 3.4
    assert fine.max() < 1e-3


def test_fields_of_a_batch_and_functions_of_one_state_give_the_same_step():
    rng = np.random.default_rng(1)
    x, noise = jnp.asarray(rng.normal(size=(7, 2)), jnp.float32), jnp.asarray(rng.normal(size=(7, 4)), jnp.float32)
    single = Equation(affine_drift, lambda x: AFFINE.noise.factor(x[None])[0])
    moved = [eqx.filter_jit(el.StochasticMidpoint().advance(e, 0.1))(x, noise) for e in (AFFINE, single)]
    np.testing.assert_allclose(*moved, rtol=1e-5)


def test_constant_noise_as_a_field_gives_the_step_of_constant_noise():
    """The terms for the change of the noise vanish, to rounding of values divided by the root of the step."""
    rng = np.random.default_rng(2)
    x, noise = jnp.asarray(rng.normal(size=(5, 2)), jnp.float32), jnp.asarray(rng.normal(size=(5, 4)), jnp.float32)
    field = AffineField(jnp.asarray(NOISE * np.array([1, 0, 0])[:, None, None], jnp.float32))
    equations = Equation(affine_drift, field), Equation(affine_drift, field.matrices[0])
    moved = [eqx.filter_jit(el.StochasticMidpoint().advance(e, 0.01))(x, noise) for e in equations]
    np.testing.assert_allclose(*moved, atol=1e-5)


def test_the_fastest_rate_counts_the_gradient_of_the_noise():
    """Spectral radius of the drift, |eigenvalue| = 1.57, plus the squares of all derivatives of sqrt(2) noise."""
    rates = fastest_rates(AFFINE, jnp.asarray(STATES, jnp.float32))
    drift = np.abs(np.linalg.eigvals(LINEAR)).max()
    np.testing.assert_allclose(rates, drift + 2 * np.sum(NOISE[1:] ** 2), rtol=1e-4)
    additive = fastest_rates(Equation(affine_drift, jnp.eye(2)), jnp.asarray(STATES, jnp.float32))
    np.testing.assert_allclose(additive, drift, rtol=1e-5)


def test_ensembles_of_the_midpoint_have_the_exact_moments():
    """The loop hands both increments over: moments of 10 000 members at time 1, four standard errors and the step."""
    start = np.tile(np.float32([[0.5, 1.0]]), (10_000, 1))
    run = {"frames": 1, "save_every": 20, "step": 0.05, "key": jax.random.key(0)}
    last = integrate(el.StochasticMidpoint().advance(AFFINE, 0.05), start, **run).paths[:, -1].astype(float)
    found, exact = monomials(last), (monomials(start[:1]) @ expm(generator()))[0]
    assert np.all(np.abs(found.mean(0) - exact) <= 4 * found.std(0) / np.sqrt(len(last)) + 1e-3)


@pytest.fixture(scope="module")
def field_model(linear_model):
    """The linear model with noise that grows outwards, standardised D_i(x) = 0.4 + 0.3 x_i + 0.2 x_i^2."""
    low, high = -4 * np.ones(2), 4 * np.ones(2)
    powers = exponents(2, 2)
    rows = [[0.4, 0.3, 0.0, 0.2, 0.0, 0.0], [0.4, 0.0, 0.3, 0.0, 0.0, 0.2]]
    assert powers == [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    diffusion = PolynomialDiffusion.of(np.array(rows), 0.05, low, high)
    return replace(linear_model, fields=Fields(RotatedScore(jnp.array([[0.0, 0.3], [-0.3, 0.0]])), diffusion))


def test_a_model_with_a_field_of_noise_keeps_its_steady_state(field_model):
    """Whatever D(x) is, the law is the Gaussian of the score. 4000 members: four standard errors of each moment."""
    paths = field_model.simulate(8.0, members=4000, seed=1, dt=4.0).values[:, -1]
    states = field_model.standardizer.to_standard(paths)
    products = np.stack([states[:, 0] ** 2, states[:, 0] * states[:, 1], states[:, 1] ** 2], axis=1)
    exact = field_model.score.covariance[[0, 0, 1], [0, 1, 1]]
    assert np.all(np.abs(states.mean(0)) < 4 * states.std(0) / np.sqrt(4000) + 0.01)
    assert np.all(np.abs(products.mean(0) - exact) < 4 * products.std(0) / np.sqrt(4000) + 0.01)
    third = states**3  # of the Gaussian zero: without div D in the drift the law would lean
    assert np.all(np.abs(third.mean(0)) < 4 * third.std(0) / np.sqrt(4000) + 0.03)


def test_a_model_with_a_field_of_noise_follows_given_noise_by_euler_steps(field_model):
    noise = np.sqrt(0.05) * np.random.default_rng(0).normal(size=(1, 40, 2))
    start = {"noise": noise, "initial": [[10.0, -1.0]], "dt": 0.05, "step": 0.05}
    default, euler = (field_model.simulate(2.0, **start, stepper=s).values for s in (None, el.EulerMaruyama()))
    np.testing.assert_array_equal(default, euler)


@pytest.mark.parametrize("fastest", [None, 30.0])
def test_members_do_not_escape_where_the_drift_is_too_stiff_for_the_step(fastest):
    """Rate x step is 0.5 in the data and 5 beyond x = 2, where the noise is larger too: no step is stable there."""

    def drift(x):
        return -5.0 * x - 45.0 * jnp.sign(x) * jnp.maximum(jnp.abs(x) - 2.0, 0.0)

    def noise(x):
        return jnp.sqrt(5.0 + 45.0 * jnp.maximum(jnp.abs(x) - 2.0, 0.0))[:, None]

    advance = el.StochasticMidpoint().advance(Equation(drift, noise, fastest=fastest), 0.1)
    start = np.linspace(-4.0, 4.0, 200)[:, None]
    ensemble = integrate(advance, start, frames=50, save_every=4, step=0.1, key=jax.random.key(0), bound=1e3)
    assert ensemble.diverged.any() == (fastest is None)
    if fastest is not None:
        assert np.abs(ensemble.paths[:, -1]).mean() < 2
