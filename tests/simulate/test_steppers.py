import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, solve_continuous_lyapunov, solve_discrete_lyapunov

import effective_langevin as el
from benchmarks.invariance import cubic_weights
from effective_langevin.simulate.steppers import Equation, exponential_matrices

LINEAR = np.array([[-1.0, -1.2], [0.8, -1.5]])
NOISE = np.array([[1.0, 0.0], [0.4, 0.7]])


def matvec(x):
    return jnp.asarray(LINEAR, jnp.float32) @ x


OU = Equation(matvec, jnp.asarray(NOISE, jnp.float32), jnp.asarray(LINEAR, jnp.float32), jnp.zeros(2))
COVARIANCE = solve_continuous_lyapunov(LINEAR, -2 * NOISE @ NOISE.T)


def one_step_matrices(stepper, step, equation=OU):
    """x' = P x + N dW of a linear equation, read off unit vectors."""
    advance = stepper.advance(equation, step)
    eye, zero = jnp.eye(2), jnp.zeros((2, 2))
    return np.asarray(advance(eye, zero), float).T, np.asarray(advance(zero, eye), float).T


def stationary_covariance(stepper, step):
    """C = P C P^T + h N N^T: what the stepper itself samples in the long run."""
    decay, noise = one_step_matrices(stepper, step)
    return solve_discrete_lyapunov(decay, step * noise @ noise.T)


def bias(stepper, step):
    return np.linalg.norm(stationary_covariance(stepper, step) - COVARIANCE) / np.linalg.norm(COVARIANCE)


@settings(max_examples=25)
@given(size=st.integers(1, 5), step=st.floats(1e-3, 3.0), seed=st.integers(0, 2**31))
def test_exponential_matrices_keep_the_exact_stationary_covariance_at_any_step(size, step, seed):
    rng = np.random.default_rng(seed)
    linear = -np.eye(size) * (1 + rng.random(size)) + 0.3 * rng.normal(size=(size, size))
    linear -= np.eye(size) * max(0.0, 0.5 + np.linalg.eigvals(linear).real.max())
    factor = rng.normal(size=(size, size)) + np.eye(size)
    decay, response, covariance = exponential_matrices(linear, factor @ factor.T, step)
    exact = solve_continuous_lyapunov(linear, -2 * factor @ factor.T)
    np.testing.assert_allclose(solve_discrete_lyapunov(decay, covariance), exact, atol=1e-6 * np.abs(exact).max())
    np.testing.assert_allclose(decay, expm(linear * step), atol=1e-10)
    np.testing.assert_allclose(linear @ response, decay - np.eye(size), atol=1e-10)


@pytest.mark.parametrize("step", [0.01, 0.3, 2.0])
def test_exponential_euler_samples_the_exact_covariance_of_a_linear_equation(step):
    # The map works in single precision: 2^-24 per operation, magnified by 1 / (1 - |P|^2) = 50 at the smallest step.
    assert bias(el.ExponentialEuler(), step) < 2e-5
    np.testing.assert_allclose(one_step_matrices(el.ExponentialEuler(), step)[0], expm(LINEAR * step), atol=1e-6)


@pytest.mark.parametrize(("stepper", "order"), [(el.EulerMaruyama(), 1), (el.StochasticHeun(), 2)])
def test_weak_order_of_the_steady_state(stepper, order):
    """The rate against itself: halving the step divides the bias by 2^order, to 15 % of the next order in the step.
    The limit against the oracle: extrapolated to step 0 the covariance is exact up to the next order, 1 %."""
    coarse, fine = (stationary_covariance(stepper, step) for step in (0.1, 0.05))
    assert bias(stepper, 0.1) / bias(stepper, 0.05) == pytest.approx(2**order, rel=0.15)
    limit = (2**order * fine - coarse) / (2**order - 1)
    assert np.linalg.norm(limit - COVARIANCE) < 0.01 * np.linalg.norm(COVARIANCE)


# Leimkuhler-Matthews: x' = x + h f(x) + sqrt(2) noise (dW_n + dW_n+1) / 2.


def averaged_covariance(linear, step, stepper):
    """The stationary covariance of x where the increment is averaged with the one before: a chain of (x, dW)."""

    def drift(x):
        return jnp.asarray(linear, jnp.float32) @ x

    decay, noise = one_step_matrices(stepper, step, Equation(drift, jnp.asarray(NOISE, jnp.float32)))
    zero = np.zeros((2, 2))
    chain = np.block([[decay, 0.5 * noise], [zero, zero]])
    kick = np.vstack([0.5 * noise, np.eye(2)])
    return solve_discrete_lyapunov(chain, step * kick @ kick.T)[:2, :2]


