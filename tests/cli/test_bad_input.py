"""What is wrong with the user's file or words is said in one line, with exit code 2, and nothing is left behind."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from oracles.command_line import QUICK, ou_table, run_main
from oracles.sample_files import DT, WRITERS

import effective_langevin as el
from effective_langevin.cli.run_folder import RunFolder

LENGTH = 300
PROGRESS = re.compile(r"Note: |[A-Z][a-z -]+: +\d+ % after")


def write_npy(path, values, time):
    np.save(path, values)


FORMATS = {**WRITERS, "run.npy": write_npy}
TIMED = [name for name in FORMATS if name != "run.npy"]


def good(length=LENGTH):
    return np.random.default_rng(0).normal(size=(length, 2)), DT * np.arange(length)


def refused(monkeypatch, capsys, folder, *arguments) -> str:
    """The one line of error of a command that leaves nothing beside what was in `folder` before."""
    before = sorted(p.name for p in folder.iterdir())
    code, out, err = run_main(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, ""), err
    lines = [line for line in err.strip().splitlines() if not PROGRESS.match(line)]
    assert len(lines) == 1, err
    assert lines[0].startswith("Error: ")
    assert "Traceback" not in err
    assert sorted(p.name for p in folder.iterdir()) == before
    return lines[0]


def fit_of(monkeypatch, capsys, path, *flags) -> str:
    flags = (*flags, "--dt", str(DT)) if path.suffix == ".npy" and "--no-dt" not in flags else flags
    flags = [flag for flag in flags if flag != "--no-dt"]
    return refused(monkeypatch, capsys, path.parent, "fit", path, *flags, "--out", path.parent / "out")


def damaged(path: Path) -> None:
    """Cut a file in half; of a folder, the largest file."""
    file = max((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size) if path.is_dir() else path
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("name", [n for n in FORMATS if n != "run.csv"])
def test_half_a_file_is_refused(name, tmp_path, monkeypatch, capsys):
    FORMATS[name](tmp_path / name, *good())
    damaged(tmp_path / name)
    assert name in fit_of(monkeypatch, capsys, tmp_path / name)


def test_half_a_line_of_text_is_refused(tmp_path, monkeypatch, capsys):
    """Half a text is a shorter text, unless a row ends too early."""
    WRITERS["run.csv"](tmp_path / "run.csv", *good())
    text = (tmp_path / "run.csv").read_text().splitlines()
    (tmp_path / "run.csv").write_text("\n".join([*text[:200], text[200].rsplit(",", 1)[0]]))
    assert "line 201: 2 cells where 3 are expected" in fit_of(monkeypatch, capsys, tmp_path / "run.csv")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_another_kind_is_refused(name, tmp_path, monkeypatch, capsys):
    (tmp_path / name).write_bytes(b"\x00\x01 nothing of the kind\xff" * 9)
    assert name in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("name", FORMATS)
def test_missing_values_throughout_are_refused(name, tmp_path, monkeypatch, capsys):
    values, time = good()
    values[:, 1] = np.nan
    FORMATS[name](tmp_path / name, values, time)
    assert "hold a NaN: no complete sample is left" in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_constant_column_is_refused_by_name(name, tmp_path, monkeypatch, capsys):
    values, time = good()
    values[:, 1] = 7.0
    FORMATS[name](tmp_path / name, values, time)
    assert "is constant (always 7)" in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("name", FORMATS)
def test_infinite_values_are_refused(name, tmp_path, monkeypatch, capsys):
    values, time = good()
    values[5, 1] = np.inf
    FORMATS[name](tmp_path / name, values, time)
    assert "infinite values" in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("name", TIMED)
def test_irregular_times_are_refused_with_a_way_out(name, tmp_path, monkeypatch, capsys):
    values, time = good()
    FORMATS[name](tmp_path / name, values, time + 0.3 * DT * np.sin(np.arange(len(time))))
    assert "resample" in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("name", TIMED)
def test_times_that_go_back_are_refused(name, tmp_path, monkeypatch, capsys):
    values, time = good()
    FORMATS[name](tmp_path / name, values, np.concatenate([time[150:], time[:150]]))
    assert "goes back" in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("name", TIMED)
def test_an_unknown_variable_is_refused_with_those_there_are(name, tmp_path, monkeypatch, capsys):
    FORMATS[name](tmp_path / name, *good())
    assert "'wind'" in fit_of(monkeypatch, capsys, tmp_path / name, "--variables", "wind")


@pytest.mark.parametrize("name", TIMED)
def test_an_interval_that_contradicts_the_file_is_refused(name, tmp_path, monkeypatch, capsys):
    FORMATS[name](tmp_path / name, *good())
    assert "Argument `dt` is 3.0, but the time coordinate is spaced by" in fit_of(
        monkeypatch, capsys, tmp_path / name, "--dt", "3"
    )


def without_time(name, path):
    values, _ = good()
    if name == "run.npz":
        np.savez(path, x=values)
    elif name == "run.csv":
        np.savetxt(path, values, delimiter=",", header="T,h", comments="")
    elif name == "run.h5":
        import h5py

        with h5py.File(path, "w") as file:
            file["x"] = values
    elif name == "run.npy":
        np.save(path, values)
    elif name == "run.parquet":
        import pandas as pd

        pd.DataFrame(values, columns=["T", "h"]).to_parquet(path)
    else:
        import xarray as xr

        data = xr.Dataset({"T": ("time", values[:, 0])})
        data.to_netcdf(path, engine="h5netcdf") if name == "run.nc" else data.to_zarr(path, consolidated=False)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_without_time_needs_dt(name, tmp_path, monkeypatch, capsys):
    without_time(name, tmp_path / name)
    assert "Argument `dt` is missing" in fit_of(monkeypatch, capsys, tmp_path / name, "--no-dt")


@pytest.mark.parametrize("name", ["run.npy", "run.npz", "run.h5"])
def test_an_array_the_wrong_way_round_is_refused(name, tmp_path, monkeypatch, capsys):
    values = good()[0].T
    if name == "run.npy":
        np.save(tmp_path / name, values)
    elif name == "run.npz":
        np.savez(tmp_path / name, x=values, dt=DT)
    else:
        import h5py

        with h5py.File(tmp_path / name, "w") as file:
            file["x"], file["dt"] = values, DT
    assert "look transposed" in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("name", FORMATS)
def test_too_short_a_file_is_refused(name, tmp_path, monkeypatch, capsys):
    FORMATS[name](tmp_path / name, *good(60))
    assert "has 60 usable samples; a fit needs at least 100" in fit_of(monkeypatch, capsys, tmp_path / name)


@pytest.mark.parametrize("module", ["h5netcdf", "netCDF4"])
def test_a_missing_netcdf_library_is_named(module, tmp_path, monkeypatch, capsys):
    WRITERS["run.nc"](tmp_path / "run.nc", *good())
    if module == "netCDF4":  # the third classic format, which only that library reads
        (tmp_path / "run.nc").write_bytes(b"CDF\x05" + bytes(100))
    monkeypatch.setitem(sys.modules, module, None)
    assert f"needs {module}, which is not installed: pip install {module}" in fit_of(
        monkeypatch, capsys, tmp_path / "run.nc"
    )


# Words ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return ou_table(tmp_path_factory.mktemp("table") / "ou.csv", LENGTH)


def names_the_fault(line: str, option: str, word: str) -> bool:
    """Whether an error speaks of the option or of what was given, so that it is not refused for another reason."""
    name = option.removeprefix("--")
    said = {name, name.replace("-", "_"), name.replace("-", ""), *(part for part in re.split(r"[,:=]", word) if part)}
    return any(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", line, re.IGNORECASE) for part in said)


BAD_WORDS = {
    "fit": {
        "--variables": ["c", "a,,b", ""],
        "--dt": ["0", "-1", "nan", "fast"],
        "--time": ["when"],
        "--member": ["fish"],
        "--resample": ["-1", "often"],
        "--time-unit": ["fortnight"],
        "--log": ["c", "b"],
        "--box-cox": ["c", "b"],
        "--deseason": ["0", "yearly", "5:x", "5:1:2", "5:99", "1e+09"],
        "--periodic": ["c", "a:x", "a:0"],
        "--pca": ["0", "3", "-1", "many", "1.5", "nan"],
        "--delay": ["0", "1:0", "x", "1:2:3", "999"],
        "--phase": ["0", "x"],
        "--score": ["kgm", "kgmm:cells=1", "kgmm:cels=3", "kgmm:cells", "denoising:network=\"cnn\"", "unet"],
        "--mobility": ["response", "finite-volume:min_mass=2", "log-correlation:lags=1"],
        "--memory": ["speed", "delays", "delays:0"],
        "--symmetry": ["mirror", "translations"],
        "--seed": ["-1", "1.5", "x"],
        "--config": ["nowhere.toml"],
    },
    "diagnose": {"--variables": ["c"], "--dt": ["0"], "--resample": ["-1"], "--time": ["when"]},
}  # fmt: skip
CASES = [(c, o, w) for c, options in BAD_WORDS.items() for o, words in options.items() for w in words]


@pytest.mark.parametrize(("command", "option", "word"), CASES, ids=[" ".join(case) for case in CASES])
def test_a_bad_word_for_an_option_is_refused(command, option, word, table, monkeypatch, capsys):
    flags = [*([] if option in ("--score", "--mobility") else QUICK), "--out", table.parent / "run"]
    line = refused(
        monkeypatch, capsys, table.parent, command, table, option, word, *(flags if command == "fit" else [])
    )
    assert names_the_fault(line, option, word), line


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder without a report, made in no time."""
    base = tmp_path_factory.mktemp("bad words")
    model = el.fit(el.read(ou_table(base / "ou.csv", LENGTH)), score=el.Gaussian(), mobility=el.QuadraticVariation())
    with RunFolder(base / "run") as folder:
        folder.keep_model(model, {"data": [str(base / "ou.csv")]})
    return base / "run"


