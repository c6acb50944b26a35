"""Many fits: the models of `el.fit`, failures listed, nothing done twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from oracles.command_line import run_main

import effective_langevin as el
from effective_langevin.execution import workers
from effective_langevin.many import ManyFits, task
from effective_langevin.many.result import file_stems

QUICK = {"score": el.Gaussian(), "mobility": el.QuadraticVariation()}
SYSTEM = el.systems.OrnsteinUhlenbeck.rotating(2)


def ou(seed, length=1000):
    return SYSTEM.simulate(0.1 * length, dt=0.1, seed=seed)


@pytest.fixture(scope="module")
def stations():
    return {f"station/{i}": ou(i) for i in range(3)}


@pytest.fixture
def calls(monkeypatch):
    """Names of the series that are fitted, in order."""
    seen, fit = [], task.fit
    monkeypatch.setattr(task, "fit", lambda series, **given: seen.append(series) or fit(series, **given))
    return seen


def test_models_are_those_of_fit_bit_by_bit(stations, tmp_path):
    fits = el.fit_many(stations, out=tmp_path / "runs", **QUICK)
    assert list(fits.models) == list(stations)
    for name, series in stations.items():
        alone = el.fit(series, check="off", compare_estimators=False, **QUICK)
        alone.save(tmp_path / "alone.safetensors")
        assert (tmp_path / "alone.safetensors").read_bytes() == fits.folder.model(name).read_bytes()
        row = fits.table.loc[name]
        assert row["mobility_x1_x2"] == alone.mobility.matrix[0, 1]
        assert row["mobility_x1_x2_se"] == alone.mobility.standard_error[0, 1]
        assert row["relaxation_time_1"] == alone.timescales().value[0]
        assert row["entropy_production"] == alone.entropy_production().value


def test_broken_series_are_listed_and_the_rest_is_done(stations):
    nan, constant = np.full((500, 2), np.nan), el.TimeSeries(np.ones((500, 2)), dt=0.1)
    broken = {"nan": nan, "constant": constant, "short": ou(0, 50), "lost": Path("nowhere.csv")}
    fits = el.fit_many({**broken, **stations}, reading={"dt": 0.1}, **QUICK)
    assert list(fits.models) == list(stations)
    assert list(fits.failures) == list(broken)
    assert all("\n" not in reason for reason in fits.failures.values())
    for name, words in {
        "nan": "hold a NaN",
        "constant": "constant",
        "short": "needs at least",
        "lost": "There is no",
    }.items():
        assert words in fits.failures[name]
    assert list(fits.table.index) == [*broken, *stations]
    assert fits.table["failure"].astype(bool).sum() == 4
    assert "short: The series has 51" in fits.summary()


def test_an_error_that_nobody_foresaw_costs_one_series_and_is_tried_again(stations, tmp_path, monkeypatch):
    fit, bad = task.fit, stations["station/1"]

    def fail(series, **given):
        if series is bad:
            raise RuntimeError("out of\nluck")
        return fit(series, **given)

    monkeypatch.setattr(task, "fit", fail)
    fits = el.fit_many(stations, out=tmp_path, **QUICK)
    assert fits.failures == {"station/1": "RuntimeError: out of luck"}
    monkeypatch.setattr(task, "fit", fit)
    again = el.fit_many(stations, out=tmp_path, **QUICK)
    assert (again.failures, again.fitted) == ({}, 1)


def test_nothing_is_done_twice_unless_the_data_changed(stations, tmp_path, calls):
    broken = {**stations, "short": ou(0, 50)}
    first = el.fit_many(broken, out=tmp_path, **QUICK)
    assert (first.fitted, len(calls)) == (3, 4)
    second = el.fit_many(broken, out=tmp_path, **QUICK)
    assert (second.fitted, len(calls)) == (0, 4)
    assert first.table.equals(second.table)
    changed = {**broken, "station/2": ou(9), "more": ou(10)}
    third = el.fit_many(changed, out=tmp_path, **QUICK)
    assert (third.fitted, len(calls)) == (2, 6)
    fits = ManyFits.open(tmp_path)
    assert fits.table.equals(third.table)
    assert fits.models["more"].names == ("x1", "x2")


def test_a_folder_with_other_settings_is_not_mixed_up(stations, tmp_path):
    el.fit_many(stations, out=tmp_path, **QUICK)
    with pytest.raises(el.ArgumentError, match="other settings"):
        el.fit_many(stations, out=tmp_path, seed=1, **QUICK)
    assert el.fit_many(stations, out=tmp_path, seed=1, overwrite=True, **QUICK).fitted == 3


def test_table_and_page_are_written(stations, tmp_path):
    names = {"a<b>": stations["station/0"], "short": ou(0, 50)}
    fits = el.fit_many(names, out=tmp_path, **QUICK)
    frame, data = pd.read_parquet(tmp_path / "table.parquet"), xr.open_dataset(tmp_path / "table.nc")
    pd.testing.assert_frame_equal(frame, fits.table, check_dtype=False)
    np.testing.assert_array_equal(data["mobility_x1_x1"], fits.table["mobility_x1_x1"])
    assert data["series"].values.tolist() == list(names)
    assert fits.to_xarray().sizes == {"series": 2}
    page = (tmp_path / "index.html").read_text()
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page
    assert "needs at least 100" in page


@pytest.mark.parametrize(
    "names", [("a/b", "a:b", "..", "CON", ""), ("A", "a", "A~", "x" * 300), ("ä", "日本", "a b", ".hidden", "end.")]
)
def test_every_name_has_one_file_of_its_own(names):
    stems = file_stems(names)
    assert len({stem.casefold() for stem in stems.values()}) == len(names)
    for stem in stems.values():
        assert stem.isascii()
        assert not set(stem) & set('/\\:*?"<>| ')
        assert 0 < len(stem) < 100
        assert stem[0] != "."
    assert file_stems(["Oslo-1.2"]) == {"Oslo-1.2": "Oslo-1.2"}


def test_a_dimension_a_column_and_a_folder_give_the_same_models(stations, tmp_path):
    values = {name.replace("/", "-"): series.values for name, series in stations.items()}
    labels, time = list(values), 0.1 * np.arange(1001)
    array = xr.DataArray(
        np.stack(list(values.values())), {"station": labels, "time": time, "v": ["a", "b"]}, ("station", "time", "v")
    )
    frames = {n: pd.DataFrame({"time": time, "a": v[:, 0], "b": v[:, 1]}) for n, v in values.items()}
    table = pd.concat([frame.assign(station=name) for name, frame in frames.items()], ignore_index=True)
    folder = tmp_path / "files"
    folder.mkdir()
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet")
    table.to_csv(tmp_path / "all.csv", index=False, float_format="%.17g")
    array.to_dataset("v").to_netcdf(tmp_path / "all.nc", engine="h5netcdf")
    sources = {
        "dimension": (array, "station"),
        "column": (table, "station"),
        "folder": (folder, None),
        "pattern": (str(folder / "*.parquet"), "file"),
        "csv": (tmp_path / "all.csv", "station"),
        "nc": (tmp_path / "all.nc", "station"),
    }
    tables = {how: el.fit_many(source, by=by, **QUICK).table for how, (source, by) in sources.items()}
    for found in tables.values():
        assert list(found.index) == labels
        assert not found["failure"].any()
        np.testing.assert_allclose(found["mobility_a_b"], tables["dimension"]["mobility_a_b"], rtol=1e-9)


def test_sources_that_make_no_sense_are_refused(stations, tmp_path):
    (tmp_path / "one.csv").write_text("time,a\n0,1\n1,2\n")
    cases = [
        ({"source": stations["station/0"]}, "Argument `source`"),
        ({"source": {}}, "one series or more"),
        ({"source": stations, "by": "station"}, "Argument `by`"),
        ({"source": tmp_path / "one.csv"}, "one file"),
        ({"source": tmp_path / "none"}, "one file"),
        ({"source": str(tmp_path / "*.nc")}, "no file"),
        ({"source": pd.DataFrame({"a": [1.0, 2.0]})}, "Argument `by` is missing"),
        ({"source": pd.DataFrame({"a": [1.0, 2.0]}), "by": "b"}, "Argument `by`"),
        ({"source": stations, "workers": 0}, "Argument `workers`"),
        ({"source": stations, "report": ["nobody"]}, "Argument `report`"),
    ]
    for given, words in cases:
        with pytest.raises(el.EffectiveLangevinError, match=words):
            el.fit_many(**given)


def die(task):
    """Work that ends its process, for one task of several; at top level, so that processes find it."""
    if task == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if task == 3:
        raise ValueError("three")
    return 10 * task


@pytest.mark.integration
def test_a_process_that_dies_costs_its_own_work_only():
    found = dict(workers.run_all(die, range(6), 2))
    assert {task: found[task] for task in (0, 1, 4, 5)} == {0: 0, 1: 10, 4: 40, 5: 50}
    assert "was killed" in str(found[2])
    assert str(found[3]) == "three"
    assert "--xla_cpu_multi_thread_eigen" not in os.environ.get("XLA_FLAGS", "")


@pytest.mark.integration
def test_processes_give_the_same_models_and_a_report_where_asked(stations, tmp_path):
    one = el.fit_many(stations, out=tmp_path / "one", workers=1, **QUICK)
    two = el.fit_many(stations, out=tmp_path / "two", workers=2, report="station/1", **QUICK)
    for name in stations:
        assert one.folder.model(name).read_bytes() == two.folder.model(name).read_bytes()
    assert two.table.loc["station/1", "level"] in ("good", "usable", "undecided", "poor")
    (report,) = (tmp_path / "two" / "reports").iterdir()
    assert f'href="reports/{report.name}"' in (tmp_path / "two" / "index.html").read_text()


SCRIPT = """
import sys, numpy as np, effective_langevin as el
if __name__ == "__main__":
    series = {f"s{i}": el.systems.OrnsteinUhlenbeck.rotating(2).simulate(100.0, dt=0.1, seed=i) for i in range(40)}
    el.fit_many(series, out=sys.argv[1], workers=2, score=el.Gaussian())