def test_leimkuhler_matthews_samples_the_exact_covariance_of_a_reversible_linear_equation_at_a_large_step():
    """f = -D P x: at h x (largest rate) = 0.8 the step of Euler-Maruyama is off by 1 / (1 - 0.4) in that direction.

    With circulation it is not exact: the bias is of first order.
    """
    precision = np.array([[2.0, 0.5], [0.5, 1.0]])
    reversible = -NOISE @ NOISE.T @ precision
    step = 0.8 / np.abs(np.linalg.eigvals(reversible)).max()
    exact = np.linalg.inv(precision)
    found = averaged_covariance(reversible, step, el.LeimkuhlerMatthews())
    np.testing.assert_allclose(found, exact, atol=1e-5)
    decay = np.eye(2) + step * reversible
    euler = solve_discrete_lyapunov(decay, 2 * step * NOISE @ NOISE.T)
    assert euler[0, 0] > 1.3 * exact[0, 0]
    circulating = [
        np.linalg.norm(averaged_covariance(LINEAR, h, el.LeimkuhlerMatthews()) - COVARIANCE) for h in (0.1, 0.05)
    ]
    assert circulating[1] > 0.01
    assert circulating[0] / circulating[1] == pytest.approx(2, rel=0.2)


def well(x):
    """-U' of the tilted double well U = (x^2 - 1)^2 + x / 2."""
    return -4 * x * (x**2 - 1) - 0.5


def law_of_the_well(stepper, step, averaged, points=241, nodes=12):
    """Mean and second moment of the law that a stepper samples, from its Markov operator (no sampling).

    With averaged noise, y = x - dW / sqrt(2) is a Markov chain: y' = F(y + dW / sqrt(2)) + dW / sqrt(2), F the step
    without noise. The operator is tabulated with Gauss-Hermite nodes for dW and cubic interpolation on a grid.
    """
    grid = np.linspace(-2.4, 2.2, points)
    roots, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights, kicks = weights / weights.sum(), np.sqrt(step) * roots
    advance = stepper.advance(Equation(well, jnp.ones((1, 1))), step)

    def moved(x, dw):
        state = jnp.asarray(x, jnp.float32)[:, None]
        return np.asarray(advance(state, jnp.full_like(state, dw)), float)[:, 0]

    operator, seen = np.zeros((points, points)), []
    for kick, weight in zip(kicks, weights):
        half = kick / np.sqrt(2) if averaged else 0.0
        after = moved(grid + half, 0.0 if averaged else kick) + half
        seen.append(grid + half)
        i, w = cubic_weights(grid, np.clip(after, grid[0], grid[-1]))
        np.add.at(operator, (np.arange(points)[:, None], i), weight * w)
    values, vectors = np.linalg.eig(operator.T)
    law = vectors[:, np.argmax(values.real)].real
    law /= law.sum()
    return np.array([law @ (np.array(seen) ** k).T @ weights for k in (1, 2)])


@pytest.mark.parametrize(
    ("stepper", "averaged", "order"), [(el.LeimkuhlerMatthews(), True, 2), (el.EulerMaruyama(), False, 1)]
)
def test_the_law_of_a_nonlinear_well_is_of_second_order_with_averaged_noise_and_of_first_without(
    stepper, averaged, order
):
    x = np.linspace(-4, 4, 8001)
    density = np.exp(-((x**2 - 1) ** 2) - 0.5 * x)
    exact = np.array([density @ x, density @ x**2]) / density.sum()
    coarse, fine = (np.linalg.norm(law_of_the_well(stepper, h, averaged) - exact) for h in (0.04, 0.02))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.3)
    assert fine < (0.003 if averaged else 0.1)


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0])
def test_the_midpoint_samples_the_variance_of_a_linear_equation_to_the_fourth_power_of_the_step(step):
    """dx = -x dt + sqrt(2) dW: x' = P x + N dW + M dV, variance 2 h (N^2 + M^2) / (1 - P^2), see docs/theory.md."""
    advance = el.StochasticMidpoint().advance(Equation(lambda x: -x, jnp.ones((1, 1))), step)
    decay, noise, aside = np.asarray(advance(jnp.eye(3)[:, :1], jnp.eye(3)[:, 1:]), float)[:, 0]
    variance = step * (noise**2 + aside**2) / (1 - decay**2)
    exact = 1 + step**4 / 64 / (1 - step + step**2 / 2 - step**3 / 8)
    assert decay == pytest.approx(1 - step + step**2 / 2, abs=1e-6)
    assert variance == pytest.approx(exact, abs=1e-5)