RUN_CASES = [
    ("simulate", "--duration", "0"), ("simulate", "--duration", "x"), ("simulate", "--members", "0"),
    ("simulate", "--seed", "-1"), ("simulate", "--dt", "-1"), ("simulate", "--step", "0"), ("simulate", "--start", "x"),
    ("simulate", "--start", "nan"), ("simulate", "--out", "paths.xls"), ("simulate", "--out", "nowhere/paths.nc"),
    ("simulate", "--origin", "yesterday"), ("validate", "--members", "0"), ("validate", "--duration", "-1"),
    ("validate", "--seed", "-1"), ("validate", "--report", "nowhere/report.html"), ("report", "--bogus", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "option", "word"), RUN_CASES, ids=[" ".join(case) for case in RUN_CASES])
def test_a_bad_word_about_a_run_is_refused(command, option, word, run, monkeypatch, capsys):
    monkeypatch.chdir(run)
    flags = [option, word] if option == "--duration" or command != "simulate" else ["--duration", "1", option, word]
    line = refused(monkeypatch, capsys, run, command, run, *flags)
    assert names_the_fault(line, option, word), line


@pytest.mark.parametrize("command", ["simulate", "validate", "report"])
def test_what_is_no_run_is_refused(command, tmp_path, monkeypatch, capsys):
    more = ["--duration", "1"] if command == "simulate" else []
    assert "There is no run folder" in refused(monkeypatch, capsys, tmp_path, command, tmp_path / "run", *more)
    (tmp_path / "run").mkdir()
    assert "There is no model file" in refused(monkeypatch, capsys, tmp_path, command, tmp_path / "run", *more)
    (tmp_path / "run" / "model.safetensors").write_text("no model")
    assert "is not a readable model file" in refused(monkeypatch, capsys, tmp_path, command, tmp_path / "run", *more)


