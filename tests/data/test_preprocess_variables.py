"""Principal components, angles, positive variables, delays: one transform at a time."""

import numpy as np
import pytest
from oracles.sample_series import DT, angles, assert_same, climate, positive

import effective_langevin as el
from effective_langevin import preprocess as pp
from effective_langevin.data.preprocess import base

# Principal components -------------------------------------------------------------------------------------------------


def test_components_are_uncorrelated_ordered_and_centred():
    series = climate()
    scores = pp.PCA(components=3).fit(series).apply(series).stacked()
    covariance = np.cov(scores.T)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 1e-10
    assert (np.diff(np.diag(covariance)) < 0).all()
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-10)


def test_what_is_left_out_is_what_is_reported():
    series = climate()
    fitted = pp.PCA(components=1).fit(series)
    lost = series.stacked() - fitted.invert(fitted.apply(series)).stacked()
    np.testing.assert_allclose(fitted.residual_std, lost.std(axis=0), rtol=1e-8)
    standard = series.stacked().std(axis=0)
    assert fitted.residual_variance == pytest.approx(((lost / standard) ** 2).mean(axis=0).sum() / 3, rel=1e-8)
    assert fitted.explained_variance.sum() + fitted.residual_variance == pytest.approx(1)
    assert f"left out {fitted.residual_variance:.2%}" in fitted.summary()


@pytest.mark.parametrize("variance", [0.3, 0.6, 0.9, 0.999])
def test_no_more_components_are_kept_than_the_variance_needs(variance):
    series = el.TimeSeries(np.random.default_rng(0).normal(size=(500, 6)) * np.arange(1, 7), 1.0)
    share = pp.PCA(variance=variance).fit(series).explained_variance
    assert share.sum() >= variance
    assert share[:-1].sum() < variance


def test_units_decide_whether_variables_are_standardised():
    values = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 1000.0]
    mixed = pp.PCA(components=1).fit(el.TimeSeries(values, 1.0, units=["K", "Pa"]))
    alike = pp.PCA(components=1).fit(el.TimeSeries(values, 1.0, units=["K", "K"]))
    assert mixed.explained_variance[0] < 0.6
    assert alike.explained_variance[0] > 0.99
    assert (mixed.new_units, alike.new_units) == (("",), ("K",))


def test_the_sign_of_a_component_is_fixed():
    series = climate()
    mirrored = el.TimeSeries(-series.segments[0], DT, names=series.names, units=series.units)
    for each in (series, mirrored):
        vectors = pp.PCA(components=3).fit(each).vectors
        assert (vectors[np.abs(vectors).argmax(axis=0), range(3)] > 0).all()


def test_a_field_of_more_points_than_times_is_reduced():
    rng = np.random.default_rng(0)
    patterns, amplitudes = rng.normal(size=(2, 500)), rng.normal(size=(40, 2))
    field = el.TimeSeries(amplitudes @ patterns, 1.0, names=[f"T{i}" for i in range(500)])
    fitted = pp.PCA(variance=0.999).fit(field)
    assert fitted.new_names == ("PC1", "PC2")
    assert_same(fitted.invert(fitted.apply(field)), field)


def test_components_that_do_not_exist_are_refused():
    with pytest.raises(el.ArgumentError, match="Argument `components` must be at most 3, as many as the samples have"):
        pp.PCA(components=4).fit(climate())
    constant = el.TimeSeries(np.column_stack([np.arange(9.0), np.ones(9)]), 1.0, names=["x", "flat"], units=["K", "m"])
    with pytest.raises(el.DataError, match="Variable 'flat' is constant"):
        pp.PCA().fit(constant)
    with pytest.raises(el.DataError, match="No variable of the series varies"):
        pp.PCA().fit(el.TimeSeries(np.ones((9, 2)), 1.0))


# Single variables -----------------------------------------------------------------------------------------------------


def test_an_angle_becomes_a_point_on_the_circle_in_its_place():
    series = angles()
    around = pp.Periodic(["phi"]).fit(series).apply(series)
    assert around.names == ("cos(phi)", "sin(phi)", "r", "psi")
    assert around.units == ("", "", "nm", "rad")
    np.testing.assert_allclose(around.stacked()[:, 0] ** 2 + around.stacked()[:, 1] ** 2, 1, atol=1e-14)
    np.testing.assert_array_equal(around.stacked()[:, 2:], series.stacked()[:, 1:])


def test_the_distance_from_the_circle_is_disregarded():
    series = angles()
    fitted = pp.Periodic(["phi", "psi"]).fit(series)
    assert_same(fitted.invert(fitted.apply(series).map(lambda s: s * [0.3, 0.3, 1.0, 5.0, 5.0])), series)


