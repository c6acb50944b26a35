from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from oracles.models import exact_model
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.model.forecast import Forecast, forecast_from

PROCESS = el.systems.OrnsteinUhlenbeck.rotating(2)
SCALE = np.array([3.0, 0.2])
LEADS = [0.1, 0.5, 1.5]


@pytest.fixture(scope="module")
def exact():
    return exact_model(PROCESS, SCALE)


def test_forecasts_of_a_linear_process_have_the_exact_mean_and_covariance(exact):
    """Mean e^{-A t} x0, covariance C - e^{-A t} C e^{-A^T t}; 4000 members, four standard errors."""
    start = np.array([[2.0, 0.1], [-3.0, 0.3]])
    found = exact.forecast(start, LEADS, members=4000, seed=1)
    assert found.values.shape == (2, 4000, 3, 2)
    for k, lead in enumerate(LEADS):
        step = expm(-PROCESS.drift_matrix * lead)
        covariance = (PROCESS.covariance - step @ PROCESS.covariance @ step.T) * np.outer(SCALE, SCALE)
        error = np.sqrt(np.diagonal(covariance) / 4000)
        mean = (start / SCALE) @ step.T * SCALE
        assert (np.abs(found.mean[:, k] - mean) < 4 * error).all()
        for one in found.values[:, :, k]:
            scatter = np.sqrt((covariance**2 + np.outer(np.diagonal(covariance), np.diagonal(covariance))) / 4000)
            assert (np.abs(np.cov(one.T) - covariance) < 4 * scatter).all()
    np.testing.assert_allclose(found.spread, found.values.std(axis=1, ddof=1))


def test_measurement_noise_damps_the_mean_and_widens_the_spread():
    """An observation y = x + noise with nu^2 = 0.3 of its variance: the mean starts at 0.7 y, and the variance is
    that of y less the square of what is still known, 1 - (0.7 e^{-t})^2; four standard errors of 4000 members."""
    model = exact_model(el.systems.OrnsteinUhlenbeck([[1.0]]), np.ones(1))
    evidence = replace(model.mobility.evidence, measurement_noise=np.array([np.sqrt(0.3)]))
    noisy = replace(model, mobility=replace(model.mobility, evidence=evidence))
    found = noisy.forecast([[2.0]], [0.1, 1.0], members=4000, seed=2)
    kept = 0.7 * np.exp(-found.leads)
    variance = (1 - kept**2) * PROCESS_VARIANCE
    assert (np.abs(found.mean[0, :, 0] - 2 * kept) < 4 * np.sqrt(variance / 4000)).all()
    assert (np.abs(found.spread[0, :, 0] ** 2 / variance - 1) < 4 * np.sqrt(2 / 4000)).all()


PROCESS_VARIANCE = el.systems.OrnsteinUhlenbeck([[1.0]]).covariance[0, 0]


@pytest.fixture(scope="module")
def seasonal():
    """One variable with noise and a season of 12 months, from January 1980, and its model."""
    months = np.arange(600)
    noise = np.random.default_rng(0).normal(size=600)
    values = np.stack([3 * np.sin(2 * np.pi * months / 12) + noise, noise**2], axis=1)
    labels = {"names": ["T", "p"], "time_unit": "month", "calendar": "standard", "start": 120.0}
    series = el.TimeSeries(values, 1.0, **labels)
    options = {"score": el.Gaussian(), "mobility": el.QuadraticVariation(), "check": "off"}
    return series, el.fit(series, preprocess=el.preprocess.RemoveSeasonalCycle(12), **options)


def test_a_forecast_knows_the_season_at_the_time_of_each_start(seasonal):
    """Noise that is forgotten at once: the mean is the season at the time of the forecast, 3 sin(2 pi t / 12). Four
    standard errors of 1000 members and of the five coefficients of a cycle fitted to 600 samples."""
    series, model = seasonal
    states, begin = series.values[[3, 6]], series.times[0][[3, 6]]
    found = model.forecast(states, [12.0, 15.0], members=1000, seed=0, start=begin)
    expected = 3 * np.sin(2 * np.pi * np.array([[3, 6], [6, 9]]) / 12)
    assert (np.abs(found.mean[..., 0] - expected) < 4 * np.sqrt(1 / 1000 + 5 / 600)).all()


