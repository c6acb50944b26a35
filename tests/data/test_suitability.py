"""Variables that no Langevin equation describes are named before the fit; those that it describes are left alone."""

import re

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.data.suitability import find_unsuited, refuse_dependent

X = el.systems.OrnsteinUhlenbeck.rotating(3).simulate(300.0, dt=0.1, seed=0).stacked()


def series(*columns):
    return el.TimeSeries(np.column_stack(columns), dt=0.1)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((X[:, 0], X[:, 0]), "x2 equals x1"),
        ((X[:, 0], 3 - 2 * X[:, 0]), "x2 is -2 times x1"),
        ((X[:, 0], X[:, 1], X[:, 0] + X[:, 1]), r"x3 is 1 x1 \+1 x2"),
        ((2 * X[:, 1] - X[:, 2], X[:, 1], X[:, 2]), r"x3 is -1 x1 \+2 x2"),
        ((X[:, 0], 1e9 + 0.1 * X[:, 0]), r"x2 is 0\.1 times x1"),
    ],
)
def test_variables_that_repeat_others_are_named(columns, words):
    with pytest.raises(el.DataError, match=words + r", up to a constant, to \d+ digits: drop one, or use PCA"):
        refuse_dependent(series(*columns))
    with pytest.raises(el.DataError, match=words):
        el.fit(series(*columns), score=el.Gaussian(), check="off")


def test_the_digits_are_those_to_which_the_variables_agree():
    with pytest.raises(el.DataError, match="to 7 digits"):
        refuse_dependent(series(X[:, 0], X[:, 0] + 5e-8 * X[:, 1]))


def test_a_difference_of_a_thousandth_is_a_variable():
    assert refuse_dependent(series(X[:, 0], X[:, 0] + 1e-3 * X[:, 1], X[:, 2])) is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (X[:, 0] > 0, "x1 takes 2 values: a Langevin equation needs a continuous variable"),
        (np.round(X[:, 0]), r"x1 takes \d values"),
        (np.tile([0.0, 1.0, 0.0, -1.0], 500), "x1 takes 3 values"),
        (np.maximum(X[:, 0] - 0.7, 0) ** 2, r"x1 is exactly 0 in \d\d.* % of the samples"),
        (np.minimum(X[:, 0], 0.5), r"x1 is exactly 0\.5 in 2\d\.\d % of the samples"),
        (np.where(np.arange(len(X)) % 100 == 3, -9999, X[:, 0]), r"x1 holds -9999 \(30 times\)"),
    ],
)  # fmt: skip
def test_a_variable_that_is_not_continuous_is_refused_unless_forced(values, words):
    (sentence,) = find_unsuited(series(values))
    with pytest.raises(el.DataError) as error:
        el.fit(series(values), check="error")
    assert sentence in str(error.value)
    assert "--force" in str(error.value)
    assert re.match(words, sentence), sentence


@pytest.mark.parametrize(
    "values",
    [
        X,
        X.round(1),
        np.repeat(X[:300], 10, axis=0),
        X / np.abs(X[::-1]),
        np.exp(1.5 * X),
        100 * X + 1e15,
        (np.arange(3000) % 50)[:, None].astype(float),
    ],
    ids=["plain", "rounded", "repeated", "heavy tails", "lognormal", "offset", "sawtooth"],
)
def test_continuous_variables_are_left_alone(values):
    assert find_unsuited(el.TimeSeries(values, dt=0.1)) == []


def test_a_forced_fit_of_a_binary_variable_remembers_why_it_was_advised_against():
    with pytest.warns(el.EstimateWarning, match="x1 takes 2 values"):
        model = el.fit(series(X[:, 0] > 0), score=el.Gaussian(), mobility=el.IntegratedResponse())
    assert "x1 takes 2 values" in model.provenance["forced"]
