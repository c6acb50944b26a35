from dataclasses import replace

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.predict import Band, _bands

DRIFT = np.array([[1.0, -0.8], [1.2, 1.5]])


@pytest.fixture(scope="module")
def series():
    return el.systems.OrnsteinUhlenbeck(DRIFT, np.eye(2)).simulate(400.0, 0.1, members=6, seed=2)


@pytest.fixture(scope="module")
def prediction(series):
    return el.predict_held_out(series, score=el.Gaussian(), seed=0)


def test_the_bands_hold_the_part_that_was_not_used(prediction):
    """Neighbouring lags move together: of about a hundred points, few are independent. Broken bands hold far fewer."""
    assert prediction.coverage["acf"] > 0.8
    assert 0.85 < prediction.coverage["pdf"] <= 1.0
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
