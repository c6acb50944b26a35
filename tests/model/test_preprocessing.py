"""A model with transforms: paths in the variables of the series, the same after a round trip through a file."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.sample_series import PERIOD, assert_same, climate, positive, season_of, trend_of
from safetensors import safe_open
from safetensors.numpy import save_file

import effective_langevin as el
from effective_langevin import preprocess as pp

ROBUST = {"score": el.Gaussian(), "mobility": el.QuadraticVariation()}
CHAIN = [pp.Detrend(), pp.RemoveSeasonalCycle(PERIOD), pp.PCA(components=3)]

# The series here are short on purpose, and the check of `fit` says so.
pytestmark = pytest.mark.filterwarnings("ignore:Probably not stationary")


def weather(length=1200, seed=0):
    """Three variables with memory, a trend and a season, in two records that begin at different months."""
    rng = np.random.default_rng(seed)
    records, starts = [], [108.0, 145.0]
    for first in starts:
        noise = rng.normal(size=(length + 100, 3))
        for t in range(1, len(noise)):
            noise[t] = [0.8, 0.6, 0.7] * noise[t - 1] + 0.6 * noise[t]
        t = first + np.arange(length)
        records.append(noise[100:] * [1.0, 20.0, 0.1] + trend_of(t) + season_of(t) + [5.0, 100.0, -1.0])
    return el.TimeSeries(records, 1.0, names=["T", "h", "u"], units=["K", "m", "m/s"], time_unit="month", start=starts)


@pytest.fixture(scope="module")
def series():
    return weather()


@pytest.fixture(scope="module")
def model(series):
    return el.fit(series, preprocess=CHAIN, **ROBUST)


def test_a_model_of_components_simulates_the_variables_of_the_series(model, series):
    """Season and trend of the mean over 400 members: 5 standard errors, as much again for the fit to 2400 months."""
    assert model.names == ("PC1", "PC2", "PC3")
    paths = model.simulate(48.0, members=400, seed=1, start=300.0)
    assert (paths.names, paths.units, paths.time_unit) == (series.names, series.units, series.time_unit)
    assert paths.starts == (300.0,) * 400
    t = paths.times[0]
    expected = season_of(t) + trend_of(t) + [5.0, 100.0, -1.0]
    spread = paths.values.std(axis=0).mean(axis=0)
    assert (np.abs(paths.values.mean(axis=0) - expected) / spread).max() < 2 * 5 / 20
    np.testing.assert_allclose(spread, [1.0, 15.0, 0.084], rtol=0.15)


def test_half_a_year_later_the_season_is_another(model):
    winter, summer = (model.simulate(12.0, members=100, seed=1, start=s).values.mean(axis=0) for s in (300.0, 306.0))
    expected = season_of(300 + np.arange(13.0)) - season_of(306 + np.arange(13.0))
    assert (np.abs(winter - summer - expected) / np.abs(expected).max(axis=0)).max() < 0.1


def test_paths_begin_where_the_record_began_unless_told_otherwise(model, series):
    assert model.start == 108.0
    assert model.simulate(3.0).starts == (108.0,)
    assert el.fit(series, **ROBUST).simulate(3.0).starts == (108.0,)


def test_paths_in_the_own_variables_are_the_same_paths(model):
    own = model.simulate(10.0, members=3, seed=4, transformed=True)
    assert own.names == model.names
    assert_same(model.transform.invert(own), model.simulate(10.0, members=3, seed=4))


def test_a_path_starts_from_a_state_given_in_the_variables_of_the_series(model, series):
    given = series.segments[0][[7, 100]]
    paths = model.simulate(2.0, members=2, initial=given, start=115.0)
    np.testing.assert_allclose(paths.values[:, 0], given, rtol=1e-4, atol=1e-4 * series.stacked().std())


def test_a_model_with_delays_starts_from_a_past(series):
    model = el.fit(series, preprocess=[pp.RemoveSeasonalCycle(PERIOD), pp.DelayEmbedding([1, 3])], **ROBUST)
    assert (model.dimension, model.start) == (9, 111.0)
    past = np.stack([series.segments[0][10:14], series.segments[0][50:54]])
    paths = model.simulate(2.0, members=2, initial=past, start=121.0)
    np.testing.assert_allclose(paths.values[:, 0], past[:, -1], rtol=1e-4, atol=1e-3)
    with pytest.raises(el.DataError, match="A lag of 3 steps leaves nothing"):
        model.simulate(2.0, members=2, initial=past[:, -1])


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (np.zeros((2, 4)), r"Argument `initial` must have shape \(2, 3\)"),
        (np.zeros((1, 3)), r"Argument `initial` must have shape \(2, 3\)"),
        ([[1.0, 2.0, np.nan]] * 2, "Argument `initial` must be finite"),
    ],
)
def test_an_initial_state_that_cannot_work_is_refused(model, initial, message):
    with pytest.raises(el.ArgumentError, match=message):
        model.simulate(2.0, members=2, initial=initial)


def test_denoising_happens_before_the_transforms_are_undone():
    model = el.fit(positive(), preprocess=pp.Log(), **ROBUST)
    model = replace(model, score=replace(model.score, noise_level=0.3))
    clean, own = (model.simulate(0.5, members=2, denoise=True, transformed=t).values for t in (False, True))
    np.testing.assert_allclose(clean, np.exp(own))
    assert (clean != model.simulate(0.5, members=2, denoise=False).values).any()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["chain", "delays", "logarithm"])
def test_a_model_with_transforms_gives_the_same_paths_from_its_file(case, model, series, tmp_path):
    if case != "chain":
        data, steps = (series, [pp.Detrend(2), pp.DelayEmbedding([2])]) if case == "delays" else (positive(), pp.Log())
        model = el.fit(data, preprocess=steps, **ROBUST)
    model.save(tmp_path / "model.safetensors")
    loaded = el.load(tmp_path / "model.safetensors")
    for options in ({}, {"start": 200.0}, {"transformed": True}):
        one, other = (m.simulate(20.0, members=3, seed=7, **options) for m in (model, loaded))
        np.testing.assert_array_equal(one.values, other.values)
        assert (one.names, one.units, one.starts) == (other.names, other.units, other.starts)
    assert loaded.transform.summary() == model.transform.summary()


def test_a_file_without_an_array_of_its_transform_is_damaged(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    with safe_open(path, framework="numpy") as file:
        arrays, metadata = {n: file.get_tensor(n) for n in file.keys()}, dict(file.metadata())  # noqa: SIM118
    del arrays["preprocess.steps.2.vectors"], metadata["sha256"]  # as of a file written before there was a checksum
    save_file(arrays, path, metadata)
    with pytest.raises(el.ModelFileError, match=r"model\.safetensors: .*preprocess\.steps\.2\.vectors .* is missing"):
        el.load(path)


def test_the_settings_of_the_transforms_are_recorded(model):
    assert [step["kind"] for step in model.provenance["preprocess"]] == ["Detrend", "RemoveSeasonalCycle", "PCA"]
    assert model.provenance["preprocess"][1] == {"kind": "RemoveSeasonalCycle", "period": 12.0, "harmonics": None}


@pytest.mark.parametrize("preprocess", [None, [], ()])
def test_no_transform_is_no_transform(series, preprocess):
    assert el.fit(series, preprocess=preprocess, **ROBUST).transform is None


@pytest.mark.parametrize("preprocess", ["detrend", [pp.Detrend], [pp.Detrend(), 3]])
def test_what_is_no_transform_is_refused(series, preprocess):
    with pytest.raises(el.ArgumentError, match="Argument `preprocess` must be an object such as Detrend"):
        el.fit(series, preprocess=preprocess, **ROBUST)


def test_the_original_series_is_validated_in_the_variables_of_the_model(model, series):
    """The model is linear and the series is: right, if and only if the transforms are applied before comparing."""
    result = el.validate(model, series, seed=3)
    assert result.data.names == ("PC1", "PC2", "PC3")
    assert next(f for f in result.verdict.findings if f.name == "steady state").level == "ok"
    assert "made of T, h and u by Detrend, RemoveSeasonalCycle, PCA" in result.summary()
    assert_same(result.original.data, series)


def test_densities_of_the_original_variables_know_trend_and_season(model, series):
    """Members begin all over the record: at its start alone, the mean of T would miss half the trend, 3 of its 0.25."""
    result = el.validate(model, series, seed=3)
    metrics, (data, paths) = result.metrics, (result.original.data.stacked(), result.original.paths.stacked())
    assert 0 < metrics["pdf_kl_original"] < metrics["pdf_kl_original_floor"] + 4 * metrics["pdf_kl_original_se"]
    assert (np.abs(paths.mean(axis=0) - data.mean(axis=0)) < 0.1 * data.std(axis=0)).all()
    np.testing.assert_allclose(paths.std(axis=0), data.std(axis=0), rtol=0.1)


def test_a_series_of_other_variables_is_refused_by_validate(model, series):
    with pytest.raises(el.DataError, match="takes the variables T, h and u"):
        el.validate(
            model, climate().with_segments([s[:, :2] for s in climate().segments], names=["T", "h"], units=["", ""])
        )
    plain = el.fit(series, **ROBUST)
    with pytest.raises(el.DataError, match="The model has 3 variables, but the series has 1"):
        el.validate(plain, el.TimeSeries(np.random.default_rng(0).normal(size=200), 1.0))
