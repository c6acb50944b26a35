import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effective_langevin as el
from effective_langevin.estimate.mobility import base
from effective_langevin.estimate.mobility.responses import Moments
from effective_langevin.statistics import lags as lags_module
from effective_langevin.statistics.integral_time import integral_time
from effective_langevin.statistics.lags import SideBySide, autocovariances, lagged_moments, longest_lag, own_moments

# Integers as floats: every sum below is exact, so results are compared bit for bit, whatever the order of summation.
LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=5)
LAGS = st.lists(st.integers(0, 15), min_size=1, max_size=5, unique=True)


def integer_segments(lengths, width, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(-9, 10, (n, width)).astype(float) for n in lengths]


def naive(future, past, lag):
    total, pairs = np.zeros((future[0].shape[1], past[0].shape[1])), 0
    for a, b in zip(future, past):
        for t in range(len(b)):
            if t + lag < len(a):
                total += np.outer(a[t + lag], b[t])
                pairs += 1
    return total, pairs


@given(lengths=LENGTHS, lags=LAGS, groups=st.integers(1, 6), seed=st.integers(0, 2**31))
def test_moments_equal_the_naive_double_loop(lengths, lags, groups, seed):
    lags = [lag for lag in lags if lag < max(lengths)] or [0]
    future, past = integer_segments(lengths, 2, seed), integer_segments(lengths, 3, seed + 1)
    moments = lagged_moments(future, past, lags, groups)
    assert moments.sums.shape == (groups, len(lags), 2, 3)
    for k, lag in enumerate(lags):
        total, pairs = naive(future, past, lag)
        np.testing.assert_array_equal(moments.sums[:, k].sum(axis=0), total)
        assert moments.pairs[:, k].sum() == pairs
        np.testing.assert_allclose(moments.mean()[k], total / pairs, rtol=1e-14)


@given(lengths=LENGTHS, lag=st.integers(1, 15), enough=st.sampled_from([0.0, 0.1, 0.25, 0.9]))
def test_the_longest_lag_is_the_last_with_enough_pairs_and_a_longer_one_is_refused(lengths, lag, enough):
    segments = [np.zeros((n, 1)) for n in lengths]
    pairs = np.array([sum(max(n - k, 0) for n in lengths) for k in range(max(lengths))])
    assert longest_lag(segments, enough) == np.flatnonzero(pairs >= enough * sum(lengths))[-1]
    if lag >= max(lengths):
        with pytest.raises(el.DataError, match="too short"):
            lagged_moments(segments, segments, [0, lag])


def test_a_lag_without_pairs_among_the_groups_that_count_has_no_mean():
    segments = [np.ones((2, 1)), np.ones((8, 1))]
    moments = lagged_moments(segments, segments, [0, 3], 5)
    assert np.isnan(moments.mean(np.eye(5)[0])[1]).all()


@given(lengths=LENGTHS, lags=LAGS)
def test_the_number_of_pairs_is_exact(lengths, lags):
    lags = [lag for lag in lags if lag < max(lengths)] or [0]
    ones = [np.ones((n, 1)) for n in lengths]
    expected = [sum(max(n - lag, 0) for n in lengths) for lag in lags]
    moments = lagged_moments(ones, ones, lags, 3)
    assert moments.pairs.sum(axis=0).tolist() == expected
    assert moments.sums.sum(axis=0).ravel().tolist() == expected


@given(lengths=LENGTHS, groups=st.integers(1, 8))
def test_groups_hold_equally_many_origins(lengths, groups):
    ones = [np.ones((n, 1)) for n in lengths]
    origins = lagged_moments(ones, ones, [0], groups).pairs[:, 0]
    assert origins.sum() == sum(lengths)
    assert np.ptp(origins) <= 1


def test_a_group_is_a_stretch_of_consecutive_origins():
    samples = [np.arange(6.0)[:, None], np.arange(6.0, 12.0)[:, None]]
    origins = [np.ones((6, 1))] * 2
    sums = lagged_moments(origins, samples, [0, 2], 3).sums[:, :, 0, 0]
    # Origins 0-3, 4-7, 8-11; at lag 2 the last two origins of each record, 4, 5 and 10, 11, have no partner.
    np.testing.assert_array_equal(sums, [[6, 6], [22, 13], [38, 17]])


def test_pairs_never_cross_a_border():
    """Records of height 1 and 1000: a pair across the border would contribute 1000."""
    segments = [np.full((5, 1), 1.0), np.full((5, 1), 1000.0)]
    for lag in range(5):
        pairs = 5 - lag
        assert lagged_moments(segments, segments, [lag]).sums[0, 0, 0, 0] == pairs * (1 + 1e6)


