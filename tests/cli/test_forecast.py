"""`effective-langevin forecast`: from the end of the series, one of its times, or a state."""

import json

import numpy as np
import pytest
import xarray as xr
from oracles.command_line import ou_table, run_main

import effective_langevin as el


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder with what `forecast` needs: a model of a series with a season, and where the series is."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    folder.mkdir()
    data = ou_table(folder.parent / "ou.csv", length=1000)
    series = el.read(data)
    options = {"score": el.Gaussian(), "mobility": el.LogCorrelation(), "check": "off"}
    el.fit(series, preprocess=el.preprocess.RemoveSeasonalCycle(5, harmonics=1), **options).save(
        folder / "model.safetensors"
    )
    (folder / "config.toml").write_text('data = "../ou.csv"\ndeseason = "5:1"\nscore = "gaussian"\n')
    return folder, series


def forecast(monkeypatch, capsys, folder, *flags):
    code, out, err = run_main(monkeypatch, capsys, "forecast", folder, "--leads", "0.5", "--json", *flags)
    assert code == 0, err
    return json.loads(out)


def test_it_begins_at_the_end_of_the_series(run, monkeypatch, capsys, tmp_path):
    folder, series = run
    answer = forecast(monkeypatch, capsys, folder, "--members", "7", "--out", tmp_path / "fc.nc")
    np.testing.assert_allclose(answer["leads"], [0.1, 0.2, 0.3, 0.4, 0.5])
    with xr.open_dataset(tmp_path / "fc.nc", engine="h5netcdf", decode_timedelta=False) as found:
        assert dict(found["a"].sizes) == {"start": 1, "member": 7, "lead": 5}
        assert float(found.start[0]) == pytest.approx(series.times[0][-1])
    model = el.load(folder / "model.safetensors")
    expected = model.forecast(series, 0.5, members=7)
    np.testing.assert_allclose(answer["mean"], expected.mean[0], rtol=1e-6)


def test_it_begins_at_a_time_of_the_series_or_at_a_state(run, monkeypatch, capsys, tmp_path):
    folder, series = run
    row = 400
    time = f"{series.times[0][row]:.6g}"
    at_time = forecast(monkeypatch, capsys, folder, "--from", time, "--out", tmp_path / "a.nc")
    model = el.load(folder / "model.safetensors")
    expected = model.forecast(series.values[[row]], 0.5, members=100, start=series.times[0][row])
    np.testing.assert_allclose(at_time["mean"], expected.mean[0], rtol=1e-5)
    state = ",".join(f"{name}={value}" for name, value in zip(("a", "b"), series.values[row]))
    at_state = forecast(monkeypatch, capsys, folder, "--from", state, "--out", tmp_path / "b.nc")
    expected = model.forecast(series.values[[row]], 0.5, members=100)
    np.testing.assert_allclose(at_state["mean"], expected.mean[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--from", "1e6"], "The series has no sample at 1e6"),
        (["--from", "a=1"], "a number for each of a, b"),
        (["--from", "a=1,c=2"], "among the names in the model"),
        (["--out", "fc.csv"], "'.nc', '.zarr'"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(run, monkeypatch, capsys, tmp_path, flags, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_main(monkeypatch, capsys, "forecast", run[0], "--leads", "0.5", *flags)
    assert code == 2
    assert words in err
    assert not (run[0] / "forecast.nc").exists()
