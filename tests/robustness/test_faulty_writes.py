"""Every write of `fit --out` fails once, and the process dies there once: nothing is lost, nothing is half."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import effective_langevin as el

SETTINGS = """
data = "ok.npz"
score = "gaussian"
mobility = "quadratic-variation"
check = "off"
[validation]
members = 8
duration = 10.0
"""


@pytest.mark.slow
@pytest.mark.skipif("LONG_TESTS" not in os.environ, reason="takes ten minutes and more; LONG_TESTS=1 runs it")
def test_the_same_command_continues_after_a_fault_at_any_write(tmp_path):
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(20.0, dt=0.1, seed=1)
    np.savez(tmp_path / "ok.npz", x=series.values, dt=0.1)
    (tmp_path / "settings.toml").write_text(SETTINGS)
    script = Path(__file__).with_name("faulty_writes.py")
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), "0", "1"],
        capture_output=True, text=True, env={**os.environ, **cache}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    faults = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(faults) > 30
    assert {fault["dies"] for fault in faults} == {False, True}
    for fault in faults:
        assert fault["code"] in ((9, 0) if fault["dies"] else (2, 0)), fault
        assert not fault["traceback"], fault
        assert fault["half"] == [], fault
        assert (fault["again"], fault["same"], fault["left"]) == (0, True, []), fault
        assert set(fault["files"]) <= ({"run.lock"} if fault["dies"] else set()), fault  # it dies before it unlocks