def test_pairs_never_cross_a_gap():
    values = np.repeat([1.0, np.nan, 1000.0], [5, 1, 5])[:, None]
    segments = el.TimeSeries(values, dt=1.0).segments
    moments = lagged_moments(segments, segments, np.arange(5))
    assert moments.pairs[0].tolist() == [10, 8, 6, 4, 2]
    np.testing.assert_array_equal(moments.sums[0, :, 0, 0], np.array([5, 4, 3, 2, 1]) * (1 + 1e6))


@pytest.mark.parametrize("numbers", [1, 1000, 3000])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_block_size_and_number_of_groups_change_nothing(monkeypatch, numbers, groups):
    """Blocks of 64, 111 and 333 origins, over records of which several are longer."""
    segments = integer_segments([130, 1, 400, 50, 64], 2, 0)
    whole = lagged_moments(segments, segments, [0, 1, 6, 20])
    total, _ = naive(segments, segments, 20)
    np.testing.assert_array_equal(whole.sums[0, 3], total)
    monkeypatch.setattr(lags_module, "_ONE_THREAD", numbers)
    parts = lagged_moments(segments, segments, [0, 1, 6, 20], groups)
    np.testing.assert_array_equal(parts.sums.sum(axis=0), whole.sums[0])
    np.testing.assert_array_equal(parts.pairs.sum(axis=0), whole.pairs[0])


def test_the_future_comes_first():
    """x(t + 1) y(t) is 1 and x(t) y(t + 1) is 0 for a pulse in y one step before a pulse in x."""
    x, y = np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [0.0], [0.0]])
    both = [np.hstack([x, y])]
    np.testing.assert_array_equal(lagged_moments(both, both, [1]).sums[0, 0], [[0, 1], [0, 0]])


def test_sums_are_double_precision_even_of_single_precision_data():
    tiny = [np.full((1 << 16, 1), 1.0 + 2.0**-20, np.float32)]
    mean = lagged_moments(tiny, tiny, [0]).mean()[0, 0, 0]
    assert mean == pytest.approx(float(tiny[0][0, 0]) ** 2, rel=1e-12)


def test_weights_count_groups():
    segments = integer_segments([30], 1, 0)
    moments = lagged_moments(segments, segments, [0, 2], 3)
    first_and_last = lagged_moments([segments[0][:10], segments[0][20:]], [segments[0][:10], segments[0][20:]], [0])
    np.testing.assert_allclose(moments.mean(np.array([1.0, 0.0, 1.0]))[0], first_and_last.mean()[0], rtol=1e-14)


@given(lengths=LENGTHS, reach=st.integers(0, 15), seed=st.integers(0, 2**31))
def test_autocovariances_are_the_diagonal_of_the_lagged_moments(lengths, reach, seed):
    """The FFT rounds: sums of 60 products below 81 are right to 1e-9."""
    segments, reach = integer_segments(lengths, 3, seed), min(reach, max(lengths) - 1)
    direct = lagged_moments(segments, segments, np.arange(reach + 1)).mean()
    found = autocovariances(segments, reach)
    assert found.shape == (reach + 1, 3)
    np.testing.assert_allclose(found, np.diagonal(direct, axis1=1, axis2=2), atol=1e-9)


def test_autocovariances_never_cross_a_gap():
    values = np.repeat([1.0, np.nan, 1000.0], [5, 1, 5])[:, None]
    found = autocovariances(el.TimeSeries(values, dt=1.0).segments, 7)[:, 0]
    np.testing.assert_allclose(found[:5], (1 + 1e6) / 2, rtol=1e-9)
    assert np.isnan(found[5:]).all()


def test_integral_time_of_an_exponential_is_its_decay_time():
    acf = np.exp(-0.05 * np.arange(400) / 0.7)
    # Trapezoid rule: relative error (dt / tau)^2 / 12 = 4e-4.
    assert integral_time(acf, 0.05 * np.arange(len(acf))) == pytest.approx(0.7, rel=1e-3)


def test_integral_time_stops_at_the_first_zero():
    assert integral_time(np.array([1.0, 0.5, -0.1, 0.9, 0.9]), np.arange(5.0)) == 1.0


@pytest.mark.parametrize("groups", [1, 3])
def test_an_accelerator_sums_the_same_products(groups):
    segments = integer_segments([7, 1, 12, 30], 3, 0)
    expected = lagged_moments(segments, segments, [0, 2, 9], groups)
    for past in (segments, list(segments)):
        sums = lags_module._sums_on_device(segments, past, np.array([0, 2, 9]), groups)
        assert sums.dtype == np.float64
        np.testing.assert_array_equal(sums[:, :, :-1, :-1], expected.sums)
        np.testing.assert_array_equal(sums[:, :, -1, -1], expected.pairs)


