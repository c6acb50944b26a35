import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.systems import (
    AffineNoise,
    AsymmetricWells,
    CoxIngersollRoss,
    DoubleWellOscillator,
    DrivenRing,
    FokkerPlanck,
    NoisyLimitCycle,
    OrnsteinUhlenbeck,
    ScalarMultiplicative,
    StochasticLorenz63,
)

# Each system with a point away from all symmetries.
POINTS = [
    (AsymmetricWells(), [0.4, -0.9]),
    (ScalarMultiplicative(), [0.05]),
    (CoxIngersollRoss(), [0.7]),
    (AffineNoise(alpha=3.0), [0.3, -0.2]),
    (DoubleWellOscillator(friction=0.7), [0.4, -0.6]),
    (StochasticLorenz63(), [1.0, 2.0, 20.0]),
    (OrnsteinUhlenbeck.rotating(3), [0.5, -0.3, 0.8]),
    (NoisyLimitCycle(), [0.4, -0.7]),
    (DrivenRing(), [1.1]),
]
SYSTEMS = pytest.mark.parametrize(("system", "point"), POINTS, ids=[type(s).__name__ for s, _ in POINTS])


@SYSTEMS
def test_drift_noise_and_diffusion_have_the_shapes_of_the_states(system, point):
    size = len(point)
    x = np.asarray(point) + np.zeros((4, 3, size))
    assert system.dimension == size == len(system.names)
    assert system.drift(x).shape == x.shape
    factor = system.noise_factor(x)
    assert factor.shape == (*x.shape, system.brownian_dimension)
    np.testing.assert_allclose(system.diffusion(x), factor @ np.swapaxes(factor, -1, -2), rtol=1e-12)
    np.testing.assert_allclose(system.drift(x)[2, 1], system.drift(np.asarray(point)), rtol=1e-12)


@pytest.mark.slow
@SYSTEMS
def test_one_step_has_the_moments_of_drift_and_diffusion(system, point):
    """Mean increment drift h, covariance 2 D h over 20000 members: four standard errors, and the next order in
    h = step / 10, which they far exceed where there is noise. This is where the factor sqrt(2) of the convention is
    tested."""
    members, h = 20000, system.step / 10
    start = np.tile(point, (members, 1))
    paths = system.simulate(3 * h, dt=h, members=members, seed=1, step=h, initial=start).values
    increments = paths[:, 1] - paths[:, 0]
    drift, covariance = system.drift(np.asarray(point)), 2 * h * system.diffusion(np.asarray(point))
    spread = np.sqrt(np.diag(covariance))
    # The paths are kept in single precision: rounding of 1e-7 of the state adds to the error of the mean.
    rounding = 1e-7 * np.abs(point)
    next_order = h * (h * np.abs(drift).max() + 4 * spread.max() / np.sqrt(members))
    assert (np.abs(increments.mean(axis=0) - h * drift) < 4 * spread / np.sqrt(members) + rounding + next_order).all()
    allowed = 4 * np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / members) + np.outer(rounding, rounding)
    allowed += h * spread.max() ** 2
    assert (np.abs(np.cov(increments.T).reshape(covariance.shape) - covariance) < allowed).all()


def central_gradient(function, x, step=1e-5):
    steps = step * np.eye(len(x))
    return np.array([(function(x + s) - function(x - s)) / (2 * step) for s in steps])


def test_the_wells_are_their_potential():
    """U = sum_i (x_i^2 - A_i^2)^2 + B_i x_i, A = (1, 1.2), B = (0.6, 0.3); drift -K grad U, K = [[1, -.8], [.8, 1]]."""
    wells, x = AsymmetricWells(), np.array([0.4, -0.9])

    def potential(x):
        return (x[0] ** 2 - 1) ** 2 + 0.6 * x[0] + (x[1] ** 2 - 1.44) ** 2 + 0.3 * x[1]

    gradient = central_gradient(potential, x)
    np.testing.assert_allclose(wells.score_function(x), -gradient, atol=1e-8)
    np.testing.assert_allclose(wells.drift(x), -np.array([[1, -0.8], [0.8, 1]]) @ gradient, atol=1e-8)
    np.testing.assert_array_equal(wells.diffusion(x), np.eye(2))


