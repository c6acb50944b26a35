"""Demonstrations on the command line: complete run folders, or none."""

import json
import sys
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import effective_langevin as el
from effective_langevin import cli
from effective_langevin.cli.run_folder import RunFolder, measure_memory

FILES = {"config.toml", "model.safetensors", "metrics.json", "curves.nc", "report.html", "figures"}


def run_main(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["effective-langevin", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    captured = capsys.readouterr()
    return stop.value.code or 0, captured.out, captured.err


def test_info_names_the_version_and_the_demos(monkeypatch, capsys):
    code, out, _ = run_main(monkeypatch, capsys, "info")
    assert code == 0
    assert "effective-langevin 0.1.0" in out
    assert "wells, scalar, lorenz63" in out


def test_the_version_and_the_help_have_short_ways(monkeypatch, capsys):
    assert run_main(monkeypatch, capsys, "--version")[:2] == (0, "effective-langevin 0.1.0\n")
    for arguments in (["-h"], ["--help"], ["fit", "-h"]):
        code, out, _ = run_main(monkeypatch, capsys, *arguments)
        assert code == 0
        assert "Usage: effective-langevin" in out


def test_an_unknown_system_is_one_line_of_error_and_leaves_nothing(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_main(monkeypatch, capsys, "demo", "well")
    assert code == 2
    systems = "'wells', 'scalar', 'lorenz63', 'kuramoto-sivashinsky'"
    assert err.strip() == f"Error: Argument `system` must be one of {systems}, but got 'well'."
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused_and_a_foreign_one_is_never_replaced(monkeypatch, capsys, tmp_path):
    (tmp_path / "keep.txt").write_text("mine")
    code, _, err = run_main(monkeypatch, capsys, "demo", "--out", str(tmp_path))
    assert code == 2
    assert "exists already" in err
    code, _, err = run_main(monkeypatch, capsys, "demo", "--out", str(tmp_path), "--overwrite")
    assert code == 2
    assert "not a run folder" in err
    assert (tmp_path / "keep.txt").read_text() == "mine"


def test_a_negative_seed_is_refused(monkeypatch, capsys, tmp_path):
    code, _, err = run_main(monkeypatch, capsys, "demo", "--seed", "-1", "--out", str(tmp_path / "run"))
    assert code == 2
    assert "Argument `seed` must be an integer of at least 0" in err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "run"
    result = CliRunner().invoke(cli.app, ["demo", "scalar", "--quick", "--settle", "--seed", "3", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result.output


@pytest.mark.integration
def test_a_demo_leaves_a_complete_run_folder(quick_run):
    folder, output = quick_run
    assert {p.name for p in folder.iterdir()} == FILES
    assert not folder.with_name("run.partial").exists()
    assert (folder / "figures" / "acfs.png").stat().st_size > 1000
    assert "report.html" in output


@pytest.mark.integration
def test_metrics_are_flat_numbers_with_errors(quick_run):
    metrics = json.loads((quick_run[0] / "metrics.json").read_text())
    names = ("mobility_error", "stein_error", "pdf_kl_mean", "pdf_kl_max", "acf_rmse", "covariance_error")
    assert all(np.isfinite(v) for v in metrics.values())
    assert {*names, *(f"{n}_se" for n in names), "settle_seconds", "wall_seconds", "peak_memory_mb"} <= set(metrics)


@pytest.mark.integration
def test_a_settled_demo_says_so(quick_run):
    folder, output = quick_run
    assert "matched by simulation" in " ".join(output.split())
    assert "settled" in el.load(folder / "model.safetensors").score.diagnostics


@pytest.mark.integration
def test_the_settings_are_readable_toml_and_the_model_loads(quick_run):
    config = tomllib.loads((quick_run[0] / "config.toml").read_text())
    assert config["demo"] == {"system": "scalar", "quick": True, "paper_scale": False, "seed": 3}
    assert config["score"]["noise_level"] == 0.05
    assert config["versions"]["effective-langevin"] == "0.1.0"
    model = el.load(quick_run[0] / "model.safetensors")
    assert model.names == ("x",)


@pytest.mark.integration
def test_the_report_stands_alone_and_gives_a_verdict(quick_run):
    html = (quick_run[0] / "report.html").read_text()
    assert "Verdict" in html
    assert "sets the steady state, the diffusion" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html
    assert html.count("data:image/png;base64,") >= 5


@pytest.mark.integration
def test_an_interrupted_run_keeps_the_model_it_had(tmp_path, wells_model):
    folder = RunFolder(tmp_path / "run")

    def fit_then_stop():
        with folder:
            folder.keep_model(wells_model, {"demo": "wells"})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_then_stop()
    assert not (tmp_path / "run").exists()
    assert el.load(folder.model_path).names == wells_model.names


def test_a_run_that_fails_before_the_model_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), RunFolder(tmp_path / "run"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_where_a_system_does_not_tell_its_memory_none_is_reported(monkeypatch):
    """As on Windows, where Python has no module `resource`."""
    assert measure_memory()["peak_memory_mb"] > 10
    monkeypatch.setitem(sys.modules, "resource", None)
    assert measure_memory() == {}
