import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effective_langevin as el


def counted(length, width=2, start=0):
    """Samples that can be told apart: row i is (start + i) in every column."""
    return np.tile(np.arange(start, start + length, dtype=float)[:, None], width)


def test_time_by_variable_is_one_segment():
    series = el.TimeSeries(counted(10), dt=0.5)
    assert [s.shape for s in series.segments] == [(10, 2)]
    assert (series.dimension, series.n_samples, series.duration, series.dropped) == (2, 10, 5.0, 0)
    np.testing.assert_array_equal(series.values, counted(10))


def test_one_axis_is_one_variable():
    series = el.TimeSeries(np.arange(7.0), dt=1.0)
    assert series.values.shape == (7, 1)


def test_member_axis_gives_one_segment_per_member():
    values = np.random.default_rng(0).normal(size=(3, 5, 2))
    series = el.TimeSeries(values, dt=1.0)
    assert [s.shape for s in series.segments] == [(5, 2)] * 3
    np.testing.assert_array_equal(series.values, values)
    np.testing.assert_array_equal(series.stacked(), values.reshape(15, 2))


def test_records_of_unequal_length_stay_apart():
    series = el.TimeSeries([counted(4), counted(6, start=4)], dt=1.0)
    assert [len(s) for s in series.segments] == [4, 6]
    np.testing.assert_array_equal(series.stacked(), counted(10))
    with pytest.raises(el.DataError, match=r"segments of unequal length .* use `\.segments`"):
        _ = series.values


def test_integers_and_booleans_become_float64():
    assert el.TimeSeries(np.arange(6).reshape(3, 2), dt=1).stacked().dtype == np.float64
    assert el.TimeSeries(np.array([True, False, True]), dt=1).stacked().dtype == np.float64


def test_rows_with_a_nan_are_dropped_counted_and_split_the_record():
    values = counted(10)
    values[0, 0] = values[3, 1] = values[4] = values[9, 0] = np.nan
    series = el.TimeSeries(values, dt=1.0)
    assert [s[:, 0].tolist() for s in series.segments] == [[1, 2], [5, 6, 7, 8]]
    assert series.dropped == 4
    assert "4 rows with NaN dropped" in repr(series)


def test_a_nan_in_one_member_splits_that_member_only():
    values = np.zeros((2, 5, 1))
    values[1, 2] = np.nan
    series = el.TimeSeries(values, dt=1.0)
    assert [len(s) for s in series.segments] == [5, 2, 2]
    assert series.dropped == 1


def test_thinning_keeps_every_nth_sample_of_each_segment_and_stretches_dt():
    series = el.TimeSeries([counted(7), counted(4, start=7)], dt=0.1).thin(3)
    assert [s[:, 0].tolist() for s in series.segments] == [[0, 3, 6], [7, 10]]
    assert series.dt == pytest.approx(0.3)
    with pytest.raises(el.ArgumentError, match="Argument `stride` must be an integer of at least 1, but got 0"):
        series.thin(0)


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=5).filter(lambda n: sum(n) >= 2),
    held_out=st.floats(0.05, 0.9),
    blocks=st.integers(1, 12),
)
def test_split_keeps_every_sample_once_and_respects_segment_borders(lengths, held_out, blocks):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    series = el.TimeSeries([counted(n, 1, s) for n, s in zip(lengths, starts)], dt=1.0)
    train, test = series.split(held_out, blocks)
    seen = np.concatenate([s[:, 0] for part in (train, test) for s in part.segments])
    np.testing.assert_array_equal(np.sort(seen), np.arange(sum(lengths)))
    for piece in [*train.segments, *test.segments]:
        samples = piece[:, 0].astype(int)
        assert (np.diff(samples) == 1).all()
        assert len(np.unique(np.searchsorted(starts, samples, side="right"))) == 1
    # Each block is cut at a sample: its share is right to one sample.
    assert abs(test.n_samples - held_out * series.n_samples) <= blocks + 1


def test_split_spreads_the_held_out_part_over_the_record():
    train, test = el.TimeSeries(counted(1000, 1), dt=1.0).split(0.2, 10)
    assert [s[0, 0] for s in test.segments] == [100 * i + 80 for i in range(10)]
    assert {len(s) for s in test.segments} == {20}
    assert {len(s) for s in train.segments} == {80}