def test_the_scalar_equation_is_the_one_of_the_paper():
    system, x = ScalarMultiplicative(), np.array([0.3])
    a, b, c, big_a, big_b, sigma = -1.809, -0.0667, 0.1667, 0.1265, -0.6325, 0.0632
    assert system.drift(x)[0] == pytest.approx(big_a * big_b / 2 + a * 0.3 + b * 0.09 - c * 0.027, rel=1e-12)
    assert system.diffusion(x)[0, 0] == pytest.approx(0.5 * (sigma**2 + (big_a - big_b * 0.3) ** 2), rel=1e-6)
    assert system.brownian_dimension == 2


@pytest.mark.parametrize("system", [ScalarMultiplicative(), CoxIngersollRoss()], ids=lambda s: type(s).__name__)
def test_scalar_scores_balance_drift_and_diffusion(system):
    """No flux: drift = D s + D'."""
    for x in (np.array([0.05]), np.array([0.4])):
        slope = central_gradient(lambda y: system.diffusion(y)[0, 0], x)
        balance = system.diffusion(x)[0, 0] * system.score_function(x) + slope
        np.testing.assert_allclose(system.drift(x), balance, atol=1e-6)


def test_the_affine_noise_system_is_the_one_of_the_benchmark():
    system, (x, y) = AffineNoise(alpha=3.0), (0.3, -0.2)
    force = [-(x**3) - x * y**2 - x - 1.1 * y, -(y**3) - x**2 * y - y + 1.1 * x]
    b = np.array([[0.60, 0.10], [0.08, 0.55]])
    b = b + 3 * (x * np.array([[0.12, 0.04], [0.05, -0.02]]) + y * np.array([[-0.03, 0.07], [0.06, 0.10]]))
    np.testing.assert_allclose(system.drift(np.array([x, y])), force, rtol=1e-6)
    np.testing.assert_allclose(system.diffusion(np.array([x, y])), b @ b.T / 2, rtol=1e-6)