def test_data_that_have_gone_are_missed(run, tmp_path, monkeypatch, capsys):
    other = tmp_path / "run"
    other.mkdir()
    (other / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes())
    (other / "config.toml").write_text((run / "config.toml").read_text().replace("ou.csv", "gone.csv"))
    assert "There is no file or folder" in refused(monkeypatch, capsys, tmp_path, "report", other)


TOML = {
    "not TOML": ("seed = = 3", "are not TOML"),
    "unknown key": ("sed = 3", "There is no setting `sed` in .*Did you mean `seed`?"),
    "unknown key of a strategy": ('[score]\nkind = "KGMM"\nnoise = 0.1', "There is no setting `noise` in score KGMM"),
    "unknown kind": ('[[preprocess]]\nkind = "wavelet"', "Argument `preprocess` must be one of 'log'"),
    "unknown validation": ("[validation]\nmember = 3", "Did you mean `members`?"),
    "two orders": ('detrend = true\npreprocess = ["log"]', "Give either `preprocess` or `detrend`"),
    "wrong kind of value": ('force = "yes"', "Argument `force` must be a bool"),
    "wrong kind of data": ("data = 3", "Argument `data` must be a text or a list of texts"),
    "wrong kind of seed": ("seed = 1.5", "Argument `seed` must be an integer"),
    "wrong kind of table": ("validation = 3", "Argument `validation` must be a dict"),
    "wrong interval": ("dt = -1", "Argument `dt`"),
    "settled angles": ('settle = true\nperiodic = "a"', "`settle` and `periodic` exclude each other"),
    "wrong transform": ("deseason = -12", "Argument `period` must be a positive number"),
}


