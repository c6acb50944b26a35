"""Time stamps in: the sampling interval as it was meant, gaps where stamps are missing, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from oracles.sample_files import as_dataset, assert_same, awkward

import effective_langevin as el


@pytest.mark.parametrize("start", [0.0, 12.3, 98765.4321])
@pytest.mark.parametrize("dt", [0.05, 0.1, 0.07, 7.0, 0.0078125])
def test_the_sampling_interval_comes_out_as_it_was_meant(dt, start):
    """0.05 and not 0.05000000000000002."""
    assert el.read(awkward(1000), time=start + dt * np.arange(1000)).dt == dt


def test_a_sampling_interval_that_is_no_short_decimal_is_not_rounded():
    assert el.read(awkward(1000), time=np.arange(1000) / 3).dt == pytest.approx(1 / 3, rel=1e-14)


def test_single_precision_stamps_far_from_zero_are_uniform_within_their_resolution():
    read = el.read(awkward(5000), time=(20000 + 0.1 * np.arange(5000)).astype(np.float32))
    assert read.dt == pytest.approx(0.1, rel=1e-5)
    assert read.dropped == 0


@pytest.mark.parametrize(
    ("step", "dt", "unit"),
    [
        ("1D", 1, "day"),
        ("6h", 6, "hour"),
        ("90s", 1.5, "min"),
        ("10ms", 10, "ms"),
        ("7D", 7, "day"),
        ("250us", 250, "us"),
    ],
)
def test_dates_are_counted_in_the_largest_unit_that_a_step_fills(step, dt, unit):
    frame = pd.DataFrame(awkward(40), index=pd.date_range("1990-03-01", periods=40, freq=step))
    read = el.read(frame)
    assert (read.dt, read.time_unit) == (dt, unit)


def test_the_unit_of_dates_noted_in_the_file_is_kept(tmp_path):
    data = as_dataset(awkward(40), np.datetime64("1990-01-01") + np.timedelta64(6, "h") * np.arange(40)).drop_attrs()
    data.to_netcdf(
        tmp_path / "run.nc", engine="h5netcdf", encoding={"time": {"units": "days since 1950-01-01", "dtype": "f8"}}
    )
    read = el.read(tmp_path / "run.nc")
    assert (read.dt, read.time_unit) == (0.25, "day")
    assert read.starts == (7305.0,)  # days from 1970-01-01, whatever the file counts from
    assert el.read(tmp_path / "run.nc", time_unit="hour").dt == 6.0


def test_time_zones_are_moved_to_utc():
    index = pd.date_range("2000-01-01T02:00", periods=30, freq="h", tz="Europe/Paris")
    assert el.read(pd.DataFrame({"x": np.arange(30.0)}, index=index)).starts == (24 * 365 * 30 + 24 * 7 + 1,)


def test_durations_are_times():
    index = pd.timedelta_range("3h", periods=30, freq="30min")
    read = el.read(pd.DataFrame({"x": np.arange(30.0)}, index=index))
    assert (read.dt, read.time_unit, read.starts) == (30.0, "min", (180.0,))


def test_a_range_index_is_no_time_and_a_float_index_is():
    frame = pd.DataFrame({"x": np.arange(30.0)})
    with pytest.raises(el.ArgumentError, match="the DataFrame has no time coordinate"):
        el.read(frame)
    assert el.read(frame.set_axis(0.5 * np.arange(30), axis=0)).dt == 0.5
    assert el.read(frame["x"], dt=2.0).names == ("x",)


@pytest.mark.parametrize("place", ["start", "middle", "end"])
def test_months_count_as_uniform_wherever_they_are_stamped(place):
    starts = pd.date_range("1979-01-01", periods=60, freq="MS")
    index = {"start": starts, "middle": starts + pd.Timedelta(days=14), "end": starts + pd.offsets.MonthEnd(1)}[place]
    read = el.read(pd.DataFrame(awkward(60), index=index))
    assert (read.dt, read.time_unit, read.starts, read.dropped) == (1.0, "month", (108.0,), 0)


def test_a_missing_month_is_a_gap_of_one_month():
    index = pd.date_range("1979-01-01", periods=60, freq="MS").delete([13, 30, 31])
    read = el.read(pd.DataFrame(awkward(57), index=index))
    assert [len(s) for s in read.segments] == [13, 16, 28]
    assert read.dropped == 3
    assert read.starts == (108.0, 122.0, 140.0)


def test_years_are_counted_in_years_and_quarters_in_months():
    yearly = el.read(pd.DataFrame(awkward(50), index=pd.date_range("1950-07-01", periods=50, freq="12MS")))
    assert (yearly.dt, yearly.time_unit, yearly.starts) == (1.0, "year", (-19.5,))
    quarterly = el.read(pd.DataFrame(awkward(50), index=pd.date_range("1950-01-31", periods=50, freq="3ME")))
    assert (quarterly.dt, quarterly.time_unit) == (3.0, "month")


def test_thirty_days_are_not_a_month():
    read = el.read(pd.DataFrame(awkward(50), index=pd.date_range("1950-01-01", periods=50, freq="30D")))
    assert (read.dt, read.time_unit, read.dropped) == (30.0, "day", 0)


def test_months_are_irregular_if_they_are_asked_for_in_days():
    index = pd.date_range("1979-01-01", periods=60, freq="MS")
    with pytest.raises(el.DataError, match=r"not uniform: the typical step is 31 day.* it is 28 day"):
        el.read(pd.DataFrame(awkward(60), index=index), time_unit="day")
    assert el.read(pd.DataFrame(awkward(60), index=index), time_unit="day", resample=30.0).dt == 30.0


@pytest.mark.parametrize(("calendar", "days"), [("noleap", 365), ("360_day", 360)])
def test_model_calendars_are_counted_in_their_own_days(calendar, days):
    daily = xr.date_range("2000-01-01", periods=800, freq="D", calendar=calendar, use_cftime=True)
    read = el.read(xr.DataArray(np.sin(np.arange(800.0)), dims="time", coords={"time": daily}, name="T"))
    assert (read.dt, read.time_unit, read.dropped, read.starts) == (1.0, "day", 0, (30.0 * days,))
    monthly = xr.date_range("2000-01-01", periods=80, freq="MS", calendar=calendar, use_cftime=True)
    read = el.read(xr.DataArray(np.sin(np.arange(80.0)), dims="time", coords={"time": monthly}, name="T"))
    assert (read.dt, read.time_unit, read.dropped, read.starts) == (1.0, "month", 0, (360.0,))


def test_a_cf_unit_that_cannot_be_decoded_leaves_plain_numbers(tmp_path):
    data = as_dataset(awkward(40), np.arange(40.0))
    data.time.attrs["units"] = "months since 1979-01-15"
    data.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    read = el.read(tmp_path / "run.nc")
    assert (read.dt, read.time_unit) == (1.0, "month")


def test_a_variable_in_days_is_a_number_and_not_a_duration(tmp_path):
    data = as_dataset(awkward(40), np.arange(40.0))
    data["T"].attrs["units"] = "days"
    data.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    np.testing.assert_array_equal(el.read(tmp_path / "run.nc").stacked()[:, 0], data["T"].values)


def test_skipped_stamps_become_gaps_and_are_counted():
    kept = np.delete(np.arange(50), [10, 11, 30])
    read = el.read(np.arange(50.0)[kept, None], time=100 + 0.1 * kept)
    assert [s[[0, -1], 0].tolist() for s in read.segments] == [[0, 9], [12, 29], [31, 49]]
    assert read.dropped == 3
    np.testing.assert_allclose(read.starts, [100, 101.2, 103.1], rtol=1e-14)


def test_jitter_of_a_hundredth_of_a_step_is_tolerated_and_a_wide_gap_is_measured_with_it():
    """The clock of a camera: 1 % noise, and a gap of 5000 frames must still come out at 5000."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(400), np.arange(5400, 6000)])
    read = el.read(np.zeros((1000, 1)), time=(rows + rng.uniform(-0.01, 0.01, 1000)) / 30)
    assert read.dropped == 5000
    assert read.dt == pytest.approx(1 / 30, rel=1e-5)


