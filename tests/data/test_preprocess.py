"""Transforms and their way back: physical values, names, units, trend and season return."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.sample_series import DT, PERIOD, angles, assert_same, climate, positive, season_of, trend_of

import effective_langevin as el
from effective_langevin import preprocess as pp
from effective_langevin.data.preprocess import base

CHAIN = pp.Chain([pp.Detrend(), pp.RemoveSeasonalCycle(PERIOD), pp.PCA(components=3)])


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
    plain, arrays = base.pack(fitted.to_dict())
    assert all(isinstance(a, np.ndarray) for a in arrays.values())
    copy = base.from_dict(base.unpack(json.loads(json.dumps(plain)), arrays))
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
    with pytest.raises(el.DataError, match=r"takes the variables .* but the series has a and b"):
        fitted.apply(other)
    with pytest.raises(el.DataError, match=r"takes the variables .* but the series has a and b"):
        fitted.invert(other)


def test_a_series_that_counts_time_otherwise_is_refused():
    series = climate()
    fitted = pp.Detrend().fit(series)
    days = el.TimeSeries(list(series.segments), 30.0, names=series.names, units=series.units, time_unit="day")
    with pytest.raises(el.DataError, match="counts time in month, but the series in day"):
        fitted.apply(days)


def test_an_unknown_or_damaged_transform_is_refused():
    with pytest.raises(
        el.ModelFileError, match=r"no transform 'Wavelet'.*known are Chain, DelayEmbedding, Delays, Detrend"
    ):
        base.from_dict({"kind": "Wavelet"})
    state = pp.Detrend().fit(climate()).to_dict()
    del state["span"]
    with pytest.raises(el.ModelFileError, match="lacks its entry 'span'"):
        base.from_dict(state)


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
    np.testing.assert_allclose(fitted.removed(np.arange(30.0)), season_of(np.arange(30.0)), atol=1e-10)
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
    assert np.abs(left.removed(np.arange(12.0))).max() < 1e-12


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


@pytest.mark.integration
def test_the_climate_indices_survive_detrending_deseasoning_and_rotation(shared_data):
    series = el.read(shared_data("XRO_indices_oras5.nc"))
    chain = pp.Chain([pp.Detrend(), pp.RemoveSeasonalCycle(12), pp.PCA(components=10)])
    fitted = chain.fit(series)
    assert_same(fitted.invert(fitted.apply(series)), series)
    assert len(fitted.summary().splitlines()) == 3


@pytest.mark.integration
def test_daily_data_with_gaps_lose_their_year(shared_data):
    series = el.read(shared_data("nao_daily.npz"))
    transform = pp.RemoveSeasonalCycle(365.2425, harmonics=2)
    fitted = transform.fit(series)
    assert_same(fitted.invert(fitted.apply(series)), series)
    assert np.ptp(transform.fit(fitted.apply(series)).removed(np.arange(366.0))) < 1e-10
