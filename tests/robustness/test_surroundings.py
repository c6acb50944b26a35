"""Full disks, closed streams, missing homes, signals and two processes at once."""

import os
import signal
import subprocess

import pytest

from benchmarks.hostile import surroundings as hostile
from benchmarks.hostile.surroundings import surroundings
from benchmarks.robustness import Late, try_case


@pytest.mark.slow
@pytest.mark.skipif("LONG_TESTS" not in os.environ, reason="takes ten minutes and more; LONG_TESTS=1 runs it")
def test_a_run_is_right_or_refused_whatever_surrounds_it(tmp_path):
    found, tried = [], 0
    for case in surroundings(tmp_path, 0):
        outcome, said = try_case(case)
        tried += 1
        if outcome not in ("right", "refused"):
            found.append(f"{case.name}: {outcome}: {said}")
    assert found == []
    assert tried >= 40


def test_a_case_that_is_late_leaves_no_process(tmp_path, monkeypatch):
    """A fit that went on in the folder of the next case, two fits at once, made both of those give up."""
    begun = []

    def sleep(*_):
        begun.append(subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE))
        return begun[-1]

    def be_late(*_, **__):
        raise Late

    monkeypatch.setattr(hostile, "begin", sleep)
    monkeypatch.setattr(hostile.time, "sleep", be_late)
    with pytest.raises(Late):
        hostile._end_and_repeat(tmp_path, ("fit",), signal.SIGKILL, "never")
    monkeypatch.setattr(subprocess.Popen, "communicate", be_late)
    with pytest.raises(Late):
        hostile._fit_twice(tmp_path, ("fit",))
    assert [process.poll() for process in begun] == [-signal.SIGKILL] * 3
