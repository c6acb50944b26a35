from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from effective_langevin._core.errors import ArgumentError, DivergenceError
from effective_langevin.systems import KuramotoSivashinsky, kuramoto_sivashinsky

GRID, LENGTH = 48, 22.0
K = 15  # the largest mode with 3 K < 48


def small(gamma=0.0, stride=1, grid=GRID):
    return KuramotoSivashinsky(length=LENGTH, grid=grid, stride=stride, gamma=gamma)


def evolve(system, initial, duration, step=0.05, dt=None):
    """States of all members on the full grid, (member, time, grid)."""
    return system.simulate(duration, dt=dt or duration, members=len(initial), initial=initial, step=step).values


def derivative(u, order, length=LENGTH):
    """Spectral derivative, written with the complex transform: independent of the solver's."""
    k = 2 * np.pi / length * np.fft.fftfreq(u.shape[-1], 1 / u.shape[-1])
    return np.fft.ifft((1j * k) ** order * np.fft.fft(u)).real


@pytest.fixture(scope="module")
def states():
    """Three states near the attractor, without any symmetry, on the full grid of 48 points."""
    return small().simulate(1.0, dt=1.0, members=3, seed=4, burn_in=60.0).values[:, -1]


# --- the equation -----------------------------------------------------------------------------------------------------


def test_drift_is_the_written_equation(states):
    u = states
    # A product of two retained modes can lie beyond them; compare what is retained.
    want = -derivative(u, 2) - derivative(u, 4) - derivative(u**2 / 2, 1) + 0.3 * derivative(u, 3)
    got = small(gamma=0.3).drift(u)
    np.testing.assert_allclose(np.fft.rfft(got)[:, : K + 1], np.fft.rfft(want)[:, : K + 1], atol=1e-9)


