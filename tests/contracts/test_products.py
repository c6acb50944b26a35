"""Every product shows itself in one short line and says more in `summary()`."""

from dataclasses import replace

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.simulate.ensemble import Ensemble


@pytest.fixture(scope="module")
def validation(linear_model, linear_series):
    return el.validate(linear_model, linear_series, seed=1, members=16, duration=100.0)


def test_a_product_is_shown_in_one_short_line(linear_model, linear_series, validation):
    products = [
        linear_model,
        linear_model.score,
        linear_model.mobility,
        linear_series,
        el.diagnose(linear_series),
        validation,
        validation.verdict,
        validation.curves["acf"],
        Ensemble(np.zeros((2, 3, 1)), np.zeros(2, bool)),
        linear_model.timescales(),
    ]
    for product in products:
        assert "\n" not in repr(product)
        assert len(repr(product)) < 200, repr(product)


def test_the_verdict_reads_as_its_sentences(validation):
    assert str(validation.verdict).splitlines() == list(validation.verdict.sentences)
    assert validation.verdict.level in ("good", "usable", "undecided", "poor")
    assert len(validation.verdict.sentences) == 3


def test_a_curve_that_is_not_there_is_named_with_those_that_are(validation):
    with pytest.raises(KeyError, match=r"There is no curve 'pfd'. There are: .*pdf"):
        validation.curves["pfd"]


def test_the_summary_of_a_mobility_says_how_it_was_found(linear_series):
    phi = el.fit(linear_series, score=el.Gaussian()).mobility
    assert "Mobility by IntegratedResponse" in phi.summary()
    assert f"Errors from {phi.evidence.blocks} blocks" in phi.summary()
    assert "plateau" in phi.summary() or "limit" in phi.summary()
    spoilt = replace(phi.evidence, lifted_by=0.1, measurement_noise=np.array([0.1, 0.0]))
    words = replace(phi, evidence=spoilt).summary()
    assert "positive definite by a change of 10 %" in words
    assert "Lag 0 is left out" in words


def test_variances_of_angles_are_not_matched(linear_model):
    circular = replace(linear_model, space=replace(linear_model.space, periods=(None, 1.0)))
    with pytest.raises(el.ArgumentError, match="angles"):
        el.match_variances(circular)


def test_a_validation_that_was_not_saved_is_not_loaded(linear_model, tmp_path):
    with pytest.raises(el.ArgumentError, match="There is no file"):
        el.Validation.load(tmp_path / "nothing.nc", linear_model)