def test_irregular_stamps_are_refused_with_the_worst_step_and_an_offer():
    time = 0.1 * np.arange(100)
    time[43:] += 0.037
    with pytest.raises(
        el.DataError,
        match=r"`time` of the array is not uniform: the typical step is 0\.1, but between rows 42 and 43 it is "
        r"0\.137,.*off a uniform grid by up to 0\.0\d+.*resample=0\.1",
    ):
        el.read(awkward(100), time=time)


def test_resampling_interpolates_linearly():
    rng = np.random.default_rng(1)
    time = np.cumsum(rng.uniform(0.5, 1.5, 300))
    line = np.column_stack([2 * time - 5, -time])
    read = el.read(line, time=time, resample=0.25)
    assert read.dt == 0.25
    np.testing.assert_allclose(read.stacked(), np.column_stack([2 * read.times[0] - 5, -read.times[0]]), atol=1e-10)
    typical = el.read(line, time=time, resample=True).dt
    assert typical == pytest.approx(np.median(np.diff(time)), rel=0.01)


def test_resampling_leaves_wide_gaps_open():
    time = np.concatenate([np.arange(20.0), 20.4 + np.arange(20.0), 60.4 + np.arange(20.0)])
    read = el.read(time[:, None], time=time, resample=True)
    assert len(read.segments) == 2
    # Between the stamps 39.4 and 60.4 no row is made up: those at 40, ..., 60 are missing.
    assert read.dropped == 21
    assert read.starts == (0.0, 61.0)