def test_degrees_keep_their_branch():
    compass = el.TimeSeries(np.array([0.0, 10.0, 350.0, 180.0, 270.0]), 1.0, names=["wind"])
    fitted = pp.Periodic(period=360.0).fit(compass)
    np.testing.assert_allclose(fitted.invert(fitted.apply(compass)).stacked(), compass.stacked(), atol=1e-10)
    around_zero = el.TimeSeries(np.array([-170.0, 10.0, 170.0]), 1.0)
    fitted = pp.Periodic(period=360.0).fit(around_zero)
    np.testing.assert_allclose(fitted.invert(fitted.apply(around_zero)).stacked(), around_zero.stacked(), atol=1e-10)


def test_angles_a_period_apart_are_one():
    fitted = pp.Periodic().fit(angles().with_segments([angles().stacked()[:, :1]], names=["phi"], units=["rad"]))
    turns = el.TimeSeries(np.array([1.0, 1.0 + 2 * np.pi, 1.0 - 4 * np.pi]), 0.1, names=["phi"])
    np.testing.assert_allclose(fitted.invert(fitted.apply(turns)).stacked(), 1.0, atol=1e-12)


@pytest.mark.integration
def test_the_dihedral_angles_survive_the_circle(shared_data):
    series = el.read(shared_data("alanine_dipeptide.npz"))
    fitted = pp.Periodic().fit(series)
    assert_same(fitted.invert(fitted.apply(series)), series)


def test_the_logarithm_is_the_natural_one():
    series = positive()
    logs = pp.Log(["flow"]).fit(series).apply(series)
    assert logs.names == ("rain", "log(flow)")
    np.testing.assert_allclose(
        logs.stacked(), np.column_stack([series.stacked()[:, 0], np.log(series.stacked()[:, 1])])
    )


@pytest.mark.parametrize("transform", [pp.Log, pp.BoxCox])
def test_a_value_that_is_not_positive_is_named_with_its_row_and_time(transform):
    values = np.random.default_rng(0).uniform(1, 2, (20, 2))
    values[5] = np.nan
    values[9, 1], values[11, 1] = -0.25, 0.0
    series = el.TimeSeries(values, 0.5, names=["rain", "flow"], time_unit="s", start=100.0)
    message = (
        rf"{transform.__name__} needs positive values, but variable 'flow' is -0\.25 in row 3 of segment 1 "
        r"\(time 104\.5 s\), and not positive in 2 rows in all.*leave it out"
    )
    with pytest.raises(el.DataError, match=message):
        transform().fit(series)
    fitted = transform(["flow"]).fit(series.map(lambda s: s + 1))
    with pytest.raises(el.DataError, match=message):
        fitted.apply(series)
    transform(["rain"]).fit(series).apply(series)


@pytest.mark.parametrize(("exponent", "error"), [(0.0, 0.01), (0.3, 0.022), (0.5, 0.03), (1.0, 0.047)])
def test_the_exponent_that_makes_a_variable_gaussian_is_found(exponent, error):
    """x = (1 + a y)^(1/a), y Gaussian; `error` is the spread of the estimate over seeds, 4 of it allowed."""
    y = 3 + 0.5 * np.random.default_rng(0).normal(size=20000)
    x = np.exp(y) if exponent == 0 else (1 + exponent * y) ** (1 / exponent)
    found = pp.BoxCox().fit(el.TimeSeries(1e-6 * x, 1.0)).exponents[0]
    assert found == pytest.approx(exponent, abs=4 * error)


def test_a_path_below_the_range_of_box_cox_comes_back_as_zero():
    fitted = pp.BoxCox(exponent=0.5).fit(positive())
    below = el.TimeSeries(np.array([[-2.5, 0.0], [-2.0, 1.0]]), 0.1, names=fitted.new_names)
    np.testing.assert_allclose(fitted.invert(below).stacked(), [[0, 1], [0, 2.25]])


# Delay embedding ------------------------------------------------------------------------------------------------------


def test_delayed_copies_are_the_past():
    values = np.column_stack([np.arange(20.0), 100 + np.arange(20.0)])
    values[8] = np.nan
    series = el.TimeSeries(values, 0.5, names=["x", "y"], units=["m", "s"], start=10.0)
    embedded = pp.DelayEmbedding([1, 3]).fit(series).apply(series)
    assert embedded.names == ("x", "y", "x(t-1)", "y(t-1)", "x(t-3)", "y(t-3)")
    assert embedded.units == ("m", "s") * 3
    assert [s[:, 0].tolist() for s in embedded.segments] == [[3, 4, 5, 6, 7], list(range(12, 20))]
    for segment, times in zip(embedded.segments, embedded.times):
        np.testing.assert_array_equal(segment[:, 2], segment[:, 0] - 1)
        np.testing.assert_array_equal(segment[:, 5], segment[:, 1] - 3)
        np.testing.assert_array_equal(times, 10 + 0.5 * segment[:, 0])
    assert embedded.dropped == 1 + 6


