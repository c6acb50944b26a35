"""The Gaussian score in place of a learned one: what it knows, and how sure the choice is."""

import jax
import numpy as np
import pytest
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.estimate.score.noise_level import _error_of_mean, gaussian_if_as_good
from effective_langevin.estimate.score.score import Score
from effective_langevin.estimate.space import StateSpace

LINE = StateSpace((None,))


def slow_series(samples: int, memory: float, seed: int = 0) -> np.ndarray:
    """x' = a x + sqrt(1 - a^2) xi, of variance one."""
    noise = np.random.default_rng(seed).normal(size=samples)
    noise[1:] *= np.sqrt(1 - memory**2)
    return lfilter([1.0], [1.0, -memory], noise)[:, None].astype(np.float32)


def test_the_gaussian_score_that_is_taken_knows_all_samples():
    """The held-out part has four times the variance: the score is that of the whole, not of the training part."""
    samples = np.random.default_rng(0).normal(size=(4000, 1)).astype(np.float32)
    train, held_out = samples[:3000], 2 * samples[3000:]
    score, _, found = gaussian_if_as_good(
        Score.linear(5 * np.eye(1)), 0.2, train, held_out, LINE, key=jax.random.key(0)
    )
    assert found.gaussian_used
    whole = np.mean(np.concatenate([train, held_out]).astype(float) ** 2)
    assert score.precision[0, 0] == pytest.approx(1 / whole, rel=1e-3)


@pytest.mark.parametrize("memory", [0.0, 0.95])
def test_errors_of_means_count_neighbours_that_are_alike(memory):
    """The scatter of the means of 200 records, known to 5 %, and an integral time cut at the first zero: 20 %."""
    records = [slow_series(2000, memory, seed)[:, 0] for seed in range(200)]
    stated = np.mean([_error_of_mean(record) for record in records])
    assert stated == pytest.approx(np.std([record.mean() for record in records]), rel=0.2)


def test_a_short_record_with_delays_has_a_gaussian_score():
    """300 samples, of which about 15 are independent: a network would learn their scatter."""
    series = el.TimeSeries(slow_series(300, 0.9), 1.0, names=["x"])
    model = el.fit(series, memory="delays:1", mobility=el.QuadraticVariation(), check="off", compare_estimators=False)
    assert model.provenance["score"]["kind"] == "Gaussian"