def test_quadratic_term_has_no_aliasing():
    rng = np.random.default_rng(0)
    spectrum = np.zeros((2, 4 * GRID // 2 + 1), complex)
    spectrum[:, 1 : K + 1] = rng.normal(size=(2, K)) + 1j * rng.normal(size=(2, K))  # all retained modes alike
    fine = 4 * GRID * np.fft.irfft(spectrum, 4 * GRID)
    # The fine grid resolves all products; keep of them what the coarse one retains.
    wide = np.fft.irfft(np.fft.rfft(small(grid=4 * GRID).drift(fine))[:, : K + 1] / 4, GRID)
    np.testing.assert_allclose(small().drift(fine[:, ::4]), wide, atol=1e-12 * np.abs(wide).max())


def test_solver_agrees_with_an_independent_integrator(states):
    system = small(gamma=0.3)
    want = solve_ivp(lambda _, u: system.drift(u), (0, 3.0), states[0], method="Radau", rtol=1e-9, atol=1e-10).y[:, -1]
    got = evolve(system, states[:2], 3.0, step=0.01)[0, -1]
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_solver_is_of_fourth_order_in_the_step(states):
    system = small(gamma=0.3)
    reference = evolve(system, states, 2.0, step=0.000625)[:, -1]
    errors = [np.abs(evolve(system, states, 2.0, step=h)[:, -1] - reference).max() for h in (0.02, 0.01, 0.005)]
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 4.0, atol=0.4)


def test_small_waves_grow_and_travel_as_the_linear_equation_says():
    gamma, t, amplitude = 0.4, 4.0, 1e-8
    system = small(gamma=gamma)
    x = LENGTH * np.arange(GRID) / GRID
    k = 2 * np.pi / LENGTH * np.array([[2.0], [3.0], [5.0]])  # growing, growing, decaying
    got = evolve(system, amplitude * np.cos(k * x), t)[:, -1]
    want = amplitude * np.exp((k**2 - k**4) * t) * np.cos(k * (x - gamma * k**2 * t))  # to the right for gamma > 0
    np.testing.assert_allclose(got, want, atol=1e-6 * amplitude)


def test_energy_changes_by_production_less_dissipation(states):
    dt = 0.02
    u = evolve(small(gamma=0.3), states, 4.0, step=0.01, dt=dt)
    energy = (u**2 / 2).mean(axis=-1)
    balance = (derivative(u, 1) ** 2 - derivative(u, 2) ** 2).mean(axis=-1)
    rate = (8 * (energy[:, 3:-1] - energy[:, 1:-3]) - (energy[:, 4:] - energy[:, :-4])) / (12 * dt)
    assert balance.std() > 0.01
    np.testing.assert_allclose(rate, balance[:, 2:-2], atol=1e-5 * balance.std())


def test_mean_is_conserved_and_zero(states):
    assert np.abs(evolve(small(gamma=0.3), states, 50.0, dt=1.0).mean(axis=-1)).max() < 1e-14
    shifted = evolve(small(), states + 0.7, 5.0, dt=1.0).mean(axis=-1)
    np.testing.assert_allclose(shifted, 0.7, rtol=1e-13)


def test_saved_states_hold_the_retained_modes_only():
    noise = np.random.default_rng(1).normal(size=(2, GRID))
    spectrum = np.abs(np.fft.rfft(evolve(small(), noise, 1.0, dt=0.5)))
    assert spectrum[..., K + 1 :].max() < 1e-12
    assert spectrum[:, 0, 1 : K + 1].min() > 1e-3


# --- symmetries -------------------------------------------------------------------------------------------------------


def test_a_shifted_state_gives_the_shifted_solution(states):
    system = small(gamma=0.3)
    u, v = evolve(system, states, 10.0), evolve(system, np.roll(states, 7, axis=1), 10.0)
    np.testing.assert_allclose(v, np.roll(u, 7, axis=2), atol=1e-9)


def test_reflection_is_a_symmetry_without_dispersion_and_flips_its_sign():
    def reflected(u):
        return -np.roll(u[..., ::-1], 1, axis=-1)  # u(x) -> -u(-x)

    start = small().simulate(1.0, dt=1.0, members=2, seed=5, burn_in=60.0).values[:, -1]
    for gamma in (0.0, 0.3):
        u = evolve(small(gamma=gamma), start, 10.0)
        np.testing.assert_allclose(evolve(small(gamma=-gamma), reflected(start), 10.0), reflected(u), atol=1e-9)
    assert np.abs(evolve(small(gamma=0.3), reflected(start), 10.0) - reflected(u))[:, -1].max() > 0.5


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_observe_every_stride_th_point_in_physical_order(states):
    every, some = small(), small(stride=4)
    series = some.simulate(3.0, dt=0.5, members=3, initial=states)
    assert series.names == tuple(f"u{i}" for i in range(1, 13)) == some.names
    assert series.values.shape == (3, 7, some.dimension)
    assert series.values.dtype == np.float64
    np.testing.assert_allclose(
        series.values, every.simulate(3.0, dt=0.5, members=3, initial=states).values[..., ::4], atol=1e-12
    )
    np.testing.assert_allclose(series.values[:, 0], states[:, ::4], atol=1e-13)


def test_default_is_the_system_of_the_paper():
    system = KuramotoSivashinsky()
    assert (system.length, system.grid, system.dimension, system.gamma) == (34.0, 512, 32, 0.0)
    assert system.simulate(1.0, dt=0.5, members=2, burn_in=0.2).values.shape == (2, 3, 32)


def test_same_seed_same_bits_and_another_seed_another_record():
    system = small(stride=4)
    one, same, other = (system.simulate(20.0, dt=1.0, members=3, seed=s, burn_in=5.0).values for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert np.abs(one - other).max() > 0.1
    assert np.abs(one[0] - one[1]).max() > 0.1


def test_spin_up_is_the_part_left_away():
    system = small(stride=4)
    whole = system.simulate(30.0, dt=1.0, members=2, seed=3, burn_in=0.0).values
    later = system.simulate(20.0, dt=1.0, members=2, seed=3, burn_in=10.0).values
    np.testing.assert_allclose(later, whole[:, 10:], atol=1e-8)


def test_pieces_in_which_a_record_is_computed_do_not_change_it(monkeypatch):
    units = []

    @contextmanager
    def counted(name, total):
        units.append([total])
        yield units[-1].append

    monkeypatch.setattr(kuramoto_sivashinsky.progress, "task", counted)
    system = small(stride=4)
    whole = system.simulate(23.0, dt=1.0, members=2, burn_in=9.0, step=0.25).values
    monkeypatch.setattr(kuramoto_sivashinsky, "_FRAMES_PER_CALL", 5)
    monkeypatch.setattr(kuramoto_sivashinsky, "_STEPS_PER_CALL", 9)
    pieces = system.simulate(23.0, dt=1.0, members=2, burn_in=9.0, step=0.25).values
    np.testing.assert_allclose(pieces, whole, atol=1e-8)
    assert [len(u) for u in units] == [3, 1 + 4 + 5]
    assert [(u[0], sum(u[1:])) for u in units] == [(36 + 92, 36 + 92)] * 2


def test_double_precision_stays_inside(states):
    before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    evolve(small(), states, 1.0)
    assert jax.config.jax_enable_x64 == before  # type: ignore[attr-defined]
    assert jnp.ones(1).dtype == (jnp.float64 if before else jnp.float32)


def test_a_step_that_is_too_long_is_reported(states):
    with pytest.raises(DivergenceError, match="smaller `step`"):
        small().simulate(2000.0, dt=10.0, members=3, initial=50 * states, step=10.0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("length", 0.0, "Argument `length` must be a positive number, but got 0.0."),
        ("length", -34.0, "Argument `length` must be a positive number, but got -34.0."),
        ("grid", 3, "Argument `grid` must be an integer of at least 4, but got 3."),
        ("stride", 5, r"Argument `stride` must be one of 1, 2, 4, .*, 512, but got 5\."),
        ("stride", 0, r"Argument `stride` must be one of 1, 2, 4, .*, 512, but got 0\."),
        ("gamma", "0.3", "Argument `gamma` must be a float or int, but got '0.3'."),
    ],
)
def test_systems_that_cannot_be_are_refused(name, value, message):
    with pytest.raises(ArgumentError, match=message):
        KuramotoSivashinsky(**{name: value})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dt": 0.0}, "Argument `dt` must be a positive number, but got 0.0."),
        ({"dt": -1.0}, "Argument `dt` must be a positive number, but got -1.0."),
        ({"duration": 0}, "Argument `duration` must be a positive number, but got 0."),
        ({"step": -0.1}, "Argument `step` must be a positive number, but got -0.1."),
        ({"members": 0}, "Argument `members` must be an integer of at least 1, but got 0."),
        ({"seed": -1}, "Argument `seed` must be an integer of at least 0, but got -1."),
        ({"burn_in": -1.0}, "Argument `burn_in` must be a number of at least 0, but got -1.0."),
        ({"initial": np.zeros((2, 12))}, r"Argument `initial` must have shape \(member, grid\), but got \(2, 12\)."),
        ({"members": 1}, "Argument `duration / dt` must be an integer of at least 11, but got 2."),
    ],
)
def test_records_that_cannot_be_are_refused(changed, message):
    with pytest.raises(ArgumentError, match=message):
        small(stride=4).simulate(**{"duration": 2.0, "dt": 1.0, "members": 2, **changed})