def test_one_program_of_an_accelerator_serves_other_lags(monkeypatch):
    """The shapes of all arrays are the same, so that nothing is compiled again."""
    segments, shapes = integer_segments([40, 30], 3, 0), set()

    def note(*arguments):
        shapes.add(tuple(np.shape(a) for a in arguments[:-1]) + arguments[-1:])
        return np.zeros((len(arguments[4]), 4, 4))

    monkeypatch.setattr(lags_module, "_group_sums", note)
    for lags in ([0], [0, 1, 2, 9], range(16)):
        lags_module._sums_on_device(segments, segments, np.array(lags), 2)
    assert len(shapes) == 1


@pytest.mark.parametrize("block", [4, 7, 64])
def test_the_size_of_the_blocks_changes_no_sum(monkeypatch, block):
    segments = integer_segments([7, 1, 12, 90], 2, 1)
    whole = lagged_moments(segments, segments, [0, 2, 5], 3)
    spectral = autocovariances(segments, 5)
    monkeypatch.setattr(lags_module, "_BLOCK", block)
    monkeypatch.setattr(lags_module, "_FFT_BLOCK", block)
    np.testing.assert_array_equal(lagged_moments(segments, segments, [0, 2, 5], 3).sums, whole.sums)
    np.testing.assert_allclose(autocovariances(segments, 5), spectral, rtol=0, atol=1e-12)


def test_rows_of_a_layout_are_those_of_segments_with_gaps_between_them():
    segments = integer_segments([3, 1, 5], 2, 2)
    gap = np.zeros((4, 3))
    whole = np.concatenate([p for s in segments for p in (np.column_stack([s, np.ones(len(s))]), gap)] + [gap])
    layout = lags_module._Layout(segments, 4)
    assert layout.length == len(whole) - 4
    for first in range(len(whole)):
        for stop in range(first, len(whole)):
            np.testing.assert_array_equal(layout.rows(first, stop), whole[first:stop])


def test_arrays_side_by_side_have_the_moments_of_the_joined_one():
    parts = integer_segments([7, 1, 12], 2, 3), integer_segments([7, 1, 12], 3, 4)
    joined = [np.concatenate(pair, axis=1) for pair in zip(*parts)]
    beside = [SideBySide(*pair) for pair in zip(*parts)]
    found, expected = (lagged_moments(both, both, [0, 2], 2) for both in (beside, joined))
    np.testing.assert_array_equal(found.sums, expected.sums)
    np.testing.assert_array_equal(found.pairs, expected.pairs)


def test_each_of_fewer_weights_counts_for_consecutive_groups():
    x = [np.random.default_rng(0).normal(size=(240, 2))]
    fine, coarse = (lagged_moments(x, x, [0, 3], groups) for groups in (12, 4))
    weights = np.array([1.0, 0.0, 2.0, 1.0])
    np.testing.assert_allclose(fine.mean(weights), coarse.mean(weights), atol=1e-14)


def test_own_moments_are_the_diagonal_of_all():
    segments = [np.random.default_rng(k).normal(size=(n, 3)) for k, n in enumerate((5000, 40, 700))]
    lags = np.array([0, 1, 17])
    every, (own, pairs) = lagged_moments(segments, segments, lags, 4), own_moments(segments, lags, 4)
    np.testing.assert_allclose(own, np.diagonal(every.sums, axis1=2, axis2=3), atol=1e-10)
    np.testing.assert_array_equal(pairs, every.pairs)


def test_correlations_of_a_series_are_summed_once_per_lag(monkeypatch):
    series, asked = el.TimeSeries(np.random.default_rng(0).normal(size=(500, 2)), dt=0.1), []

    def counted(future, past, lags, groups):
        asked.append(list(lags))
        return lagged_moments(future, past, lags, groups)

    monkeypatch.setattr(base, "lagged_moments", counted)
    base.correlations_of(series, [0, 2], 16)
    found = base.correlations_of(series, range(4), 16)
    assert asked == [[0, 2], [1, 3]]
    expected = lagged_moments(series.segments, series.segments, range(4), 16)
    np.testing.assert_allclose(found.mean(), expected.mean(), atol=1e-14)


def test_rates_of_a_long_series_take_no_copy_of_it():
    x = np.random.default_rng(0).normal(size=(200_000, 4))
    series, lags = el.TimeSeries(x, dt=0.1), np.arange(4)
    scores = [-x]
    moments = Moments.of(series, scores, lags, 8, True)
    tracemalloc.start()
    moments.with_rates(series, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * x.nbytes
