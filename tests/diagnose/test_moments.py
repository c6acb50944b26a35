import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.processes import autoregressive, ornstein_uhlenbeck

import effective_langevin as el
from effective_langevin.diagnose.moments import log_lags, measure_moments, resolved_times
from effective_langevin.statistics.resampling import critical, split


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=6), number=st.integers(1, 9))
def test_chunks_are_all_samples_in_order_and_of_equal_size(lengths, number):
    rows = np.arange(sum(lengths))[:, None]
    segments = np.split(rows, np.cumsum(lengths)[:-1])
    found = list(split(segments, number))
    assert len(found) == number
    np.testing.assert_array_equal(np.concatenate([p for pieces in found for p in pieces] or [rows]), rows)
    assert np.ptp([sum(len(p) for p in pieces) for pieces in found]) <= 1


def test_a_chunk_does_not_cross_the_border_of_two_records():
    segments = [np.zeros((5, 1)), np.ones((5, 1))]
    assert [[len(p) for p in pieces] for pieces in split(segments, 2)] == [[5], [5]]
    assert all(np.ptp(p) == 0 for pieces in split(segments, 3) for p in pieces)


def test_the_lags_hold_every_power_of_two_and_the_ends():
    lags = np.concatenate([log_lags(-1, 16), log_lags(16, 300)])
    assert lags[0] == 0
    assert lags[-1] == 300
    assert {1, 2, 4, 8, 16, 32, 64, 128, 256} <= set(lags.tolist())
    assert (np.diff(lags) > 0).all()


@pytest.mark.parametrize("tau", [0.7, 5.0, 40.0])
def test_integral_time_of_an_exponential_on_uneven_lags(tau):
    """Trapezoids on the sum over all lags: 1/2 coth(1 / 2 tau), up to the spacing of the lags squared over 12 tau^2."""
    lags = np.concatenate([log_lags(-1, 16), log_lags(16, 800)])
    times = resolved_times(np.exp(-lags / tau)[:, None], lags, 0.5)
    assert times[0] == pytest.approx(0.5 * 0.5 / np.tanh(0.5 / tau), rel=0.01)


def test_integral_time_stops_where_the_chord_crosses_zero():
    """1/2 (1 + 0.5) + 1/2 (0.5 + 0.1) to lag 3, then a triangle to 3 + 2 x 0.1 / 0.3."""
    times = resolved_times(np.array([[1.0], [0.5], [0.1], [-0.2], [0.9]]), np.array([0, 1, 3, 5, 7]), 2.0)
    assert times[0] == pytest.approx(2 * (0.75 + 0.6 + 0.5 * 0.1 * 2 / 3))


def test_white_noise_has_half_a_sample():
    found = measure_moments(el.TimeSeries(np.random.default_rng(0).normal(size=5000), 0.2))
    assert found.times[0] == pytest.approx(0.1, rel=0.1)
    assert found.effective_samples[0] == pytest.approx(5000, rel=0.1)


def test_the_error_of_the_integral_time_is_its_scatter():
    """Over independent records; the error itself is known to 1/sqrt(2 x 31) per record."""
    found = [measure_moments(ornstein_uhlenbeck(20_000, 10.0, seed=seed)) for seed in range(30)]
    times, errors = np.array([f.times[0] for f in found]), np.array([f.time_errors[0] for f in found])
    assert errors.mean() == pytest.approx(times.std(ddof=1), rel=0.4)
    assert times.mean() == pytest.approx(10.0, abs=4 * times.std() / np.sqrt(30) + 0.05 * 10)


def test_groups_are_fewer_where_the_memory_is_long():
    assert measure_moments(ornstein_uhlenbeck(20_000, 10.0)).groups == 32
    assert measure_moments(ornstein_uhlenbeck(20_000, 300.0)).groups == 16


def test_power_sums_are_those_of_all_samples():
    values = np.exp(autoregressive(3000, 5.0, members=2)[..., 0]).T
    found = measure_moments(el.TimeSeries(values, 1.0))
    x = (values - values.mean(axis=0)) / values.std(axis=0)
    share = found.counts / found.counts.sum()
    np.testing.assert_allclose(np.tensordot(share, found.cubes, 1), (x**2).T @ x / len(x), rtol=1e-10)
    np.testing.assert_allclose(share @ found.quartics, (x**4).mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(share @ found.means, 0, atol=1e-10)


def test_more_tests_and_fewer_groups_ask_for_larger_deviations():
    assert 3 < critical(32) < critical(32, 100) < critical(16, 100)
