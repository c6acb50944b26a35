from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from effective_langevin.estimate.mobility.horizon_selection import (
    candidate_weights,
    held_out_error,
    quadrature_error,
    select_combination,
)
from effective_langevin.estimate.mobility.quadrature import (
    Exponentials,
    Frame,
    integrated,
    integrated_along,
    spanning_frame,
)
from effective_langevin.estimate.mobility.responses import Moments
from effective_langevin.estimate.symmetry import NoSymmetry, Translations
from effective_langevin.statistics.resampling import drawn_weights, jackknife, left_out
from effective_langevin.systems import OrnsteinUhlenbeck

# One Phi out of many horizons.

AT_ZERO, COUNT, GROUPS = np.array([[1.0, 0.4], [-0.6, 1.5]]), 12, 16
TIMES = np.arange(1, COUNT + 1) / COUNT


def found(drift, curvature, quadrature, scatter=0.01):
    """Phi(T) = Phi_0 (1 + drift t + curvature t^2), with an error common to all horizons and a smaller one of each."""
    rng, t = np.random.default_rng(0), TIMES[:, None, None]
    exact = AT_ZERO * (1 + drift * t + curvature * t**2)
    groups = exact + scatter * (rng.normal(size=(GROUPS, 1, 2, 2)) + 0.1 * rng.normal(size=(GROUPS, COUNT, 2, 2)))

    def curve(weights):
        return np.tensordot(weights / weights.sum(), groups, 1) + quadrature / t

    coarse = curve(np.ones(GROUPS))[1::2] + 15 * quadrature / t[1::2]
    best = select_combination(curve(np.ones(GROUPS)), left_out(curve, GROUPS), coarse, candidate_weights(TIMES))
    phi, error = jackknife(lambda weights: np.tensordot(best.weights, curve(weights), 1), GROUPS)
    return best, phi, error


@pytest.mark.parametrize(
    ("drift", "curvature"), [(0.5, 0.0), (-0.5, 0.2), (0.0, 0.0)], ids=["a line", "a parabola", "constant"]
)
def test_phi_is_extrapolated_to_short_horizons_where_it_drifts(drift, curvature):
    best, phi, error = found(drift, curvature, quadrature=0.0)
    assert (np.abs(phi - AT_ZERO) < 4 * error).all()
    assert error.max() < 0.02
    assert best.error < 0.03
    assert np.sum(best.weights) == pytest.approx(1)


def test_short_horizons_count_little_where_the_integral_is_coarse():
    """An error of 0.02 / t: from 0.24 at the first horizon to 0.02 at the last; there is no trend to be afraid of."""
    best, phi, _ = found(0.0, 0.0, quadrature=0.02)
    assert np.abs(phi - AT_ZERO).max() < 0.5 * 0.02 * COUNT
    assert np.sqrt(best.quadrature) > 0.3 * np.linalg.norm(phi - AT_ZERO)
    assert np.count_nonzero(best.weights) > 4


def test_the_held_out_error_is_the_distance_between_a_fifth_and_the_rest():
    """Ten groups of one horizon each with Phi = k for the k-th fifth: the rest of fifth k has mean (10 - k) / 4."""
    values = np.repeat(np.arange(5.0), 2)

    def curve(weights):
        return np.full((2, 1, 1), weights @ values / weights.sum())

    expected = np.sqrt(np.mean([((10 - k) / 4 - k) ** 2 for k in range(5)]))
    first, mean = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    np.testing.assert_allclose(held_out_error(curve, 10, [first, mean], mean), expected)


def test_held_out_parts_see_a_trend_that_a_candidate_ignores():
    def curve(weights):
        return np.array([1.0, 3.0])[:, None, None]

    first, last, limit = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.5, -0.5])
    np.testing.assert_allclose(held_out_error(curve, 7, [first, last, limit], limit), [1, 3, 0])


def test_the_error_on_held_out_parts_is_the_one_to_be_expected():
    """Forty sets of sixteen independent groups, with a drift that the chosen combination must follow."""
    ratios = []
    for seed in range(40):
        groups = AT_ZERO * (1 + 0.3 * TIMES[:, None, None]) + 0.05 * np.random.default_rng(seed).normal(
            size=(GROUPS, COUNT, 2, 2)
        )

        def curve(weights, groups=groups):
            return np.tensordot(weights / weights.sum(), groups, 1)

        best = select_combination(
            curve(np.ones(GROUPS)), left_out(curve, GROUPS), curve(np.ones(GROUPS))[1::2], candidate_weights(TIMES)
        )
        unbiased = candidate_weights(TIMES)[-1][1]
        ratios.append(held_out_error(curve, GROUPS, [best.weights], unbiased)[0] / best.expected_held_out)
    assert np.sqrt(np.mean(np.square(ratios))) == pytest.approx(1, abs=0.12)


