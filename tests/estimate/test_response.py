"""The integrated response: with symmetries, and for series that are smooth at short times."""

import jax
import numpy as np
import pytest
from oracles.fields import OscillatorRing, exact_series, reversible_ring_process, ring_process
from scipy.integrate import cumulative_trapezoid
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.estimate.mobility import estimate_mobility
from effective_langevin.estimate.mobility.ballistic import infer_effective as effective_mobility
from effective_langevin.estimate.mobility.response import (
    smoothed_score,
    widening_lags,
)
from effective_langevin.estimate.mobility.responses import Moments
from effective_langevin.estimate.score import Score, ScoreFit, estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.statistics.integral_time import error_groups
from effective_langevin.statistics.lags import LaggedMoments
from effective_langevin.statistics.regime import slope_beneath_noise, slopes_from_moments
from effective_langevin.statistics.resampling import jackknife

KEY = jax.random.key(0)
NONE, RING, BOTH = NoSymmetry(), el.Translations(), el.TranslationsAndReflections()


def inferred(series, symmetry, strategy=None):
    score = estimate_score(series, el.Gaussian(), on(symmetry), key=KEY)
    return estimate_mobility(series, score, strategy or el.IntegratedResponse(), on(symmetry), key=KEY)


def on(symmetry):
    """The space of real variables with that symmetry; how many they are does not matter here."""
    return StateSpace((None, None), symmetry)


@pytest.fixture(scope="module")
def records():
    """Independent records of a ring with circulation, 4000 samples each."""
    return [exact_series(ring_process(8), 0.2, 8, 500, seed) for seed in range(12)]


@pytest.mark.slow
def test_phi_on_a_ring_is_right_in_every_mode_and_better_than_without_the_symmetry(records):
    """The mean over 12 records is within 4 standard errors, from their scatter, in each of the 5 complex modes.

    Eight points are averaged: the error falls by nearly sqrt(8) where the points are independent; half is asked for.
    """
    exact = ring_process(8).mobility
    modes = np.array([RING.blocks(inferred(series, RING).matrix)[:, 0, 0] for series in records])
    truth = RING.blocks(exact)[:, 0, 0]
    assert np.abs(truth.imag).max() > 0.5
    for part in (np.real, np.imag):
        scatter = part(modes).std(axis=0, ddof=1) / np.sqrt(len(modes))
        assert (np.abs(part(modes).mean(axis=0) - part(truth)) <= 4 * scatter + 1e-12).all()
        assert scatter.max() < 0.05
    with_it, without = (
        np.mean([np.linalg.norm(inferred(series, symmetry).matrix - exact) for series in records])
        for symmetry in (RING, NONE)
    )
    assert with_it < 0.5 * without


@pytest.mark.slow
def test_error_bars_with_a_symmetry_agree_with_the_scatter_of_independent_records(records):
    """z over 12 records x 8 entries; entries are correlated, its standard deviation is 1 to within 1 / sqrt(12)."""
    found = [inferred(series, RING) for series in records]
    z = [(m.matrix - ring_process(8).mobility)[:, 0] / m.standard_error[:, 0] for m in found]
    assert 1 - 0.5 < np.std(z) < 1 + 0.5


