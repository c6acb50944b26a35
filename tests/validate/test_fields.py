"""Fields on a ring: statistics against closed forms and against the plain ones, and a report that pools the points."""

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

import effective_langevin as el
from effective_langevin.estimate.score.evidence import ScoreEvidence
from effective_langevin.statistics.lags import lagged_moments
from effective_langevin.statistics.resampling import GROUPS
from effective_langevin.validate import fields
from effective_langevin.validate.curves import Curve
from effective_langevin.validate.findings.describe_model import ModelDescription
from effective_langevin.validate.report import figures, render
from examples.paper.kuramoto_sivashinsky import results

pytestmark = pytest.mark.slow  # fits of fields
POINTS = 16


def ring_process(channels: int = 1, samples: int = 4000, members: int = 4, seed: int = 0) -> el.TimeSeries:
    """Independent modes of an autoregression on a ring, no two alike; the second channel decays twice as fast."""
    rng, k = np.random.default_rng(seed), np.minimum(np.arange(POINTS), POINTS - np.arange(POINTS))
    memory = np.exp(-0.05 * (1 + k) * np.arange(1, channels + 1)[:, None])
    amplitude = 1 / (1 + (k - 2.0) ** 2)
    state = np.zeros((members, channels, POINTS), complex)
    path = np.empty((members, samples, channels * POINTS))
    for t in range(-200, samples):
        kick = np.fft.fft(rng.normal(size=state.shape), norm="ortho")
        state = memory * state + np.sqrt(1 - memory**2) * amplitude * kick
        if t >= 0:
            path[:, t] = np.fft.ifft(state, norm="ortho").real.reshape(members, -1)
    return el.TimeSeries(path, dt=0.5, time_unit="d")


def smooth_pair(samples: int = 20_000) -> el.TimeSeries:
    """Positions of two damped oscillators kicked in their velocities: smooth at the sampling interval."""
    rng, x, v = np.random.default_rng(1), np.zeros(2), np.zeros(2)
    path = np.empty((samples, 2))
    for t in range(samples):
        for _ in range(4):
            v += 0.05 * (-x - 1.5 * v) + np.sqrt(0.05) * rng.normal(size=2)
            x = x + 0.05 * v
        path[t] = x
    return el.TimeSeries(path, dt=0.2)


@pytest.fixture(scope="module")
def series():
    return ring_process()


def fitted(series: el.TimeSeries, symmetry) -> el.Validation:
    model = el.fit(series, score=el.Gaussian(), mobility=el.IntegratedResponse(), symmetry=symmetry, seed=1)
    return el.validate(model, series, members=8, duration=100.0, seed=2)


@pytest.fixture(scope="module")
def reflecting(series):
    return fitted(series, el.TranslationsAndReflections(parity=-1))


def test_covariances_are_compared_as_the_symmetry_makes_them(reflecting):
    ones = np.ones(len(reflecting.data_statistics.histograms))
    data, model = (s.covariance(ones) for s in (reflecting.data_statistics, reflecting.model_statistics))
    modes = [fields.modes_of(c)[0] for c in (data, model)]
    weight = fields.multiplicity(POINTS)
    expected = np.sqrt(np.sum(weight * (modes[1] - modes[0]) ** 2) / np.sum(weight * modes[0] ** 2))
    assert reflecting.metrics["covariance_error"] == pytest.approx(expected, rel=1e-9)


def test_a_wave_has_all_its_variance_in_its_mode():
    phase = np.random.default_rng(0).uniform(0, 2 * np.pi, 500)
    wave = np.cos(2 * np.pi * 3 * np.arange(POINTS) / POINTS + phase[:, None])
    variance = results.mode_autocovariances([wave], 0)[0, 0]
    # cos^2 has the mean 1/2 at each of the points: in all POINTS / 2, half of it in mode 3 and half in mode -3
    np.testing.assert_allclose(variance, np.where(np.arange(9) == 3, POINTS / 4, 0), atol=1e-12)
    np.testing.assert_allclose(variance @ fields.multiplicity(POINTS) / POINTS, np.mean(wave**2))


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("points", [7, 8])
def test_modes_by_transform_are_modes_of_the_lagged_moments(channels, points):
    segments = [np.random.default_rng(s).normal(size=(50 + s, channels * points)).cumsum(axis=0) for s in range(3)]
    by_matrix = fields.modes_of(lagged_moments(segments, segments, range(6)).mean(), channels)
    np.testing.assert_allclose(results.mode_autocovariances(segments, 5, channels), by_matrix, rtol=1e-8, atol=1e-8)


