"""Current velocity, diffusion and entropy production of the reference systems against independent answers."""

import numpy as np
import pytest
from scipy.integrate import quad

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
)

PLANES = [
    (NoisyLimitCycle(), 1.6, 1e-6),
    (NoisyLimitCycle(omega=-1.3, noise=0.3), 1.6, 1e-6),
    (AsymmetricWells(), 1.6, 1e-6),
    (DoubleWellOscillator(friction=0.7, temperature=0.4), 1.6, 1e-6),
    (OrnsteinUhlenbeck.rotating(2), 2.0, 1e-6),
    (AffineNoise(), 0.5, 0.03),
]


@pytest.mark.slow
@pytest.mark.parametrize(("system", "reach", "allowed"), PLANES, ids=lambda value: type(value).__name__)
def test_the_current_carries_no_probability_away(system, reach, allowed):
    """div nu + nu . s = 0 on a grid, against the size of its two parts; central differences of nu."""
    x = np.stack(np.meshgrid(*[np.linspace(-reach, reach, 9)] * 2), axis=-1).reshape(-1, 2)
    small = 1e-4
    outflow = sum(
        (system.current(x + small * axis) - system.current(x - small * axis))[:, i] / (2 * small)
        for i, axis in enumerate(np.eye(2))
    )
    along = np.sum(system.current(x) * system.score_function(x), axis=1)
    assert np.abs(outflow + along).max() < allowed * max(1.0, np.abs(along).max())
    balance = system.drift(x) - np.einsum("nij,nj->ni", system.diffusion(x), system.score_function(x))
    np.testing.assert_allclose(system.current(x), balance - system.divergence(x), atol=1e-9 * np.abs(balance).max())


@pytest.mark.parametrize("system", [ScalarMultiplicative(), CoxIngersollRoss()], ids=lambda s: type(s).__name__)
def test_nothing_flows_on_a_line(system):
    np.testing.assert_allclose(system.current(np.array([[0.05], [0.4]])), 0, atol=1e-7)
    assert system.entropy_production == 0


def test_the_divergence_is_the_slope_of_the_diffusion():
    system, x, small = AffineNoise(), np.array([[0.3, -0.2], [-0.5, 0.4]]), 1e-5
    slopes = [(system.diffusion(x + small * e) - system.diffusion(x - small * e)) / (2 * small) for e in np.eye(2)]
    np.testing.assert_allclose(system.divergence(x), slopes[0][:, :, 0] + slopes[1][:, :, 1], rtol=1e-6)
    assert not NoisyLimitCycle().divergence(x).any()


GRIDS = [
    (NoisyLimitCycle(), 1.9, 1e-3),
    (AsymmetricWells(), 2.4, 0.02),
    (OrnsteinUhlenbeck.rotating(2), 5.0, 1e-3),
]


@pytest.mark.parametrize(("system", "half", "allowed"), GRIDS, ids=lambda value: type(value).__name__)
def test_current_and_entropy_production_are_those_of_the_fokker_planck_operator(system, half, allowed):
    """Its grid is of second order; it knows drift and diffusion alone."""
    plane = FokkerPlanck.from_system(system, [(-half, half)] * 2, 121)
    assert plane.entropy_production() == pytest.approx(system.entropy_production, rel=allowed)
    found, exact = plane.current(), system.current(plane.states)
    seen = np.isfinite(found[:, 0])
    weights = plane.density[seen]
    error = weights @ np.sum((found[seen] - exact[seen]) ** 2, axis=1)
    assert np.sqrt(error / (weights @ np.sum(exact[seen] ** 2, axis=1))) < 10 * allowed
    np.testing.assert_allclose(plane.mean_mobility(), system.mobility, atol=allowed)


def test_entropy_production_of_linear_dynamics_is_the_lyapunov_formula():
    """< f^T D^-1 f > - tr A: see tests/README.md."""
    system = OrnsteinUhlenbeck.rotating(4, rotation=0.7)
    a, noise = system.drift_matrix, system.noise_matrix
    exact = np.trace(a.T @ np.linalg.solve(noise @ noise.T, a) @ system.covariance) - np.trace(a)
    assert system.entropy_production == pytest.approx(exact)
    assert OrnsteinUhlenbeck(np.diag([1.0, 2.0])).entropy_production == pytest.approx(0, abs=1e-12)


def test_without_noise_along_the_current_entropy_production_is_not_defined():
    """An oscillator with noise on its velocity alone."""
    assert OrnsteinUhlenbeck([[0.0, -1.0], [1.0, 0.5]], [[0.0], [1.0]]).entropy_production is None


def test_entropy_production_of_the_limit_cycle_is_the_radial_integral():
    """omega^2 < r^2 > / D over the density r exp((r^2 / 2 - r^4 / 4) / D): 40.59 with the defaults."""

    def density(r):
        return r * np.exp((r**2 / 2 - r**4 / 4) / 0.1)

    mean = quad(lambda r: r**2 * density(r), 0, 4)[0] / quad(density, 0, 4)[0]
    assert NoisyLimitCycle().entropy_production == pytest.approx(4 * mean / 0.1, rel=1e-8)
    assert NoisyLimitCycle().entropy_production == pytest.approx(40.59, abs=0.005)


