"""`LangevinEstimator` keeps the conventions of scikit-learn, with and without it."""

import numpy as np
import pytest

import effective_langevin as el

LINEAR = {"score": el.Gaussian(), "mobility": el.QuadraticVariation()}


@pytest.fixture(scope="module")
def records(linear_series):
    return [np.asarray(s[:2000]) for s in linear_series.segments]


@pytest.fixture(scope="module")
def fitted(records):
    return el.LangevinEstimator(**LINEAR).fit(records, dt=0.1)


def test_it_learns_what_fit_learns_from_any_form_of_the_data(records, fitted):
    series = el.TimeSeries(records, 0.1)
    expected = el.fit(series, **LINEAR, seed=0).mobility.matrix
    for data, dt in ((records, 0.1), (np.stack(records), 0.1), (series, None), (series, 0.1)):
        found = el.LangevinEstimator(**LINEAR).fit(data, dt=dt)
        np.testing.assert_array_equal(found.model_.mobility.matrix, expected)
    assert fitted.n_features_in_ == 2


def test_making_one_only_stores_and_fit_checks():
    strange = el.LangevinEstimator(score="KGMM", seed=1.5)
    assert (strange.score, strange.seed) == ("KGMM", 1.5)
    with pytest.raises(el.ArgumentError, match="Argument `dt`"):
        el.LangevinEstimator().fit(np.zeros((200, 2)))
    with pytest.raises(el.ArgumentError, match="Argument `seed`"):
        strange.fit(np.random.default_rng(0).normal(size=(200, 2)), dt=1.0)
    with pytest.raises(el.ArgumentError, match=r"the series has dt = 0\.5"):
        el.LangevinEstimator().fit(el.TimeSeries(np.random.default_rng(0).normal(size=(200, 2)), 0.5), dt=0.1)


def test_parameters_are_read_and_set_by_name_also_within_strategies():
    made = el.LangevinEstimator(score=el.KGMM(cells=50), seed=3)
    given = {name: value for name, value in made.get_params(deep=False).items() if value is not None}
    assert given == {"score": el.KGMM(cells=50), "check": "warn", "seed": 3}
    assert made.get_params()["score__cells"] == 50
    assert made.set_params(score__cells=70, seed=4) is made
    assert (made.score.cells, made.seed) == (70, 4)
    made.set_params(mobility__lags=12, mobility=el.IntegratedResponse())
    assert made.mobility.lags == 12
    for unknown in ("cells", "score__nothing", "symmetry__channels"):
        with pytest.raises(el.ArgumentError, match=f"no parameter `{unknown}`"):
            made.set_params(**{unknown: 1})


def test_a_sample_is_a_series_like_the_one_learned_from(fitted):
    path = fitted.sample(3000, seed=1)
    assert path.shape == (3000, 2)
    np.testing.assert_array_equal(path, fitted.sample(3000, seed=1))
    # 300 time units, of which 2 are one independent sample: 4 standard errors of a variance are 4 sqrt(2 / 150) = 0.46
    assert path.std(axis=0) == pytest.approx(fitted.model_.standardizer.std, rel=0.25)


def test_before_fit_there_is_nothing_to_sample():
    with pytest.raises(el.ArgumentError, match="Call `fit` first"):
        el.LangevinEstimator().sample()


def test_its_text_says_what_was_given():
    assert repr(el.LangevinEstimator()) == "LangevinEstimator()"
    assert repr(el.LangevinEstimator(seed=2, score=el.Gaussian())) == (
        "LangevinEstimator(score=Gaussian(noise_level=0.0, calibrate=False), seed=2)"
    )


def test_scikit_learn_clones_it_and_searches_over_it(records):
    base = pytest.importorskip("sklearn.base")
    search = pytest.importorskip("sklearn.model_selection")
    made = el.LangevinEstimator(**LINEAR, seed=5)
    copy = base.clone(made)
    assert copy is not made
    assert copy.get_params() == made.get_params()
    grid = search.GridSearchCV(
        made,
        {"mobility__lag": [1, 2]},
        scoring=lambda fitted, X: -np.linalg.norm(fitted.model_.mobility.standard_error),
        cv=2,
    )
    grid.fit(records[0], dt=0.1)
    assert grid.best_params_["mobility__lag"] in (1, 2)
    assert grid.best_estimator_.n_features_in_ == 2