def test_lorenz_63_is_lorenz_63():
    system, (x, y, z) = StochasticLorenz63(), (1.0, 2.0, 20.0)
    np.testing.assert_allclose(system.drift(np.array([x, y, z])), [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
    np.testing.assert_allclose(system.diffusion(np.zeros(3)), 12.5 * np.eye(3))
    assert system.mobility is None
    assert system.score_function(np.zeros(3)) is None
    assert system.current(np.zeros(3)) is None
    assert system.entropy_production is None


def test_ornstein_uhlenbeck_satisfies_the_lyapunov_equation():
    system = OrnsteinUhlenbeck.rotating(4, rotation=0.7)
    a, c, s = system.drift_matrix, system.covariance, system.noise_matrix
    np.testing.assert_allclose(a @ c + c @ a.T, 2 * s @ s.T, atol=1e-12)
    np.testing.assert_allclose(system.mobility, a @ c, atol=1e-12)
    np.testing.assert_allclose(0.5 * (system.mobility + system.mobility.T), s @ s.T, atol=1e-12)
    assert np.abs(system.mobility - system.mobility.T).max() > 0.5


def test_constant_closures_that_are_exact_reproduce_the_drift():
    for system, x in ((AsymmetricWells(), [0.4, -0.9]), (OrnsteinUhlenbeck.rotating(3), [0.5, -0.3, 0.8])):
        np.testing.assert_allclose(system.mobility @ system.score_function(x), system.drift(x), rtol=1e-6)


def test_an_unstable_ornstein_uhlenbeck_process_is_refused():
    with pytest.raises(el.ArgumentError, match="eigenvalues with positive real part: the process is not stationary"):
        OrnsteinUhlenbeck([[1.0, 0.0], [0.0, -0.1]])
    with pytest.raises(el.ArgumentError, match=r"Argument `noise_matrix` must have shape \(var, brownian\)"):
        OrnsteinUhlenbeck(np.eye(2), np.eye(3))


STEIN = [
    (ScalarMultiplicative(), {"dt": 0.1, "step": 0.005}),
    (CoxIngersollRoss(), {"dt": 0.2, "step": 0.01}),
    (OrnsteinUhlenbeck.rotating(2), {"dt": 0.2, "step": 0.05}),
    (AsymmetricWells(), {"dt": 0.1, "step": 0.01}),
    (NoisyLimitCycle(), {"dt": 0.1, "step": 0.01}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("system", "sampling"), STEIN, ids=[type(s).__name__ for s, _ in STEIN])
def test_simulated_samples_satisfy_stein_with_the_exact_score(system, sampling):
    """< s > = 0 and < s x^T > = -I, each within four standard errors over 400 independent members, plus 1 % for the
    integrator: weak order 1 (Euler) or 2 (Heun), with step x rate = 0.01."""
    values = system.simulate(duration=10.0, members=400, seed=2, **sampling).values
    score = system.score_function(values)
    centred = values - values.mean(axis=(0, 1))
    size = system.dimension
    members = np.einsum("mti,mtj->mij", score, centred) / values.shape[1]
    error = members.std(axis=0) / np.sqrt(400)
    assert error.max() < 0.1
    assert (np.abs(members.mean(axis=0) + np.eye(size)) < 4 * error + 0.01).all()
    means = score.mean(axis=1)
    assert (np.abs(means.mean(axis=0)) < 4 * means.std(axis=0) / np.sqrt(400) + 0.01 * score.std(axis=(0, 1))).all()


# Exact numbers of the method page, Sec. 4, to the digits printed there.


def test_exact_numbers_of_the_wells():
    """The density is a product, so mean and standard deviation are one-dimensional quadratures."""
    wells, moments = AsymmetricWells(), []
    for a, b in zip(wells.wells, wells.tilt):

        def density(x, a=a, b=b):
            return np.exp(-((x**2 - a**2) ** 2) - b * x)

        mass = quad(density, -6, 6)[0]
        mean = quad(lambda x, p=density: x * p(x), -6, 6)[0] / mass
        moments.append((mean, np.sqrt(quad(lambda x, p=density, m=mean: (x - m) ** 2 * p(x), -6, 6)[0] / mass)))
    np.testing.assert_allclose(np.transpose(moments), [(-0.46697, -0.35842), (0.82411, 1.06052)], atol=1e-5)
    np.testing.assert_array_equal(wells.mobility, [[1, -0.8], [0.8, 1]])


def test_simulated_wells_have_the_exact_moments(wells_series):
    """Four standard errors over 20 members."""
    values = wells_series.values
    for function, exact in (
        (lambda v: v.mean(axis=1), (-0.46697, -0.35842)),
        (lambda v: v.std(axis=1), (0.82411, 1.06052)),
    ):
        by_member = function(values)
        assert (np.abs(by_member.mean(axis=0) - exact) < 4 * by_member.std(axis=0) / np.sqrt(20)).all()


def test_exact_numbers_of_the_scalar_equation():
    system = ScalarMultiplicative()
    mean = system.expectation(lambda x: x)
    std = np.sqrt(system.expectation(lambda x: (x - mean) ** 2))
    assert mean == pytest.approx(-0.02234, abs=5e-6)
    assert std == pytest.approx(0.07167, abs=5e-6)
    assert system.mobility[0, 0] == pytest.approx(0.0093382, abs=5e-7)
    assert system.mobility[0, 0] / std**2 == pytest.approx(1.81784, abs=1e-5)
    # Independent of the trapezoid rule: adaptive quadrature of the density it returns, and of its score.
    assert quad(lambda x: float(system.density(x)), -0.6, 1.2, limit=400)[0] == pytest.approx(1, abs=1e-4)
    x = np.array([-0.1, 0.0, 0.13])
    slope = (np.log(system.density(x + 1e-3)) - np.log(system.density(x - 1e-3))) / 2e-3
    np.testing.assert_allclose(system.score_function(x), slope, rtol=2e-3)


@pytest.mark.parametrize(
    ("alpha", "exact"),
    [(1.0, [[0.1863, 0.1821], [-0.0783, 0.1550]]), (3.0, [[0.1968, 0.1856], [-0.0758, 0.1594]])],
)
def test_exact_numbers_of_the_affine_noise(alpha, exact):
    system = AffineNoise(alpha=alpha)
    np.testing.assert_allclose(system.mobility, exact, atol=1e-4)
    if alpha == 3.0:
        plane = system.fokker_planck(121)
        np.testing.assert_allclose(plane.mean(), [-0.0008, -0.0248], atol=1e-4)
        np.testing.assert_allclose(np.sqrt(np.diag(plane.covariance())), [0.3355, 0.3528], atol=1e-4)


def test_exact_numbers_of_cox_ingersoll_ross():
    """Gamma law: mean theta, variance theta gamma / k, < M > = gamma theta."""
    system = CoxIngersollRoss(rate=2.0, level=1.5, noise=0.25)
    assert system.mobility[0, 0] == 0.375
    line = FokkerPlanck.from_system(system, [(1e-3, 6.0)], 2001)
    assert line.mean()[0] == pytest.approx(1.5, rel=1e-4)
    assert line.covariance()[0, 0] == pytest.approx(1.5 * 0.25 / 2, rel=1e-3)


# The Fokker-Planck oracle.


@pytest.mark.parametrize(
    "system", [OrnsteinUhlenbeck([[1.3]], [[0.8]]), OrnsteinUhlenbeck.rotating(2)], ids=["1-D", "2-D"]
)
def test_fokker_planck_has_the_matrix_exponential_of_ornstein_uhlenbeck(system):
    """Central differences are exact on polynomials of degree two, so only the time step, of second order, and the
    truncation of the plane at five standard deviations are left: 2 x 10^-5 at 8 substeps, four times that at 4."""
    grid = FokkerPlanck.from_system(system, [(-5, 5)] * system.dimension, 61)
    exact = np.array([expm(-system.drift_matrix * 0.2 * k) @ system.covariance for k in range(6)])
    errors = [np.abs(grid.correlation(0.2, 5, substeps=n) - exact)[1:].max() for n in (4, 8)]
    assert errors[1] < 5e-5
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.2)
    np.testing.assert_allclose(grid.covariance(), system.covariance, atol=1e-5)
    np.testing.assert_allclose(grid.mean_mobility(), system.mobility, atol=1e-5)
    np.testing.assert_allclose(grid.mean(), 0, atol=1e-8)
    assert grid.density.sum() == pytest.approx(1)


def test_fokker_planck_converges_at_second_order_in_the_grid():
    """The standard deviations of the wells against quadrature: a grid twice as fine is four times as good."""
    errors = []
    for points in (41, 81):
        covariance = FokkerPlanck.from_system(AsymmetricWells(), [(-2.6, 2.6)] * 2, points).covariance()
        errors.append(np.abs(np.sqrt(np.diag(covariance)) - [0.8241135, 1.0605221]))
    assert (errors[1] < 0.005).all()
    np.testing.assert_allclose(errors[0] / errors[1], 4, rtol=0.25)


def test_the_generator_annihilates_constants_and_differentiates_polynomials():
    grid = FokkerPlanck.from_functions(
        lambda x: np.stack([x[:, 0] - 2, 1 + x[:, 1]], axis=1),
        lambda x: np.broadcast_to([[2.0, 0.5], [0.5, 1.0]], (len(x), 2, 2)),
        [(-1, 1), (0, 2)],
        21,
    )
    x, y = grid.states.T
    inside = (np.abs(x) < 0.95) & (np.abs(y - 1) < 0.95)
    np.testing.assert_allclose(grid.generator @ np.ones(len(x)), 0, atol=1e-9)
    np.testing.assert_allclose((grid.generator @ (x * y))[inside], ((x - 2) * y + (1 + y) * x + 1.0)[inside], atol=1e-9)
    np.testing.assert_allclose((grid.generator @ (x**2))[inside], (2 * x * (x - 2) + 4.0)[inside], atol=1e-9)


def test_the_oracle_agrees_with_a_simulation_of_the_wells(wells_series):
    """C(tau) at 0.5 and 1 time units, first variable with second included: four standard errors over 20 members, plus
    0.5 % for the grid."""
    grid = FokkerPlanck.from_system(AsymmetricWells(), [(-2.6, 2.6)] * 2, 81)
    exact = grid.correlation(0.5, 2)
    values = wells_series.values - wells_series.stacked().mean(axis=0)
    for k in (1, 2):
        lag = 10 * k
        members = np.einsum("mti,mtj->mij", values[:, lag:], values[:, :-lag]) / (values.shape[1] - lag)
        error = members.std(axis=0) / np.sqrt(20)
        assert (np.abs(members.mean(axis=0) - exact[k]) < 4 * error + 0.005 * np.abs(exact[0]).max()).all()


# Simulation.


def test_simulated_records_are_member_time_variable():
    series = AsymmetricWells().simulate(duration=1.0, dt=0.1, members=3, seed=0, step=0.05, burn_in=0.0)
    assert series.values.shape == (3, 11, 2)
    assert (series.dt, series.names) == (0.1, ("x1", "x2"))


def test_same_seed_same_bits_other_seed_other_records():
    one, again, other = (
        AsymmetricWells().simulate(1.0, dt=0.1, members=3, seed=s, step=0.05, burn_in=1.0).values for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


@pytest.mark.parametrize("system", [AsymmetricWells(), ScalarMultiplicative()], ids=lambda s: type(s).__name__)
def test_returned_noise_drives_the_same_path_again(system):
    series, noise = system.simulate_with_noise(0.5, dt=0.1, members=3, seed=5, step=0.01)
    assert noise.shape == (3, 50, system.brownian_dimension)
    # 300 or more normals: four standard errors of their variance.
    assert noise.var() == pytest.approx(0.01, rel=4 * np.sqrt(2 / noise.size))
    again = system.simulate(0.5, dt=0.1, members=3, seed=8, step=0.01, noise=noise, initial=series.values[:, 0])
    np.testing.assert_array_equal(again.values, series.values)
    with pytest.raises(
        el.ArgumentError, match=r"Argument `noise` must have shape \(member, step, brownian\) = \(3, 50, "
    ):
        system.simulate(0.5, dt=0.1, members=3, step=0.01, noise=noise[:, :-1])


@pytest.mark.slow
def test_burn_in_reaches_the_steady_state():
    """The first frame after burn-in, 4000 members: mean within four standard errors of the exact one. The starting
    points have mean zero, 30 standard errors away."""
    first = AsymmetricWells().simulate(0.05, dt=0.05, members=4000, seed=1, step=0.01, burn_in=10.0).values[:, 0]
    error = np.array([0.82411, 1.06052]) / np.sqrt(4000)
    assert (np.abs(first.mean(axis=0) - [-0.46697, -0.35842]) < 4 * error).all()
    start = AsymmetricWells().simulate(0.05, dt=0.05, members=4000, seed=1, step=0.01, burn_in=0.0).values[:, 0]
    assert (np.abs(start.mean(axis=0)) < 4 / np.sqrt(4000)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"duration": 0.0, "dt": 0.1}, "Argument `duration` must be a positive number"),
        ({"duration": 1.0, "dt": -0.1}, "Argument `dt` must be a positive number"),
        ({"duration": 1.0, "dt": 0.1, "members": 0}, "Argument `members` must be an integer of at least 1"),
        ({"duration": 1.0, "dt": 0.1, "burn_in": -1.0}, "Argument `burn_in` must be a number of at least 0"),
        ({"duration": 1.0, "dt": 0.1, "step": 0}, "Argument `step` must be a positive number"),
        ({"duration": 1.0, "dt": 0.1, "initial": [[0.0]]}, "Argument `initial` must have shape"),
        ({"duration": 1.0, "dt": 0.1, "seed": -1}, "Argument `seed` must be an integer of at least 0"),
    ],
)
def test_values_that_cannot_work_are_refused(arguments, message):
    with pytest.raises(el.ArgumentError, match=message):
        AsymmetricWells().simulate(**arguments)


