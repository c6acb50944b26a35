"""Hostile files and tables: a right answer or one sentence, never a crash, a hang or a wrong number without a word."""

import json
import os
import signal
import time
import warnings

import pytest

import effective_langevin as el
from benchmarks import robustness
from benchmarks.hostile.review import REVIEW
from benchmarks.robustness import FAMILIES, FEW, MANY, Case, Late, Watch, count_outcomes, find_cases, table, try_case

CORRUPTED = [name for name, made_by in FAMILIES.items() if made_by.startswith("benchmarks.hostile.corruption")]
MOST_SECONDS = 120  # for a family of the slow tier


def faults(family, folder, count):
    """Run a family in this process, as long as its time lasts; return what was neither right nor refused."""
    began, found, tried = time.monotonic(), [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in find_cases(family, folder, count):
            outcome, said = try_case(case)
            tried += 1
            if outcome not in ("right", "refused"):
                found.append(f"{case.name}: {outcome}: {said}")
            if time.monotonic() - began > MOST_SECONDS:
                break
    assert tried > 1
    return found


@pytest.mark.parametrize("family", CORRUPTED)
def test_a_damaged_file_is_read_or_refused(family, tmp_path):
    assert faults(family, tmp_path, FEW) == []


@pytest.mark.parametrize("family", ["hostile files", "hostile tables"])
def test_a_hostile_file_or_table_has_the_expected_answer(family, tmp_path):
    assert faults(family, tmp_path, FEW) == []


@pytest.mark.slow
@pytest.mark.parametrize("family", CORRUPTED)
def test_a_thousand_damaged_files_are_read_or_refused(family, tmp_path):
    assert faults(family, tmp_path, MANY) == []


def test_every_finding_of_the_review_stands_in_the_table_and_ended_well():
    """Each case is in the results that are committed, right or refused; of damaged copies only counts are kept."""
    results = json.loads(robustness.RESULTS.read_text())
    numbers = {"S": 18, "L": 6, "K": 13}
    assert list(REVIEW) == [f"{kind}{i}" for kind, last in numbers.items() for i in range(1, last + 1)]
    for finding, families in REVIEW.items():
        for family, cases in families.items():
            assert results[family]["cases"] >= len(cases)
            ended = {case: results[family]["answers"].get(case, "missing") for case in cases}
            assert set(ended.values()) <= {"right", "refused"}, f"{finding}: {family}: {ended}"
            assert [results[family][outcome] for outcome in ("wrong", "crash", "hang")] == [0, 0, 0], finding


def _raise(error):
    raise error


def test_every_outcome_is_told_apart():
    outcomes = {
        "right": Case("", lambda: None),
        "refused": Case("", lambda: _raise(el.DataError("no")), "refused"),
        "hang": Case("", lambda: _raise(Late("late"))),
        "crash": Case("", lambda: _raise(KeyError("x"))),
    }
    assert {try_case(case)[0] for case in outcomes.values()} == set(outcomes)
    for wrong in (
        Case("", lambda: None, "refused"),
        Case("", lambda: _raise(el.DataError("no")), "right"),
        Case("", lambda: _raise(AssertionError("off by 2"))),
    ):
        assert try_case(wrong)[0] == "wrong"


@pytest.mark.parametrize(("seconds", "clock"), [(0.1, 60.0), (60.0, 0.5)])
def test_a_case_has_a_limit_on_processor_time_and_on_the_clock(seconds, clock, monkeypatch):
    monkeypatch.setattr(robustness, "LIMIT_SECONDS", seconds)
    monkeypatch.setattr(robustness, "LIMIT_CLOCK", clock)
    watch, busy = Watch(), clock > seconds

    def wait():
        while watch.clock() < 10:
            time.sleep(0 if busy else 0.1)

    assert try_case(Case("", lambda: watch.over(wait)))[0] == "hang"
    assert (watch.processor() > 0.1) == busy


def deadly(folder, count):
    yield Case("before", lambda: None)
    yield Case("killed", lambda: os.kill(os.getpid(), signal.SIGKILL))
    yield Case("after", lambda: None)


@pytest.mark.integration
def test_a_case_that_kills_its_process_costs_only_itself(monkeypatch):
    monkeypatch.setitem(FAMILIES, "deadly", "tests.robustness.test_files:deadly")
    found = robustness.measure("deadly", 1)
    assert [line["outcome"] for line in found] == ["right", "crash", "right"]
    assert "| deadly | 3 | 2 | 0 | 0 | 1 | 0 |" in table({"deadly": count_outcomes(found)})
