"""Validation of paths in a store: the numbers of memory, read by blocks of members."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.statistics.densities import histogram_edges, series_statistics
from effective_langevin.validate import ensembles
from effective_langevin.validate.ensembles import StoredEnsemble

MEMBERS = 100


@pytest.fixture(scope="module")
def series():
    path = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(300.0, dt=0.1, seed=1)
    return el.TimeSeries(path.values + np.array([5.0, 0.0]), 0.1, names=["b", "a"])  # not in alphabetical order


@pytest.fixture(scope="module")
def model(series):
    return el.fit(series, score=el.Gaussian(), mobility=el.QuadraticVariation(), check="off", compare_estimators=False)


@pytest.fixture(scope="module")
def stored(model, tmp_path_factory):
    return model.simulate(20.0, members=MEMBERS, seed=3, out=tmp_path_factory.mktemp("store") / "paths.zarr")


@pytest.mark.parametrize("at_once", [3000, 1 << 21])
def test_statistics_by_blocks_are_those_of_all_paths_in_memory(model, series, stored, at_once, monkeypatch):
    monkeypatch.setattr(ensembles, "_AT_ONCE", at_once)
    paths = model.simulate(20.0, members=MEMBERS, seed=3)
    edges, lags = histogram_edges(series.values), np.arange(0, 30, 3)
    expected = series_statistics(paths.segments, 0.1, edges, lags)
    found = StoredEnsemble.of(stored, model, 0.1, lambda some: some).statistics(0.1, edges, lags)
    for weights in (np.ones(20), np.arange(20.0)):
        np.testing.assert_allclose(found.histogram(weights), expected.histogram(weights), atol=40)  # single precision
        np.testing.assert_allclose(found.acf(weights), expected.acf(weights), atol=1e-5)
        np.testing.assert_allclose(found.covariance(weights), expected.covariance(weights), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found.increments(weights), expected.increments(weights), rtol=1e-4)
    assert found.histogram(np.ones(20)).sum() == expected.histogram(np.ones(20)).sum()


def test_a_validation_of_a_store_sees_all_of_it_and_gives_a_verdict(model, series, stored, monkeypatch):
    monkeypatch.setattr(ensembles, "MOST_NUMBERS", 4 * 25 * 201 * 2)
    result = el.validate(model, series, paths=stored.path)
    assert result.sides is not None
    assert len(result.sides.paths.segments) == 25  # what figures and tests see
    assert (result.comparison.members, result.comparison.model_samples) == (MEMBERS, MEMBERS * 201)
    assert result.metrics["acf_rmse"] < 0.1
    assert result.verdict.level in {"good", "usable", "undecided"}


def test_a_store_of_another_process_is_found_out(model, series, tmp_path):
    wrong = el.TimeSeries(series.values * np.array([1.5, 1.0]), 0.1, names=series.names)
    other = el.fit(wrong, score=el.Gaussian(), mobility=el.QuadraticVariation(), check="off", compare_estimators=False)
    paths = other.simulate(20.0, members=MEMBERS, seed=3, out=tmp_path / "paths.zarr")
    assert el.validate(model, series, paths=paths).metrics["covariance_error"] > 0.4


def test_what_cannot_be_compared_is_refused(model, series, stored, tmp_path):
    slow = model.simulate(20.0, dt=0.2, members=30, seed=3, out=tmp_path / "slow.zarr")
    few = model.simulate(2.0, members=19, seed=3, out=tmp_path / "few.zarr")
    cases = [
        ({"paths": slow}, "sampling interval"),
        ({"paths": few}, "at least 20 paths"),
        ({"paths": stored, "members": 10}, "Argument `members` has no meaning here"),
        ({"paths": tmp_path / "none.zarr"}, "no complete store"),
    ]
    for given, words in cases:
        with pytest.raises((el.ArgumentError, el.DataError), match=words):
            el.validate(model, series, **given)
