"""Damaged models, impossible simulations and settings: a right answer or one sentence."""

import warnings
from importlib import import_module
from itertools import islice

import numpy as np
import pytest

import effective_langevin as el
from benchmarks.hostile.commands import run_folders
from benchmarks.hostile.models import models
from benchmarks.hostile.simulations import simulations
from benchmarks.robustness import try_case


def faults(cases, every=1):
    """What was neither right nor refused, and how many cases were tried: every one, or every n-th."""
    found, tried = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in islice(cases, 0, None, every):
            outcome, said = try_case(case)
            tried += 1
            if outcome not in ("right", "refused"):
                found.append(f"{case.name}: {outcome}: {said}")
    return found, tried


IN_PART = [7, pytest.param(1, marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize("every", IN_PART)
def test_a_damaged_model_is_refused_or_the_same(every, tmp_path):
    found, tried = faults(models(tmp_path, 100), every)
    assert found == []
    assert tried > 300 // every


@pytest.mark.parametrize("every", IN_PART)
def test_a_simulation_that_cannot_work_is_refused(every, tmp_path):
    found, tried = faults(simulations(tmp_path, 0), every)
    assert found == []
    assert tried > 60 // every


@pytest.mark.parametrize("every", IN_PART)
def test_settings_and_folders_that_cannot_be_are_refused(every, tmp_path):
    found, tried = faults(run_folders(tmp_path, 0), every)
    assert found == []
    assert tried > 60 // every


def test_a_singular_matrix_becomes_a_sentence(monkeypatch, linear_series):
    def singular(*_, **__):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(import_module("effective_langevin.fit"), "estimate_score", singular)
    with pytest.raises(el.DataError, match=r"does not determine the model \(Singular matrix\).*PCA\(0.99\)"):
        el.fit(linear_series, score=el.Gaussian())
