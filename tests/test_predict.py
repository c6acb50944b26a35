from dataclasses import replace

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.predict import Band, _bands

pytestmark = pytest.mark.slow
DRIFT = np.array([[1.0, -0.8], [1.2, 1.5]])


@pytest.fixture(scope="module")
def series():
    return record(2)


def record(seed):
    return el.systems.OrnsteinUhlenbeck(DRIFT, np.eye(2)).simulate(400.0, dt=0.1, members=6, seed=seed)


@pytest.fixture(scope="module")
def prediction(series):
    return el.predict_held_out(series, score=el.Gaussian(), seed=0)


def test_the_bands_hold_the_part_that_was_not_used():
    """Neighbouring lags move together: in one record few of a hundred points are independent, and its coverage scatters
    by 0.1. The mean over eight records has an error of 0.035."""
    found = [el.predict_held_out(record(seed), score=el.Gaussian(), seed=0).coverage for seed in range(2, 10)]
    assert 0.85 < np.mean([each["acf"] for each in found]) <= 1.0
    assert 0.9 < np.mean([each["pdf"] for each in found]) <= 1.0


def test_the_model_comes_from_one_part_and_the_comparison_from_the_other(prediction):
    assert "95 %" in prediction.summary()
    assert prediction.model.provenance["samples"] == pytest.approx(12_000, abs=10)
    assert prediction.validation.data.n_samples == pytest.approx(12_000, abs=10)
    # The part predicted is the last one: the fourth to the sixth record, at their own times.
    assert len(prediction.validation.data.segments) == 3


def test_a_wrong_clock_leaves_the_band(prediction, series):
    model = prediction.model
    fast = replace(
        model, mobility=replace(model.mobility, matrix=2 * model.mobility.matrix, replicas=2 * model.mobility.replicas)
    )
    used, kept = series.split(held_out=0.5, blocks=1)
    validation = el.validate(fast, kept, seed=1)
    acf, pdf = _bands(fast, validation, used, 0.95, 0)
    assert acf.coverage < 0.5
    assert pdf.coverage > 0.85


def test_a_band_adds_both_errors_at_its_level():
    band = Band(np.zeros(3), np.full(3, 3.0), np.array([9.0, 9.9, -9.0]), np.full(3, 4.0), 0.95)
    np.testing.assert_allclose(band.half_width, 1.959964 * 5)
    assert band.coverage == pytest.approx(2 / 3)


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5])
def test_a_share_that_leaves_nothing_is_refused(share, series):
    with pytest.raises(el.ArgumentError, match="share"):
        el.predict_held_out(series, share=share)


@pytest.mark.filterwarnings("ignore:The inferred diffusion")
def test_bands_of_a_model_with_memory_are_those_of_the_observed_variables():
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(400.0, dt=0.2, seed=1)
    found = el.predict_held_out(series, score=el.Gaussian(), memory="delays:1")
    assert found.acf.predicted.shape[1] == found.acf.observed.shape[1] == 2
