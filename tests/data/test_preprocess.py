"""Transforms and their way back: physical values, names, units, trend and season return."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effective_langevin as el
from effective_langevin import preprocess as pp

PERIOD, DT = 12.0, 1.0


def climate(length=600, start=108.0, seed=0):
    """Three variables of different size with a trend, a season with two harmonics, gaps, and noise, two records."""
    rng = np.random.default_rng(seed)
    records, starts = [], [start, start + 37.0]
    for first in starts:
        t = first + DT * np.arange(length)
        values = noise_of(rng, length) + trend_of(t) + season_of(t)
        values[100:103] = np.nan
        values[200, 1] = np.nan
        records.append(values)
    return el.TimeSeries(records, DT, names=["T", "h", "u"], units=["K", "m", "m/s"], time_unit="month", start=starts)


def noise_of(rng, length):
    return rng.normal(size=(length, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 20.0, 3.0], [0.0, 0.0, 0.1]])


def trend_of(t):
    return np.outer((t - 108) / 600, [3.0, -50.0, 0.2])


def season_of(t):
    angle = 2 * np.pi * t[:, None] / PERIOD
    return np.cos(angle) * [2.0, 30.0, 0.3] + np.sin(2 * angle) * [0.5, -10.0, 0.1]


CHAIN = pp.Chain([pp.Detrend(), pp.RemoveSeasonalCycle(PERIOD), pp.PCA(components=3)])


def positive(seed=0, length=300):
    rng = np.random.default_rng(seed)
    return el.TimeSeries(
        np.exp(rng.normal(size=(length, 2)) * [0.5, 2.0] + [3.0, -8.0]),
        0.1,
        names=["rain", "flow"],
        units=["mm", "l/s"],
    )


def angles(seed=0):
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.uniform(-np.pi, np.pi, 200), rng.normal(size=200), rng.uniform(-np.pi, np.pi, 200)])
    return el.TimeSeries(values, 0.1, names=["phi", "r", "psi"], units=["rad", "nm", "rad"])


INVERTIBLE = {
    "Detrend": (pp.Detrend(), climate),
    "Detrend degree 3": (pp.Detrend(degree=3), climate),
    "RemoveSeasonalCycle": (pp.RemoveSeasonalCycle(PERIOD), climate),
    "RemoveSeasonalCycle to the last harmonic": (pp.RemoveSeasonalCycle(PERIOD, harmonics=6), climate),
    "PCA": (pp.PCA(components=3), climate),
    "PCA of raw covariance": (pp.PCA(components=3, standardize=False), climate),
    "PhaseAugmentation": (pp.PhaseAugmentation(PERIOD), climate),
    "Periodic": (pp.Periodic(["phi", "psi"]), angles),
    "Log": (pp.Log(), positive),
    "Log of one": (pp.Log(["flow"]), positive),
    "BoxCox": (pp.BoxCox(), positive),
    "BoxCox with exponent": (pp.BoxCox(["rain"], exponent=0.5), positive),
    "Chain": (CHAIN, climate),
    "Chain of chains": (pp.Chain([pp.Chain([pp.Log(["rain"]), pp.Detrend()]), pp.PCA(components=2)]), positive),
}


def assert_same(a, b, tolerance=1e-10):
    """The same series to a tolerance in units of each variable's standard deviation, description and times exact."""
    scale = b.stacked().std(axis=0)
    assert [len(s) for s in a.segments] == [len(s) for s in b.segments]
    for one, other in zip(a.segments, b.segments):
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=tolerance)
    for field in ("dt", "names", "units", "time_unit", "dropped", "starts", "records"):
        assert getattr(a, field) == getattr(b, field), field


# Every transform ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", INVERTIBLE)
def test_inversion_restores_values_names_units_and_times(case):
    transform, make = INVERTIBLE[case]
    series = make()
    fitted = transform.fit(series)
    changed = fitted.apply(series)
    assert any(not np.array_equal(a, b) for a, b in zip(changed.segments, series.segments)), "nothing was done"
    assert_same(fitted.invert(changed), series)


