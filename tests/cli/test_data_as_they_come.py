"""From a file as it came to paths that keep its labels: one command each, or one line that names the flag."""

import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from oracles.command_line import QUICK, ou_table, run_main

import effective_langevin as el
from effective_langevin import cli
from effective_langevin.cli.output import in_flags

RNG = np.random.default_rng(0)


def slow(length=600, width=2):
    """Columns with a memory of about ten rows."""
    x = np.zeros((length, width))
    for i in range(1, length):
        x[i] = 0.9 * x[i - 1] + RNG.normal(size=width)
    return x


def table(path, header, *columns, separator=","):
    rows = [separator.join(map(str, row)) for row in zip(*columns)]
    path.write_text("\n".join([*header, *rows]) + "\n")


def write_codes(path):
    x = slow()
    x[[5, 300], 1] = 999
    table(path, ["time,a,b"], range(600), *x.T)


def write_clock(path):
    table(path, [], *slow().T, 0.1 * np.arange(600), separator=" ")


def write_tracks(path):
    table(path, ["time,t1,t2,t3"], range(600), *slow(width=3).T)


def write_trading_days(path):
    table(path, ["DATE,close"], pd.bdate_range("1990-01-01", periods=600).strftime("%Y-%m-%d"), slow()[:, 0])


def write_stamps_that_repeat(path):
    table(path, ["time,x"], [5, *range(599)], slow()[:, 0])


def write_years(path):
    dates = pd.date_range("1950-01-01", periods=600, freq="MS")
    table(path, ["year,month,T,place"], dates.year, dates.month, slow()[:, 0], ["Kiel"] * 600)


def write_mjo(path):
    days, x = pd.date_range("1974-06-01", periods=600), slow()
    x[:40] = 1e36
    top = [
        'RMM values up to "real time". For the OLR and wind anomalies see http',
        "year, month, day, RMM1, RMM2, phase.  Missing Value= 1.E36 or 999",
    ]
    table(path, top, days.year, days.month, days.day, *x.T, ["Final_value"] * 600, separator="  ")


def write_ring(path):
    """39 tracks of one angle without a header, the time last with five digits."""
    table(path, [], *slow(width=39).T, [f"{i / 150:.5g}" for i in range(600)], separator=" ")


def write_trap(path):
    """A blank first line, and stamps of five digits that repeat themselves from 100 s on."""
    stamps = [f"{6.9e-3 * i:.5g}" for i in range(14_000, 16_000)]
    table(path, ["", "time x"], stamps, slow(2000)[:, 0], separator=" ")


def write_core(path):
    """A byte order mark, comments, units in brackets, and an age, which counts backwards."""
    age = [f"{10 + 0.02 * i:.2f}" for i in range(600)]
    table(path, ["\ufeff# NGRIP", "Age [ka b2k] (GICC05),d18O [permil]"], age, slow()[:, 0])


def write_turns(path):
    """An angle that is driven around a ring and prefers one side of it, counted over its turns."""
    x, kicks = np.zeros(4000), RNG.normal(size=4000)
    for i in range(1, 4000):
        x[i] = x[i - 1] + 0.1 * (1.1 + np.sin(x[i - 1])) + 0.1 * kicks[i]
    table(path, ["time,theta"], range(4000), x)


def write_unit_in_name(path):
    table(path, ["time_s,x"], 1e-4 * np.arange(600), slow()[:, 0])


def write_irregular(path):
    table(path, ["time,x"], np.cumsum(1 + RNG.random(600)), slow()[:, 0])


def write_prices(path):
    days = pd.bdate_range("1990-01-01", periods=600).strftime("%m/%d/%Y")
    table(path, ["DATE,OPEN,HIGH,LOW,CLOSE"], days, *np.exp(0.1 * slow(width=4)).T)


# How each file is written, what is said of it as it is (empty: it is read), and the flags that read it.
OBSTACLES = {
    "codes": (write_codes, "holds 999 (2 times), far from all other values", ["--missing", "999"]),
    "clock": (write_clock, "Pass --time 'x3' to use it as the time", ["--time", "x3"]),
    "records": (write_tracks, "", ["--records-in-columns"]),
    "weekends": (write_trading_days, "Pass --calendar rows to count time in rows", ["--calendar", "rows"]),
    "stamps": (write_stamps_that_repeat, "to ignore the stamps, pass --no-time", ["--no-time", "--dt", "0.1"]),
    "years": (write_years, "", ["--from", "1960", "--to", "1989-06"]),
    "thin": (write_years, "", ["--thin", "3"]),
    "MJO": (write_mjo, "holds 1e+36 (40 times)", ["--missing", "1e36,999", "--variables", "RMM1,RMM2"]),
    "ring": (write_ring, "Pass --time 'x40'", ["--time", "x40", "--records-in-columns"]),
    "trap": (write_trap, "", ["--no-time", "--dt", "6.9e-3", "--variables", "x"]),
    "ice core": (write_core, "Pass --time", ["--time", "Age", "--from", "12", "--to", "20"]),
    "turns": (write_turns, "", ["--periodic", "theta"]),
    "time_s": (write_unit_in_name, "", ["--time-unit", "s"]),
    "irregular": (write_irregular, "--resample", ["--resample", "1.5"]),
    "prices": (write_prices, "Pass --calendar rows", ["--calendar", "rows", "--variables", "CLOSE", "--log", "CLOSE"]),
    "resample": (write_trading_days, "or --resample STEP to interpolate", ["--resample", "1"]),
}