def test_every_candidate_is_exact_for_a_polynomial_of_its_degree():
    for degree, weights in candidate_weights(TIMES):
        for power in range(degree + 1):
            assert weights @ TIMES**power == pytest.approx(float(power == 0), abs=1e-9)
    assert candidate_weights(TIMES)[-1][0] == 2


def test_the_error_of_quadrature_is_a_sixteenth_of_the_change_to_half_the_resolution():
    fine = np.arange(1.0, 8.0)[:, None, None]
    coarse = fine[1::2] - 16.0
    np.testing.assert_allclose(quadrature_error(fine, coarse)[:, 0, 0], [2, 1, 1, 1, 1, 1, 1])


# Integrals between samples.

A = np.array([[1.0, -2.0], [2.5, 1.5]])
C = np.array([[1.0, 0.2], [0.2, 0.8]])


def linear_process(interval, lags):
    """F(tau) of (x, s) for dx = -A x dt + noise with s = -C^-1 x: four directions, two of them independent."""
    both = np.concatenate([np.eye(2), -np.linalg.inv(C)])
    return np.array([both @ expm(-A * interval * k) @ C @ both.T for k in range(lags + 1)])


@pytest.mark.parametrize("interval", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("first", [0, 1])
def test_the_response_of_a_linear_process_is_integrated_exactly_at_any_interval(interval, first):
    joint, tau = linear_process(interval, 6), interval * np.arange(first, 7)
    frame = spanning_frame(joint[0])
    assert frame.whitening.shape == (4, 2)
    exponentials = Exponentials.through(joint[first], joint[first + 1], interval, frame)
    response = joint[first:, :2, 2:]
    integral = integrated_along(response, tau, exponentials, np.eye(2))
    exact = np.array([np.linalg.solve(A, expm(-A * t) - expm(-A * tau[0])) for t in tau])
    np.testing.assert_allclose(integral, exact, atol=1e-10)
    if interval == 1.0:
        assert np.abs(integrated(response, tau) - exact).max() > 0.02


def test_one_of_a_pair_of_rates_stands_for_both_where_the_sum_is_real():
    joint, tau = linear_process(0.5, 6), 0.5 * np.arange(7)
    exponentials = Exponentials.through(joint[0], joint[1], 0.5, spanning_frame(joint[0]))
    missed, scaling = exponentials.missed_by_spline(tau), np.array([[1.0, 0.5], [-2.0, 3.0]])
    assert (exponentials.rates.imag != 0).any()
    real, whole = (exponentials.summed(missed, scaling, real) for real in (True, False))
    np.testing.assert_allclose(real, whole, atol=1e-15)


def test_a_slow_response_is_integrated_too():
    """A rate of zero: the integral of a constant is its value times the time."""
    exponentials = Exponentials(np.zeros(1), np.ones((1, 1)), np.ones((1, 1)), np.array(True))
    integral = integrated_along(np.ones((2, 1, 1)), np.array([0.0, 2.0]), exponentials, np.eye(1))
    np.testing.assert_allclose(integral[:, 0, 0], [0, 2])


@pytest.mark.parametrize("factor", [-0.2, 1e-3, 1.2])
def test_where_the_sampling_is_too_coarse_for_a_logarithm_or_chance_grows_the_spline_is_used_alone(factor):
    now, later = np.eye(2), np.diag([0.5, factor])
    exponentials = Exponentials.through(now, later, 1.0, Frame(np.eye(2), np.eye(2)))
    assert not exponentials.usable
    tau = np.arange(5.0)
    response = np.exp(-tau)[:, None, None]
    np.testing.assert_array_equal(integrated_along(response, tau, exponentials, np.eye(1)), integrated(response, tau))


@pytest.mark.parametrize("symmetry", [NoSymmetry(), Translations()])
@pytest.mark.parametrize("dt", [0.1, 2.0])  # at 2.0 some draws have no logarithm, others have one
@pytest.mark.parametrize("first", [0, 1])
def test_many_draws_at_once_are_those_one_by_one(symmetry, dt, first):
    series = OrnsteinUhlenbeck.rotating(2).simulate(400 * dt, dt=dt, seed=1)
    scores = [-x @ np.linalg.inv(np.cov(x.T)) + 0.1 * np.sin(3 * x) for x in series.segments]
    moments = Moments.of(series, scores, np.arange(9), 4, True).with_rates(series, scores)
    moments = moments.with_current(series, [0.1 * x**2 for x in series.segments])
    weights = drawn_weights(4, 30)
    together = moments.phi_by_horizon(weights, symmetry, first)
    alone = replace(moments, known={})
    one_by_one = [alone.phi_by_horizon(w, symmetry, first) for w in weights]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-9, atol=1e-12)