@pytest.mark.parametrize("case", [*INVERTIBLE, "DelayEmbedding"])
def test_a_fitted_transform_survives_storage_as_json_and_arrays(case):
    transform, make = {**INVERTIBLE, "DelayEmbedding": (pp.DelayEmbedding([2, 5]), climate)}[case]
    series = make()
    fitted = transform.fit(series)
    plain, arrays = pp.pack(fitted.to_dict())
    assert all(isinstance(a, np.ndarray) for a in arrays.values())
    copy = pp.from_dict(pp.unpack(json.loads(json.dumps(plain)), arrays))
    assert type(copy) is type(fitted)
    changed = fitted.apply(series)
    for one, other in zip(copy.apply(series).segments, changed.segments):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(copy.invert(changed).segments, fitted.invert(changed).segments):
        np.testing.assert_array_equal(one, other)
    assert copy.summary() == fitted.summary()
    assert copy.new_names == changed.names
    assert copy.new_units == changed.units


@pytest.mark.parametrize("case", [*INVERTIBLE, "DelayEmbedding"])
def test_transforms_are_frozen_settings_and_fitted_ones_are_frozen_too(case):
    transform, make = {**INVERTIBLE, "DelayEmbedding": (pp.DelayEmbedding([2, 5]), climate)}[case]
    for thing in (transform, transform.fit(make())):
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.anything = 1
    assert hash(transform) == hash(dataclasses.replace(transform))
    json.dumps(dataclasses.asdict(transform))


@pytest.mark.parametrize("case", INVERTIBLE)
def test_a_series_of_other_variables_is_refused(case):
    transform, make = INVERTIBLE[case]
    fitted = transform.fit(make())
    other = el.TimeSeries(np.ones((50, 2)), DT, names=["a", "b"])
    with pytest.raises(el.DataError, match=r"takes the variables .* but the series has a, b"):
        fitted.apply(other)
    with pytest.raises(el.DataError, match=r"takes the variables .* but the series has a, b"):
        fitted.invert(other)


def test_a_series_that_counts_time_otherwise_is_refused():
    series = climate()
    fitted = pp.Detrend().fit(series)
    days = el.TimeSeries(list(series.segments), 30.0, names=series.names, units=series.units, time_unit="day")
    with pytest.raises(el.DataError, match="counts time in month, but the series in day"):
        fitted.apply(days)


def test_an_unknown_or_damaged_transform_is_refused():
    with pytest.raises(el.ModelFileError, match=r"no transform 'Wavelet'.*known are Chain, DelayEmbedding, Detrend"):
        pp.from_dict({"kind": "Wavelet"})
    state = pp.Detrend().fit(climate()).to_dict()
    del state["span"]
    with pytest.raises(el.ModelFileError, match="lacks its entry 'span'"):
        pp.from_dict(state)


# Trend and season -----------------------------------------------------------------------------------------------------


def test_a_polynomial_trend_is_removed_exactly_and_the_mean_stays():
    t = 1e4 + 0.1 * np.arange(400)
    tau = (t - 1e4) / 40
    series = el.TimeSeries(np.column_stack([3 + 5 * tau - 4 * tau**2, 1e6 - tau]), 0.1, start=1e4)
    flat = pp.Detrend(degree=2).fit(series).apply(series).values
    np.testing.assert_allclose(flat, np.broadcast_to(series.values.mean(axis=0), flat.shape), atol=1e-9)


def test_gaps_do_not_shift_the_trend():
    """A straight line with holes is still a straight line."""
    values = np.arange(100.0)
    values[20:50] = np.nan
    values[70] = np.nan
    series = el.TimeSeries(values, dt=1.0)
    np.testing.assert_allclose(np.ptp(pp.Detrend().fit(series).apply(series).stacked()), 0, atol=1e-10)


def test_a_trend_holds_its_last_value_beyond_the_record_unless_told_otherwise():
    series = el.TimeSeries(2 * np.arange(11.0), dt=1.0)
    later = el.TimeSeries(np.zeros(3), dt=10.0, start=10.0)
    held = pp.Detrend().fit(series).invert(later).values[:, 0]
    np.testing.assert_allclose(held, [10, 10, 10], atol=1e-12)
    extended = pp.Detrend(extrapolate=True).fit(series).invert(later).values[:, 0]
    np.testing.assert_allclose(extended, [10, 30, 50], atol=1e-12)