def test_a_step_that_is_too_long_is_reported():
    with pytest.raises(el.DivergenceError, match=r"members diverged at step 1\. Give a smaller `step`"):
        AsymmetricWells().simulate(20.0, dt=1.0, members=4, step=1.0, burn_in=0.0)


def test_few_times_of_many_variables_are_not_called_transposed():
    """(member, time, var) says itself which axis is which."""
    series = OrnsteinUhlenbeck.rotating(6).simulate(duration=0.2, dt=0.1, members=2, step=0.05)
    assert series.values.shape == (2, 3, 6)


def test_systems_are_found_by_name():
    assert isinstance(el.systems.by_name("wells"), AsymmetricWells)
    assert isinstance(el.systems.by_name("lorenz63"), StochasticLorenz63)
    with pytest.raises(el.ArgumentError, match=r"Argument `system` must be one of 'wells', .*'ring', .*but got 'well'"):
        el.systems.by_name("well")


def test_arguments_that_were_positional_are_taken_with_a_warning(linear_model):
    wells = AsymmetricWells()
    with pytest.warns(DeprecationWarning, match="Give dt=, members= by keyword"):
        old = wells.simulate(0.5, 0.1, 2, seed=1, step=0.05, burn_in=0.0)
    new = wells.simulate(0.5, dt=0.1, members=2, seed=1, step=0.05, burn_in=0.0)
    np.testing.assert_array_equal(old.values, new.values)
    with pytest.warns(DeprecationWarning, match="Give members=, seed= by keyword"):
        paths = linear_model.simulate(0.5, 2, 3)
    np.testing.assert_array_equal(paths.values, linear_model.simulate(0.5, members=2, seed=3).values)
    with pytest.warns(DeprecationWarning, match="Give dt="), pytest.raises(TypeError, match="by keyword"):
        wells.simulate(0.5, 0.1, dt=0.1)