@pytest.mark.parametrize("case", OBSTACLES)
def test_a_file_as_it_came_is_read_or_the_flag_is_named(case, tmp_path, monkeypatch, capsys):
    write, said, flags = OBSTACLES[case]
    write(tmp_path / "a.csv")
    monkeypatch.setattr(sys.modules["effective_langevin.diagnose"], "diagnose", lambda series: LOOK)
    code, _, err = run_main(monkeypatch, capsys, "diagnose", tmp_path / "a.csv")
    assert said in err
    assert code == 0 or said
    assert run_main(monkeypatch, capsys, "diagnose", tmp_path / "a.csv", *flags)[0] == 0


LOOK = el.diagnose(el.TimeSeries(np.random.default_rng(0).normal(size=100), 1.0))


def test_diagnose_looks_at_the_series_that_would_be_fitted(tmp_path, monkeypatch, capsys):
    path = ou_table(tmp_path / "ou.csv")
    before = run_main(monkeypatch, capsys, "diagnose", path)[1]
    assert "--deseason 5" in before
    assert "el.preprocess" not in before
    after = run_main(monkeypatch, capsys, "diagnose", path, "--deseason", "5", "--detrend")[1]
    assert "--deseason" not in after


def test_messages_name_flags_on_the_command_line():
    assert in_flags("pass time=False or variables=[...]") == "pass --no-time or --variables A,B"
    assert in_flags("Pass missing=[999,1e+36], or missing=[] if") == "Pass --missing=999,1e+36, or --missing none if"
    assert (
        in_flags("`preprocess=[el.preprocess.PCA(3)]`, `el.LogCorrelation()`") == "--pca 3, --mobility log-correlation"
    )
    assert in_flags('`el.TimeSeries(..., periods={"phi": 360})`.') == "--periodic phi:360."


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run beside its data, in a folder that can be moved."""
    folder = tmp_path_factory.mktemp("project")
    flags = ["--out", str(folder / "run"), "--deseason", "5", *QUICK]
    cli.app(["fit", str(ou_table(folder / "ou.csv")), *flags], standalone_mode=False)
    return folder / "run"


@pytest.mark.slow
def test_a_run_says_what_it_was_learned_from(run):
    model = el.load(run / "model.safetensors")
    source = model.provenance["source"]
    assert (source["files"], source["variables"]) == (["ou.csv"], ["a", "b"])
    assert (source["from"], source["to"]) == (3.0, pytest.approx(3 + 0.1 * 2000, abs=0.11))
    config = (run / "config.toml").read_text()
    assert '"../ou.csv"' in config
    assert str(run.parent) not in config
    report = (run / "report.html").read_text()
    assert model.provenance["sha256"] in report
    assert source["modified"] in report


@pytest.mark.slow
def test_a_project_can_be_moved_and_changed_data_are_noticed(run, tmp_path, monkeypatch, capsys):
    shutil.copytree(run.parent, tmp_path / "moved")
    monkeypatch.setattr("effective_langevin.cli.settings.validate", lambda model, series, **_: 1 / 0)
    data = tmp_path / "moved" / "ou.csv"
    for changed in (False, True):
        if changed:
            data.write_text(data.read_text().rstrip().rsplit("\n", 1)[0] + "\n")
        with pytest.raises(ZeroDivisionError):
            run_main(monkeypatch, capsys, "validate", tmp_path / "moved" / "run")
        assert ("Warning: ou.csv changed since the fit" in capsys.readouterr().err) == changed


@pytest.mark.slow
def test_a_lat_lon_file_goes_to_a_report_and_back_to_a_file_that_xarray_plots(tmp_path, monkeypatch, capsys):
    lat, lon = np.arange(-60.0, 61.0, 30.0), np.arange(0.0, 360.0, 60.0)
    pattern = np.cos(np.deg2rad(lat))[:, None] * np.sin(np.deg2rad(lon))
    values = slow(width=1)[:, :, None] * pattern + 0.3 * RNG.normal(size=(600, 5, 6))
    values[:, 0, 0] = np.nan
    coords = {"time": pd.date_range("1950-01-01", periods=600, freq="MS"), "lat": lat, "lon": lon}
    field = xr.DataArray(values, coords, ("time", "lat", "lon"), "sst", {"units": "K"})
    field.to_netcdf(tmp_path / "sst.nc", engine="h5netcdf")
    run = tmp_path / "run"
    code, _, err = run_main(monkeypatch, capsys, "fit", tmp_path / "sst.nc", "--pca", "1", "--out", run, *QUICK)
    assert code == 0, err
    assert (run / "report.html").is_file()
    code, out, _ = run_main(monkeypatch, capsys, "simulate", run, "--duration", "24", "--members", "2")
    assert code == 0
    assert "samples of sst(lat, lon)" in out
    later = ["--start", "2020-01-01", "--out", tmp_path / "later.csv"]
    assert run_main(monkeypatch, capsys, "simulate", run, "--duration", "3", *later)[0] == 0
    assert "2020-02-01" in (tmp_path / "later.csv").read_text()
    with xr.open_dataset(run / "paths.nc") as paths:
        assert paths.sst.dims == ("member", "time", "lat", "lon")
        assert paths.time.values[0] == np.datetime64("1950-01-01")
        np.testing.assert_array_equal(paths.lat, lat)
        assert paths.sst.attrs["units"] == "K"
        np.testing.assert_array_equal(np.isnan(paths.sst[0, 0]), np.isnan(field[0]))
        paths.sst.isel(member=0, time=0).plot()