def test_map_and_split_keep_names_units_and_dt():
    series = el.TimeSeries(counted(20), dt=0.5, names=["T", "h"], units=["K", "m"], time_unit="month")
    for other in (series.map(lambda s: 2 * s), *series.split(), series.with_segments(series.segments)):
        assert (other.dt, other.names, other.units, other.time_unit) == (0.5, ("T", "h"), ("K", "m"), "month")
    np.testing.assert_array_equal(series.map(lambda s: 2 * s).values, 2 * counted(20))


def test_names_and_units_have_defaults():
    series = el.TimeSeries(counted(5), dt=1.0)
    assert series.names == ("x1", "x2")
    assert series.units == ("", "")
    assert "5 samples of x1, x2 in 1 segment," in repr(series)


def test_a_series_is_frozen():
    with pytest.raises(AttributeError):
        el.TimeSeries(counted(5), dt=1.0).dt = 2.0


BAD_DATA = {
    "NaN everywhere": (np.full((5, 2), np.nan), "All 5 rows of the series hold a NaN"),
    "one column NaN": (np.column_stack([np.arange(5.0), np.full(5, np.nan)]), "Drop the variables that are missing"),
    "one sample": (np.ones((1, 2)), "has 1 usable samples; a time series needs at least 2"),
    "one sample left": (np.array([[1.0], [np.nan]]), "has 1 usable samples"),
    "complex": (np.ones((5, 2), complex), "The series is complex. Give real and imaginary parts as two variables"),
    "text": (np.full((5, 2), "a"), "holds str.* values where numbers are needed"),
    "objects": (np.array([[1, None], [2, 3]], dtype=object), "holds object values where numbers are needed"),
    "dates": (np.arange(6).reshape(3, 2).astype("datetime64[s]"), r"holds datetime64\[s\] values"),
    "transposed": (np.ones((2, 500)), r"more variables \(500\) than samples \(2\).*pass `values.T`"),
    "infinite": (np.array([[1.0, 2.0], [3.0, np.inf], [np.inf, 0.0]]), r"holds 2 infinite values.* index \(1, 1\)"),
    "four axes": (np.ones((2, 3, 4, 5)), r"has 4 axes; it must be \(time, var\)"),
    "no axis": (np.array(1.0), "has 0 axes"),
    "no variables": (np.ones((5, 0)), "has no variables"),
    "differing widths": ([np.ones((5, 2)), np.ones((5, 3))], r"differing numbers of variables, \[2, 3\]"),
    "infinite in a record": ([np.ones((5, 2)), np.full((5, 2), np.inf)], "Record 1 of the series holds 10 infinite"),
    "ragged": ([[1.0, 2.0], [3.0]], "not a rectangular array of numbers"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused_with_its_reason(case):
    values, message = BAD_DATA[case]
    with pytest.raises(el.DataError, match=message):
        el.TimeSeries(values, dt=1.0)


@pytest.mark.parametrize("dt", [0, -1.0, np.nan, np.inf, "0.1", True, [0.1]])
def test_dt_must_be_a_positive_number(dt):
    with pytest.raises(el.ArgumentError, match=r"Argument `dt` must be a positive number, but got .*sampling interval"):
        el.TimeSeries(counted(5), dt=dt)


def test_a_missing_dt_is_asked_for():
    with pytest.raises(
        el.ArgumentError, match=r"Argument `dt` is missing: it must be a positive number.*sampling interval"
    ):
        el.TimeSeries(counted(5))


@pytest.mark.parametrize("argument", ["names", "units"])
@pytest.mark.parametrize("texts", [["a"], ["a", "b", "c"], "ab"])
def test_there_is_one_name_and_one_unit_per_variable(argument, texts):
    with pytest.raises(el.ArgumentError, match=f"Argument `{argument}` must be a list of 2 texts, one per variable"):
        el.TimeSeries(counted(5), dt=1.0, **{argument: texts})


def test_an_empty_series_is_not_called_nan():
    with pytest.raises(el.DataError, match="0 usable samples"):
        el.TimeSeries(np.ones((0, 2)), dt=1.0)


def test_a_gap_advances_the_time_of_what_follows():
    values = counted(10)
    values[0, 0] = values[3, 1] = values[4] = np.nan
    series = el.TimeSeries(values, dt=0.5, start=100.0)
    assert series.starts == (100.5, 102.5)
    assert series.records == (0, 0)
    # Row i was sampled at 100 + i / 2, wherever the gaps are.
    for times, segment in zip(series.times, series.segments):
        np.testing.assert_array_equal(times, 100 + 0.5 * segment[:, 0])


def test_every_record_has_its_own_start():
    values = [counted(4), np.vstack([counted(2), np.full((1, 2), np.nan), counted(3)])]
    series = el.TimeSeries(values, dt=2.0, start=[10.0, -1.0])
    assert series.starts == (10.0, -1.0, 5.0)
    assert series.records == (0, 1, 1)


@pytest.mark.parametrize("start", [[1.0], [1.0, 2.0, 3.0], "now", np.nan, [0.0, np.inf], None])
def test_start_is_a_number_or_one_per_record(start):
    with pytest.raises(el.ArgumentError, match="Argument `start` must be a number, or 2 numbers, one per record"):
        el.TimeSeries(np.zeros((2, 5, 1)), dt=1.0, start=start)


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4).filter(lambda n: sum(n) >= 2),
    blocks=st.integers(1, 6),
    stride=st.integers(1, 4),
)
def test_splitting_and_thinning_keep_the_time_of_every_sample(lengths, blocks, stride):
    """Every sample is its own time, so that values and times must agree whatever was cut."""
    starts = [1000.0 * i for i in range(len(lengths))]
    series = el.TimeSeries([(s + 0.5 * np.arange(n))[:, None] for n, s in zip(lengths, starts)], dt=0.5, start=starts)
    for part in (*series.split(0.3, blocks), series.thin(stride), *series.thin(stride).split(0.3, blocks)):
        for times, segment, record in zip(part.times, part.segments, part.records):
            np.testing.assert_array_equal(times, segment[:, 0])
            assert record == times[0] // 1000


