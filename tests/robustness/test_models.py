"""Damaged models, impossible simulations and settings: a right answer or one sentence."""

import warnings

import pytest

from benchmarks.hostile.commands import run_folders
from benchmarks.hostile.models import models
from benchmarks.hostile.simulations import simulations
from benchmarks.robustness import try_case


def faults(cases):
    """What was neither right nor refused, and how many cases there were."""
    found, tried = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            outcome, said = try_case(case)
            tried += 1
            if outcome not in ("right", "refused"):
                found.append(f"{case.name}: {outcome}: {said}")
    return found, tried


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_a_damaged_model_is_refused_or_the_same(count, tmp_path):
    found, tried = faults(models(tmp_path, count))
    assert found == []
    assert tried > 200 + count


def test_a_simulation_that_cannot_work_is_refused(tmp_path):
    found, tried = faults(simulations(tmp_path, 0))
    assert found == []
    assert tried > 60


def test_settings_and_folders_that_cannot_be_are_refused(tmp_path):
    found, tried = faults(run_folders(tmp_path, 0))
    assert found == []
    assert tried > 60
