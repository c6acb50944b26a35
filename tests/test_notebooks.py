"""What is shown of series, models and validations on a prompt and in a notebook."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import effective_langevin as el

EVIL = "<b onload=x>&T"


class Strict(HTMLParser):
    """Collects texts and checks that every tag is closed in order and that none came in through a name."""

    def __init__(self, page: str):
        super().__init__()
        self.open, self.texts, self.tags = [], [], set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def evil(linear_series):
    values = [s[:1000] for s in linear_series.segments]
    return el.TimeSeries(values, 0.1, names=[EVIL, "h"], units=["K", "<m>"], time_unit="d")


@pytest.fixture(scope="module")
def model(evil):
    return el.fit(evil, score=el.Gaussian(), mobility=el.QuadraticVariation())


def test_a_series_shows_its_size_and_its_variables(evil):
    page = Strict(evil._repr_html_())
    assert f"{EVIL} [K]" in page.texts
    assert "h [<m>]" in page.texts
    assert "4,000 in 4 segments" in page.texts
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_wide_series_shows_a_few_variables_and_says_how_many_there_are():
    page = Strict(el.TimeSeries(np.random.default_rng(0).normal(size=(100, 40)), 1.0)._repr_html_())
    assert "and 28 more variables" in page.texts
    assert "x12" in page.texts
    assert "x13" not in page.texts


def test_a_model_shows_phi_with_its_errors(model):
    page = Strict(model._repr_html_())
    first = f"{model.mobility.matrix[0, 0]:.1f}"
    assert any(text.startswith(first) and " ± " in text for text in page.texts)
    assert EVIL in page.texts
    assert f"LangevinModel of {EVIL} and h" in page.texts
    assert "\n  Phi =\n" in model.summary()
    assert "\n" not in repr(model)


def test_a_large_model_is_shown_in_a_few_lines(model):
    many = replace(model, names=tuple(f"a{i}" for i in range(40)))
    assert repr(many).startswith("LangevinModel(a0, a1, a2, a3 and 36 more; QuadraticVariation mobility")
    assert "\n" not in repr(many)


def test_a_validation_shows_its_verdict_and_metrics(model, evil):
    result = el.validate(model, evil, members=16, duration=50.0)
    page = Strict(result._repr_html_())
    assert result.summary().splitlines()[0] in page.texts
    assert {"acf_rmse", "covariance_error", "Detectable", "Next"} <= set(page.texts)
