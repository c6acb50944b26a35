"""Metrics against closed forms, and a validation that can tell a right model from a wrong one."""

import pickle
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.simulate import ensemble
from effective_langevin.statistics import distances
from effective_langevin.statistics.densities import histogram_edges, series_statistics
from effective_langevin.statistics.resampling import GROUPS
from effective_langevin.validate.validation import DISTANCES


def test_kl_of_two_gaussians_in_bins_is_the_closed_form():
    """KL(N(0,1) || N(m,s)) = ln s + (1 + m^2) / (2 s^2) - 1/2, from counts too many to leave sampling error."""
    edges = np.linspace(-8, 8, 2001)
    centres = 0.5 * (edges[1:] + edges[:-1])

    def counts(mean, std):
        return 1e12 * np.exp(-0.5 * ((centres - mean) / std) ** 2)[None]

    expected = np.log(1.2) + (1 + 0.3**2) / (2 * 1.2**2) - 0.5
    np.testing.assert_allclose(distances.pdf_kl(counts(0, 1), counts(0.3, 1.2)), expected, rtol=1e-4)


def test_kl_is_zero_for_equal_counts_and_finite_for_empty_bins():
    data = np.array([[4.0, 0.0, 6.0]])
    assert distances.pdf_kl(1e9 * data, 1e9 * data)[0] == pytest.approx(0, abs=1e-8)
    assert np.isfinite(distances.pdf_kl(data, np.array([[0.0, 10.0, 0.0]]))[0])


def test_distances_of_matrices_and_curves():
    exact = np.array([[1.0, -0.8], [0.8, 1.0]])
    assert distances.matrix_error(1.1 * exact, exact) == pytest.approx(0.1)
    assert distances.matrix_error(exact.T, exact) == pytest.approx(1.6 * np.sqrt(2) / np.linalg.norm(exact))
    assert distances.matrix_error(0.9 * np.eye(3), np.eye(3)) == pytest.approx(0.1)
    assert distances.acf_rmse(np.zeros((4, 2)), np.full((4, 2), 0.3)) == pytest.approx(0.3)


def test_the_autocorrelation_removes_the_mean_of_the_whole_series():
    """Records of five correlation times: each record's own mean would bias the ACF by 2 tau / T = 40 %."""
    system = el.systems.OrnsteinUhlenbeck([[1.0]])
    series = system.simulate(5.0, dt=0.1, members=4000, seed=2)
    statistics = series_statistics(series.segments, series.dt, histogram_edges(series.stacked()), np.arange(0, 21))
    acf = statistics.acf(np.ones(GROUPS))[:, 0]
    # 4000 independent records: the standard error of each value is below 1 / sqrt(4000) = 0.016
    np.testing.assert_allclose(acf, np.exp(-statistics.tau), atol=4 * 0.016)


def test_correlation_distinguishes_which_variable_leads():
    wave = np.random.default_rng(0).normal(size=5000)
    series = el.TimeSeries(np.stack([wave[:-3], wave[3:]], axis=1), dt=1.0)
    statistics = series_statistics(series.segments, series.dt, histogram_edges(series.stacked()), np.arange(5))
    rho = statistics.correlation(np.ones(GROUPS))
    assert rho[3, 0, 1] == pytest.approx(1, abs=0.05)
    assert abs(rho[3, 1, 0]) < 0.1


@pytest.fixture(scope="module")
def exact_model(linear_series, linear_model):
    return el.validate(linear_model, linear_series, seed=5, members=64, duration=60.0)


def test_every_metric_comes_with_its_error_and_floor(exact_model):
    for name in DISTANCES:
        assert exact_model.metrics[f"{name}_se"] > 0
        assert exact_model.metrics[f"{name}_floor"] > 0


def test_a_validation_travels_to_another_process_before_its_curves_are_computed(exact_model):
    again = pickle.loads(pickle.dumps(exact_model))
    assert list(again.curves) == list(exact_model.curves)
    np.testing.assert_array_equal(again.curves["acf"].model, exact_model.curves["acf"].model)


def test_a_right_model_is_within_its_errors_of_the_floor(exact_model):
    for name in ("acf_rmse", "covariance_error"):
        metrics = exact_model.metrics
        assert metrics[name] < metrics[f"{name}_floor"] + 4 * metrics[f"{name}_se"]
    assert exact_model.summary().startswith("Good")


@pytest.mark.slow
def test_a_model_with_a_fast_clock_keeps_the_steady_state_and_loses_the_autocorrelation(linear_series, linear_model):
    fast = replace(linear_model, mobility=replace(linear_model.mobility, matrix=3 * linear_model.mobility.matrix))
    result = el.validate(fast, linear_series, seed=5, members=64, duration=60.0)
    assert result.metrics["covariance_error"] < 0.15
    assert result.metrics["acf_rmse"] > 0.1
    assert not result.summary().startswith("Good")


def test_a_model_with_too_much_noise_is_not_called_good(linear_series, linear_model):
    """Drift of Phi, noise of 2 Phi: the steady state is twice too wide, which the verdict must say."""
    score = replace(linear_model.score, function=linear_model.score.function.scaled_by(0.5 * np.eye(2)))
    result = el.validate(replace(linear_model, score=score), linear_series, seed=5, members=64, duration=60.0)
    assert result.metrics["covariance_error"] > 0.5
    assert result.summary().startswith("Not to be trusted")


def test_lags_that_a_simulated_path_hardly_has_are_not_compared(linear_series, linear_model):
    """Beyond the length of the paths there are no pairs, and the autocorrelation would be called zero."""
    result = el.validate(linear_model, linear_series, seed=5, members=64, duration=1.5)
    assert result.model_statistics.tau[-1] <= 1.1
    assert result.model_statistics.lagged.pairs.min() > 0


def test_mobility_error_appears_when_the_truth_is_given(linear_series, linear_model):
    exact = 2 * linear_model.mobility.matrix
    metrics = el.validate(linear_model, linear_series, members=32, duration=20.0, exact_mobility=exact).metrics
    assert metrics["mobility_error"] == pytest.approx(0.5)


@pytest.mark.slow
def test_the_report_is_written_whole_or_not_at_all(tmp_path, exact_model, monkeypatch):
    path = tmp_path / "report.html"
    exact_model.report(path)
    before = path.read_bytes()
    assert before.count(b"<img") >= 4
    assert b"T [K]" in before or b"[K]" in before
    monkeypatch.setattr(import_module("effective_langevin.validate.report"), "render", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        exact_model.report(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_both_runs_of_a_validation_take_one_program(monkeypatch):
    """The run to the steady state is saved as often as the one that is compared: nothing is compiled twice."""
    sizes, run = [], ensemble._run_drawn

    def note(*arguments):
        sizes.append((arguments[1][0].shape, arguments[-1]))
        return run(*arguments)

    series = el.systems.OrnsteinUhlenbeck([[1.0]]).simulate(400.0, dt=0.25, members=2, seed=1)
    model = el.fit(series, score=el.Gaussian(), mobility=el.IntegratedResponse(), check="off", compare_estimators=False)
    monkeypatch.setattr(ensemble, "_run_drawn", note)
    el.validate(model, series, members=16, duration=100.0, seed=1)
    assert len(sizes) > 2
    assert len(set(sizes)) == 1
