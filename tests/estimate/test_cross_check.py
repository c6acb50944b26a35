import jax
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.estimate.mobility import Mobility, estimate_mobility
from effective_langevin.estimate.mobility.cross_check import (
    _disagreement,
    _interleaved,
    cross_check,
)
from effective_langevin.estimate.mobility.evidence import Agreement, Estimate, MobilityEvidence
from effective_langevin.estimate.score import estimate_score
from effective_langevin.estimate.space import StateSpace

NONE, KEY = StateSpace((None, None)), jax.random.key(0)
ESTIMATORS = ("IntegratedResponse", "QuadraticVariation", "CorrelationFit", "LogCorrelation")


@pytest.fixture(scope="module")
def compared():
    """A rotating linear process, sampled at a tenth of its relaxation time."""
    drift = np.array([[1.0, -1.5], [1.5, 1.0]])
    system = el.systems.OrnsteinUhlenbeck(drift, np.eye(2))
    series = system.simulate(2000.0, dt=0.1, seed=4)
    units = el.Standardizer.from_series(series)
    standard = series.map(units.to_standard)
    score = estimate_score(standard, el.Gaussian(), NONE, key=KEY)
    mobility = estimate_mobility(standard, score, el.IntegratedResponse(), NONE, key=KEY)
    return units.mobility_to_standard(system.mobility), cross_check(standard, score, mobility, NONE)


def test_every_estimator_is_asked_at_every_interval(compared):
    _, found = compared
    rows = [(row.estimator, round(row.dt, 9)) for row in found.estimates]
    assert rows[0] == ("IntegratedResponse", 0.1)
    assert sorted(rows) == sorted((name, dt) for name in ESTIMATORS for dt in (0.1, 0.2, 0.4))
    assert found.disagreement == ""


@pytest.mark.parametrize("estimator", ["IntegratedResponse", "LogCorrelation"])
def test_estimators_that_are_right_for_a_linear_process_agree_at_every_interval(compared, estimator):
    exact, found = compared
    for row in found.estimates:
        if row.estimator == estimator:
            assert (np.abs(row.phi - exact) < 4 * row.standard_error + row.discretisation_error).all()


def test_the_change_to_twice_the_interval_covers_the_bias_of_the_quadratic_variation(compared):
    exact, found = compared
    rows = [row for row in found.estimates if row.estimator == "QuadraticVariation"]
    biases = [np.linalg.norm(row.phi - exact) for row in rows]
    stated = [np.linalg.norm(row.discretisation_error) for row in rows]
    assert biases[0] < biases[1] < biases[2]
    assert all(0.4 < s / b < 1.5 for s, b in zip(stated, biases))


def estimate(name, dt, value, error=0.01):
    return Estimate(name, dt, value * np.eye(2), error * np.eye(2), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (estimate("IntegratedResponse", 0.1, 1.02), ""),
        (estimate("LogCorrelation", 0.1, 1.3), "LogCorrelation differs from IntegratedResponse by 30 %"),
        (estimate("LogCorrelation", 0.1, 1.3, error=0.2), ""),
        (estimate("LogCorrelation", 0.2, 1.3), ""),
        (estimate("IntegratedResponse", 0.2, 0.7), "every second sample only changes the mobility by 30 %"),
        (estimate("IntegratedResponse", 0.2, 0.7), "Sample more often"),
        (estimate("IntegratedResponse", 0.2, 1.4), "not more frequent samples: try `series.thin(2)`"),
        (estimate("IntegratedResponse", 0.2, 1.4, error=0.2), ""),
        (estimate("IntegratedResponse", 0.4, 1.4), ""),
    ],
)
def test_disagreement_is_what_exceeds_the_errors_where_they_should_hold(other, words):
    sentence = _disagreement(estimate("IntegratedResponse", 0.1, 1.0), [other])
    assert (words in sentence) if words else sentence == ""


def test_the_interval_holds_what_a_coarser_sampling_gives_where_it_differs_beyond_errors():
    used = estimate("IntegratedResponse", 0.1, 1.0)
    others = [estimate("IntegratedResponse", 0.2, 1.4), estimate("IntegratedResponse", 0.4, 1.8)]
    others.append(estimate("QuadraticVariation", 0.2, 0.2))
    evidence = MobilityEvidence(blocks=20, agreement=Agreement((used, *others)))
    low, high = Mobility(used.phi, used.standard_error, "", np.zeros((0, 2, 2)), evidence).interval()
    assert high[0, 0] == 1.4
    assert low[0, 0] == pytest.approx(1 - 2.093 * 0.01, abs=1e-4)


def test_interleaving_loses_only_samples_that_are_left_alone():
    parts = _interleaved([np.arange(10.0)[:, None], np.arange(3.0)[:, None]], 4)
    assert sorted(np.concatenate(parts)[:, 0]) == sorted(range(10))
    assert all((np.diff(part[:, 0]) == 4).all() for part in parts)


def test_fit_warns_where_estimators_disagree_and_keeps_the_table():
    """A process with memory: the sum of a fast and a slow variable, of which only the sum is seen."""
    rng = np.random.default_rng(0)
    n, fast, slow = 60_000, np.exp(-0.8), np.exp(-0.02)
    noise = rng.normal(size=(2, n)) * np.sqrt([[1 - fast**2], [1 - slow**2]])
    from scipy.signal import lfilter

    values = lfilter([1.0], [1.0, -fast], noise[0]) + lfilter([1.0], [1.0, -slow], noise[1])
    with pytest.warns(el.EstimateWarning, match="every second sample only|Estimators of the mobility"):
        model = el.fit(el.TimeSeries(values[:, None], dt=1.0), score=el.Gaussian())
    assert len(model.mobility.diagnostics["agreement"]) > 4
    assert model.mobility.diagnostics["disagreement"]