@pytest.mark.parametrize("case", TOML)
def test_bad_settings_in_a_file_are_refused(case, table, tmp_path, monkeypatch, capsys):
    text, message = TOML[case]
    (tmp_path / "run.toml").write_text(text)
    flags = ["--config", tmp_path / "run.toml", "--out", tmp_path / "run"]
    files = [] if "data =" in text else [table]
    assert message.partition(".*")[0] in (line := refused(monkeypatch, capsys, tmp_path, "fit", *files, *flags))
    assert message.partition(".*")[2] in line


# Full disks -----------------------------------------------------------------------------------------------------------


def full(*_, **__):
    raise OSError(28, "No space left on device")


def half_a_report(path, text, encoding=None, original=Path.write_text):
    original(path, text[: len(text) // 2] if "report" in path.name else text, encoding)
    if "report" in path.name:
        full()


def test_a_full_disk_before_the_model_leaves_nothing(table, monkeypatch, capsys):
    monkeypatch.setattr(Path, "write_bytes", full)
    line = refused(monkeypatch, capsys, table.parent, "fit", table, *QUICK, "--out", table.parent / "run")
    assert "No space left on device" in line


@pytest.mark.integration
@pytest.mark.parametrize("stage", ["figure", "report"])
def test_a_full_disk_after_the_model_keeps_the_model_and_no_half_file(stage, table, tmp_path, monkeypatch, capsys):
    """The run folder does not appear; what it would have held so far is whole."""
    if stage == "figure":
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    else:
        monkeypatch.setattr(Path, "write_text", half_a_report)
    code, _, err = run_main(monkeypatch, capsys, "fit", table, *QUICK, "--out", tmp_path / "run")
    assert code == 2
    assert err.count("Error:") == 1
    assert "No space left on device. The fitted model is in" in err
    assert [p.name for p in tmp_path.iterdir()] == ["run.partial"]
    assert el.load(tmp_path / "run.partial" / "model.safetensors").names == ("a", "b")
    kept = {p.name for p in (tmp_path / "run.partial").iterdir()}
    assert kept - {"checkpoints"} == {"config.toml", "figures", "model.safetensors"}
    assert not list((tmp_path / "run.partial" / "figures").glob(".*"))


@pytest.mark.parametrize("suffix", ["nc", "npz", "csv"])
def test_a_full_disk_leaves_no_half_paths(suffix, run, monkeypatch, capsys):
    targets = {"nc": "xarray.Dataset.to_netcdf", "npz": "numpy.savez", "csv": "csv.writer"}
    monkeypatch.setattr(targets[suffix], full)
    line = refused(monkeypatch, capsys, run, "simulate", run, "--duration", "1", "--out", run / f"paths.{suffix}")
    assert "No space left on device" in line


# As processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.integration
def test_the_command_itself_exits_with_two_and_one_line(tmp_path):
    command = [sys.executable, "-m", "effective_langevin", "fit", "nowhere.nc", "--out", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip() == "Error: There is no file or folder at nowhere.nc."
    assert list(tmp_path.iterdir()) == []