def test_a_model_with_delays_takes_the_past_from_a_series_or_an_array(linear_series):
    options = {"score": el.Gaussian(), "mobility": el.LogCorrelation(), "check": "off"}
    model = el.fit(linear_series, preprocess=el.preprocess.DelayEmbedding([3]), **options)
    end = np.stack([segment[-4:] for segment in linear_series.segments])
    times = [times[-1] for times in linear_series.times]
    of_series = model.forecast(linear_series, 0.5, members=5, seed=3)
    of_array = model.forecast(end, 0.5, members=5, seed=3, start=times)
    np.testing.assert_allclose(of_series.values, of_array.values)
    np.testing.assert_allclose(of_series.starts, times)
    np.testing.assert_allclose(of_series.states, end[:, -1])
    assert of_series.names == linear_series.names


def test_a_number_stands_for_every_interval_up_to_it(exact):
    found = exact.forecast([0.0, 0.0], 0.5, members=2)
    np.testing.assert_allclose(found.leads, [0.1, 0.2, 0.3, 0.4, 0.5])


@pytest.mark.parametrize("leads", [0.25, [0.1, 0.15], [0.2, 0.1], [], -0.1, [[0.1]], np.nan])
def test_leads_that_are_not_multiples_of_the_interval_are_refused(exact, leads):
    with pytest.raises(el.ArgumentError, match=r"Argument `leads` must be positive multiples of 0\.1"):
        exact.forecast([0.0, 0.0], leads)


def test_a_state_of_another_width_is_refused_by_its_name(exact):
    with pytest.raises(el.ArgumentError, match="Argument `states`"):
        exact.forecast([[0.0, 0.0, 0.0]], 0.5)


def test_starts_in_blocks_give_forecasts_from_their_own_states(exact, monkeypatch):
    monkeypatch.setattr("effective_langevin.model.forecast._MOST_VALUES", 100)
    states = np.arange(12.0).reshape(6, 2)
    found = exact.forecast(states, [0.1], members=3, seed=1)
    assert found.values.shape == (6, 3, 1, 2)
    np.testing.assert_allclose(found.states, states, rtol=1e-6)
    assert (np.abs(found.mean[:, 0] - states @ expm(-PROCESS.drift_matrix * 0.1).T) < 5 * SCALE * 3).all()


def test_a_diverged_member_is_counted_and_left_out(exact):
    def run(states, frames, key):
        paths = np.repeat(states[:, None], frames + 1, axis=1)
        paths[1] = np.nan
        return paths

    found = forecast_from(exact, np.ones((2, 2)), np.zeros(2), np.array([1, 2]), members=3, seed=0, propagate=run)
    assert found.diverged.tolist() == [[False, True, False], [False, False, False]]
    np.testing.assert_allclose(found.mean, np.broadcast_to(exact.standardizer.std, (2, 2, 2)))
    np.testing.assert_allclose(found.spread, 0.0, atol=1e-6)
    assert "1 diverged" in repr(found)


def test_quantiles_hold_their_share_of_outcomes_for_few_members(exact):
    """19 members: the 5 % quantile is the smallest, the 95 % quantile the largest."""
    found = exact.forecast([0.0, 0.0], [0.5], members=19, seed=4)
    low, middle, high = found.quantiles()
    np.testing.assert_allclose(low, found.values.min(axis=1))
    np.testing.assert_allclose(high, found.values.max(axis=1))
    np.testing.assert_allclose(middle, np.median(found.values, axis=1))


def test_the_mean_of_an_angle_is_a_direction():
    values = np.array([350.0, 20.0, 20.0]).reshape(1, 3, 1, 1)
    found = Forecast(values, np.ones(1), np.zeros(1), np.zeros((1, 1)), ("a",), ("",), (360.0,))
    assert abs(found.mean[0, 0, 0] - 10) < 0.5
    assert abs(found.spread[0, 0, 0] - np.std([-20, 10, 10], ddof=1)) < 0.1


def test_labelled_forecasts_carry_dates(tmp_path, seasonal):
    series, model = seasonal
    forecast = model.forecast(series, 3.0, members=4)
    found = forecast.to_xarray()
    assert found.dims == ("start", "member", "lead", "variable")
    assert str(found.start.values[0])[:7] == "2029-12"
    assert [str(t)[:7] for t in found.time.values[0]] == ["2030-01", "2030-02", "2030-03"]
    forecast.to_xarray(dataset=True).to_netcdf(tmp_path / "f.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "f.nc", engine="h5netcdf") as again:
        np.testing.assert_allclose(again["T"].values, found.values[..., 0])
        assert str(again.time.values[0, 0])[:7] == "2030-01"


def test_a_forecast_draws_one_panel_per_variable(exact):
    axes = exact.forecast([[0.0, 0.0], [1.0, 0.1]], 1.0, members=10).plot(start=-1)
    assert len(axes) == 2
    assert axes[0].get_xlabel() == "lead"
    assert axes[0].lines[-1].get_ydata()[0] == pytest.approx(1.0, rel=1e-5)