def test_the_autocorrelation_at_a_point_is_pooled_over_the_points(series):
    centred = [s - series.stacked().mean(axis=0) for s in series.segments]
    moments = lagged_moments(centred, centred, range(8)).mean()
    expected = np.trace(moments, axis1=1, axis2=2)
    acf = fields.point_acf(results.mode_autocovariances(centred, 7), POINTS)[:, 0]
    np.testing.assert_allclose(acf, expected / expected[0], rtol=1e-8)


def test_a_mode_without_variance_has_no_autocorrelation():
    covariances = np.array([[[2.0, 0.0]], [[1.0, 0.0]]])
    np.testing.assert_array_equal(fields.mode_acf(covariances), [[[1.0, np.nan]], [[0.5, np.nan]]])


def test_leading_modes_hold_the_share_asked_for():
    variance = np.array([3.0, 1.0, 4.0, 0.1, 0.5])
    np.testing.assert_allclose(fields.variance_shares(variance, 8).sum(), 1)
    assert fields.leading_modes(variance, 8, share=0.5) == [2]  # 8 of 13.7
    assert fields.leading_modes(variance, 8, share=0.7) == [0, 2]  # mode 0 counts once, 3 of 13.7
    assert fields.leading_modes(variance, 8, share=1.0, most=3) == [0, 1, 2]


def test_counts_are_those_of_numpy(series):
    samples = series.stacked()[:500]
    low, high = np.quantile(samples, [0.01, 0.99], axis=0)
    expected = [np.histogram(x, 20, (a, b))[0] for x, a, b in zip(samples.T, low, high)]
    # A value on an edge may fall to either side by rounding; the top edge belongs to the last bin in numpy only.
    assert np.abs(fields.histograms(samples, low, high, 20) - expected).sum() <= 2 * POINTS
    pairs = fields.pair_counts(samples, -1.0, 1.0, offsets=(1, 3), bins=10)
    for counts, offset in zip(pairs, (1, 3)):
        x, y = samples.ravel(), np.roll(samples, -offset, axis=1).ravel()
        np.testing.assert_array_equal(counts, np.histogram2d(x, y, 10, [(-1, 1), (-1, 1)])[0])


def test_fields_are_known_from_the_state_space(reflecting, linear_series, linear_model):
    assert reflecting.view.channels == 1
    assert type(el.validate(linear_model, linear_series, members=8).view).__name__ == "VariablesView"


def test_the_comparison_on_a_ring_is_in_standardised_units(reflecting):
    variances = reflecting.curves["mode_variance"]
    for side, tolerance in ((variances.data, 1e-3), (variances.model, 0.3)):
        # The unit is the spread about the mean that is common to all points, the variance that about each one's own.
        assert side[0] @ fields.multiplicity(POINTS) == pytest.approx(POINTS, rel=tolerance)
    covariance = reflecting.data_statistics.covariance(np.ones(GROUPS))
    expected = covariance.sum() / POINTS / reflecting.model.standardizer.std[0] ** 2
    assert variances.data[0, 0] == pytest.approx(expected)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("channels", "symmetry"),
    [(1, el.Translations()), (1, el.TranslationsAndReflections(parity=-1)), (2, el.Translations(channels=2))],
)
def test_the_report_of_a_ring_pools_points_and_shows_modes(channels, symmetry):
    validation = fitted(ring_process(channels, samples=1500), symmetry)
    drawn = figures(validation)
    ringlike = {"sample_paths", "pdfs", "pairs", "acfs", "mode_variances", "mode_acfs", "phi_by_horizon", "mobility"}
    assert ringlike <= set(drawn)
    assert "cross_correlations" not in drawn
    for figure in drawn.values():
        figure.savefig(io.BytesIO(), dpi=20)
    page = render(validation, {})
    assert page.count("<td") < 250  # a table of 16 x 16 numbers alone has 256
    assert "mode" in validation.summary()
    assert "most in" not in validation.summary()


def test_circulation_is_said_to_vanish_by_reflection(reflecting):
    assert "the reflections in the symmetry make Phi_A zero" in reflecting.summary()


def test_a_ballistic_series_is_called_so_with_its_horizon(tmp_path):
    validation = fitted(smooth_pair(), None)
    assert validation.model.mobility.diagnostics["horizon_rule"] == "finite"
    summary = validation.summary()
    assert "Regime: the series is smooth (ballistic)" in summary
    horizon = validation.model.mobility.diagnostics["chosen_horizon"][0]
    assert f"T = {horizon:.2g}" in summary
    ended = horizon < validation.model.mobility.diagnostics["horizon"][-1]
    assert ("the rise had not ended" in summary) != ended
    validation.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Φ(0+) is undefined" in page
    assert page.count("<img") >= 4


