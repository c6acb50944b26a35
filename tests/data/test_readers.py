"""Files in: the same series from every format, records apart, one clear message for a bad file."""

import sys

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from oracles import sample_files
from oracles.sample_files import DT, NAMES, UNITS, WRITERS, as_dataset, as_frame, assert_same, awkward, write_csv

import effective_langevin as el


@pytest.fixture
def series():
    values = awkward()
    values[17, 1] = values[90:93, 0] = np.nan
    return values, 3.0 + DT * np.arange(len(values))


# The same series from everywhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_series_bit_for_bit(name, series, tmp_path):
    values, time = series
    WRITERS[name](tmp_path / name, values, time)
    expected = el.TimeSeries(values, DT, names=NAMES, units=UNITS, time_unit="s", start=3.0)
    assert_same(el.read(tmp_path / name), expected)


def test_labelled_data_in_memory_give_the_same_series_as_files(series):
    values, time = series
    expected = el.TimeSeries(values, DT, names=NAMES, units=UNITS, time_unit="s", start=3.0)
    assert_same(el.read(as_dataset(values, time)), expected)
    assert_same(el.read(as_frame(values, time)), expected)
    arrays = {"T": values[:, 0], "h": values[:, 1], "time": time}
    assert_same(el.read(arrays, units=UNITS, time_unit="s"), expected)
    assert_same(el.read(values, time=time, names=NAMES, units=UNITS, time_unit="s"), expected)


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
    monkeypatch.setattr(sample_files, "NAMES", ["q", "b", "z", "a"])
    monkeypatch.setattr(sample_files, "UNITS", [""] * 4)
    WRITERS[name](tmp_path / name, awkward(20, 4), np.arange(20.0))
    assert el.read(tmp_path / name).names == ("a", "b", "q", "z")


def test_a_bare_array_file_needs_dt_or_stamps(tmp_path):
    values = awkward(50, 3)
    np.save(tmp_path / "run.npy", values)
    assert_same(el.read(tmp_path / "run.npy", dt=0.1), el.TimeSeries(values, 0.1))
    assert_same(el.read(tmp_path / "run.npy", time=0.25 * np.arange(50)), el.TimeSeries(values, 0.25))
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
    assert_same(el.read(source), el.TimeSeries(parts, DT, names=NAMES, units=UNITS, time_unit="s"))


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
    assert_same(el.read(rows.tolist(), dt=1.0), el.TimeSeries(rows, 1.0))
    assert_same(el.read([rows, rows[:4]], dt=1.0), el.TimeSeries([rows, rows[:4]], 1.0))
    assert_same(el.read(np.stack([rows, rows]), dt=1.0), el.TimeSeries([rows, rows], 1.0))


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


def test_time_zones_in_a_text_table_are_moved_to_utc(tmp_path):
    """Clocks go forward between the rows: local hours skip one, the stamps do not."""
    rows = ["2024-03-31T00:00+01:00,1", "2024-03-31T01:00+01:00,2", "2024-03-31T03:00+02:00,3"]
    (tmp_path / "run.csv").write_text("\n".join(["date,a", *rows]))
    read = el.read(tmp_path / "run.csv")
    assert (read.dt, read.dropped, read.starts) == (1.0, 0, (24.0 * (365 * 54 + 13 + 90) - 1,))


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