def test_the_season_is_found_across_gaps_and_records():
    t = [np.arange(200.0), 37 + np.arange(90.0)]
    values = [season_of(x) + np.array([1.0, 2.0, 3.0]) for x in t]
    values[0][50:57] = np.nan
    series = el.TimeSeries(values, DT, start=[0.0, 37.0])
    fitted = pp.RemoveSeasonalCycle(PERIOD).fit(series)
    np.testing.assert_allclose(fitted.cycle(np.arange(30.0)), season_of(np.arange(30.0)), atol=1e-10)
    np.testing.assert_allclose(fitted.apply(series).stacked(), np.broadcast_to([1.0, 2.0, 3.0], (283, 3)), atol=1e-10)


def test_a_season_fitted_to_one_stretch_fits_the_next():
    """Times are absolute: a held-out series that begins in another month gets the right part of the cycle."""
    t = 5 + np.arange(60.0)
    fitted = pp.RemoveSeasonalCycle(PERIOD).fit(el.TimeSeries(season_of(t), DT, start=5.0))
    later = el.TimeSeries(season_of(t + 67), DT, start=72.0)
    np.testing.assert_allclose(fitted.apply(later).stacked(), 0, atol=1e-9)


def test_a_period_that_is_no_multiple_of_the_step_works():
    t = np.arange(4000.0)
    year = 365.2425
    series = el.TimeSeries(3 * np.cos(2 * np.pi * t / year + 0.7), 1.0)
    assert np.abs(pp.RemoveSeasonalCycle(year, harmonics=1).fit(series).apply(series).stacked()).max() < 1e-10


@given(seed=st.integers(0, 2**31), harmonics=st.integers(1, 6))
def test_no_cycle_is_left(seed, harmonics):
    values = np.random.default_rng(seed).normal(size=(240, 2))
    series = el.TimeSeries(values, DT)
    transform = pp.RemoveSeasonalCycle(PERIOD, harmonics)
    left = transform.fit(transform.fit(series).apply(series))
    assert np.abs(left.cycle(np.arange(12.0))).max() < 1e-12


def test_simulated_paths_come_back_in_physical_units_with_season_and_trend():
    """A model of the anomalies knows neither; the chain does. 400 members: the mean is known to 1/20 of the noise."""
    series = climate(length=1200)
    fitted = CHAIN.fit(series)
    anomalies = fitted.apply(series)
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(400, 48, 3)) * anomalies.stacked().std(axis=0)
    paths = el.TimeSeries(noise, DT, names=anomalies.names, units=anomalies.units, time_unit="month", start=300.0)
    physical = fitted.invert(paths)
    assert (physical.names, physical.units) == (series.names, series.units)
    t = physical.times[0]
    expected = season_of(t) + trend_of(t)
    spread = physical.values.std(axis=0).mean(axis=0)
    # 5 standard errors of the mean of 400 members, and as much again for the fit to 2400 noisy months.
    assert (np.abs(physical.values.mean(axis=0) - expected) / spread).max() < 2 * 5 / 20
    moved = fitted.invert(paths.starting_at(306.0)).values.mean(axis=0)
    assert (np.abs(moved - expected) / spread).max() > 1, "half a year later the season is another"


def test_the_phase_of_the_forcing_is_that_of_the_absolute_time():
    series = climate()
    added = pp.PhaseAugmentation(PERIOD).fit(series).apply(series)
    assert added.names[-2:] == ("cos(2pi t/12)", "sin(2pi t/12)")
    for segment, times in zip(added.segments, added.times):
        np.testing.assert_allclose(segment[:, -2], np.cos(2 * np.pi * times / 12), atol=1e-12)
        np.testing.assert_allclose(segment[:, -1], np.sin(2 * np.pi * times / 12), atol=1e-12)


