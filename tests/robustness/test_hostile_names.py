"""Scripts, quotes, newlines and 10 000 characters in names of variables: every output stays right, or one sentence."""

import tomllib

import numpy as np
import pytest
from oracles.browser import CHROMIUM, inspect_page
from oracles.command_line import run_main

import effective_langevin as el

SETTINGS = """
data = "evil.npz"
score = "gaussian"
mobility = "quadratic-variation"
check = "off"
[validation]
members = 8
duration = 20.0
"""
SCRIPT, LONG = "<script>alert(1)</script>\"'&{{ 7 * 7 }}", "n" * 256


@pytest.mark.integration
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_report_settings_netcdf_and_console_stay_right(tmp_path, monkeypatch, capsys):
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(60.0, dt=0.1, seed=1)
    np.savez(tmp_path / "evil.npz", x=series.values, dt=0.1, variables=[SCRIPT, LONG])
    run, paths = tmp_path / "run", tmp_path / "paths.nc"
    (tmp_path / "settings.toml").write_text(SETTINGS)
    code, out, err = run_main(monkeypatch, capsys, "fit", "--config", tmp_path / "settings.toml", "--out", run)
    assert (code, "Traceback" in err) == (0, False), err[-500:]
    assert SCRIPT in out + err
    page = (run / "report.html").read_text()
    assert "<script>alert" not in page
    found = inspect_page(page, tmp_path, 1280)
    assert (found["faults"], found["overflow"], found["wide"], found["scripts"]) == ([], 0, [], 0)
    assert SCRIPT in found["texts"]
    tomllib.loads((run / "config.toml").read_text())
    assert el.load(run / "model.safetensors").names == (SCRIPT, LONG)
    code, _, err = run_main(monkeypatch, capsys, "simulate", run, "--duration", "5", "--out", paths)
    assert code == 0, err
    assert set(el.read(paths).names) == {SCRIPT, LONG}


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "n" * 10_000])
def test_a_name_that_is_no_line_is_refused_in_one(name, tmp_path, monkeypatch, capsys):
    np.savez(tmp_path / "evil.npz", x=np.random.default_rng(0).normal(size=(300, 1)), dt=0.1, variables=[name])
    code, out, err = run_main(monkeypatch, capsys, "diagnose", tmp_path / "evil.npz")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "at most 256 characters without line breaks and control characters" in err
    assert name not in err