def test_denoising_is_said_in_one_sentence(reflecting):
    blurred = replace(reflecting.model.score, noise_level=10.0)
    told = replace(reflecting, model=replace(reflecting.model, score=blurred)).summary()
    assert told.count("Denoised:") == 1
    assert (
        "Denoised:"
        not in replace(reflecting, model=replace(reflecting.model, score=replace(blurred, noise_level=0.0))).summary()
    )


def test_training_is_drawn_with_and_without_a_held_out_loss():
    def drawn(**found):
        evidence = ScoreEvidence(loss_curve=(3.0, 2.0, 1.5, 1.4), **found)
        model = SimpleNamespace(score=SimpleNamespace(evidence=evidence))
        return el.plots.plot_training(SimpleNamespace(model=model))[0]

    assert len(drawn().lines) == 1
    marked = drawn(held_out_loss_curve=(2.5, 1.6, 1.7), training_steps=300).lines[-1].get_xydata()
    np.testing.assert_allclose(marked, [[200, 1.6]])  # the best of three epochs, at two thirds of the steps


def test_mobility_by_mode_stops_at_a_pole():
    phi = np.array([[0.1, 0.2, 0.3, 0.3], [0.5, 1.0, 99.0, -2.0]]).T
    coords = {
        "horizon": (("horizon",), np.arange(1.0, 5)),
        "mode": (("mode",), [0, 1]),
        "chosen": (("mode",), [3.0, 2.0]),
    }
    curve = Curve(("horizon", "mode"), phi, np.broadcast_to([0.3, 1.0], phi.shape), coords=coords)
    ax = el.plots.plot_mobility_by_horizon(curve)[0]
    assert isinstance(ax.figure, Figure)
    assert ax.get_ylim()[1] < 2
    assert np.isnan(ax.lines[3].get_ydata()).sum() == 2


def test_paths_of_a_linear_model_are_exact_even_with_a_direction_that_has_no_variance():
    series = ring_process(samples=3000)
    flow = series.map(lambda x: x - x.mean(axis=1, keepdims=True))  # the mean over the ring is conserved
    with pytest.warns(el.EstimateWarning, match="not positive definite"):
        model = el.fit(flow, score=el.Gaussian(), mobility=el.QuadraticVariation(), symmetry=el.Translations(), seed=0)
    paths = results.linear_paths(model, 500.0, 64, seed=1)
    assert np.abs(paths.stacked().mean(axis=1)).max() < 1e-6
    phi, variance = (
        fields.modes_of(model.standardizer.mobility_to_standard(m))[0]
        for m in (model.mobility.matrix, model.standardizer.mobility_to_physical(model.score.covariance))
    )
    covariances = results.mode_autocovariances(paths.map(model.standardizer.to_standard).segments, 4)[:, 0, 1:]
    # 64 000 frames, in the slowest mode 1 in 20 of them independent: 2 % of the variance is one standard error
    np.testing.assert_allclose(covariances[0], variance[1:], rtol=0.08)
    decay = np.exp(-2.0 * phi[1:] / variance[1:])
    np.testing.assert_allclose(covariances[4] / covariances[0], decay, atol=0.04)


def test_the_results_of_the_paper_example_agree_with_the_validation(series, reflecting, tmp_path):
    arrays = results.collect(series, {"constant": (reflecting.model, reflecting), "LIM": (reflecting.model, series)})
    rows = results.table(arrays)
    assert set(rows) == {"constant", "LIM", results.FLOOR}
    for name in ("stein_error", "pdf_kl_mean", "pdf_kl_max", "covariance_error"):
        assert rows["constant"][name] == pytest.approx(reflecting.metrics[name], rel=1e-3, abs=1e-5)
    assert rows["LIM"]["mean_acf_rmse"] < 1e-6  # the data against themselves
    assert rows["LIM"]["pair_kl_1"] < 0.2 * rows[results.FLOOR]["pair_kl_1"]
    assert sum(a.nbytes for a in arrays.values()) < 2e6
    assert {a.dtype for a in arrays.values()} == {np.dtype("float32")}
    results.write(arrays, tmp_path)
    stored, metrics = results.read(tmp_path)
    assert metrics["constant"] == rows["constant"]
    assert set(stored) == set(arrays)


def test_relaxation_times_of_a_ring_are_told_by_fourier_mode(reflecting):
    """The autoregression relaxes by exp(-0.05 (1 + k)) per step of 0.5 d: mode 0 is the slowest, then 1, 2, ..."""
    rows = ModelDescription(reflecting.model).timescale_rows()
    assert [row[0] for row in rows] == [f"Fourier mode {k}" for k in range(8)]