def test_seasons_that_cannot_be_seen_are_refused():
    series = el.TimeSeries(np.random.default_rng(0).normal(size=30), 1.0, time_unit="day")
    with pytest.raises(el.DataError, match=r"covers a time of 30, less than one period of 365 day"):
        pp.RemoveSeasonalCycle(365.0).fit(series)
    with pytest.raises(el.DataError, match=r"period 10 sampled every 1 day shows 5 harmonics, not 6"):
        pp.RemoveSeasonalCycle(10.0, harmonics=6).fit(series)
    with pytest.raises(el.DataError, match=r"period 1.5 sampled every 1 day shows 0 harmonics, not 1.*mind the unit"):
        pp.RemoveSeasonalCycle(1.5).fit(series)


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
    """x = (1 + a y)^(1/a), y Gaussian; `error` is the standard deviation of the estimate over seeds, 4 of it allowed."""
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


# Settings -------------------------------------------------------------------------------------------------------------

BAD_SETTINGS = [
    (pp.Detrend, {"degree": 0}, "degree"),
    (pp.Detrend, {"degree": 1.5}, "degree"),
    (pp.Detrend, {"extrapolate": "yes"}, "extrapolate"),
    (pp.RemoveSeasonalCycle, {"period": -1}, "period"),
    (pp.RemoveSeasonalCycle, {"period": 12, "harmonics": 0}, "harmonics"),
    (pp.PhaseAugmentation, {"period": 0}, "period"),
    (pp.PCA, {"components": 0}, "components"),
    (pp.PCA, {"variance": 1.5}, "variance"),
    (pp.PCA, {"components": 2, "variance": 0.5}, "variance"),
    (pp.PCA, {"standardize": "yes"}, "standardize"),
    (pp.Periodic, {"period": np.nan}, "period"),
    (pp.BoxCox, {"exponent": -1.0}, "exponent"),
    (pp.DelayEmbedding, {"lags": [0]}, "lags"),
    (pp.DelayEmbedding, {"lags": []}, "lags"),
    (pp.DelayEmbedding, {"lags": [2, 2]}, "lags"),
    (pp.DelayEmbedding, {"lags": 1.5}, "lags"),
    (pp.Chain, {"steps": []}, "steps"),
    (pp.Chain, {"steps": ["Detrend"]}, "steps"),
    (pp.Chain, {"steps": [pp.Detrend]}, "steps"),
]


@pytest.mark.parametrize(
    ("kind", "arguments", "name"), BAD_SETTINGS, ids=[f"{k.__name__}-{a}" for k, a, _ in BAD_SETTINGS]
)
def test_a_setting_that_cannot_work_is_refused_when_it_is_made(kind, arguments, name):
    with pytest.raises(el.ArgumentError, match=f"Argument `{name}`"):
        kind(**arguments)


@pytest.mark.parametrize("kind", [pp.Periodic, pp.Log, pp.BoxCox])
def test_a_variable_that_is_not_there_is_refused(kind):
    with pytest.raises(
        el.ArgumentError, match=r"Argument `variables` must be among .*got 'snow'. There are: rain, flow"
    ):
        kind(variables=["snow"]).fit(positive())


def test_too_short_a_series_has_no_trend():
    with pytest.raises(el.DataError, match="a trend of degree 3 needs at least 5"):
        pp.Detrend(degree=3).fit(el.TimeSeries(np.arange(4.0), 1.0))


# Real data ------------------------------------------------------------------------------------------------------------


def test_the_climate_indices_survive_detrending_deseasoning_and_rotation(shared_data):
    series = el.read(shared_data("XRO_indices_oras5.nc"))
    chain = pp.Chain([pp.Detrend(), pp.RemoveSeasonalCycle(12), pp.PCA(components=10)])
    fitted = chain.fit(series)
    assert_same(fitted.invert(fitted.apply(series)), series)
    assert len(fitted.summary().splitlines()) == 3


def test_daily_data_with_gaps_lose_their_year(shared_data):
    series = el.read(shared_data("nao_daily.npz"))
    transform = pp.RemoveSeasonalCycle(365.2425, harmonics=2)
    fitted = transform.fit(series)
    assert_same(fitted.invert(fitted.apply(series)), series)
    assert np.ptp(transform.fit(fitted.apply(series)).cycle(np.arange(366.0))) < 1e-10