"""


@pytest.mark.integration
def test_a_run_that_was_killed_continues_and_does_nothing_twice(tmp_path):
    script, out = tmp_path / "script.py", tmp_path / "runs"
    script.write_text(SCRIPT)
    running = subprocess.Popen([sys.executable, str(script), str(out)], start_new_session=True)
    rows = out / "rows"
    limit = time.monotonic() + 120
    while (len(list(rows.glob("[!.]*.json"))) if rows.is_dir() else 0) < 5 and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    before = {path: path.stat().st_mtime_ns for path in [*rows.glob("[!.]*.json"), *(out / "models").glob("[!.]*")]}
    done = {path.stem for path in rows.glob("[!.]*.json")}
    assert 5 <= len(done) < 40
    subprocess.run([sys.executable, str(script), str(out)], check=True)
    fits = ManyFits.open(out)
    assert (len(fits.models), fits.failures) == (40, {})
    kept = {path: stamp for path, stamp in before.items() if path.stem in done}
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert not list(out.rglob(".*.part*"))


@pytest.mark.integration
def test_the_command_fits_by_column(stations, tmp_path, monkeypatch, capsys):
    parts = [
        pd.DataFrame(s.values, columns=["a", "b"]).assign(time=0.1 * np.arange(1001), station=n)
        for n, s in stations.items()
    ]
    pd.concat(parts).to_csv(tmp_path / "all.csv", index=False)
    flags = [tmp_path / "all.csv", "--by", "station", "--out", tmp_path / "runs", "--score", "gaussian", "--json"]
    code, out, err = run_main(monkeypatch, capsys, "fit", *flags)
    assert (code, json.loads(out)["models"], json.loads(out)["failures"]) == (0, 3, {}), err
    assert list(ManyFits.open(tmp_path / "runs").table.index) == list(stations)
    code, _, err = run_main(monkeypatch, capsys, "fit", tmp_path / "all.csv", "--by", "city", "--out", tmp_path / "x")
    assert (code, "Argument `by`" in err) == (2, True)


@pytest.mark.integration
def test_a_dask_client_does_the_fits(stations, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        there = el.fit_many(stations, out=tmp_path / "dask", **QUICK)
    here = el.fit_many(stations, out=tmp_path / "here", **QUICK)
    for name in stations:
        assert there.folder.model(name).read_bytes() == here.folder.model(name).read_bytes()
