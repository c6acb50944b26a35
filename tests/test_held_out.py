"""The held-out check: a closure from the first part of a record predicts the correlations of the rest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.estimate.mobility.evidence import HeldOutCheck, MobilityEvidence
from effective_langevin.statistics.resampling import FALSE_ALARM
from effective_langevin.validate.findings.notes import held_out

pytestmark = pytest.mark.filterwarnings("ignore::effective_langevin.EstimateWarning")  # the wrong models warn, too

PER_SAMPLE = 10
RATE = 0.377  # of relaxation, per sampling interval: a bead in an optical trap, seen by a camera


def linear(samples, seed, exposure=0):
    """An Ornstein-Uhlenbeck process at unit interval; each sample is a mean over the exposure, in tenths of it."""
    rng = np.random.default_rng(seed)
    kept = np.exp(-RATE / PER_SAMPLE)
    steps = rng.normal(size=samples * PER_SAMPLE) * np.sqrt(1 - kept**2)
    steps[0] = rng.normal()
    fine = lfilter([1.0], [1.0, -kept], steps).reshape(samples, PER_SAMPLE)
    return el.TimeSeries(fine[:, : max(exposure, 1)].mean(axis=1)[:, None], dt=1.0)


def checked(series, mobility=None, seed=0):
    options = {"score": el.Gaussian(), "check": "off", "check_held_out": True, "seed": seed}
    return el.fit(series, mobility=mobility or el.IntegratedResponse(), **options)


def evidence(series, mobility=None, seed=0):
    return checked(series, mobility, seed).mobility.evidence.held_out


@pytest.fixture(scope="module")
def blurred():
    return checked(linear(10_000, 1, exposure=10), el.QuadraticVariation())


def test_blur_taken_for_diffusion_leaves_the_bands(blurred):
    found = blurred.mobility.evidence.held_out
    assert found.coverage < 0.5
    assert found.p_small < FALSE_ALARM
    assert (found.used, found.held_out) == (7000, 3000)


def test_the_verdict_says_so_and_names_the_difference(blurred):
    result = el.validate(blurred, linear(10_000, 1, exposure=10), members=64, duration=400.0)
    finding = next(f for f in result.verdict.findings if f.name == "held-out part")
    assert finding.level in ("warning", "stop")
    assert "correlation" in finding.meaning
    assert "95 % bands hold" in finding.meaning
    assert result.verdict.level in ("usable", "poor")
    assert result.metrics["held_out_coverage"] == blurred.mobility.evidence.held_out.coverage


def test_the_result_is_kept_with_the_model(blurred, tmp_path):
    blurred.save(tmp_path / "model.safetensors")
    assert el.load(tmp_path / "model.safetensors").mobility.evidence.held_out == blurred.mobility.evidence.held_out


def test_no_alarm_is_not_called_right(blurred):
    found = HeldOutCheck(700, 300, 20, 0.95, "the correlation time is 1.02 times the data's", 1.0, 1.0)
    model = replace(blurred, mobility=replace(blurred.mobility, evidence=MobilityEvidence(held_out=found)))
    told = held_out(type("Validation", (), {"model": model})())
    assert told.level == "ok"
    assert "No difference that matters was detected" in told.meaning
    assert "95 % of 20 correlations" in told.meaning
    assert "last 30 %" in told.meaning


def test_a_short_record_is_not_judged():
    assert evidence(linear(500, 1)) is None


def test_it_is_asked_for():
    model = el.fit(linear(2000, 1), score=el.Gaussian(), mobility=el.QuadraticVariation(), check="off")
    assert model.mobility.evidence.held_out is None


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "replicas"), [(3000, 60), (10_000, 60)])
def test_a_right_model_raises_no_alarm(samples, replicas):
    """An alarm has a chance of 0.2 %: two of 60 have one of 0.7 %. Chances below 5 % come in at most 5 % of the
    replicas, since small differences are allowed: 9 of 60 have a chance of 0.4 %. The mean coverage is 0.95, its
    scatter over replicas at most 0.2, and its error 0.026."""
    found = [evidence(linear(samples, seed), seed=seed) for seed in range(replicas)]
    assert sum(each.p_small < FALSE_ALARM for each in found) < 2
    assert sum(each.p_small < 0.05 for each in found) < 9
    assert 0.95 - 3 * 0.026 < np.mean([each.coverage for each in found]) <= 1.0


@pytest.mark.slow
def test_a_blurred_series_always_does():
    found = [evidence(linear(10_000, seed, exposure=10), el.QuadraticVariation(), seed) for seed in range(20)]
    assert all(each.p_small < FALSE_ALARM for each in found)
    assert np.median([each.coverage for each in found]) < 0.5
