"""The verdict: levels, reasons, the border, and what turns it. Rates are measured by `benchmarks.verdict`."""

from dataclasses import replace

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.statistics.joint_tests import Outcome
from effective_langevin.validate.ensembles import settle
from effective_langevin.validate.findings.aspects import Aspect
from effective_langevin.validate.findings.verdict import _detectable, _levels
from tests.oracles.models import exact_model
from tests.oracles.processes import ornstein_uhlenbeck

OU = el.systems.OrnsteinUhlenbeck([[1.0]])


@pytest.fixture(scope="module")
def model():
    return exact_model(OU, np.ones(1))


@pytest.fixture(scope="module")
def series():
    """2000 effective samples."""
    return OU.simulate(1000.0, dt=0.4, members=4, seed=1)


def clocked(model, factor):
    mobility = model.mobility
    return replace(model, mobility=replace(mobility, matrix=factor * mobility.matrix))


def test_a_right_model_is_good_and_nothing_is_called_right(model, series):
    verdict = el.validate(model, series).verdict
    assert verdict.level == "good"
    headline, detectable, step = verdict.sentences
    assert "no difference that matters was detected" in headline
    assert " right" not in str(verdict)
    assert detectable.startswith("Detectable: a difference of 0.0")
    assert step == "Next: `el.predict_held_out(series)`, a stricter test."
    tested = {f.name for f in verdict.findings if f.p is not None}
    assert {"steady state", "time scales", "increments", "return times", "score"} <= tested


def test_what_no_two_records_can_differ_by_is_not_called_detectable(model, series):
    test = el.validate(model, series, members=16, duration=50.0).tests[0]
    for sizes, words in (
        ({"probability": 0.3, "correlation time": 50.0}, "Detectable: a difference of 0.30 in a probability."),
        ({"probability": 2.6, "correlation": 163.0}, "Detectable: no difference of any size: the record is too short."),
    ):
        assert _detectable([replace(test, detectable=sizes)], None) == words
    assert _detectable([], None) == "Detectable: nothing was tested."


def test_time_scales_off_by_more_than_30_percent_are_red_and_named(model, series):
    verdict = el.validate(clocked(model, 2.0), series).verdict
    assert verdict.level == "poor"
    assert "time scales" in verdict.headline
    assert "StateDependent" in verdict.next_step


def test_a_record_too_short_leaves_the_verdict_undecided(model):
    verdict = el.validate(model, OU.simulate(60.0, dt=0.25, seed=3)).verdict
    assert verdict.level == "undecided"
    assert "too short to judge" in verdict.headline
    assert "times as long" in verdict.next_step


def test_slow_variables_of_few_independent_samples_are_compared_with_the_scatter_of_the_model(model):
    """An integral time eight times that of the model, in a record of 30 of them: 4 groups alone could not tell."""
    slow = ornstein_uhlenbeck(960, 32, seed=7, dt=0.25)
    verdict = el.validate(model, slow).verdict
    assert verdict.level == "poor"
    assert verdict.headline.startswith("Not to be trusted: the ")


@pytest.mark.slow
def test_non_stationarity_found_by_the_diagnosis_stands_in_the_verdict(model):
    drift = OU.simulate(1000.0, dt=0.25, seed=1).map(lambda x: x + np.linspace(-1, 1, len(x))[:, None])
    verdict = el.validate(model, drift, members=64).verdict
    assert verdict.level == "poor"
    assert "stationary" in verdict.headline


def test_the_steady_state_is_that_of_the_model_not_of_the_states_it_starts_from(model):
    """All members start at 2: after four integral times nothing of this is left, to four standard errors."""
    aside = replace(model, states=np.full((10, 1), 2.0))
    states, found = settle(aside, 1.0, members=400, seed=0, options={"dt": 0.25})
    assert found.time > 4
    assert not found.moving
    assert abs(states.mean()) < 4 / np.sqrt(400)


def test_an_ensemble_that_still_moves_is_no_steady_state(series):
    """The model relaxes a hundred times more slowly than it is given time for."""
    slow = replace(clocked(exact_model(OU, np.ones(1)), 0.01), states=np.full((10, 1), 2.0))
    _, found = settle(slow, 1.0, members=400, seed=0, options={"dt": 0.25})
    assert found.time >= 28
    assert found.moving
    verdict = el.validate(slow, series).verdict
    assert verdict.level == "poor"
    assert "steady state of the model" in {f.name for f in verdict.findings}


def aspect(name, small, large, shown=True):
    return Aspect(name, "probability", "P", 0.0, 0.1, 0.1, 0.01, 0.0, (Outcome(small, large, shown),) * 3, {}, {})


def test_the_score_alone_is_never_fatal():
    score, fine = aspect("score", 1e-4, 1e-4), aspect("steady state", 0.5, 1.0)
    assert _levels([score, fine], 1) == ["usable", "good"]
    assert _levels([score, aspect("steady state", 1e-4, 1.0)], 1) == ["poor", "usable"]


def test_a_close_call_says_that_it_is_at_the_border(model, series):
    result = el.validate(model, series)
    edge = tuple(Outcome(p, 1.0, True) for p in (0.5, 0.02, 1e-4))
    verdict = replace(result, tests=(replace(result.tests[0], outcomes=edge), result.tests[1])).verdict
    assert verdict.level == "good"
    assert verdict.border
    assert 'another seed may say "Usable with care"' in verdict.headline