# --- the steady state -------------------------------------------------------------------------------------------------

MEMBERS, SIGMAS = 320, 4.0


def energies(u):
    """Mean square and the power of the modes 3, 4, 5 (unitary transform), (member, time, var) -> (member, time, 4)."""
    power = np.abs(np.fft.fft(u, axis=-1, norm="ortho")[..., 3:6]) ** 2
    return np.concatenate([(u**2).mean(axis=-1)[..., None], power], axis=-1)


def drift_in_sigmas(values):
    """First tenth of the frames less the rest, in standard errors over members, for each column."""
    cut = values.shape[1] // 10
    change = values[:, :cut].mean(axis=1) - values[:, cut:].mean(axis=1)
    return change.mean(axis=0) / (change.std(axis=0) / np.sqrt(len(change)))


def assert_ratio(numerator, denominator, want, digits):
    """Ratio of two means over members: within 4 standard errors, and the rounding of the published number."""
    ratio = numerator.mean() / denominator.mean()
    error = (numerator - ratio * denominator).std() / denominator.mean() / np.sqrt(len(numerator))
    assert abs(ratio - want) < SIGMAS * error + 0.5 * 10.0**-digits, (ratio, error, want)
    assert error < 0.03 * want  # the claim is sharp enough to mean something


@pytest.mark.slow
def test_steady_state_has_the_published_statistics_and_is_reached_by_default():
    system = KuramotoSivashinsky(grid=64, stride=2)
    u = np.asarray(system.simulate(1000.0, dt=1.0, members=MEMBERS, seed=7).values)
    u -= u.mean()
    parts = energies(u)
    square = parts[..., 0].mean(axis=1)
    assert_ratio(square / (2 * 1.42) + 0.5 * 1.42, np.ones(MEMBERS), 1.42, digits=2)  # std, to first order
    for column, want in enumerate((2.17, 9.03, 2.12), start=1):
        assert_ratio(parts[..., column].mean(axis=1), square, want, digits=2)
    for lag, want in ((1, 0.983), (5, 0.721), (10, 0.483)):
        assert_ratio((u[:, lag:] * u[:, :-lag]).mean(axis=(1, 2)), square, want, digits=3)

    assert np.abs(drift_in_sigmas(parts)).max() < SIGMAS
    half = parts.mean(axis=1).reshape(2, MEMBERS // 2, -1)  # seeds are alike: one half of the members as the other
    difference = (half[0].mean(axis=0) - half[1].mean(axis=0)) / np.sqrt(
        2 * half.var(axis=1).mean(axis=0) / (MEMBERS / 2)
    )
    assert np.abs(difference).max() < SIGMAS


@pytest.mark.slow
def test_stationarity_test_sees_a_missing_spin_up():
    system = KuramotoSivashinsky(grid=64, stride=2)
    parts = energies(system.simulate(1000.0, dt=5.0, members=MEMBERS, seed=7, burn_in=0.0).values)
    assert np.abs(drift_in_sigmas(parts)).max() > 2 * SIGMAS
