"""Data as they come: each file is read by one command, or one line names what reads it."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import effective_langevin as el

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(columns, separator=","):
    texts = ([f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in row] for row in zip(*columns))
    return [separator.join(cells) for cells in texts]


# Codes for missing values ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [999.0, -9999.0, 1e36])
def test_a_code_for_missing_values_is_named_and_left_out_when_asked(code, tmp_path):
    values = X.copy()
    values[[5, 60, 61], 1] = code
    path = write(tmp_path / "a.csv", "time,T,h", *rows([np.arange(400.0), *values.T]))
    with pytest.raises(el.DataError, match=rf"'h' of .* holds {re.escape(f'{code:g}')} \(3 times\).*missing=\["):
        el.read(path)
    series = el.read(path, missing=code)
    assert (series.n_samples, len(series.segments)) == (397, 3)
    assert el.read(path, missing=[]).stacked().max() == max(code, values.max().round(5))


def test_a_usual_code_is_named_where_it_occurs_once():
    values = X.copy()
    values[3, 0] = -9999
    with pytest.raises(el.DataError, match=r"holds -9999 \(1 times\)"):
        el.read(values, dt=1.0)


def test_codes_of_single_precision_are_recognised():
    values = X.astype(np.float32)
    values[3:9, 0] = 1e36
    assert el.read(values, dt=1.0, missing=1e36).dropped == 6


def test_heavy_tails_ties_and_rain_are_not_codes():
    rain = np.where(RNG.random(5000) < 0.7, 0.0, RNG.exponential(size=5000).round(1))
    counts = RNG.poisson(0.3, 5000).astype(float)
    cauchy = RNG.standard_cauchy(5000)
    assert el.read({"rain": rain, "counts": counts, "cauchy": cauchy}, dt=1.0).n_samples == 5000


def test_words_for_missing_values_are_named_too(tmp_path):
    cells = [f"{v:g}" for v in X[:, 0]]
    cells[7] = "broken"
    path = write(tmp_path / "a.csv", "time,T", *rows([np.arange(400.0), cells]))
    with pytest.raises(el.DataError, match=r"line 9, column 'T': 'broken' is not a number.*missing=\[\.\.\.\]"):
        el.read(path)
    assert el.read(path, missing="broken").dropped == 1


# Columns --------------------------------------------------------------------------------------------------------------


def test_the_mjo_index_as_the_bureau_writes_it(tmp_path):
    days = pd.date_range("1974-06-01", periods=400)
    columns = [days.year, days.month, days.day, *X.T, ["Final_value:_OLR_&_wind"] * 400]
    top = ['RMM values up to "real time". See http', "year, month, day, RMM1, RMM2.  Missing Value= 1.E36 or 999"]
    path = write(tmp_path / "rmm.txt", *top, *rows(columns, "  "))
    series = el.read(path, variables="RMM1")
    assert (series.dt, series.time_unit, series.n_samples) == (1.0, "day", 400)
    assert series.starts[0] == (days[0] - pd.Timestamp(0)).days
    assert el.read(path).names[0] == "RMM1"


def test_a_header_with_commas_over_rows_with_blanks(tmp_path):
    path = write(tmp_path / "a.txt", "time, a, b", *rows([np.arange(400.0), *X.T], " "))
    assert el.read(path).names == ("a", "b")


def test_a_row_of_units_under_the_header(tmp_path):
    path = write(tmp_path / "a.csv", "time,a,b", "day,K,m", *rows([np.arange(400.0), *X.T]))
    assert (el.read(path).units, el.read(path).time_unit) == (("K", "m"), "day")


def test_decimal_commas_between_semicolons(tmp_path):
    lines = [row.replace(".", ",") for row in rows([np.arange(400.0), X[:, 0]], ";")]
    np.testing.assert_allclose(el.read(write(tmp_path / "a.csv", "time;T", *lines)).stacked()[:, 0], X[:, 0], rtol=1e-5)


def test_columns_of_text_are_left_out_unless_they_are_asked_for(tmp_path):
    path = write(tmp_path / "a.csv", "time,station,a", *rows([np.arange(400.0), ["Kiel"] * 400, X[:, 0]]))
    assert el.read(path).names == ("a",)
    with pytest.raises(el.DataError, match=r"Column 'station' of .* for example 'Kiel'"):
        el.read(path, variables=["station", "a"])


def test_columns_can_be_records_of_one_variable(tmp_path):
    tracks = RNG.normal(size=(300, 39))
    path = write(tmp_path / "ring.dat", *rows([*tracks.T, np.arange(300) / 150], " "))
    with pytest.raises(el.DataError, match=r"'x40' of .* grows evenly .*time='x40'"):
        el.read(path)
    series = el.read(path, time="x40", records_in_columns=True, names=["theta"])
    assert (series.dimension, len(series.segments), series.names) == (1, 39, ("theta",))
    assert series.dt == pytest.approx(1 / 150, rel=1e-4)


# Times ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["time_s", "time (s)", "Time(s)", "time/s", "t [s]", "t_s"])
def test_a_time_column_is_recognised_with_its_unit(name, tmp_path):
    path = write(tmp_path / "a.csv", f"{name},T", *rows([0.5 * np.arange(400), X[:, 0]]))
    series = el.read(path)
    assert (series.names, series.dt, series.time_unit) == (("T",), 0.5, "s")


@pytest.mark.parametrize(("digits", "dt"), [("%.5g", 1 / 150), ("%.3f", 1 / 150), ("%.5g", 0.0069)])
def test_rounded_stamps_give_the_grid_that_was_rounded(digits, dt, tmp_path):
    """The last stamps of %.5g repeat themselves from 100 on; dt is known to a digit over the length of the record."""
    times = [digits % (dt * i) for i in range(20_000)]
    path = write(tmp_path / "a.txt", "time x", *rows([times, RNG.normal(size=20_000)], " "))
    series = el.read(path)
    assert len(series.segments) == 1
    assert series.dt == pytest.approx(dt, rel=2e-5)


def test_integers_with_gaps_are_not_rounded_stamps():
    keep = np.delete(np.arange(400), np.arange(2, 400, 3))
    series = el.read({"x": X[keep, 0], "time": keep})
    assert (series.dt, len(series.segments)) == (1.0, 134)


def test_a_single_step_aside_is_not_rounding():
    """A record delayed once by half a step, with stamps of one decimal, is not a longer step."""
    rows = np.arange(0, 300, 2)
    rows[75:] += 1
    with pytest.raises(el.DataError, match="not uniform"):
        el.read({"x": X[rows, 0], "time": 0.1 * rows})


@pytest.mark.parametrize(
    ("name", "pattern", "frequency", "unit"),
    [("date", "%Y%m%d", "D", "day"), ("time", "%Y%m%d", "D", "day"), ("time", "%Y%m", "MS", "month"),
     ("time", "%Y.%m", "MS", "month")],
)  # fmt: skip
def test_dates_written_as_numbers_are_dates(name, pattern, frequency, unit, tmp_path):
    dates = pd.date_range("2000-01-15", periods=400, freq=frequency)
    path = write(tmp_path / "a.csv", f"{name},T", *rows([dates.strftime(pattern), X[:, 0]]))
    series = el.read(path)
    assert (series.dt, series.time_unit, len(series.segments), series.calendar) == (1.0, unit, 1, "standard")


@pytest.mark.parametrize("pattern", ["%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d.%m.%Y %H:%M"])
def test_dates_with_slashes_or_points_are_dates(pattern, tmp_path):
    dates = pd.date_range("2000-01-15", periods=400)
    path = write(tmp_path / "a.csv", "DATE,T", *rows([dates.strftime(pattern), X[:, 0]]))
    series = el.read(path)
    assert (series.dt, series.time_unit, len(series.segments)) == (1.0, "day", 1)
    assert series.starts[0] == (dates[0] - pd.Timestamp(0)).days


def test_a_date_whose_day_may_be_its_month_is_not_guessed(tmp_path):
    path = write(
        tmp_path / "a.csv", "DATE,T", *rows([[f"0{1 + i % 9}/0{1 + i % 9}/{2000 + i}" for i in range(9)], X[:9, 0]])
    )
    with pytest.raises(el.DataError, match="the day may be the month"):
        el.read(path)


def test_dates_of_climate_operators_are_dates(tmp_path):
    dates = pd.date_range("2000-01-15 12:00", periods=400)
    numbers = [int(d.strftime("%Y%m%d")) + 0.5 for d in dates]
    data = xr.Dataset({"T": ("time", X[:, 0])}, {"time": ("time", numbers, {"units": "day as %Y%m%d.%f"})})
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert (el.read(tmp_path / "a.nc").dt, len(el.read(tmp_path / "a.nc").segments)) == (1.0, 1)


def test_plain_numbers_stay_numbers():
    for first, step in ((2000.0, 0.01), (200_001.0, 1.0), (10_000_101.0, 1.0), (1e5, 7.0)):
        series = el.read({"x": X[:, 0], "time": first + step * np.arange(400)})
        assert (series.calendar, series.dt, len(series.segments)) == ("", step, 1)


def test_an_age_runs_backwards(tmp_path):
    age = 10.0 + 0.02 * np.arange(400)
    path = write(tmp_path / "core.csv", "Age [ka b2k] (GICC05),d18O", *rows([age, X[:, 0]]))
    with pytest.warns(el.EstimateWarning, match="an age, which counts backwards"):
        series = el.read(path, time="Age")
    np.testing.assert_allclose(series.stacked()[:, 0], X[::-1, 0], rtol=1e-5)
    assert series.starts[0] == pytest.approx(-age[-1])
    with pytest.warns(el.EstimateWarning, match="counts backwards"):
        assert el.read(path, time="Age", begin=12, end=14).n_samples == 101


def test_a_clock_is_offered_as_the_time(tmp_path):
    path = write(tmp_path / "a.csv", "frame,x", *rows([0.5 * np.arange(400), X[:, 0]]))
    with pytest.raises(el.DataError, match=r"'frame' of .* grows evenly.*time='frame'"):
        el.read(path, dt=0.5)
    assert el.read(path, time="frame").names == ("x",)
    assert el.read(path, variables="x", dt=0.5).names == ("x",)


def test_trading_days_are_counted_in_rows():
    days = pd.bdate_range("1990-01-01", periods=400)
    frame = pd.DataFrame({"close": X[:, 0]}, index=days)
    with pytest.warns(el.EstimateWarning, match=r"gap after every 5 rows \(weekends\?\).*calendar=\"rows\""):
        assert len(el.read(frame).segments) == 80
    series = el.read(frame, calendar="rows")
    assert (len(series.segments), series.dt, series.time_unit) == (1, 1.0, "row")
    assert len(el.read(frame, resample=1).segments) == 1
    assert len(el.read(frame, resample=True).segments) == 1


def test_a_stretch_is_chosen_by_dates_or_numbers():
    frame = pd.DataFrame({"T": X[:, 0]}, index=pd.date_range("1980-01-01", periods=400, freq="MS"))
    series = el.read(frame, begin="1985", end="1989-06")
    assert series.n_samples == 54
    assert series.starts[0] == 15 * 12
    assert el.read({"x": X, "dt": 0.5}, begin=10, end=20).n_samples == 21
    assert el.read({"x": X, "dt": 0.5}, begin=10).starts == (10.0,)
    with pytest.raises(el.DataError, match=r"goes from .* with 0 rows from 2090 to its end"):
        el.read(frame, begin="2090")
    with pytest.raises(el.ArgumentError, match="must be dates such as"):
        el.read(frame, begin="yesterday")


def test_every_so_many_samples_are_kept():
    assert (el.read(X, dt=0.5, thin=4).dt, el.read(X, dt=0.5, thin=4).n_samples) == (2.0, 100)


# Nothing silently wrong -----------------------------------------------------------------------------------------------


def test_a_stated_interval_is_converted_to_the_unit_asked_for(tmp_path):
    np.savez(tmp_path / "d.npz", x=X, dt=0.1, dt_unit="day")
    np.savez(tmp_path / "e.npz", x=X, dt=0.1, dt_unit="s")
    series = el.read(tmp_path / "d.npz", time_unit="hour")
    assert (series.dt, series.time_unit) == (pytest.approx(2.4), "hour")
    with pytest.raises(el.DataError, match="share the sampling interval"):
        el.read([tmp_path / "d.npz", tmp_path / "e.npz"])
    with pytest.raises(el.ArgumentError, match=r"`dt` is 0\.2, but .* notes dt = 0\.1 day"):
        el.read(tmp_path / "d.npz", dt=0.2)


def test_masked_samples_are_missing():
    values = X.copy()
    values[:10] = -9999
    masked = np.ma.masked_equal(values, -9999)
    for series in (el.TimeSeries(masked, 0.1), el.read(masked, dt=0.1), el.read({"T": masked[:, 0]}, dt=0.1)):
        assert (series.n_samples, series.dropped) == (390, 10)


def test_hdf5_keeps_the_fill_value_scale_and_offset_of_netcdf(tmp_path):
    values = X.copy()
    values[4, 0] = np.nan
    packing = {"dtype": "i2", "scale_factor": 1e-3, "add_offset": 1.0, "_FillValue": -9999}
    data = xr.Dataset({"T": ("time", values[:, 0])}, {"time": np.arange(400.0)})
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"T": packing})
    (tmp_path / "a.h5").write_bytes((tmp_path / "a.nc").read_bytes())
    series = el.read(tmp_path / "a.h5", variables="T")
    assert series.dropped == 1
    np.testing.assert_array_equal(series.stacked(), el.read(tmp_path / "a.nc").stacked())


def test_columns_beside_x_are_read(tmp_path):
    x, y, z = RNG.normal(size=(3, 100))
    np.savez(tmp_path / "l.npz", x=x, y=y, z=z, t=0.1 * np.arange(100))
    assert el.read(tmp_path / "l.npz").names == ("x", "y", "z")
    assert el.read({"x": X, "weight": np.ones(400)}, dt=1.0).names == ("x1", "x2")


def test_a_dictionary_of_empty_columns_is_refused():
    with pytest.raises(el.DataError, match="The dictionary has no rows"):
        el.read({"x": np.array([]), "y": np.array([])}, dt=0.1)


def test_a_name_stands_for_one_variable(tmp_path):
    with pytest.raises(el.ArgumentError, match="`names` must be different names, but got 'a'"):
        el.TimeSeries(X, 0.1, names=["a", "a"])
    with pytest.raises(el.ArgumentError, match="`variables` must be different names"):
        el.read({"T": X[:, 0]}, dt=1.0, variables=["T", "T"])
    with pytest.raises(el.ArgumentError, match="`names` must be different names"):
        el.read({"x": X, "names": np.array(["a", "a"])}, dt=1.0, variables="a")
    with pytest.raises(el.DataError, match="names 3 variables, but its array has 2 columns"):
        el.read({"x": X, "names": np.array(["a", "b", "c"])}, dt=1.0)
    for name in ("time", "member"):
        with pytest.raises(el.DataError, match=f"A variable called '{name}' cannot stand beside the coordinate"):
            el.TimeSeries(X, 0.1, names=[name, "b"]).to_xarray(dataset=True)
    data = xr.Dataset({"sea_bounds": ("time", X[:, 0])}, {"time": np.arange(400.0)})
    assert el.read(data).names == ("sea_bounds",)