BAD_FILES = {
    "text instead of NetCDF": ("a.nc", write_text("hello"), r"a\.nc is not a readable NetCDF file"),
    "truncated NetCDF": ("a.nc", write_truncated("run.nc"), r"a\.nc is not a readable NetCDF file"),
    "NetCDF without numbers": ("a.nc", write_lone_text, r"a\.nc has no variable of numbers along .*'time'"),
    "empty Zarr": ("a.zarr", lambda path: path.mkdir(), r"a\.zarr is not a readable Zarr store"),
    "text instead of HDF5": ("a.h5", write_text("hello"), r"a\.h5 is not a readable HDF5 file"),
    "HDF5 with unclear samples": ("a.h5", write_h5_without_samples, r"not clear which.*run/a \(5,\), run/b \(6,\)"),
    "text instead of npz": ("a.npz", write_text("hello"), r"a\.npz is not a readable numpy file"),
    "truncated npz": ("a.npz", write_truncated("run.npz"), r"a\.npz is not a readable numpy file"),
    "npz with unclear samples": ("a.npz", write_without_x, r"a\.npz has no array called x.*a \(5,\), b \(3, 3\)"),
    "pickled npy": ("a.npy", write_pickled, r"a\.npy .*holds Python objects, which are not read"),
    "empty npy": ("a.npy", write_text(""), r"a\.npy is not a readable numpy file"),
    "bad cell": ("a.csv", write_text("a,b\n1,2\n\n3,x4\n"), r"a\.csv, line 4, column 'b': 'x4' is not a number"),
    "short row": ("a.csv", write_text("a,b\n1,2\n3\n"), r"a\.csv, line 3: 1 cells where 2 are expected"),
    "bad date": ("a.csv", write_text("date,b\n2000-01-01,2\nnow,3\n"), r"line 3, column 'date': 'now' is not a date"),
    "header too short": ("a.csv", write_text("a\n1,2\n"), r"header of .*a\.csv has 1 cells, the first row 2"),
    "name twice": ("a.csv", write_text("a,a\n1,2\n"), r"header of .*a\.csv names 'a' twice"),
    "header alone": ("a.csv", write_text("a,b\n"), r"a\.csv has a header but no rows"),
    "empty text": ("a.csv", write_text("\n# nothing\n"), r"a\.csv is empty"),
    "binary text": ("a.csv", lambda path: path.write_bytes(b"\xff\xfe1,2"), r"a\.csv is not a text file"),
    "only time": ("a.csv", write_text("time\n1\n2\n"), r"a\.csv holds no variable besides its time stamps"),
    "text instead of Parquet": ("a.parquet", write_text("hello"), r"a\.parquet is not a readable Parquet file"),
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


@pytest.mark.integration
def test_the_climate_indices_are_the_same_from_netcdf_and_npz(shared_data):
    netcdf, npz = el.read(shared_data("XRO_indices_oras5.nc")), el.read(shared_data("enso_xro.npz"))
    np.testing.assert_array_equal(netcdf.stacked(), npz.stacked())
    assert netcdf.names == npz.names
    assert netcdf.units[:2] == ("C", "m")
    for read in (netcdf, npz):
        # January 1979 is month 108 from January 1970.
        assert (read.dt, read.time_unit, read.starts, read.n_samples) == (1.0, "month", (108.0,), 552)


@pytest.mark.integration
def test_the_skipped_days_of_the_nao_are_gaps(shared_data):
    read = el.read(shared_data("nao_daily.npz"))
    raw = np.load(shared_data("nao_daily.npz"))
    assert (read.dt, read.time_unit, read.dropped, len(read.segments)) == (1.0, "day", 18 + 2, 21)
    days = np.concatenate(read.times)
    kept = raw["time"][~np.isnan(raw["x"][:, 0])]
    np.testing.assert_array_equal(days, kept.astype(int))


@pytest.mark.integration
def test_the_fish_are_the_same_from_csv_and_npz(shared_data):
    text = el.read(shared_data("ectropus.csv"), dt=0.12, names=["mx", "my"], units=["1", "1"], time_unit="s")
    assert_same(text, el.read(shared_data("fish_schooling.npz")))
    assert text.dropped == 16


@pytest.mark.integration
def test_the_samples_of_an_npz_with_many_arrays_are_found(shared_data):
    angles = el.read(shared_data("alanine_dipeptide.npz"))
    assert (angles.names, angles.dt, angles.time_unit) == (("phi", "psi"), 10.0, "ps")
    assert el.read(shared_data("alanine_dipeptide.npz"), variables=["psi"]).dimension == 1
    brain = el.read(shared_data("eeg_eye_state.npz"))
    assert (brain.dimension, brain.dt) == (14, 1 / 128)
