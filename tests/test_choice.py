"""The closure that `el.fit` chooses, and the score of the forecasts it is chosen by."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.choice import take_simplest
from effective_langevin.estimate.closure.evidence import ClosureChoice
from effective_langevin.statistics.forecast_scores import energy_scores


def test_energy_scores_of_gaussian_ensembles_are_exact_and_least_for_the_truth():
    """One variable, forecast N(0, s^2) of N(0, 1): E = sqrt(2 / pi) (sqrt(1 + s^2) - s / sqrt 2)."""
    rng = np.random.default_rng(0)
    observed = rng.normal(size=(40_000, 1))
    found = {}
    for spread in (0.7, 1.0, 1.4):
        scores = energy_scores(spread * rng.normal(size=(6, *observed.shape)), observed)
        exact = np.sqrt(2 / np.pi) * (np.sqrt(1 + spread**2) - spread / np.sqrt(2))
        error = scores.std() / np.sqrt(len(scores))
        assert abs(scores.mean() - exact) < 4 * error < 0.03
        found[spread] = scores.mean()
    assert min(found, key=found.get) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "kind"),
    [
        (el.systems.OrnsteinUhlenbeck([[1.0]]), "constant"),
        (el.systems.OrnsteinUhlenbeck.rotating(2), "constant"),
        (el.systems.ScalarMultiplicative(), "diffusion"),
        (el.systems.NoisyLimitCycle(), "current"),
    ],
)
def test_the_closure_is_that_of_the_system(system, kind):
    series = system.simulate(200.0, dt=0.1, members=10, seed=3)
    model = el.fit(series, score=el.KGMM(noise_level=0.1, cells=200), check="off", seed=1)
    choice = model.mobility.evidence.choice
    assert choice.kind == kind
    assert (model.fields is None) == (kind == "constant")
    assert model.provenance["mobility"]["kind"] == ("IntegratedResponse" if kind == "constant" else "StateDependent")
    assert ClosureChoice.from_dict(choice.to_dict()) == choice
    if kind != "constant":
        constant, taken = choice.candidates
        assert constant.excess > 3 * constant.standard_error  # known to a few per cent: chance does not decide
        assert taken.excess == 0.0


def test_the_simplest_within_one_standard_error_is_taken():
    """A gain below its own scatter is not enough; closures whose members diverged are not among the scores."""
    rng = np.random.default_rng(0)
    simple = 1 + rng.normal(0, 0.1, (400, 3))
    scattered = simple - 0.001 + rng.normal(0, 0.1, simple.shape)
    better = simple - 0.05 + rng.normal(0, 0.1, simple.shape)
    assert take_simplest({"constant": simple, "diffusion": scattered}).kind == "constant"
    assert take_simplest({"constant": simple, "current": scattered, "both": better}).kind == "both"
    assert take_simplest({"diffusion": scattered}).kind == "diffusion"
    assert "diverged" in take_simplest({}).reason


def test_what_is_asked_for_is_not_chosen():
    series = el.systems.ScalarMultiplicative().simulate(200.0, dt=0.1, members=4, seed=3)
    model = el.fit(series, score=el.Gaussian(), mobility=el.IntegratedResponse(), check="off")
    assert model.fields is None
    assert model.mobility.evidence.choice is None


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        (el.systems.OrnsteinUhlenbeck([[1.0]]).simulate(30.0, dt=0.1, seed=1), "independent samples, too few"),
        (el.systems.OrnsteinUhlenbeck.rotating(4).simulate(400.0, dt=0.1, seed=1), "4 variables"),
    ],
)
def test_a_constant_mobility_is_kept_with_its_reason(series, reason):
    model = el.fit(series, score=el.Gaussian(), check="off")
    assert model.fields is None
    assert reason in model.mobility.evidence.choice.reason


@pytest.mark.slow
def test_the_choice_is_stored_and_in_the_report(tmp_path):
    series = el.systems.ScalarMultiplicative().simulate(100.0, dt=0.1, members=10, seed=3)
    model = el.fit(series, score=el.KGMM(noise_level=0.1, cells=100), check="off")
    model.save(tmp_path / "model.safetensors")
    choice = el.load(tmp_path / "model.safetensors").mobility.evidence.choice
    assert choice == model.mobility.evidence.choice
    assert len(choice.candidates) == 2
    el.validate(model, series, seed=1).report(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "Choice of the closure" in html
    assert "Diffusion that depends on the state, without a current (taken)" in html