def test_inverting_a_delay_embedding_gives_the_present():
    series = climate()
    fitted = pp.DelayEmbedding([2, 7]).fit(series)
    back = fitted.invert(fitted.apply(series))
    assert (back.names, back.units) == (series.names, series.units)
    for one, other in zip(back.segments, series.segments):
        np.testing.assert_array_equal(one, other[7:])


def test_lags_count_steps_of_the_series_they_were_made_for():
    series = climate()
    fitted = pp.DelayEmbedding(3).fit(series)
    with pytest.raises(el.DataError, match="lags count steps of 1, but the series has dt = 2"):
        fitted.apply(series.thin(2))
    with pytest.raises(
        el.DataError, match="lag of 600 steps leaves nothing of the series: its longest segment has 399"
    ):
        pp.DelayEmbedding(600).fit(series).apply(series)


def test_segments_too_short_for_the_lag_are_counted_as_dropped():
    series = el.TimeSeries([np.ones((3, 1)), np.ones((9, 1))], 1.0, start=[0.0, 50.0])
    embedded = pp.DelayEmbedding(4).fit(series).apply(series)
    assert (embedded.records, embedded.starts, embedded.dropped) == ((1,), (54.0,), 7)


# Declared angles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transform", "after"),
    [
        (pp.Detrend(), (None, 360.0)),
        (pp.RemoveSeasonalCycle(period=10.0), (None, 360.0)),
        (pp.PhaseAugmentation(period=10.0), (None, 360.0, None, None)),
        (pp.DelayEmbedding(2), (None, 360.0, None, 360.0)),
        (pp.Log(["r"]), (None, 360.0)),
        (pp.BoxCox(), (None, None)),
        (pp.PCA(components=2), (None, None)),
        (pp.Periodic(["phi"], period=360), (None, None, None)),
        (pp.Chain([pp.Log(["r"]), pp.DelayEmbedding(1)]), (None, 360.0, None, 360.0)),
    ],
)
def test_declared_angles_pass_transforms_that_leave_them_angles(transform, after):
    values = np.random.default_rng(0).uniform(1, 300, size=(60, 2))
    series = el.TimeSeries(values, 1.0, names=["r", "phi"], periods=[None, 360])
    fitted = base.from_dict(transform.fit(series).to_dict())
    assert fitted.new_periods == fitted.apply(series).periods == after
    assert fitted.invert(fitted.apply(series)).periods == series.periods


def test_transforms_stored_without_periods_still_load():
    series = el.TimeSeries(np.random.default_rng(0).uniform(0, 300, size=(60, 2)), 1.0, names=["r", "phi"])
    stored = pp.Chain([pp.Detrend(), pp.Periodic(["phi"], period=360)]).fit(series).to_dict()
    for state in (stored, *stored["steps"]):
        del state["periods"]
    stored["steps"][1]["period"] = 360.0
    loaded = base.from_dict(stored)
    assert [step.periods for step in loaded.steps] == [(None, None), (None, 360.0)]


def test_the_period_of_an_angle_follows_its_unit():
    turns = np.random.default_rng(0).uniform(0, 1, 400)
    degrees = el.TimeSeries(360 * turns, 1.0, names=["phi"], units=["degrees"])
    assert pp.Periodic().declare(degrees).periods == (360.0,)
    assert pp.Periodic(period=180).declare(degrees).periods == (180.0,)
    assert pp.Periodic().declare(el.TimeSeries(2 * np.pi * turns, 1.0)).periods == (2 * np.pi,)
    unnamed = el.TimeSeries(360 * turns, 1.0, names=["phi"])
    for series, period in ((unnamed, None), (degrees, 2 * np.pi)):
        with pytest.raises(el.DataError, match=r"'phi' goes from .* looks like degrees: its period is 360"):
            pp.Periodic(period=period).declare(series)
    assert pp.Periodic(period=2 * np.pi).declare(unnamed).periods == (2 * np.pi,)


def test_an_angle_counted_over_many_turns_is_offered_as_an_angle():
    rng, phase = np.random.default_rng(0), np.zeros(4000)
    for i in range(1, len(phase)):
        phase[i] = phase[i - 1] + 0.03 - 0.02 * np.sin(phase[i - 1]) * 1.2 + 0.05 * rng.normal()
    advice = el.diagnose(el.TimeSeries(phase, 0.1, names=["theta"])).finding("stationarity").advice
    assert advice.startswith("If theta is an angle (many turns of 2 pi), declare it: `el.TimeSeries(..., periods=")
    walk = np.cumsum(rng.normal(size=4000))
    assert "angle" not in el.diagnose(el.TimeSeries(walk, 0.1)).finding("stationarity").advice
