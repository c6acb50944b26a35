"""The harness of the benchmarks: what it times, what it skips, what it promises."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness
from benchmarks.__main__ import table
from benchmarks.accuracy import SAVED, longest_step, saved_evenly
from benchmarks.harness import OURS, Report, as_data, attempt, compare, in_fresh_process, log_slope


@pytest.fixture
def pause(monkeypatch):
    """Contenders that only move a clock of their own, so that a busy machine changes nothing."""
    now = [0.0]
    monkeypatch.setattr(harness.time, "perf_counter", lambda: now[0])

    def contender(seconds, note=lambda: None):
        def run():
            note()
            now[0] += seconds

        return run

    return contender


def missing():
    raise ImportError("No module named 'nothing'", name="nothing")


def broken():
    raise ValueError("no such thing\nand more")


def test_contenders_are_timed_in_turns_and_compared_with_ours(pause):
    order = []
    contenders = {"slow": pause(4.0, lambda: order.append("slow")), OURS: pause(1.0, lambda: order.append(OURS))}
    slow, ours = compare("naps", contenders, repeats=3, work=2)
    assert order == ["slow", OURS] * 4
    assert (ours.ratio, slow.ratio, slow.ratio_fastest) == (1, 4, 4)
    assert (slow.seconds, slow.fastest, slow.first_seconds) == (2, 2, 0)


def test_a_contender_too_slow_to_repeat_is_called_once(pause):
    calls = []
    found = compare("nap", {OURS: pause(1), "slow": pause(9, lambda: calls.append(1))}, once=("slow",))
    assert len(calls) == 1
    assert found[1].ratio == 9


def test_a_peer_that_is_missing_or_fails_is_named_and_does_not_stop_the_rest(pause):
    found = compare("case", {OURS: pause(1), "absent": attempt(missing), "failing": broken}, repeats=1)
    assert found[0].seconds is not None
    assert found[1].note == "skipped: nothing is not installed"
    assert found[2].note == "failed: ValueError: no such thing"
    assert found[1].seconds is None


def test_a_promise_must_hold_for_the_median_and_for_the_fastest(pause):
    report = Report(compare("naps", {OURS: pause(0.001), "slow": pause(0.003)}, repeats=3))
    found = report.find("naps", "slow")
    found.ratio, found.ratio_fastest = 5.0, 2.0
    report.promise_ratio("faster", "naps", "slow", 3)
    report.promise_ratio("a little faster", "naps", "slow", 2)
    report.promise_ratio("than nobody", "naps", "absent", 2)
    assert [target.met for target in report.targets] == [False, True]


def test_the_table_shows_targets_and_measurements(pause):
    report = Report(compare("naps", {OURS: pause(0.001)}, repeats=1))
    report.promise("quick", "<= 1 s", "2 s", False)
    facts = {"load_before_and_after": [0.1, 0.2], "date": "", "device": "", "cores": 2, "wall_seconds": 1.0}
    text = table({"naps": {**as_data(report), **facts, "peak_memory_mb": 9, "versions": {}}}, "cpu")
    assert "| quick | <= 1 s | 2 s | **no** |" in text
    assert f"| naps | {OURS} |" in text


@pytest.mark.integration
def test_memory_is_measured_in_a_process_of_its_own():
    answer = in_fresh_process("correlations", "with_accuracy", results=[], answers={})
    assert 10 < answer["peak_memory_mb"] < 1000
    assert answer["wall_seconds"] < 60
    assert "no_such" in in_fresh_process("correlations", "no_such")["error"]


@pytest.mark.parametrize("guess", [0.005, 0.05, 0.1])
def test_the_step_for_one_per_cent_is_found_from_either_side(guess):
    assert longest_step(lambda step: 0.5 * step, guess) == pytest.approx(0.02)
    assert longest_step(lambda step: 25 * step**2, guess) == pytest.approx(0.02)


def test_only_steps_are_tried_that_fit_between_saved_states():
    tried = []
    found = longest_step(lambda step: tried.append(step) or 0.5 * step, saved_evenly(0.06), saved_evenly)
    assert found == pytest.approx(0.02)
    assert len(tried) > 2
    assert SAVED / np.array(tried) == pytest.approx(np.round(SAVED / np.array(tried)))


def test_no_step_is_claimed_that_was_not_seen():
    assert longest_step(lambda step: 1e-4 if step < 1 else np.inf, 0.4) == pytest.approx(0.9)
    assert longest_step(lambda step: 0.5, 0.1) is None
    assert longest_step(lambda step: np.nan, 0.1) is None


def test_exponents_of_growth():
    assert log_slope([1, 10, 100], [3, 300, 30_000]) == pytest.approx(2)


ROOT = Path(__file__).parent.parent
SCRIPTS = [
    path
    for folder in ("benchmarks", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name != "__init__.py"
]


@pytest.mark.parametrize("script", [str(path.relative_to(ROOT)) for path in SCRIPTS])
def test_every_script_finds_what_it_imports(script):
    """Scripts that take minutes are not run by the tests, but a name that has moved must not break them."""
    assert importlib.import_module(script.removesuffix(".py").replace("/", ".")).__doc__
