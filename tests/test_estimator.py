"""`LangevinEstimator` keeps the conventions of scikit-learn, with and without it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import effective_langevin as el

LINEAR = {"score_strategy": el.Gaussian(), "mobility": el.QuadraticVariation()}

# Checks of scikit-learn that fit fewer samples than a fit needs (100), and how many.
TOO_FEW = {
    "check_dict_unchanged": 20,
    "check_dont_overwrite_parameters": 20,
    "check_dtype_object": 56,
    "check_estimators_dtypes": 20,
    "check_estimators_fit_returns_self": 21,
    "check_estimators_overwrite_params": 21,
    "check_estimators_pickle": 21,
    "check_f_contiguous_array_estimator": 20,
    "check_fit2d_1feature": 10,
    "check_fit2d_predict1d": 20,
    "check_fit_idempotent": 80,
    "check_fit_score_takes_y": 30,
    "check_methods_sample_order_invariance": 20,
    "check_methods_subset_invariance": 20,
    "check_n_features_in_after_fitting": 15,
    "check_pipeline_consistency": 30,
    "check_readonly_memmap_input": 21,
}


@parametrize_with_checks(
    [el.LangevinEstimator(dt=1.0, **LINEAR, check="off")],
    expected_failed_checks=lambda made: {
        name: f"It fits {samples} samples; a fit needs 100." for name, samples in TOO_FEW.items()
    },
)
def test_the_checks_of_scikit_learn_hold(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def records(linear_series):
    return [np.asarray(s[:2000]) for s in linear_series.segments]


@pytest.fixture(scope="module")
def fitted(records):
    return el.LangevinEstimator(**LINEAR).fit(records, dt=0.1)


def test_it_learns_what_fit_learns_from_any_form_of_the_data(records, fitted):
    series = el.TimeSeries(records, 0.1)
    expected = el.fit(series, score=el.Gaussian(), mobility=el.QuadraticVariation(), seed=0).mobility.matrix
    for data, dt in ((records, 0.1), (np.stack(records), 0.1), (series, None), (series, 0.1)):
        found = el.LangevinEstimator(**LINEAR).fit(data, dt=dt)
        np.testing.assert_array_equal(found.model_.mobility.matrix, expected)
    assert fitted.n_features_in_ == 2


def test_making_one_only_stores_and_fit_checks():
    strange = el.LangevinEstimator(score_strategy="KGMM", seed=1.5)
    assert (strange.score_strategy, strange.seed) == ("KGMM", 1.5)
    with pytest.raises(el.ArgumentError, match="Argument `dt`"):
        el.LangevinEstimator().fit(np.zeros((200, 2)))
    with pytest.raises(el.ArgumentError, match="Argument `seed`"):
        strange.fit(np.random.default_rng(0).normal(size=(200, 2)), dt=1.0)
    with pytest.raises(el.ArgumentError, match=r"the series has dt = 0\.5"):
        el.LangevinEstimator().fit(el.TimeSeries(np.random.default_rng(0).normal(size=(200, 2)), 0.5), dt=0.1)


def test_parameters_are_read_and_set_by_name_also_within_strategies():
    made = el.LangevinEstimator(score_strategy=el.KGMM(cells=50), seed=3)
    given = {name: value for name, value in made.get_params(deep=False).items() if value is not None}
    assert given == {"score_strategy": el.KGMM(cells=50), "check": "warn", "seed": 3}
    assert made.get_params()["score_strategy__cells"] == 50
    assert made.set_params(score_strategy__cells=70, seed=4) is made
    assert (made.score_strategy.cells, made.seed) == (70, 4)
    made.set_params(mobility__lags=12, mobility=el.IntegratedResponse())
    assert made.mobility.lags == 12
    for unknown in ("cells", "score_strategy__nothing", "symmetry__channels"):
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
    assert repr(el.LangevinEstimator(seed=2, score_strategy=el.Gaussian())) == (
        "LangevinEstimator(score_strategy=Gaussian(noise_level=0.0, calibrate=False), seed=2)"
    )


def test_the_former_name_of_the_score_strategy_still_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="`score=` is now called `score_strategy=`"):
        made = el.LangevinEstimator(score=el.Gaussian())
    assert made.score_strategy == clone(made).score_strategy == el.Gaussian()
    assert "score" not in made.get_params()
    with pytest.raises(TypeError, match="former name"):
        el.LangevinEstimator(score=el.Gaussian(), score_strategy=el.Gaussian())


@pytest.mark.slow
def test_the_score_is_the_skill_of_forecasts(fitted, linear_series):
    """The exact skill of this system is known at each lag: the energy score of a Gaussian goes with its width."""
    unseen = [np.asarray(s[2000:6000]) for s in linear_series.segments]
    skill = fitted.score(unseen)
    assert 0.2 < skill < 0.6
    noise = np.random.default_rng(0).permutation(np.concatenate(unseen))
    assert fitted.score(noise) < -0.1  # without memory, forecasts from a state are worse than climatology
    with pytest.raises(el.DataError, match="X has 1 features, but LangevinEstimator is expecting 2 features"):
        fitted.score(unseen[0][:, :1])
    with pytest.raises(el.DataError, match="a score needs at least 20"):
        fitted.score(unseen[0][:19])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::effective_langevin.EstimateWarning")
def test_a_search_without_scoring_takes_the_better_model(records):
    """Increments over two time units are as large as the process: they say little about its diffusion."""
    made = el.LangevinEstimator(dt=0.1, **LINEAR, seed=5)
    search = GridSearchCV(made, {"mobility__lag": [20, 1]}, cv=el.RecordSplit(2)).fit(records)
    worse, better = search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"mobility__lag": 1}
    assert search.best_estimator_.n_features_in_ == 2
    assert better > worse + 0.05


def test_a_splitter_keeps_records_whole():
    values = np.arange(600.0).reshape(6, 50, 2)
    for data in (values, list(values)):
        folds = list(el.RecordSplit(3).split(data))
        assert [held_out.tolist() for _, held_out in folds] == [[0, 1], [2, 3], [4, 5]]
        assert all(sorted([*train, *held_out]) == list(range(6)) for train, held_out in folds)
    assert el.RecordSplit(3).get_n_splits() == 3


def test_a_splitter_joins_no_rows_that_were_apart():
    folds = list(el.RecordSplit(5).split(np.zeros((103, 2))))
    assert np.array_equal(np.concatenate([held_out for _, held_out in folds]), np.arange(103))
    for train, held_out in folds:
        assert (np.diff(train) == 1).all()
        assert not set(train) & set(held_out)
        assert len(train) >= 40
    with pytest.raises(el.DataError, match="3 records for 5 folds"):
        next(el.RecordSplit(5).split(np.zeros((3, 100, 2))))
    with pytest.raises(el.ArgumentError, match="n_splits"):
        next(el.RecordSplit(1).split(np.zeros((100, 2))))


@pytest.mark.slow
def test_data_frames_are_split_in_time(records):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(records[0], columns=["T", "h"])
    scores = cross_val_score(el.LangevinEstimator(dt=0.1, **LINEAR), frame, cv=el.RecordSplit(2))
    assert (scores > 0.2).all()