def test_a_ring_at_rest_follows_boltzmann_between_deep_wells():
    """exp(-V / D) where it is 3 x 10^-4 of its maximum, too."""
    ring, x = DrivenRing(drive=0.0, cosines=(0.0, 2.0), sines=(0.3, 0.0)), np.linspace(0, 2 * np.pi, 1001)[:-1]
    weights = np.exp(-(2 * np.cos(2 * x) + 0.3 * np.sin(x)) / 0.5)
    np.testing.assert_allclose(ring.density(x), weights / (np.mean(weights) * 2 * np.pi), rtol=1e-6)
    assert abs(ring.flux) < 1e-12


@pytest.mark.parametrize("drive", [1.0, -0.4, 0.0, 6.0])
def test_the_ring_has_the_density_and_the_current_of_the_closed_form(drive):
    """p ~ exp(-Psi) int_x^{x + 2 pi} exp(Psi), Psi = (V - f x) / D; J = D (1 - exp(-2 pi f / D)) / N."""
    ring = DrivenRing(drive=drive)

    def psi(x):
        return (0.8 * np.cos(x) + 0.3 * np.cos(2 * x) + 0.4 * np.sin(2 * x) - drive * x) / 0.5

    def weight(x):
        return quad(lambda y: np.exp(psi(y) - psi(x)), x, x + 2 * np.pi, epsabs=1e-13, epsrel=1e-10)[0]

    x = np.linspace(-3, 3, 7)
    mass = quad(weight, 0, 2 * np.pi, epsrel=1e-8)[0]
    np.testing.assert_allclose(ring.density(x), [weight(y) / mass for y in x], rtol=1e-7)
    assert ring.flux == pytest.approx(0.5 * (1 - np.exp(-4 * np.pi * drive)) / mass, rel=1e-7, abs=1e-13)
    slope = (np.log(ring.density(x + 1e-5)) - np.log(ring.density(x - 1e-5))) / 2e-5
    np.testing.assert_allclose(ring.score_function(x[:, None])[:, 0], slope, rtol=1e-6, atol=1e-8)
    grid = np.linspace(0, 2 * np.pi, 512, endpoint=False)[:, None]
    squares = np.mean(ring.density(grid) * ring.current(grid) ** 2) * 2 * np.pi
    assert ring.entropy_production == pytest.approx(squares / 0.5, rel=1e-9, abs=1e-13)
    balance = ring.drift(grid) - 0.5 * ring.score_function(grid)
    np.testing.assert_allclose(ring.current(grid), balance, atol=1e-9)


def test_a_ring_without_potential_turns_as_it_is_driven():
    ring = DrivenRing(drive=-1.7, noise=0.3, cosines=(), sines=())
    assert ring.mean_velocity == pytest.approx(-1.7)
    np.testing.assert_allclose(ring.current(np.array([[0.3]])), -1.7)


def test_a_simulated_ring_turns_at_the_exact_rate_and_has_the_exact_density():
    """Turns of 100 members and means of cos and sin, each within four standard errors."""
    ring = DrivenRing()
    series = ring.simulate(50.0, dt=0.1, members=100, seed=4, step=0.01)
    assert series.periods == (2 * np.pi,)
    assert np.abs(series.stacked()).max() <= np.pi + 1e-5
    moves = np.diff(series.values[..., 0].astype(float), axis=1)
    turns = (moves - 2 * np.pi * np.round(moves / (2 * np.pi))).sum(axis=1) / (2 * np.pi * 50)
    assert turns.mean() == pytest.approx(ring.flux, abs=4 * turns.std() / 10)
    assert turns.mean() > 10 * turns.std() / 10
    grid = np.linspace(0, 2 * np.pi, 512, endpoint=False)
    for function in (np.cos, np.sin, lambda x: np.cos(2 * x)):
        exact = np.mean(function(grid) * ring.density(grid)) * 2 * np.pi
        means = function(series.values[..., 0]).mean(axis=1)
        assert means.mean() == pytest.approx(exact, abs=4 * means.std() / 10)


def test_a_simulated_limit_cycle_has_the_exact_moments_and_turns_at_the_exact_rate():
    """< r^2 >, < x > and (C(h) - C(h)^T) / 2h to first order in h = 0.01: four standard errors over 60 members, plus
    the next order in h, (omega h)^2 / 6."""
    cycle = NoisyLimitCycle()
    values = cycle.simulate(40.0, dt=0.01, members=60, seed=3, step=0.005).values.astype(float)
    squares = np.sum(values**2, axis=-1).mean(axis=1)
    assert squares.mean() == pytest.approx(cycle.mean_square, abs=4 * squares.std() / np.sqrt(60))
    means = values.mean(axis=1)
    assert (np.abs(means.mean(axis=0)) < 4 * means.std(axis=0) / np.sqrt(60)).all()
    past, future = values[:, :-1], values[:, 1:]
    turning = (future[..., 0] * past[..., 1] - future[..., 1] * past[..., 0]).mean(axis=1) / (2 * 0.01)
    exact = -0.5 * (cycle.mobility - cycle.mobility.T)[0, 1]
    assert turning.mean() == pytest.approx(exact, abs=4 * turning.std() / np.sqrt(60) + 1e-4 * abs(exact))


def test_values_that_make_no_ring_are_refused():
    with pytest.raises(el.ArgumentError, match="Argument `noise` must be a positive number"):
        DrivenRing(noise=0.0)
    with pytest.raises(el.ArgumentError, match="Argument `sines` must have shape"):
        DrivenRing(sines=(1.0,))
    with pytest.raises(el.ArgumentError, match="Argument `noise` must be a positive number"):
        NoisyLimitCycle(noise=-1.0)