def test_euler_and_heun_maps_are_their_formulas():
    h = 0.1
    decay, noise = one_step_matrices(el.EulerMaruyama(), h)
    np.testing.assert_allclose(decay, np.eye(2) + h * LINEAR, atol=1e-6)
    np.testing.assert_allclose(noise, np.sqrt(2) * NOISE, atol=1e-6)
    decay, noise = one_step_matrices(el.StochasticHeun(), h)
    np.testing.assert_allclose(decay, np.eye(2) + h * LINEAR + 0.5 * h**2 * LINEAR @ LINEAR, atol=1e-6)
    np.testing.assert_allclose(noise, (np.eye(2) + 0.5 * h * LINEAR) @ (np.sqrt(2) * NOISE), atol=1e-6)


def test_exponential_euler_relaxes_to_the_centre_and_is_exact_for_a_constant_remainder():
    """dx = L (x - c) dt + f dt: x(h) = c + e^{Lh} (x - c) + int_0^h e^{Lu} du f."""
    centre, force = np.array([1.0, -2.0]), np.array([0.5, 0.3])

    def drift(x):
        return jnp.asarray(LINEAR, jnp.float32) @ (x - jnp.asarray(centre, jnp.float32)) + jnp.asarray(
            force, jnp.float32
        )

    equation = Equation(
        drift, jnp.asarray(NOISE, jnp.float32), jnp.asarray(LINEAR, jnp.float32), jnp.asarray(centre, jnp.float32)
    )
    start = np.array([[3.0, 1.0]])
    moved = el.ExponentialEuler().advance(equation, 0.7)(jnp.asarray(start, jnp.float32), jnp.zeros((1, 2)))
    decay = expm(0.7 * LINEAR)
    exact = centre + decay @ (start[0] - centre) + np.linalg.solve(LINEAR, (decay - np.eye(2)) @ force)
    np.testing.assert_allclose(moved[0], exact, atol=1e-5)


def multiplicative(x):
    return jnp.diag(x)


@pytest.mark.parametrize(
    "stepper", [el.StochasticHeun(), el.ExponentialEuler(), el.LeimkuhlerMatthews()], ids=lambda s: type(s).__name__
)
def test_steppers_for_additive_noise_refuse_noise_that_depends_on_the_state(stepper):
    message = f"{type(stepper).__name__} needs noise that does not depend on the state; use StochasticMidpoint"
    with pytest.raises(ValueError, match=message):
        stepper.advance(Equation(matvec, multiplicative, OU.linear, OU.centre), 0.1)


def test_euler_maruyama_takes_state_dependent_noise_at_the_start_of_the_step():
    """Ito: the kick is sqrt(2) noise(x) dW with x before the step."""
    x, dw = np.array([[2.0, -3.0]]), np.array([[0.1, 0.2]])
    moved = el.EulerMaruyama().advance(Equation(matvec, multiplicative), 0.05)(jnp.asarray(x), jnp.asarray(dw))
    np.testing.assert_allclose(moved, x + 0.05 * x @ LINEAR.T + np.sqrt(2) * x * dw, rtol=1e-6)


def test_exponential_euler_needs_a_linear_part():
    with pytest.raises(ValueError, match="needs an equation with a known linear part"):
        el.ExponentialEuler().advance(Equation(matvec, OU.noise), 0.1)


@pytest.mark.parametrize(
    "name", ["EulerMaruyama", "StochasticHeun", "StochasticMidpoint", "LeimkuhlerMatthews", "ExponentialEuler"]
)
def test_a_gpu_may_not_shorten_the_numbers_of_a_step(name):
    """By default it multiplies with 11 bits: one step of a slow direction is a factor closer to one than that."""
    system = el.systems.OrnsteinUhlenbeck(np.eye(12) + 0.1, np.eye(12))
    eye = jnp.eye(12)
    advance = getattr(el, name)().advance(Equation(system._drift, eye, linear=-eye, centre=jnp.zeros(12)), 0.1)
    noise = jnp.tile(eye, advance.draws)
    products = [e for e in jax.make_jaxpr(advance)(eye, noise).jaxpr.eqns if e.primitive.name == "dot_general"]
    assert len(products) >= 2
    assert all(e.params["precision"] == (jax.lax.Precision.HIGHEST,) * 2 for e in products)


@pytest.mark.parametrize("members", [1, 511, 512, 1000])
def test_members_in_batches_have_the_same_drift_as_one_by_one(members):
    """1000 is not a multiple of the batch: the rest must not be lost, repeated or moved."""
    x = np.random.default_rng(0).normal(size=(members, 2)).astype(np.float32)
    equation = Equation(lambda x: jnp.array([x[1], -(x[0] ** 3)]), jnp.eye(2))
    np.testing.assert_allclose(equation.drifts(jnp.asarray(x)), np.stack([x[:, 1], -(x[:, 0] ** 3)], 1), rtol=1e-6)