STRATEGIES = [
    el.IntegratedResponse(),
    el.QuadraticVariation(),
    el.CorrelationFit(),
    el.LogCorrelation(),
    el.FiniteVolume(cells=40),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
def test_every_strategy_returns_a_mobility_and_errors_with_the_symmetry(records, strategy):
    """Near the projection of what the strategy finds without it; exactly that for those that are linear in C(tau)."""
    score = estimate_score(records[0], el.Gaussian(), on(RING), key=KEY)
    plain, found = (estimate_mobility(records[0], score, strategy, on(symmetry), key=KEY) for symmetry in (NONE, RING))
    for matrix in (found.matrix, found.standard_error):
        np.testing.assert_allclose(RING.project(matrix), matrix, atol=1e-10)
    assert np.abs(RING.project(plain.matrix) - plain.matrix).max() > 0.01
    linear = not isinstance(strategy, el.IntegratedResponse | el.LogCorrelation)
    near = 1e-10 if linear else 0.15 * np.abs(plain.matrix).max()
    np.testing.assert_allclose(found.matrix, RING.project(plain.matrix), atol=near)
    # The circulation is kept, and is that of the process up to the bias of the coarser strategies.
    exact = ring_process(8).mobility
    assert np.sum((found.matrix - found.matrix.T) * (exact - exact.T)) > 0.5 * np.sum((exact - exact.T) ** 2)


@pytest.mark.slow
def test_reflections_leave_no_circulation_and_what_they_took_away_is_reported(records):
    circulating = inferred(records[0], BOTH)
    np.testing.assert_allclose(circulating.antisymmetric, 0, atol=1e-12)
    exact = ring_process(8).mobility
    ratio = np.linalg.norm(exact - exact.T) / np.linalg.norm(exact + exact.T)
    assert circulating.diagnostics["antisymmetry_before_projection"] == pytest.approx(ratio, rel=0.2)
    reversible = inferred(exact_series(reversible_ring_process(8), 0.2, 8, 500, 1), BOTH)
    assert reversible.diagnostics["antisymmetry_before_projection"] < 0.1 * ratio
    assert "antisymmetry_before_projection" not in inferred(records[0], RING).diagnostics


@pytest.mark.parametrize(("time", "groups"), [(0.5, 20), (0.01, 32), (30.0, 4)])
def test_blocks_for_error_bars_are_ten_integral_times_long(time, groups):
    """Of the slowest variable, in a record of 100 time units; at least 4 and at most 32 of them."""
    series = el.TimeSeries(np.zeros((1000, 2)), dt=0.1)
    assert error_groups(series.segments, series.dt, np.array([0.1 * time, time])) == groups


# Ballistic series: smooth at short times.

DT, LAGS = 0.1, 40
# Three modes on a ring of five points. Each swings: its response changes sign after 2.2, 1.0 and 0.5 time units.
SWINGING = OscillatorRing([1.0, 3.0, 9.0], 5, damping=0.8)


def exact_moments(process, lags=LAGS, groups=4):
    """What infinitely many samples would give: C(tau), and G(tau) = -C(tau) C(0)^-1 for the exact Gaussian score."""
    correlation = process.correlation(DT * np.arange(lags + 1))
    response = -correlation @ process.stiffness
    steps, pairs = np.arange(lags + 1), np.ones((groups, lags + 1))
    return Moments(
        *(LaggedMoments(steps, np.repeat(a[None], groups, axis=0), pairs) for a in (correlation, response)),
        DT,
        groups,
        True,
    )


def effective(process, mode, horizon):
    """Phi(T) = (C(0) - C(T)) / int_0^T C / C(0) of a mode."""
    fine = np.linspace(0, horizon, 2001)
    acf = process.autocorrelation(mode, fine)
    return (1 - acf[-1]) / cumulative_trapezoid(acf, fine)[-1] / process.modes[mode]


def first_zero(process, mode):
    fine = np.linspace(0, DT * LAGS, 4001)
    return fine[np.flatnonzero(process.autocorrelation(mode, fine) < 0)[0]]


def test_a_mode_that_swings_gets_its_mobility_where_its_response_changes_sign():
    """Exactly there, to the eighth of a lag in which the horizon is looked for."""
    moments = exact_moments(SWINGING)
    estimate, evidence = effective_mobility(moments, RING, np.zeros((5, 5)))
    phi, error = jackknife(estimate, moments.groups)
    zeros = [first_zero(SWINGING, mode) for mode in range(3)]
    assert np.ptp(zeros) > 1
    assert evidence["horizon"].rule == "finite"
    for found, zero in zip(evidence["horizon"].chosen, zeros):
        assert zero - 1e-3 <= found <= zero + DT / 8 + 1e-3
    exact = [effective(SWINGING, mode, horizon) for mode, horizon in enumerate(evidence["horizon"].chosen)]
    assert min(exact) > 0
    np.testing.assert_allclose(evidence["horizon"].phi_of_mode, exact, rtol=1e-3)
    np.testing.assert_allclose(RING.blocks(phi)[:, 0, 0], exact, rtol=1e-3)
    np.testing.assert_allclose(error, 0, atol=1e-12)
    assert len(evidence["horizon"].phi_by_mode) == 3
    np.testing.assert_allclose(
        evidence["horizon"].phi_by_mode[1], [effective(SWINGING, 1, DT * k) for k in range(1, LAGS + 1)], rtol=1e-3
    )


def test_phi_is_taken_at_the_first_maximum_where_the_rise_ends_before_that():
    """A fast damped oscillator and a slow one seen together: Phi(T) rises over the time of the fast one, then falls."""
    tau = DT * np.arange(LAGS + 1)
    fast, slow = OscillatorRing([9.0, 9.0], 3, damping=12.0), OscillatorRing([0.05, 0.05], 3, damping=8.0)

    def both(t):
        return 0.5 * (fast.autocorrelation(0, t) + slow.autocorrelation(0, t))

    curve = both(tau)[:, None, None]
    moments = Moments(
        *(
            LaggedMoments(np.arange(LAGS + 1), sign * curve[None].repeat(4, 0), np.ones((4, LAGS + 1)))
            for sign in (1, -1)
        ),
        DT,
        4,
        True,
    )
    estimate, evidence = effective_mobility(moments, NONE, np.zeros((1, 1)))
    phi = estimate(np.ones(moments.groups))
    fine = np.linspace(0, DT * LAGS, 4001)
    by_horizon = (1 - both(fine))[1:] / cumulative_trapezoid(both(fine), fine)
    end = by_horizon.argmax()
    assert 0.5 < fine[1 + end] < 3
    assert both(fine).min() > 0
    assert evidence["horizon"].chosen[0] == pytest.approx(fine[1 + end], abs=DT / 8 + 0.02)
    assert phi[0, 0] == pytest.approx(by_horizon[end], rel=2e-3)
    np.testing.assert_allclose(np.ravel(evidence["horizon"].phi), np.interp(tau[1:], fine[1:], by_horizon), rtol=2e-3)


@pytest.mark.parametrize("symmetry", [RING, NONE], ids=["mode by mode", "all at once"])
def test_directions_narrower_than_the_noise_level_get_the_typical_mobility(symmetry):
    """The stiffest mode, the last, has variance 1 / 9; it is unresolved below 0.2, and Phi there is the median over
    the resolved directions. On a ring of five points, modes 1 and 2 are each two directions of the five."""
    moments = exact_moments(SWINGING)
    everything, _ = effective_mobility(moments, symmetry, np.zeros((5, 5)))
    resolved, evidence = effective_mobility(moments, symmetry, np.sqrt(0.2) * np.eye(5))
    modes, before = (RING.blocks(of(np.ones(moments.groups)))[:, 0, 0].real for of in (resolved, everything))
    assert evidence["horizon"].unresolved_directions == (1 if symmetry == RING else 2)
    if symmetry == RING:
        np.testing.assert_allclose(modes[:2], before[:2], rtol=1e-10)
        assert modes[2] == pytest.approx(np.median(before[:2]))
    else:
        assert modes[2] == pytest.approx(np.median(modes[[0, 1, 1]]))
    assert abs(modes[2] - before[2]) > 0.03


def test_noise_that_goes_along_with_the_spread_resolves_narrow_modes_and_gives_the_typical_mobility_in_its_units():
    """Variances 1, 1/3, 1/9 with noise of 0.5, 0.1 and 0.4 in the modes: the last is covered, and gets the median of
    Phi / noise of the others, times its own noise."""
    moments, noise = exact_moments(SWINGING), np.array([0.5, 0.1, 0.4])
    spread = RING.joined(np.sqrt(noise)[:, None, None], 5)
    before, resolved = (
        effective_mobility(moments, RING, s)[0](np.ones(moments.groups)) for s in (np.zeros((5, 5)), spread)
    )
    exact, found = (RING.blocks(phi)[:, 0, 0].real for phi in (before, resolved))
    np.testing.assert_allclose(found[:2], exact[:2], rtol=1e-10)
    assert found[2] == pytest.approx(noise[2] * np.median(exact[:2] / noise[:2]))


@pytest.fixture(scope="module")
def swinging_series():
    return SWINGING.series(DT, members=20, steps=1500, seed=3)


def test_the_mobility_of_a_series_that_swings_is_found_from_its_samples(swinging_series):
    """Modes within 4 of their errors (those of the entries add up, five of them) at the horizon that was chosen, which
    itself is where the exact response changes sign, to 10 %."""
    mobility = inferred(swinging_series, BOTH, el.IntegratedResponse(lags=LAGS))
    found = mobility.diagnostics
    assert found["horizon_rule"] == "finite"
    assert found["quadratic_variation_slope"] > 0.8
    np.testing.assert_allclose(found["chosen_horizon"], [first_zero(SWINGING, m) for m in range(3)], rtol=0.1)
    exact = [effective(SWINGING, m, found["chosen_horizon"][m]) for m in range(3)]
    error = np.linalg.norm(mobility.standard_error[0])
    np.testing.assert_allclose(found["phi_of_mode"], exact, atol=4 * error)
    assert error < 0.03


def test_a_series_that_is_smooth_at_short_times_gets_its_effective_mobility_over_a_finite_horizon():
    """Position of an overdamped oscillator x'' = -5 x' - x + noise, sampled faster than its velocity decays.

    Its quadratic variation grows as h^2, so -dC/dt(0+) = 0 and the limit T -> 0 means nothing. Phi(T) rises towards its
    limit 1 / 5, and the lags reach far enough for it to come within 5 % of it.
    """
    process = OscillatorRing([1.0], 1, damping=5.0)
    model = el.fit(process.series(0.05, members=40, steps=20000, seed=9), score=el.Gaussian(), seed=0)
    found = model.mobility.diagnostics
    assert found["horizon_rule"] == "finite"
    assert found["quadratic_variation_slope"] > 0.5
    assert found["horizon"][-1] == pytest.approx(3 * found["integral_times"][0], rel=0.1)
    assert 1.6 < found["chosen_horizon"][0] <= found["horizon"][-1]
    exact = effective(process, 0, found["chosen_horizon"][0])
    assert abs(model.mobility.matrix[0, 0] - exact) < 4 * model.mobility.standard_error[0, 0]
    assert model.mobility.standard_error[0, 0] < 0.03 * exact
    assert exact == pytest.approx(0.2, rel=0.05)


def test_a_mobility_that_still_rises_at_the_longest_horizon_is_taken_with_a_warning():
    """The same oscillator, seen over 0.4 time units of a rise that takes several; seen over all of it, no warning."""
    series = OscillatorRing([1.0], 1, damping=5.0).series(0.05, members=10, steps=5000, seed=9)
    with pytest.warns(el.EstimateWarning, match=r"still rises at the longest horizon, T = 0\.4, .* 100 % of the var"):
        short = inferred(series, NONE, el.IntegratedResponse(lags=8))
    assert short.diagnostics["rising_share"] == 1
    whole = inferred(series, NONE)
    assert whole.diagnostics["rising_share"] == 0
    assert short.matrix[0, 0] < 0.7 * whole.matrix[0, 0]


def test_a_mobility_that_is_stable_over_no_horizon_is_taken_with_a_warning():
    """Sixty samples of a process that turns, twelve relaxation times in all; of two thousand there is no warning."""
    process = el.systems.OrnsteinUhlenbeck.rotating(3)
    with pytest.warns(el.EstimateWarning, match="not stable over any range of horizons. .* uncertain by 4. %"):
        inferred(process.simulate(12.0, dt=0.2, seed=3), NONE)
    found = inferred(process.simulate(400.0, dt=0.2, seed=3), NONE).diagnostics
    assert 0.3 < found["held_out_error"] / found["held_out_expected"] < 3


def test_by_default_the_lags_reach_as_far_as_the_response_keeps_its_sign():
    """x'' = -x' - x: the response changes sign at 2.42, and Phi is 0.77; after one integral time, 1.25, it is 0.45."""
    process = OscillatorRing([1.0], 1, damping=1.0)
    mobility = inferred(process.series(0.05, members=20, steps=5000, seed=1), NONE)
    assert mobility.diagnostics["chosen_horizon"][0] == pytest.approx(first_zero(process, 0), rel=0.1)


@pytest.mark.filterwarnings("ignore:Phi.T. still rises:effective_langevin.EstimateWarning")  # at the edge of that test
def test_where_the_noise_level_exceeds_the_spread_the_response_is_that_of_the_blurred_score():
    """Modes of variance 1, 0.1 and 0.002 with noise level 0.2: s = -(C + 0.04)^-1 y, so that G(0) = -C / (C + 0.04)
    and Phi(T) is (C + 0.04) / C times that of the clean score: 4 % and 40 % more. The third is not resolved."""
    process, level = OscillatorRing([1.0, 10.0, 500.0], 5, damping=3.0), 0.2
    blurred = np.linalg.inv(process.stiffness) + level**2 * np.eye(5)
    score = ScoreFit(Score.linear(np.linalg.inv(blurred)), level, -np.eye(5), 0.0, blurred)
    assert not score.resolved
    series = process.series(0.05, members=20, steps=2000, seed=4)
    mobility = estimate_mobility(series, score, el.IntegratedResponse(lags=LAGS), on(RING), key=KEY)
    found = mobility.diagnostics
    assert found["unresolved_directions"] == 1
    variances = 1 / process.modes
    exact = [
        effective(process, m, found["chosen_horizon"][m]) * (variances[m] + level**2) / variances[m] for m in range(2)
    ]
    error = np.linalg.norm(mobility.standard_error[0])
    np.testing.assert_allclose(found["phi_of_mode"][:2], exact, atol=4 * error)
    assert error < 0.1 * exact[1]
    assert found["phi_of_mode"][2] == pytest.approx(np.median(found["phi_of_mode"][:2]))


def test_the_handedness_of_a_learned_score_is_averaged_away_where_a_reflection_is_imposed():
    """s = -(P + A) y with an antisymmetric, circulant A: its mirror image has -A."""
    here = np.arange(5)
    hand = 0.3 * (np.eye(5)[(here + 1) % 5] - np.eye(5)[(here - 1) % 5])
    score = ScoreFit(Score.linear(2 * np.eye(5) + hand), 0.0, -np.eye(5), 0.0, np.eye(5))
    x = np.random.default_rng(0).normal(size=(50, 5))
    np.testing.assert_allclose(smoothed_score(score, x, BOTH, KEY), -2 * x, atol=1e-5)
    np.testing.assert_allclose(smoothed_score(score, x, RING, KEY), -2 * x - x @ hand.T, atol=1e-5)


def test_the_slope_of_the_quadratic_variation_tells_diffusion_from_smooth_motion(records, swinging_series):
    """C(0) - C(h) grows as h and as h^2: exact slopes 0 - O(h) and 1 - O(h)."""
    diffusive = inferred(records[0], RING).diagnostics
    assert diffusive["horizon_rule"] in ("mean", "limit")
    assert -0.3 < diffusive["quadratic_variation_slope"] < 0.1
    assert inferred(swinging_series, RING).diagnostics["horizon_rule"] == "finite"
    assert slopes_from_moments(np.array([0.0, -1.0, -2.0])[:, None, None]) == pytest.approx(0)
    assert slopes_from_moments(np.array([0.0, -1.0, -4.0])[:, None, None]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("reach", "samples", "last"), [(300, 5000, 300), (300, 400, 100), (10, 5000, 10), (3, 5000, 6)]
)
def test_lags_of_a_smooth_series_widen_up_to_a_quarter_of_the_longest_record(reach, samples, last):
    series = el.TimeSeries([np.zeros((samples, 1)), np.zeros((samples // 2, 1))], dt=0.1)
    lags = widening_lags(reach, series)
    assert lags[-1] == last
    np.testing.assert_array_equal(lags[:17], np.arange(min(17, last + 1)))
    # Then they grow by a tenth each, up to rounding.
    assert (np.diff(lags[16:]) <= 0.1 * lags[16:-1] + 1).all()
    assert (np.diff(lags) >= 1).all()


def swinging(noise, seed=0, length=40_000, dt=0.05):
    """A damped oscillator driven by noise, smooth at its sampling interval, with measurement noise on top."""
    rng = np.random.default_rng(seed)
    propagator = expm(dt * np.array([[0.0, 1.0], [-1.0, -2.0]]))
    covariance = np.diag([1.0, 1.0])
    kicks = rng.normal(size=(length, 2)) @ np.linalg.cholesky(covariance - propagator @ covariance @ propagator.T).T
    state, x = np.zeros(2), np.empty(length)
    for t in range(length):
        state = propagator @ state + kicks[t]
        x[t] = state[0]
    return el.TimeSeries((x + noise * rng.normal(size=length))[:, None], dt)


def test_smooth_motion_is_recognised_beneath_measurement_noise():
    """The mobility is that found without the noise, within 4 standard errors; its limit at short times is zero."""
    clean, noisy = (el.fit(swinging(noise), score=el.Gaussian()).mobility for noise in (0.0, 0.15))
    assert {m.diagnostics["horizon_rule"] for m in (clean, noisy)} == {"finite"}
    assert noisy.diagnostics["measurement_noise"] == pytest.approx([0.15], rel=0.1)
    error = np.hypot(clean.standard_error, noisy.standard_error)
    assert np.abs(noisy.matrix - clean.matrix) < 4 * error
    assert clean.matrix > 8 * error


def test_a_diffusion_with_measurement_noise_is_not_taken_for_smooth():
    rng, x = np.random.default_rng(1), np.zeros(40_000)
    for t in range(1, len(x)):
        x[t] = 0.95 * x[t - 1] + rng.normal()
    series = el.TimeSeries((x + 2 * rng.normal(size=len(x)))[:, None], 0.05)
    assert slope_beneath_noise(series.segments) < 0.3
    assert el.fit(series, score=el.Gaussian()).mobility.diagnostics["horizon_rule"] != "finite"
