"""Files in, labelled arrays out: the same series from every format, honest time, one clear message for a bad file."""

import sys

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import effective_langevin as el

NAMES, UNITS = ["T", "h"], ["K", "m"]
DT = 0.05


def awkward(length=200, width=2, seed=0):
    """Numbers whose last bits matter, of very different size."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(length, width)) * 10.0 ** rng.integers(-9, 9, (length, width))


def same(a, b):
    """Bit for bit the same series, description included."""
    assert len(a.segments) == len(b.segments)
    for one, other in zip(a.segments, b.segments):
        np.testing.assert_array_equal(one, other, strict=True)
    for field in ("dt", "names", "units", "time_unit", "dropped", "starts", "records"):
        assert getattr(a, field) == getattr(b, field), field


def write_csv(path, values, time, header=True, time_header="time [s]"):
    rows = [",".join([repr(float(t)), *("" if np.isnan(v) else repr(float(v)) for v in row)])
            for t, row in zip(time, values)]  # fmt: skip
    top = [",".join([time_header, *(f"{n} [{u}]" for n, u in zip(NAMES, UNITS))])] if header else []
    path.write_text("\n".join(top + rows) + "\n")


def as_dataset(values, time):
    data = {n: ("time", column, {"units": u}) for n, u, column in zip(NAMES, UNITS, values.T)}
    return xr.Dataset(data, {"time": ("time", time, {"units": "s"})})


def as_frame(values, time):
    frame = pd.DataFrame(values, columns=NAMES)
    frame.insert(0, "time", time)
    frame.attrs["units"] = dict(zip(["time", *NAMES], ["s", *UNITS]))
    return frame


def write_npz(path, values, time):
    np.savez(path, x=values, time=time, dt=DT, dt_unit="s", variables=NAMES, units=UNITS)


def write_h5(path, values, time):
    with h5py.File(path, "w") as file:
        for name, unit, column in zip(NAMES, UNITS, values.T):
            file[name] = column
            file[name].attrs["units"] = unit
        file["time"] = time
        file["time"].attrs["units"] = "s"


WRITERS = {
    "run.npz": write_npz,
    "run.csv": write_csv,
    "run.h5": write_h5,
    "run.nc": lambda path, values, time: as_dataset(values, time).to_netcdf(path, engine="h5netcdf"),
    "run.zarr": lambda path, values, time: as_dataset(values, time).to_zarr(path, consolidated=False),
    "run.parquet": lambda path, values, time: as_frame(values, time).to_parquet(path),
}


@pytest.fixture
def series():
    values = awkward()
    values[17, 1] = values[90:93, 0] = np.nan
    return values, 3.0 + DT * np.arange(len(values))


# The same series from everywhere ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_series_bit_for_bit(name, series, tmp_path):
    values, time = series
    WRITERS[name](tmp_path / name, values, time)
    expected = el.TimeSeries(values, DT, names=NAMES, units=UNITS, time_unit="s", start=3.0)
    same(el.read(tmp_path / name), expected)


def test_labelled_data_in_memory_give_the_same_series_as_files(series):
    values, time = series
    expected = el.TimeSeries(values, DT, names=NAMES, units=UNITS, time_unit="s", start=3.0)
    same(el.read(as_dataset(values, time)), expected)
    same(el.read(as_frame(values, time)), expected)
    arrays = {"T": values[:, 0], "h": values[:, 1], "time": time}
    same(el.read(arrays, units=UNITS, time_unit="s"), expected)
    same(el.read(values, time=time, names=NAMES, units=UNITS, time_unit="s"), expected)


@pytest.mark.parametrize("name", [n for n in WRITERS if n != "run.csv"])
def test_variables_are_picked_in_the_order_asked_for(name, series, tmp_path):
    WRITERS[name](tmp_path / name, *series)
    picked = el.read(tmp_path / name, variables=["h", "T"])
    assert (picked.names, picked.units) == (("h", "T"), ("m", "K"))
    np.testing.assert_array_equal(picked.stacked(), el.read(tmp_path / name).stacked()[:, ::-1])
    assert el.read(tmp_path / name, variables="h").dimension == 1
    with pytest.raises(el.ArgumentError, match=r"Argument `variables` must be among .*got 'wind'. There are: .*T.*h"):
        el.read(tmp_path / name, variables=["T", "wind"])


@pytest.mark.parametrize("name", ["run.zarr", "run.h5"])
def test_formats_without_order_are_read_in_alphabetical_order(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "NAMES", ["q", "b", "z", "a"])
    monkeypatch.setattr(sys.modules[__name__], "UNITS", [""] * 4)
    WRITERS[name](tmp_path / name, awkward(20, 4), np.arange(20.0))
    assert el.read(tmp_path / name).names == ("a", "b", "q", "z")


def test_a_bare_array_file_needs_dt_or_stamps(tmp_path):
    values = awkward(50, 3)
    np.save(tmp_path / "run.npy", values)
    same(el.read(tmp_path / "run.npy", dt=0.1), el.TimeSeries(values, 0.1))
    same(el.read(tmp_path / "run.npy", time=0.25 * np.arange(50)), el.TimeSeries(values, 0.25))
    with pytest.raises(el.ArgumentError, match=r"Argument `dt` is missing.*run.npy has no time coordinate"):
        el.read(tmp_path / "run.npy")


def test_names_units_and_the_unit_of_time_can_be_given():
    read = el.read(awkward(20), dt=1.0, names=["a", "b"], units=["V", "A"], time_unit="ms")
    assert (read.names, read.units, read.time_unit) == (("a", "b"), ("V", "A"), "ms")


def test_time_is_converted_to_the_unit_asked_for():
    data = as_dataset(awkward(48), 3600.0 * np.arange(48))
    read = el.read(data, time_unit="day")
    assert read.dt == pytest.approx(1 / 24, rel=1e-12)
    assert read.time_unit == "day"


# Records --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", ["member", "ensemble", "realization", "number"])
def test_a_usual_member_dimension_gives_one_record_per_member(dimension):
    values = np.random.default_rng(0).normal(size=(3, 40))
    array = xr.DataArray(values, dims=(dimension, "time"), coords={"time": np.arange(40.0)}, name="T")
    read = el.read(array.transpose("time", dimension))
    assert read.records == (0, 1, 2)
    np.testing.assert_array_equal(read.values[..., 0], values)


def test_a_member_dimension_of_another_name_is_given():
    values = np.random.default_rng(0).normal(size=(40, 3))
    array = xr.DataArray(values, dims=("time", "run"), coords={"time": np.arange(40.0)}, name="T")
    assert el.read(array).dimension == 3
    np.testing.assert_array_equal(el.read(array, member="run").values[..., 0], values.T)
    with pytest.raises(el.ArgumentError, match=r"Argument `member` must be among .*got 'ens'. There are: run, time"):
        el.read(array, member="ens")


def test_a_member_column_gives_one_record_per_value():
    time = np.tile(np.arange(10.0), 2)
    frame = pd.DataFrame({"time": time, "member": np.repeat(["b", "a"], 10), "x": np.arange(20.0)})
    read = el.read(frame)
    assert [s[:, 0].tolist() for s in read.segments] == [list(range(10)), list(range(10, 20))]
    other = el.read(frame.rename(columns={"member": "fish"}), member="fish")
    np.testing.assert_array_equal(other.values, read.values)
    with pytest.raises(el.DataError, match=r"goes back at row 10\..*several records are mixed.*`member`"):
        el.read(frame.rename(columns={"member": "fish"}), variables=["x"])


def test_interleaved_members_come_apart():
    frame = pd.DataFrame({"time": np.repeat(np.arange(10.0), 2), "member": [0, 1] * 10, "x": np.arange(20.0)})
    assert el.read(frame).values[1, :, 0].tolist() == list(range(1, 20, 2))


@pytest.mark.parametrize("pattern", [True, False])
def test_several_files_are_several_records(pattern, tmp_path):
    parts = [awkward(30, seed=1), awkward(20, seed=2)]
    for i, part in enumerate(parts):
        write_csv(tmp_path / f"run_{i}.csv", part, DT * np.arange(len(part)))
    source = str(tmp_path / "run_*.csv") if pattern else [tmp_path / "run_0.csv", str(tmp_path / "run_1.csv")]
    same(el.read(source), el.TimeSeries(parts, DT, names=NAMES, units=UNITS, time_unit="s"))


def test_files_that_continue_one_another_can_be_joined(tmp_path):
    values = awkward(90)
    days = np.datetime64("2001-12-20") + np.arange(90)
    for name, rows in {"b_2001": slice(0, 12), "a_2002": slice(12, 60), "a_2003": slice(63, 90)}.items():
        as_dataset(values[rows], days[rows]).drop_attrs().to_netcdf(tmp_path / f"{name}.nc", engine="h5netcdf")
    apart = el.read(str(tmp_path / "*.nc"))
    assert [len(s) for s in apart.segments] == [48, 27, 12]
    joined = el.read(str(tmp_path / "*.nc"), join=True)
    assert [len(s) for s in joined.segments] == [60, 27]
    assert joined.dropped == 3
    np.testing.assert_array_equal(joined.stacked(), np.delete(values, [60, 61, 62], axis=0))


def test_records_must_share_variables_units_and_dt():
    one, other = as_dataset(awkward(20), np.arange(20.0)), as_dataset(awkward(20), np.arange(20.0))
    with pytest.raises(el.DataError, match=r"holds wind, h, .* holds T, h: records of one series"):
        el.read([one, other.rename(T="wind")])
    with pytest.raises(el.DataError, match=r"Dataset 1 has dt = 2, the Dataset 0 has 1: .*resample=STEP"):
        el.read([one, other.assign_coords(time=("time", 2.0 * np.arange(20), {"units": "s"}))])
    other["T"].attrs["units"] = "degC"
    with pytest.raises(el.DataError, match=r"has the units \['degC', 'm'\]"):
        el.read([one, other])


def test_a_list_of_arrays_and_a_list_of_rows_are_told_apart():
    rows = awkward(6)
    same(el.read(rows.tolist(), dt=1.0), el.TimeSeries(rows, 1.0))
    same(el.read([rows, rows[:4]], dt=1.0), el.TimeSeries([rows, rows[:4]], 1.0))
    same(el.read(np.stack([rows, rows]), dt=1.0), el.TimeSeries([rows, rows], 1.0))


# Time -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.05, 1 / 3, 0.1, 1e-6, 7.0, 0.0078125])
def test_the_sampling_interval_comes_out_as_it_was_meant(dt):
    """0.05 and not 0.05000000000000002; a third stays a third to the last bits."""
    read = el.read(awkward(1000), time=dt * np.arange(1000))
    assert read.dt == dt if dt != 1 / 3 else read.dt == pytest.approx(dt, rel=1e-14)


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
    read = el.read(xr.DataArray(np.arange(800.0), dims="time", coords={"time": daily}, name="T"))
    assert (read.dt, read.time_unit, read.dropped, read.starts) == (1.0, "day", 0, (30.0 * days,))
    monthly = xr.date_range("2000-01-01", periods=80, freq="MS", calendar=calendar, use_cftime=True)
    read = el.read(xr.DataArray(np.arange(80.0), dims="time", coords={"time": monthly}, name="T"))
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
        r"0\.137,.*off a uniform grid by up to 0\.0\d+.*resample=True",
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
    same(el.read(values, time=0.5 * np.arange(50), resample=True), el.TimeSeries(values, 0.5))


def test_resampling_needs_stamps():
    with pytest.raises(el.ArgumentError, match="Argument `resample` has no meaning here"):
        el.read(awkward(50), dt=0.1, resample=0.2)
    with pytest.raises(el.ArgumentError, match="Argument `resample` must be a positive number"):
        el.read(awkward(50), time=np.arange(50.0), resample=-1.0)


def test_a_dt_that_contradicts_the_coordinate_is_refused():
    data = as_dataset(awkward(20), 0.5 * np.arange(20))
    assert el.read(data, dt=0.5).dt == 0.5
    with pytest.raises(
        el.ArgumentError, match=r"Argument `dt` must be what the data say, 0\.5 s, but got 0\.1\..*time=False"
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
    "NaN": (np.array([0.0, np.nan, 2.0, 3.0]), "is NaN in row 1"),
    "no date": (np.array(["2000-01-01", "NaT", "2000-01-03", "2000-01-04"], "datetime64[D]"), "no date in row 1"),
    "text": (np.array(["2000-01-01", "later", "2000-01-03", "2000-01-04"]), "hold 'later' in row 1, neither"),
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


# Labelled arrays ------------------------------------------------------------------------------------------------------


def test_a_field_becomes_one_variable_per_grid_point_and_land_is_left_out():
    values = np.random.default_rng(0).normal(size=(10, 2, 3))
    values[:, 1, 0] = np.nan
    field = xr.DataArray(
        values, dims=("time", "lat", "lon"), coords={"time": np.arange(10.0), "lat": [5, 10], "lon": [0, 120, 240]},
        name="sst", attrs={"units": "K"},
    )  # fmt: skip
    read = el.read(field)
    assert read.names == tuple(f"sst(lat={a}, lon={o})" for a, o in [(5, 0), (5, 120), (5, 240), (10, 120), (10, 240)])
    assert set(read.units) == {"K"}
    np.testing.assert_array_equal(read.stacked(), np.delete(values.reshape(10, 6), 3, axis=1))
    assert read.dropped == 0
    assert el.read(field, variables=["sst(lat=10, lon=240)"]).stacked()[:, 0].tolist() == values[:, 1, 2].tolist()


def test_bounds_text_and_static_variables_are_not_data():
    data = as_dataset(awkward(10), np.arange(10.0))
    data["time_bnds"] = (("time", "nv"), np.zeros((10, 2)))
    data["station"] = ("time", np.full(10, "a"))
    data["depth"] = ("level", np.arange(3.0))
    assert el.read(data).names == ("T", "h")


def test_time_is_found_by_its_mark_and_asked_for_otherwise():
    array = xr.DataArray(np.zeros((30, 2)), dims=("step", "box"), name="T")
    with pytest.raises(el.DataError, match=r"not clear which dimension .* is time, among step \(30\), box \(2\)"):
        el.read(array, dt=1.0)
    assert el.read(array, time="step", dt=1.0).dimension == 2
    marked = array.assign_coords(step=("step", 0.5 * np.arange(30), {"axis": "T"}))
    assert el.read(marked).dt == 0.5


def test_a_series_survives_the_way_through_xarray(tmp_path):
    values = [awkward(30), awkward(25, seed=1)]
    values[0][10] = values[1][3:5] = np.nan
    series = el.TimeSeries(values, 0.1, names=NAMES, units=UNITS, time_unit="day", start=[5.0, 5.2])
    same(el.read(series.to_xarray()), series)
    same(el.read(series.to_xarray(dataset=True)), series)
    series.to_xarray().to_netcdf(tmp_path / "paths.nc", engine="h5netcdf")
    same(el.read(tmp_path / "paths.nc"), series)
    assert el.read(tmp_path / "paths.nc", variables=["h"]).units == ("m",)


def test_labelled_paths_have_dimensions_coordinates_and_cf_attributes(linear_model):
    paths = linear_model.simulate(duration=5.0, members=3, seed=0)
    array = paths.to_xarray()
    assert array.dims == ("member", "time", "variable")
    assert array.coords["variable"].values.tolist() == ["T", "h"]
    assert array.coords["units"].values.tolist() == ["K", "m"]
    assert array.time.attrs == {"long_name": "time", "axis": "T", "units": "d"}
    np.testing.assert_array_equal(array.values, paths.values)
    np.testing.assert_array_equal(array.sel(variable="h", member=1).values, paths.segments[1][:, 1])
    data = paths.to_xarray(dataset=True)
    assert data["T"].dims == ("member", "time")
    assert data["T"].attrs == {"long_name": "T", "units": "K"}
    assert data.attrs["Conventions"].startswith("CF-")


def test_gaps_and_unequal_ends_are_nan_in_labelled_arrays():
    values = np.arange(6.0)
    values[2] = np.nan
    array = el.TimeSeries([values[:, None], np.arange(4.0)[:, None]], dt=1.0).to_xarray()
    np.testing.assert_array_equal(array.values[..., 0], [[0, 1, np.nan, 3, 4, 5], [0, 1, 2, 3, np.nan, np.nan]])


def test_records_far_apart_keep_their_starts():
    series = el.TimeSeries([awkward(30), awkward(25)], 0.1, start=[0.0, 1e6], time_unit="s")
    array = series.to_xarray()
    assert array.sizes["time"] == 30
    assert array.coords["start"].values.tolist() == [0.0, 1e6]
    same(el.read(array), series)
    with pytest.raises(el.DataError, match="too far apart for one axis of dates"):
        series.to_xarray(origin="1970-01-01")


@pytest.mark.parametrize("step", ["D", "6h", "MS", "YS"])
def test_dates_come_back_as_dates(step):
    index = pd.date_range("1979-01-01", periods=60, freq=step)
    labelled = el.read(pd.DataFrame(awkward(60), index=index)).to_xarray(origin="1970-01-01")
    np.testing.assert_array_equal(labelled.time.values, index.values)


def test_dates_need_a_unit_of_time():
    with pytest.raises(el.ArgumentError, match="Argument `time_unit` must be one of"):
        el.TimeSeries(awkward(10), 1.0).to_xarray(origin="1970-01-01")


# Text -----------------------------------------------------------------------------------------------------------------

TABLES = {
    "commas": "a,b\n1,2\n3,4.5\n",
    "semicolons": "a;b\n1;2\n3;4.5\n",
    "tabs": "a\tb\n1\t2\n3\t4.5\n",
    "spaces": "a   b\n1 2\n 3   4.5\n",
    "comment as header": "# from the lab\n# a b\n1 2\n3 4.5\n",
    "quotes": '"a","b"\n"1","2"\n3,4.5\n',
    "byte order mark and blank lines": "\ufeffa,b\n\n1,2\n3,4.5\n\n",
    "windows line ends": "a,b\r\n1,2\r\n3,4.5\r\n",
    "index of a table": ",a,b\n0,1,2\n1,3,4.5\n",
}


@pytest.mark.parametrize("case", TABLES)
def test_text_tables_of_many_habits_are_read(case, tmp_path):
    (tmp_path / "run.txt").write_bytes(TABLES[case].encode())
    read = el.read(tmp_path / "run.txt", dt=1.0)
    assert read.names == ("a", "b")
    assert read.stacked().tolist() == [[1, 2], [3, 4.5]]


def test_a_text_table_without_header_has_default_names(tmp_path):
    (tmp_path / "run.csv").write_text("1,2\n3,4\n")
    assert el.read(tmp_path / "run.csv", dt=1.0).names == ("x1", "x2")


def test_missing_cells_are_gaps_in_text_tables(tmp_path):
    (tmp_path / "run.csv").write_text("a,b\n1,2\n,3\n4,NaN\n5,NA\n6,7\n8,9\n")
    read = el.read(tmp_path / "run.csv", dt=1.0)
    assert [s.tolist() for s in read.segments] == [[[1, 2]], [[6, 7], [8, 9]]]
    assert read.dropped == 3


@pytest.mark.parametrize("name", ["date", "Time", ""])
def test_dates_in_a_text_table_are_its_time(name, tmp_path):
    (tmp_path / "run.csv").write_text(f"{name},a\n2000-01-01T00:00Z,1\n2000-01-01T06:00Z,2\n2000-01-01T18:00Z,3\n")
    read = el.read(tmp_path / "run.csv")
    assert (read.dt, read.time_unit, read.dropped, read.names) == (6.0, "hour", 1, ("a",))


def test_text_tables_are_read_without_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "xarray", None)
    (tmp_path / "run.csv").write_text("a,b\n1,2\n3,4.5\n")
    assert el.read(tmp_path / "run.csv", dt=1.0).n_samples == 2


# Bad files ------------------------------------------------------------------------------------------------------------


def write_text(text):
    return lambda path: path.write_text(text)


def write_truncated(name):
    def write(path):
        values = awkward(500)
        WRITERS[name](path, values, DT * np.arange(500))
        path.write_bytes(path.read_bytes()[:700])

    return write


def write_pickled(path):
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)


def write_without_x(path):
    np.savez(path, a=np.ones(5), b=np.ones((3, 3)))


def write_h5_without_samples(path):
    with h5py.File(path, "w") as file:
        file["run/a"], file["run/b"] = np.ones(5), np.ones(6)


def write_lone_text(path):
    xr.Dataset({"station": ("time", ["a", "b"])}, {"time": [0.0, 1.0]}).to_netcdf(path, engine="h5netcdf")


def write_text_column(path):
    pd.DataFrame({"x": np.arange(3.0), "station": ["a", "b", "c"]}).to_parquet(path)


BAD_FILES = {
    "text instead of NetCDF": ("a.nc", write_text("hello"), r"a\.nc is not a readable NetCDF file"),
    "truncated NetCDF": ("a.nc", write_truncated("run.nc"), r"a\.nc is not a readable NetCDF file"),
    "NetCDF without numbers": ("a.nc", write_lone_text, r"a\.nc has no variable of numbers along .*'time'"),
    "empty Zarr": ("a.zarr", lambda path: path.mkdir(), r"a\.zarr is not a readable Zarr store"),
    "text instead of HDF5": ("a.h5", write_text("hello"), r"a\.h5 is not a readable HDF5 file"),
    "HDF5 with unclear samples": ("a.h5", write_h5_without_samples, r"not clear which.*run/a \(5,\), run/b \(6,\)"),
    "text instead of npz": ("a.npz", write_text("hello"), r"a\.npz is not a numpy file"),
    "truncated npz": ("a.npz", write_truncated("run.npz"), r"a\.npz is not a readable numpy file"),
    "npz with unclear samples": ("a.npz", write_without_x, r"a\.npz has no array called x.*a \(5,\), b \(3, 3\)"),
    "pickled npy": ("a.npy", write_pickled, r"a\.npy .*holds Python objects, which are not read"),
    "empty npy": ("a.npy", write_text(""), r"a\.npy is not a readable numpy file"),
    "bad cell": ("a.csv", write_text("a,b\n1,2\n\n3,x4\n"), r"a\.csv, line 4, column 'b': 'x4' is not a number"),
    "decimal comma": ("a.csv", write_text("a;b\n1;2,5\n"), r"line 2, column 'b': '2,5' .* decimal sign is a point"),
    "short row": ("a.csv", write_text("a,b\n1,2\n3\n"), r"a\.csv, line 3: 1 cells where 2 are expected"),
    "bad date": ("a.csv", write_text("date,b\n2000-01-01,2\nnow,3\n"), r"line 3, column 'date': 'now' is not a date"),
    "header too short": ("a.csv", write_text("a\n1,2\n"), r"header of .*a\.csv has 1 cells, the first row 2"),
    "name twice": ("a.csv", write_text("a,a\n1,2\n"), r"header of .*a\.csv names 'a' twice"),
    "header alone": ("a.csv", write_text("a,b\n"), r"a\.csv has a header but no rows"),
    "empty text": ("a.csv", write_text("\n# nothing\n"), r"a\.csv is empty"),
    "binary text": ("a.csv", lambda path: path.write_bytes(b"\xff\xfe1,2"), r"a\.csv is not a text file"),
    "only time": ("a.csv", write_text("time\n1\n2\n"), r"a\.csv holds no variable besides its time stamps"),
    "text instead of Parquet": ("a.parquet", write_text("hello"), r"a\.parquet is not a readable Parquet file"),
    "text in Parquet": ("a.parquet", write_text_column, r"Column 'station' of .* example 'a'. Leave it out"),
    "unknown suffix": ("a.xls", write_text("1"), r"format of .*a\.xls cannot be told from its suffix. Known are: \.nc"),
    "folder": ("a.csv", lambda path: path.mkdir(), r"a\.csv is a folder"),
    "nothing there": ("a.nc", lambda path: None, r"There is no file or folder at .*a\.nc"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_gives_one_clear_message(case, tmp_path):
    name, write, message = BAD_FILES[case]
    write(tmp_path / name)
    with pytest.raises(el.DataError, match=message) as caught:
        el.read(tmp_path / name, dt=1.0)
    assert "\n" not in str(caught.value)


def test_a_pattern_without_match_is_said_to_be_one(tmp_path):
    with pytest.raises(el.DataError, match=r"No file matches .*run_\*\.nc"):
        el.read(str(tmp_path / "run_*.nc"))


@pytest.mark.parametrize(
    ("name", "module", "extra"), [("run.zarr", "zarr", "zarr"), ("run.parquet", "pyarrow", "parquet")]
)
def test_a_missing_package_is_named_with_its_extra(name, module, extra, series, tmp_path, monkeypatch):
    WRITERS[name](tmp_path / name, *series)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(el.DataError, match=rf"needs {module}, .* pip install 'effective-langevin\[{extra}\]'"):
        el.read(tmp_path / name)


@pytest.mark.parametrize("source", [3, None, object()])
def test_what_is_no_source_is_refused(source):
    with pytest.raises(el.ArgumentError, match="Argument `source` must be"):
        el.read(source)


def test_complex_and_infinite_data_are_refused():
    with pytest.raises(el.DataError, match="complex"):
        el.read({"x": np.ones((5, 2), complex)}, dt=1.0)
    with pytest.raises(el.DataError, match="infinite"):
        el.read(pd.DataFrame({"x": [1.0, np.inf, 2.0]}), dt=1.0)


# Real files -----------------------------------------------------------------------------------------------------------


def test_the_climate_indices_are_the_same_from_netcdf_and_npz(shared_data):
    netcdf, npz = el.read(shared_data("XRO_indices_oras5.nc")), el.read(shared_data("enso_xro.npz"))
    np.testing.assert_array_equal(netcdf.stacked(), npz.stacked())
    assert netcdf.names == npz.names
    assert netcdf.units[:2] == ("C", "m")
    for read in (netcdf, npz):
        # January 1979 is month 108 from January 1970.
        assert (read.dt, read.time_unit, read.starts, read.n_samples) == (1.0, "month", (108.0,), 552)


def test_the_skipped_days_of_the_nao_are_gaps(shared_data):
    read = el.read(shared_data("nao_daily.npz"))
    raw = np.load(shared_data("nao_daily.npz"))
    assert (read.dt, read.time_unit, read.dropped, len(read.segments)) == (1.0, "day", 18 + 2, 21)
    days = np.concatenate(read.times)
    kept = raw["time"][~np.isnan(raw["x"][:, 0])]
    np.testing.assert_array_equal(days, kept.astype(int))


def test_the_fish_are_the_same_from_csv_and_npz(shared_data):
    text = el.read(shared_data("ectropus.csv"), dt=0.12, names=["mx", "my"], units=["1", "1"], time_unit="s")
    same(text, el.read(shared_data("fish_schooling.npz")))
    assert text.dropped == 16


def test_the_samples_of_an_npz_with_many_arrays_are_found(shared_data):
    angles = el.read(shared_data("alanine_dipeptide.npz"))
    assert (angles.names, angles.dt, angles.time_unit) == (("phi", "psi"), 10.0, "ps")
    assert el.read(shared_data("alanine_dipeptide.npz"), variables=["psi"]).dimension == 1
    brain = el.read(shared_data("eeg_eye_state.npz"))
    assert (brain.dimension, brain.dt) == (14, 1 / 128)
