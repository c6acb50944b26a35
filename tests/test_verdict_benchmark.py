"""The benchmark of the verdict continues where it stopped, and never mixes two states of the code."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks import verdict
from benchmarks.verdict import cells, plan, read_answers

CELL = ("right", "linear 1", 300)


def test_answers_of_another_state_of_the_code_are_left_out(tmp_path):
    log = tmp_path / "verdict.jsonl"
    lines = [json.dumps({"code": code, "cell": CELL, "replica": r}) for code, r in (("old", 0), ("new", 1), ("new", 2))]
    log.write_text("\n".join(lines)[:-4])  # the last line was cut short
    assert list(read_answers(log, "new")) == [(CELL, 1)]


def test_every_replica_that_is_missing_runs_once():
    wanted = list(cells(verdict.SIZES, verdict.REPLICAS, verdict.PROCESSES))
    done = [(CELL, 0), (CELL, 7)]
    runs = [(cell, replica) for cell, replicas in plan(wanted, done) for replica in replicas]
    assert sorted([*runs, *done]) == sorted((cell, replica) for cell, count in wanted for replica in range(count))
    assert {name for (truth, name, _), _ in wanted if truth == "right, learned"} == {"wells 1", "wells 3"}


@pytest.mark.integration
def test_it_needs_nothing_but_the_numerical_packages(tmp_path):
    blocked = ["pandas", "xarray", "matplotlib", "typer", "h5netcdf", "h5py", "jinja2", "tomli_w", "rich", "click"]
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({blocked}))\n")
    path = os.pathsep.join([str(tmp_path), os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = ["300", "--replicas", "1", "--systems", "linear 1", "--truths", "right", "--processes", "1", "--out"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.verdict", *command, str(tmp_path / "verdict.json")],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-1000:]
    assert "1 of 1 replicas that were missing are done." in done.stdout


def test_a_learned_model_is_off_where_its_own_error_is_beyond_small():
    small = {"cell": ["right, learned", "wells 1", 300], "true": {"probability": 0.019, "return time": 0.05}}
    large = {"cell": ["right, learned", "wells 1", 300], "true": {"probability": 0.019, "return time": 0.3}}
    exact = {"cell": ["right", "wells 1", 300]}
    truths = [answer["cell"][0] for answer in verdict.split_learned([small, large, exact])]
    assert truths == ["right, learned", verdict.LEARNED_OFF, "right"]


def test_a_good_verdict_counts_against_it_only_above_the_size_it_states():
    """The trend of one standard deviation is 0.96 of that of the series with the trend."""
    runs = [{"level": "good", "detectable": {"trend": size}} for size in (0.5, 0.9, 1.0)]
    cell = {"runs": [*runs, {"level": "usable", "detectable": {"trend": 0.5}}], "mean_largest": {}}
    verdict.above_detectable(results := {"non-stationary | linear 1 | 300": cell})
    counted = results["non-stationary | linear 1 | 300"]
    assert (counted["above_detectable"], counted["above_detectable_good"]) == (3, 2)
