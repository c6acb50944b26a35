"""Lag 0 in doubt, both ways: `benchmarks.lag_zero` has all exposures and 500 clean series."""

import numpy as np
import pytest

import effective_langevin as el
from benchmarks.lag_zero import count_alarms, exposed, recovered
from effective_langevin.statistics.regime import is_smooth


def blurred_correlation(time, exposure, lags=4):
    """C at lags 0, 1, ... of an Ornstein-Uhlenbeck process of variance 1 through an exposure."""
    half = 0.5 * exposure / time
    later = (np.sinh(half) / half) ** 2 * np.exp(-np.arange(lags) / time)
    return np.concatenate([[(2 * half - 1 + np.exp(-2 * half)) / (2 * half**2)], later[1:]])


@pytest.mark.parametrize(("time", "exposure"), [(2.0, 0.5), (5.0, 1.0), (20.0, 0.25)])
def test_samples_through_an_exposure_have_the_correlations_of_the_formula(time, exposure):
    x, exact = exposed(400_000, time, exposure, np.random.default_rng(0)), blurred_correlation(time, exposure)
    found = [np.mean(x[k:] * x[: len(x) - k]) for k in range(4)]
    # The error of a variance is sqrt(2 * 2 time / samples), common to all lags; five of them.
    np.testing.assert_allclose(found, exact, atol=10 * np.sqrt(time / len(x)))
    np.testing.assert_allclose(np.diff(found), np.diff(exact), atol=0.01 * exact[0])


@pytest.mark.parametrize(("time", "exposure"), [(2.0, 1.0), (10.0, 0.25)])
def test_blur_is_named_and_relaxation_and_diffusion_of_the_motion_are_right(time, exposure):
    found = recovered(exposed(50_000, time, exposure, np.random.default_rng(3)), time)
    assert found["blurred"]
    assert not found["noisy"]
    assert found["relaxation"] == pytest.approx(1, abs=3 * found["relaxation_error"] + 0.01)
    # An exposure leaves lags >= 1 larger by up to 2 %.
    assert found["diffusion"] == pytest.approx(1, abs=3 * found["diffusion_error"] + 0.02)


def test_noise_is_named_and_taken_off_the_diffusion_of_the_motion():
    rng = np.random.default_rng(1)
    found = recovered(exposed(50_000, 10.0, 1e-3, rng) + 0.2 * rng.normal(size=50_000), 10.0)
    assert found["noisy"]
    assert not found["blurred"]
    assert found["diffusion"] == pytest.approx(1, abs=3 * found["diffusion_error"])


@pytest.mark.slow
def test_clean_series_raise_no_alarm():
    """One of each kind; the chance of an alarm is 1e-4 for each."""
    found = count_alarms(5)
    assert sum(found.values()) == found["series"]


@pytest.mark.parametrize("time", [1.0, 5.0, 50.0, 1e4])
def test_a_full_exposure_is_not_smooth_motion_and_inertia_is_at_any_relaxation(time):
    assert not is_smooth(blurred_correlation(time, 1.0)[:, None, None])
    slow, fast = 1.5 * time, time
    inertia = (slow * np.exp(-np.arange(4) / slow) - fast * np.exp(-np.arange(4) / fast)) / (slow - fast)
    assert is_smooth(inertia[:, None, None])


def test_the_diagnosis_names_blur_and_says_that_more_samples_do_not_help():
    series = el.TimeSeries(exposed(30_000, 2.7, 0.73, np.random.default_rng(0)), 6.9e-3)
    diagnosis = el.diagnose(series)
    assert diagnosis.regime == "motion blur"
    finding = diagnosis.finding("motion blur")
    assert finding.level == "note"
    exact = blurred_correlation(2.7, 0.73)
    lost, error = finding.numbers["lost_variance"].value[0], finding.numbers["lost_variance"].error[0]
    assert lost == pytest.approx(exact[1] ** 2 / exact[2] / exact[0] - 1, abs=3 * error)
    assert "Sampling more often does not help" in finding.advice
    assert diagnosis.finding("measurement noise").level == "ok"