def test_resampling_a_uniform_series_changes_nothing():
    values = awkward(50)
    values[20] = np.nan
    assert_same(el.read(values, time=0.5 * np.arange(50), resample=True), el.TimeSeries(values, 0.5))


def test_resampling_needs_stamps():
    with pytest.raises(el.ArgumentError, match="Argument `resample` has no meaning here"):
        el.read(awkward(50), dt=0.1, resample=0.2)
    with pytest.raises(el.ArgumentError, match="Argument `resample` must be a positive number"):
        el.read(awkward(50), time=np.arange(50.0), resample=-1.0)


def test_a_dt_that_contradicts_the_coordinate_is_refused():
    data = as_dataset(awkward(20), 0.5 * np.arange(20))
    assert el.read(data, dt=0.5).dt == 0.5
    with pytest.raises(
        el.ArgumentError, match=r"Argument `dt` is 0\.1, but the time coordinate is spaced by 0\.5 s\..*time=False"
    ):
        el.read(data, dt=0.1)
    assert el.read(data, dt=0.1, time=False).dt == 0.1


def test_a_file_that_contradicts_itself_is_refused(tmp_path):
    np.savez(tmp_path / "run.npz", x=awkward(20), time=0.5 * np.arange(20), dt=0.1)
    with pytest.raises(el.DataError, match=r"run\.npz notes dt = 0\.1, but its time stamps are 0\.5 apart"):
        el.read(tmp_path / "run.npz")


def test_a_dt_noted_in_another_unit_is_understood(tmp_path):
    days = np.datetime64("2000-01-01") + np.arange(20)
    np.savez(tmp_path / "run.npz", x=awkward(20), time=days, dt=24.0, dt_unit="hours")
    read = el.read(tmp_path / "run.npz")
    assert (read.dt, read.time_unit) == (24.0, "hour")


BAD_STAMPS = {
    "repeats": (np.array([0.0, 1.0, 1.0, 2.0]), "repeats itself at row 2"),
    "goes back": (np.array([0.0, 1.0, 0.5, 2.0]), "goes back at row 2"),
    "NaN": (np.array([0.0, np.nan, 2.0, 3.0]), "is missing \\(NaN or NaT\\) in row 1"),
    "no date": (
        np.array(["2000-01-01", "NaT", "2000-01-03", "2000-01-04"], "datetime64[D]"),
        "is missing \\(NaN or NaT\\) in row 1",
    ),
    "text": (np.array(["2000-01-01", "later", "2000-01-03", "2000-01-04"]), "holds 'later' in row 1, neither"),
    "too few": (np.arange(3.0), "has 3 time stamps for 4 rows"),
}


@pytest.mark.parametrize("case", BAD_STAMPS)
def test_bad_stamps_are_refused_with_their_row(case):
    stamps, message = BAD_STAMPS[case]
    with pytest.raises(el.DataError, match=message):
        el.read(awkward(4), time=stamps)


def test_a_gap_too_wide_to_fill_is_refused_before_memory_is():
    time = np.concatenate([np.arange(10.0), 1e12 + np.arange(10.0)])
    with pytest.raises(el.DataError, match=r"misses 999,999,999,\d+ time stamps"):
        el.read(awkward(20), time=time)