def test_starting_at_moves_every_record_and_keeps_the_gaps():
    values = [counted(4), np.vstack([counted(2), np.full((1, 2), np.nan), counted(3)])]
    moved = el.TimeSeries(values, dt=2.0, start=[10.0, -1.0]).starting_at(100.0)
    assert moved.starts == (100.0, 100.0, 106.0)


def test_segments_are_replaced_one_for_one_unless_their_places_are_given():
    series = el.TimeSeries(counted(6), dt=1.0)
    with pytest.raises(el.ArgumentError, match="Argument `segments` must be a list of 1, as before, but got 2"):
        series.with_segments([counted(2), counted(3)])
    assert series.with_segments([counted(2), counted(3)], places=[(0, 0.0), (0, 3.0)]).starts == (0.0, 3.0)


def test_named_variables_may_outnumber_the_samples():
    """A field of 50 points at 10 times: the names say which axis is which."""
    assert el.TimeSeries(np.ones((10, 50)), dt=1.0, names=[f"T{i}" for i in range(50)]).dimension == 50


def test_many_variables_are_not_all_printed():
    assert len(repr(el.TimeSeries(np.ones((900, 800)), dt=1.0))) < 200


# Angles ---------------------------------------------------------------------------------------------------------------


def test_periods_are_declared_in_a_list_or_by_name_and_travel_with_the_series():
    values = np.random.default_rng(0).normal(size=(40, 2))
    series = el.TimeSeries(values, 1.0, names=["r", "phi"], periods=[None, 360])
    assert series.periods == (None, 360.0)
    assert el.TimeSeries(values, 1.0, names=["r", "phi"], periods={"phi": 360}).periods == (None, 360.0)
    assert el.TimeSeries(values, 1.0).periods == (None, None)
    for part in (series.map(lambda x: 2 * x), series.thin(2), *series.split(), series.starting_at(3.0)):
        assert part.periods == series.periods
    assert series.map(lambda x: x[:, :1]).periods == (None,)


@pytest.mark.parametrize("periods", [[360], [None, -1.0], [None, "wide"], 360, "phi"])
def test_bad_periods_are_refused(periods):
    with pytest.raises(el.ArgumentError, match="Argument `periods` must be"):
        el.TimeSeries(np.zeros((9, 2)), 1.0, periods=periods)


def test_a_period_of_an_unknown_variable_is_refused():
    with pytest.raises(el.ArgumentError, match="Argument `periods` must be among the names in the series"):
        el.TimeSeries(np.zeros((9, 2)), 1.0, periods={"phi": 360})


def test_series_are_compared_by_identity():
    """Arrays have no truth value; two series are equal only if they are one."""
    series = el.TimeSeries(np.zeros((9, 2)), 1.0)
    assert series == series
    assert series != el.TimeSeries(np.zeros((9, 2)), 1.0)
    assert len({series, series}) == 1
