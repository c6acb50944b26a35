"""xarray in and out: fields, members, bounds, and the way back."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from oracles.sample_files import NAMES, UNITS, as_dataset, assert_same, awkward

import effective_langevin as el
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
