"""From a file to a report and back: every command on one small run, and the same model again from its settings."""

import json
import sys
import tomllib
from importlib import import_module

import numpy as np
import pytest
from oracles.command_line import QUICK, ou_table, run_main
from typer.testing import CliRunner

import effective_langevin as el
from effective_langevin import cli
from effective_langevin.cli import options, output
from effective_langevin.cli.choices import CHOICES
from effective_langevin.cli.demo import DEMOS

FILES = {"config.toml", "model.safetensors", "metrics.json", "curves.nc", "report.html", "figures"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One command from a file with a season to a report."""
    base = tmp_path_factory.mktemp("fit")
    ou_table(base / "ou.csv")
    score = "kgmm:noise_level=0.3,cells=20,steps=50,hidden=[8]"
    flags = ["--deseason", "5:1", "--pca", "2", "--score", score, "--seed", "3", "--out", str(base / "run"), "--json"]
    result = CliRunner().invoke(cli.app, ["fit", str(base / "ou.csv"), *flags], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["metrics"].keys() == json.loads((base / "run" / "metrics.json").read_text()).keys()
    assert answer["folder"] == str(base / "run")
    return base / "run"


@pytest.fixture(scope="module")
def model_file(linear_model, tmp_path_factory):
    """A model alone, without a run: dt = 0.1 d, T [K] and h [m]."""
    path = tmp_path_factory.mktemp("small") / "model.safetensors"
    linear_model.save(path)
    return path


@pytest.mark.integration
def test_a_file_gives_a_complete_run_folder(folder):
    assert {p.name for p in folder.iterdir()} == FILES
    assert not folder.with_name("run.partial").exists()
    model = el.load(folder / "model.safetensors")
    assert model.names == ("PC1", "PC2")
    assert model.transform.names == ("a", "b")


@pytest.mark.integration
def test_the_settings_say_all_that_a_run_needs(folder):
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["data"] == ["../ou.csv"]
    assert [step["kind"] for step in config["preprocess"]] == ["RemoveSeasonalCycle", "PCA"]
    assert config["score"] == {
        "kind": "KGMM", "noise_level": 0.3, "cells": 20, "hidden": [8], "max_draws": 32, "steps": 50, "calibrate": True,
        "narrowest": 0.1,
    }  # fmt: skip
    assert (config["seed"], config["validation"]["seed"], config["force"], config["settle"]) == (3, 4, False, False)
    assert config["found"]["dt"] == pytest.approx(0.1)
    assert config["versions"]["effective-langevin"] == "0.1.0"


@pytest.mark.integration
def test_the_settings_give_the_same_model_bit_for_bit(folder, tmp_path):
    arguments = ["fit", "--config", str(folder / "config.toml"), "--out", str(tmp_path / "again")]
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    one, other = ((f / "model.safetensors").read_bytes() for f in (folder, tmp_path / "again"))
    assert one == other
    settings, repeated = (tomllib.loads((f / "config.toml").read_text()) for f in (folder, tmp_path / "again"))
    assert (tmp_path / "again" / repeated["data"][0]).samefile(folder / settings["data"][0])
    assert {**settings, "data": None} == {**repeated, "data": None}
    old, new = (json.loads((f / "metrics.json").read_text()) for f in (folder, tmp_path / "again"))
    assert {k: v for k, v in old.items() if k in ("acf_rmse", "pdf_kl_max")}.items() <= new.items()


@pytest.mark.integration
@pytest.mark.parametrize("suffix", ["nc", "zarr", "h5", "npz", "csv", "parquet"])
def test_simulated_paths_are_read_back_from_every_format(suffix, folder, tmp_path, monkeypatch, capsys):
    out = tmp_path / f"paths.{suffix}"
    flags = ["--duration", "5", "--members", "3", "--seed", "2", "--out", out]
    code, words, _ = run_main(monkeypatch, capsys, "simulate", folder, *flags)
    assert (code, "3 paths of" in words) == (0, True)
    expected = el.load(folder / "model.safetensors").simulate(5.0, members=3, seed=2)
    paths = el.read(out)
    single = suffix == "zarr"  # written block by block, in single precision
    np.testing.assert_array_equal(paths.values, expected.values.astype(np.float32) if single else expected.values)
    assert (paths.names, paths.units, paths.time_unit) == (("a", "b"), ("K", "m"), "s")
    np.testing.assert_allclose(paths.starts, expected.starts)
    assert [p.name for p in tmp_path.iterdir()] == [out.name]


@pytest.mark.integration
def test_simulated_paths_carry_cf_attributes_and_dates(folder, tmp_path, monkeypatch, capsys):
    import xarray as xr

    flags = ["--duration", "2", "--start", "86400", "--origin", "1970-01-01", "--out", tmp_path / "paths.nc"]
    assert run_main(monkeypatch, capsys, "simulate", folder, *flags)[0] == 0
    with xr.open_dataset(tmp_path / "paths.nc", engine="h5netcdf") as data:
        assert data.attrs["Conventions"].startswith("CF")
        assert data["a"].attrs["units"] == "K"
        assert data["time"].values[0] == np.datetime64("1970-01-02")


@pytest.mark.integration
def test_paths_go_into_the_run_folder_and_are_not_overwritten(folder, monkeypatch, capsys):
    code, out, _ = run_main(monkeypatch, capsys, "simulate", folder, "--duration", "1", "--json")
    assert json.loads(out)["file"] == str(folder / "paths.nc")
    code, _, err = run_main(monkeypatch, capsys, "simulate", folder, "--duration", "1")
    assert (code, "paths.nc exists already" in err) == (2, True)
    assert run_main(monkeypatch, capsys, "simulate", folder, "--duration", "1", "--overwrite")[0] == 0
    (folder / "paths.nc").unlink()


@pytest.mark.integration
def test_validate_repeats_the_metrics_of_the_run_and_changes_nothing(folder, monkeypatch, capsys):
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    code, out, _ = run_main(monkeypatch, capsys, "validate", folder, "--json")
    kept = json.loads((folder / "metrics.json").read_text())
    assert code == 0
    assert json.loads(out)["metrics"] == {k: v for k, v in kept.items() if not k.endswith(("_seconds", "_mb"))}
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before


@pytest.mark.integration
def test_validate_takes_another_series(folder, tmp_path, monkeypatch, capsys):
    """Read in the way of the run; a model file alone has no series of its own."""
    ou_table(tmp_path / "other.csv", length=1000)
    model = folder / "model.safetensors"
    flags = ["--members", "64", "--duration", "20", "--json"]
    answers = [
        run_main(monkeypatch, capsys, "validate", where, tmp_path / "other.csv", *flags) for where in (folder, model)
    ]
    assert [code for code, _, _ in answers] == [0, 0]
    code, _, err = run_main(monkeypatch, capsys, "validate", model)
    assert (code, "There is no series" in err) == (2, True)


@pytest.mark.integration
def test_report_draws_what_was_lost_without_simulating(folder, monkeypatch, capsys):
    monkeypatch.setattr(el.LangevinModel, "simulate", None)
    html, metrics = ((folder / name).read_text() for name in ("report.html", "metrics.json"))
    (folder / "report.html").unlink()
    (folder / "figures" / "acfs.png").unlink()
    code, out, _ = run_main(monkeypatch, capsys, "report", folder)
    assert (code, "report.html" in out) == (0, True)
    assert (folder / "figures" / "acfs.png").is_file()
    assert (folder / "report.html").read_text() == html
    assert json.loads((folder / "metrics.json").read_text()) == json.loads(metrics)


@pytest.mark.integration
def test_a_series_that_is_not_stationary_is_refused_unless_forced(tmp_path, monkeypatch, capsys):
    walk = np.cumsum(np.random.default_rng(0).normal(size=(3000, 1)), axis=0)
    np.savez(tmp_path / "walk.npz", x=walk, dt=1.0)
    run = tmp_path / "run"
    code, out, err = run_main(monkeypatch, capsys, "fit", tmp_path / "walk.npz", *QUICK, "--out", run)
    errors = [line for line in err.strip().splitlines() if " % after " not in line]  # without the progress
    assert (code, out, len(errors)) == (2, "", 1)
    assert "not stationary" in errors[0]
    assert "--force" in err
    assert not run.exists()
    code, out, _ = run_main(monkeypatch, capsys, "fit", tmp_path / "walk.npz", *QUICK, "--out", run, "--force")
    assert code == 0
    assert "(forced)" in out
    assert not out.startswith("Good")
    assert "not stationary" in el.load(run / "model.safetensors").provenance["forced"]
    assert "Forced" in (run / "report.html").read_text()


@pytest.mark.integration
def test_a_run_can_be_settled_and_repeated_from_its_settings(tmp_path, monkeypatch, capsys):
    ou_table(tmp_path / "ou.csv")
    flags = ["--score", "gaussian:noise_level=0.3", "--settle", "--out", tmp_path / "run"]
    code, out, _ = run_main(monkeypatch, capsys, "fit", tmp_path / "ou.csv", *flags)
    assert (code, "matched by simulation" in " ".join(out.split())) == (0, True)
    model = el.load(tmp_path / "run" / "model.safetensors")
    assert len(model.score.diagnostics["settled"]["variance_ratio"]) == 4
    assert tomllib.loads((tmp_path / "run" / "config.toml").read_text())["settle"] is True
    again = ["--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "again"]
    assert run_main(monkeypatch, capsys, "fit", *again)[0] == 0
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "again"))
    assert one == other


@pytest.mark.parametrize("where", ["effective_langevin.fit.estimate_score", "effective_langevin.cli.settings.read"])
def test_an_interrupt_exits_with_130_and_leaves_nothing(where, tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    ou_table(tmp_path / "ou.csv", 300)
    module, _, name = where.rpartition(".")
    monkeypatch.setattr(import_module(module), name, stop)
    code, out, _ = run_main(monkeypatch, capsys, "fit", tmp_path / "ou.csv", "--out", tmp_path / "run")
    assert (code, out) == (130, "")
    assert [p.name for p in tmp_path.iterdir()] == ["ou.csv"]


def test_a_file_is_diagnosed_in_words_and_as_json(tmp_path, monkeypatch, capsys):
    ou_table(tmp_path / "ou.csv", 500)
    assert "Stationarity" in run_main(monkeypatch, capsys, "diagnose", tmp_path / "ou.csv")[1]
    code, out, _ = run_main(monkeypatch, capsys, "diagnose", tmp_path / "ou.csv", "--variables", "a", "--json")
    assert code == 0
    assert json.loads(out)["series"]["names"] == ["a"]


def test_systems_are_listed_with_what_is_known_of_them(monkeypatch, capsys):
    code, out, _ = run_main(monkeypatch, capsys, "systems", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["wells"]["exact"] == ["score", "mobility", "current", "entropy production"]
    assert (rows["kuramoto-sivashinsky"]["dimension"], rows["lorenz63"]["exact"]) == (32, [])
    assert "[c, 1]" in rows["wells"]["equation"]
    assert "[c," in run_main(monkeypatch, capsys, "systems")[1], "brackets are no markup"


def test_info_names_versions_demos_and_choices(monkeypatch, capsys):
    code, out, _ = run_main(monkeypatch, capsys, "info")
    assert code == 0
    assert "effective-langevin 0.1.0" in out
    assert "wells, scalar, lorenz63" in out
    content = json.loads(run_main(monkeypatch, capsys, "info", "--json")[1])
    assert "log-correlation" in content["choices"]["mobility"]


@pytest.mark.integration
def test_info_says_what_a_run_holds(folder, monkeypatch, capsys):
    code, out, _ = run_main(monkeypatch, capsys, "info", folder)
    assert code == 0
    for words in ("verdict:", "2001 samples of PC1 and PC2, dt = 0.1 s; ", "ou.csv", "metrics.json", "relaxation"):
        assert words in out
    content = json.loads(run_main(monkeypatch, capsys, "info", folder, "--json")[1])
    assert (content["names"], content["samples"], content["seed"]) == (["PC1", "PC2"], 2001, 3)
    assert content["verdict"]


def test_info_says_what_a_model_file_holds(model_file, monkeypatch, capsys):
    code, out, _ = run_main(monkeypatch, capsys, "info", model_file)
    assert code == 0
    for words in ("verdict: not validated", "samples of T and h, dt = 0.1 d\n", "LogCorrelation mobility"):
        assert words in out


def test_a_quiet_run_prints_its_result_only_and_its_log_has_the_rest(model_file, tmp_path, monkeypatch, capsys):
    """The folder of an unfinished run would be noted; progress and notes go to the log alone."""
    log = tmp_path / "log.txt"
    flags = ["--duration", "2", "--out", tmp_path / "paths.nc", "--quiet", "--log-file", log]
    code, out, err = run_main(monkeypatch, capsys, "simulate", model_file, *flags)
    assert (code, err) == (0, "")
    assert "1 path of 21 samples" in out
    lines = log.read_text().splitlines()
    assert f"simulate {model_file}" in lines[0]
    assert any(" INFO Simulating: " in line for line in lines)
    code, _, err = run_main(monkeypatch, capsys, "simulate", model_file, *flags)
    assert (code, "exists already" in err) == (2, True)
    assert "ERROR" in log.read_text()
    assert "exists already" in log.read_text()
    unwritable = ["--log-file", tmp_path / "none" / "log.txt"]
    assert run_main(monkeypatch, capsys, "simulate", model_file, "--duration", "1", *unwritable)[0] == 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["simulate", "--duration", "1e9"], "1 path of 1e+10 samples would take"),
        (["forecast", "--from", "T=10,h=-1", "--leads", "1", "--members", "10000000000"], "1.1e+11 states"),
    ],
)
def test_a_request_that_is_too_large_is_answered_with_its_size(command, words, model_file, monkeypatch, capsys):
    code, _, err = run_main(monkeypatch, capsys, command[0], model_file, *command[1:])
    assert (code, words in err, "GiB" in err) == (2, True, True)


@pytest.mark.parametrize("name", [command.name or command.callback.__name__ for command in cli.app.registered_commands])
def test_every_help_has_an_example_and_fits_80_columns(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run_main(monkeypatch, capsys, name, "-h")
    assert code == 0
    assert f"Example: effective-langevin {name}" in out
    assert max(map(len, out.splitlines())) <= 80


def test_on_a_terminal_long_lines_are_broken_between_words_and_a_start_is_announced(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    output.say(long := "  " + "word " * 30)
    assert capsys.readouterr().out == f"{long}\n"
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    output.say(long)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert {line[:3] for line in lines} == {"  w"}
    output.announce("Reading a.nc")
    assert capsys.readouterr().err == "Reading a.nc ...\n"


def test_the_values_that_a_shell_completes_are_those_of_the_tables():
    assert options.VALUES["system"] == tuple(DEMOS)
    for role in ("score", "mobility", "symmetry"):
        assert options.VALUES[role] == tuple(CHOICES[role])


def test_no_command_prints_the_help(monkeypatch, capsys):
    code, out, err = run_main(monkeypatch, capsys)
    assert code == 2
    assert "Usage" in out + err


@pytest.mark.parametrize(
    ("words", "whole"),
    [("sim", "simulate"), ("demo w", "wells"), ("fit --mobility st", "state-dependent"), ("fit --check w", "warn")],
)
def test_the_shell_completes_commands_and_values(words, whole, monkeypatch, capsys):
    monkeypatch.setenv("_EFFECTIVE_LANGEVIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"effective-langevin {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    _, out, _ = run_main(monkeypatch, capsys)
    assert out.split() == [whole]
