"""xarray in and out: fields, members, bounds, and the way back."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from oracles.sample_files import NAMES, UNITS, as_dataset, assert_same, awkward

import effective_langevin as el
from effective_langevin.data.io.dates import count_dates, count_time
from effective_langevin.data.io.write import write


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
    assert_same(el.read(series.to_xarray()), series)
    assert_same(el.read(series.to_xarray(dataset=True)), series)
    series.to_xarray().to_netcdf(tmp_path / "paths.nc", engine="h5netcdf")
    assert_same(el.read(tmp_path / "paths.nc"), series)
    assert el.read(tmp_path / "paths.nc", variables=["h"]).units == ("m",)


@pytest.mark.parametrize("suffix", ["nc", "npz", "h5"])
def test_periods_survive_xarray_and_files(suffix, tmp_path):
    series = el.TimeSeries(awkward(30), 0.1, names=NAMES, units=UNITS, periods=[None, 360.0])
    assert_same(el.read(series.to_xarray()), series)
    assert_same(el.read(series.to_xarray(dataset=True)), series)
    write(series, tmp_path / f"paths.{suffix}")
    assert_same(el.read(tmp_path / f"paths.{suffix}"), series)
    assert el.read(tmp_path / f"paths.{suffix}", variables=["h"]).periods == (360.0,)
    assert el.read(tmp_path / f"paths.{suffix}", periods=[7.0, None]).periods == (7.0, None)


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
    assert_same(el.read(array), series)
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


# Labels survive -------------------------------------------------------------------------------------------------------

LINEAR = {"score": el.Gaussian(), "mobility": el.QuadraticVariation(), "check": "off"}


class Polars:
    """What this package uses of a DataFrame of polars."""

    def __init__(self, frame):
        self.columns, self.frame = list(frame.columns), frame

    def get_column(self, name):
        return self.frame[name]


def monthly_frame():
    rng, index = np.random.default_rng(0), pd.date_range("1950-01-01", periods=300, freq="MS", name="time")
    return pd.DataFrame(rng.normal(size=(300, 2)), columns=["nino34", "wwv"], index=index)


FRAMES = {
    "pandas": monthly_frame,
    "column of dates": lambda: monthly_frame().reset_index().rename(columns={"time": "when"}),
    "polars": lambda: Polars(monthly_frame().reset_index()),
    "Dataset": lambda: monthly_frame().to_xarray(),
    "DataArray": lambda: monthly_frame().to_xarray().to_dataarray(name="state").transpose("time", ...),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_labelled_data_are_fitted_as_they_are_and_keep_names_and_dates(kind):
    data = FRAMES[kind]()
    for series in (el.read(data), el.TimeSeries(data)):
        assert (series.names, series.dt, series.time_unit) == (("nino34", "wwv"), 1.0, "month")
    model = el.fit(data, **LINEAR)
    assert (model.names, model.calendar, model.start) == (("nino34", "wwv"), "standard", -240.0)
    source = model.provenance["source"]
    assert source == {"variables": ["nino34", "wwv"], "from": "1950-01-01T00:00", "to": "1974-12-01T00:00"}
    times = model.simulate(5.0).to_xarray().time.values
    assert times.astype("datetime64[D]").astype(str).tolist()[:2] == ["1950-01-01", "1950-02-01"]
    fitted = el.LangevinEstimator(score_strategy=el.Gaussian(), mobility=el.QuadraticVariation(), check="off").fit(data)
    assert fitted.feature_names_in_.tolist() == ["nino34", "wwv"]


def test_an_array_is_refused_by_its_shape_and_not_by_its_numbers():
    with pytest.raises(el.ArgumentError, match=r"got a ndarray of shape \(300, 2\)\. Wrap your array first"):
        el.fit(np.zeros((300, 2)))


@pytest.mark.parametrize("frequency", ["D", "6h", "MS"])
@pytest.mark.parametrize(
    ("calendar", "suffix"),
    [*(("standard", s) for s in ("nc", "zarr", "csv", "npz", "h5", "parquet")), ("noleap", "nc"), ("360_day", "zarr")],
)
def test_dates_come_back_from_files(calendar, frequency, suffix, tmp_path):
    own = {"calendar": calendar, "use_cftime": calendar != "standard"}
    dates = xr.date_range("2000-01-01", periods=70, freq=frequency, **own)
    series = el.read(xr.Dataset({"T": ("time", awkward(70)[:, 0])}, {"time": dates}))
    assert (series.calendar, series.dropped) == (calendar, 0)
    write(series, tmp_path / f"a.{suffix}")
    back = el.read(tmp_path / f"a.{suffix}", variables=["T"])
    assert_same(back, series)
    assert back.calendar == calendar


@pytest.mark.parametrize("unit", ["s", "day", "month", "year"])
@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_a_date_is_counted_as_it_is_written(unit, calendar):
    time = count_time("2020-01-01", unit, calendar)
    assert str(count_dates(np.array([time]), unit, "1970-01-01", calendar)[0])[:10] == "2020-01-01"
    with pytest.raises(el.ArgumentError, match="`start` must be a number, but got '2020-01-01'"):
        count_time("2020-01-01", unit, "")


def lat_lon_field(months=240):
    """A pattern cos(lat) sin(lon) that swings slowly, in noise; the first point is land."""
    rng, lat, lon = np.random.default_rng(0), np.arange(-75.0, 76.0, 30.0), np.arange(0.0, 360.0, 60.0)
    swing = np.zeros(months)
    for i in range(1, months):
        swing[i] = 0.9 * swing[i - 1] + rng.normal()
    pattern = np.cos(np.deg2rad(lat))[:, None] * np.sin(np.deg2rad(lon))
    values = swing[:, None, None] * pattern + 0.3 * rng.normal(size=(months, len(lat), len(lon)))
    values[:, 0, 0] = np.nan
    time = pd.date_range("1950-01-01", periods=months, freq="MS")
    coords = {"time": time, "lat": lat[::-1], "lon": lon}
    return xr.DataArray(values[:, ::-1], coords, ("time", "lat", "lon"), "sst", {"units": "K"}), pattern[::-1]


def test_a_field_comes_back_as_a_field(tmp_path):
    field, _ = lat_lon_field()
    series = el.read(field)
    assert repr(series).startswith("TimeSeries(240 samples of sst(lat, lon), ... (35 variables)")
    back = series.to_xarray(dataset=True).sst
    xr.testing.assert_allclose(back.isel(member=0, drop=True), field)
    assert back.lat.attrs["units"] == "degrees_north"
    write(series, tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc") as stored:
        xr.testing.assert_allclose(stored.sst.isel(member=0, drop=True), field)
    assert_same(el.read(tmp_path / "a.nc"), series)


def test_grid_points_count_by_their_area_in_principal_components():
    """The covariance weighted by cos(lat) has the eigenvectors of sqrt(cos) x; computed here from the array itself."""
    field, pattern = lat_lon_field()
    series = el.read(field)
    fitted = el.preprocess.PCA(2).fit(series)
    weights = np.sqrt(np.cos(np.deg2rad(np.repeat(field.lat.values, 6))))[np.isfinite(field.values[0].ravel())]
    x = (series.stacked() - series.stacked().mean(axis=0)) * weights
    exact = np.linalg.eigvalsh(x.T @ x)[::-1]
    np.testing.assert_allclose(fitted.explained_variance, exact[:2] / exact.sum(), rtol=1e-9)
    assert fitted.new_units == ("K", "K")
    maps = fitted.to_xarray()
    assert maps.sst.dims == ("component", "lat", "lon")
    inside = np.isfinite(field.values[0])
    assert abs(np.corrcoef(maps.sst.values[0][inside], pattern[inside])[0, 1]) > 0.95


def test_points_that_are_scattered_stay_variables_of_their_own():
    names = [f"T(lat={i}.0, lon={10 * i}.0)" for i in range(8)]
    series = el.TimeSeries(awkward(30, 8), 1.0, names=names)
    assert list(series.to_xarray(dataset=True).data_vars) == names
