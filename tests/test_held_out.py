"""The held-out check: a closure inferred without some stretches of a series forecasts them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.estimate.closure.evidence import HeldOutCheck
from effective_langevin.validate import tables
from effective_langevin.validate.findings.notes import HELD_OUT_CHANCE, held_out

pytestmark = pytest.mark.filterwarnings("ignore::effective_langevin.EstimateWarning")
PER_SAMPLE = 10
RATE = 0.377  # of relaxation, per sampling interval: a bead in an optical trap, seen by a camera


def linear(samples, seed, exposure=1):
    """An Ornstein-Uhlenbeck process at unit interval; each sample is a mean over the exposure, in tenths of it."""
    rng, kept = np.random.default_rng(seed), np.exp(-RATE / PER_SAMPLE)
    steps = rng.normal(size=samples * PER_SAMPLE) * np.sqrt(1 - kept**2)
    fine = lfilter([1.0], [1.0, -kept], steps).reshape(samples, PER_SAMPLE)
    return el.TimeSeries(fine[:, :exposure].mean(axis=1)[:, None], dt=1.0, names=["bead"], time_unit="ms")


def checked(series, mobility=None, seed=0):
    mobility = mobility or el.IntegratedResponse()
    return el.fit(series, score=el.Gaussian(), mobility=mobility, check="off", check_held_out=True, seed=seed)


@pytest.fixture(scope="module")
def right():
    return checked(linear(10_000, 1))


@pytest.fixture(scope="module")
def slow():
    """Displacements over four intervals, half of which the relaxation takes back: D is half as large as it should."""
    return checked(linear(10_000, 1), el.QuadraticVariation(lag=4))


def test_forecasts_of_a_right_model_hold_their_share_and_have_slope_one(right):
    found = right.mobility.evidence.held_out
    assert abs(found.value - found.expected) < 4 * found.error < 0.4
    assert found.p > HELD_OUT_CHANCE
    assert (found.starts, found.members) == (1970, 10)
    assert found.lags[0] == 1.0


def test_forecasts_that_spread_too_little_are_found(slow):
    found = slow.mobility.evidence.held_out
    assert found.p < HELD_OUT_CHANCE
    assert found.kind == "share"
    assert found.lag == 1.0
    assert found.value < 0.75


def test_mean_forecasts_that_decay_too_slowly_are_seen():
    """Blur: D is 38 % too small and follows one step, but not the decay."""
    blurred = checked(linear(40_000, 1, exposure=10), el.QuadraticVariation())
    found = blurred.mobility.evidence.held_out
    assert found.kind == "slope"
    assert found.value < 0.85
    assert found.p < 0.05


def test_the_skill_of_forecasts_is_that_of_the_linear_process(right):
    """Errors of N(m, s^2) forecasts are s / sqrt(pi); persistence is off by a normal difference, without a spread."""
    found = right.mobility.evidence.held_out
    kept = np.exp(-RATE * np.array(found.lags))
    exact = {"climatology": np.sqrt(1 - kept**2), "persistence": np.sqrt(1 + kept) / 2}
    for name, ratio in exact.items():
        value, error = (np.array(getattr(found, f"of_{name}{end}")) for end in ("", "_error"))
        assert (np.abs(value - ratio) < 4 * error).all()
        assert error.max() < 0.03
    np.testing.assert_allclose(found.shares, 9 / 11, atol=0.05)
    rows = tables.forecasts(SimpleNamespace(model=right, comparison=SimpleNamespace(time_unit="ms"))).rows
    assert [row[0] for row in rows] == [f"{lag:.3g}" for lag in found.lags]
    assert rows[0][1].startswith(f"{found.of_climatology[0]:.2f}")
    assert tables.forecasts(SimpleNamespace(model=checked(linear(300, 1)))) is None


def told(model):
    return held_out(SimpleNamespace(model=model, comparison=SimpleNamespace(time_unit="ms")))


def test_the_verdict_warns_and_names_the_difference(slow):
    finding = told(slow)
    assert finding.level == "warning"
    assert "% of the outcomes of bead after 1.0 ms" in finding.meaning
    assert "82 % are expected" in finding.meaning
    assert "el.diagnose" in finding.advice


def test_no_alarm_is_not_called_right(right):
    finding = told(right)
    assert finding.level == "ok"
    assert finding.meaning.startswith("no difference that matters was detected. Nearest to one: ")


def test_a_share_is_said_in_per_cent():
    found = HeldOutCheck((1.0,), 100, 10, "share", "bead", 1.0, 9 / 11, 0.7, 0.02, 1e-4)
    words = found.words("ms")
    assert words.startswith("the range of 10 forecasts from held-out states holds 70.0 ± 2.0 % of the outcomes of bead")
    assert words.endswith("after 1.0 ms; 82 % are expected")


def test_the_result_is_kept_with_the_model(slow, tmp_path):
    slow.save(tmp_path / "model.safetensors")
    assert el.load(tmp_path / "model.safetensors").mobility.evidence.held_out == slow.mobility.evidence.held_out


def test_it_is_asked_for_and_a_short_record_or_one_with_noise_is_not_judged(right):
    settings = {"score": el.Gaussian(), "mobility": el.IntegratedResponse(), "check": "off"}
    assert el.fit(linear(2000, 1), **settings).mobility.evidence.held_out is None
    assert checked(linear(300, 1)).mobility.evidence.held_out is None
    noisy = linear(10_000, 1).map(lambda x: x + 0.5 * np.random.default_rng(0).normal(size=x.shape))
    assert checked(noisy).mobility.evidence.held_out is None


def test_smooth_motion_gets_a_note(slow):
    evidence = slow.mobility.evidence
    horizon = SimpleNamespace(rule="finite")
    smooth = replace(slow, mobility=replace(slow.mobility, evidence=replace(evidence, horizon=horizon)))
    assert told(smooth).level == "note"
