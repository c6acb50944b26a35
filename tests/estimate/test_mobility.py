from dataclasses import dataclass

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.estimate.closure.evidence import ClosureEvidence
from effective_langevin.estimate.mobility import estimate_mobility
from effective_langevin.estimate.mobility.base import Inference, MobilityStrategy, lift_eigenvalues
from effective_langevin.estimate.mobility.evidence import MobilityEvidence
from effective_langevin.estimate.mobility.finite_volume import count_transitions, rate_corrections, rate_matrix
from effective_langevin.estimate.mobility.responses import Moments
from effective_langevin.estimate.score import Score, ScoreFit, estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.statistics.integral_time import integral_times
from effective_langevin.statistics.lags import LaggedMoments
from effective_langevin.statistics.resampling import jackknife

KEY = jax.random.key(0)
NONE = StateSpace((None, None))
# A rotating process, so that Phi is neither symmetric nor antisymmetric and no entry is like another:
# A = [[1, 1], [-1, 1.5]], Phi = A C = [[1, 1.08], [-0.48, 1.09]], eigenvalues of A 1.25 +- 0.97i, relaxation time 0.8.
OU = el.systems.OrnsteinUhlenbeck.rotating(2)
A, C, PHI = OU.drift_matrix, OU.covariance, OU.mobility
RELAXATION = 1 / np.linalg.eigvals(A).real.min()


def exact_paths(dt, members=40, steps=2500, seed=0):
    """The process without time-stepping error: x(t + h) = E x(t) + noise of covariance C - E C E^T with E = e^{-Ah}."""
    rng = np.random.default_rng(seed)
    decay = expm(-A * dt)
    kick = np.linalg.cholesky(C - decay @ C @ decay.T)
    x = rng.multivariate_normal(np.zeros(2), C, members)
    out = [x]
    for _ in range(steps - 1):
        x = x @ decay.T + rng.normal(size=x.shape) @ kick.T
        out.append(x)
    values = np.stack(out, axis=1)
    return el.TimeSeries(values - values.mean(axis=(0, 1)), dt)


@pytest.fixture(scope="module")
def sampled():
    """Series by sampling interval, in relaxation times, each with its Gaussian score."""
    made = {}

    def get(fraction):
        if fraction not in made:
            series = exact_paths(fraction * RELAXATION)
            made[fraction] = series, estimate_score(series, el.Gaussian(), NONE, key=KEY)
        return made[fraction]

    return get


@pytest.fixture(scope="module")
def estimated(sampled):
    """The mobility by strategy and sampling interval, estimated once."""
    made = {}

    def get(strategy, fraction):
        if (strategy, fraction) not in made:
            made[strategy, fraction] = estimate_mobility(*sampled(fraction), strategy, NONE, key=KEY)
        return made[strategy, fraction]

    return get


def deviations(mobility, expected):
    """Deviation of each entry in its own standard errors."""
    return np.abs(mobility.matrix - expected) / mobility.standard_error


@pytest.mark.parametrize("fraction", [0.1, 0.5])
@pytest.mark.parametrize("strategy", [el.IntegratedResponse(), el.LogCorrelation()], ids=lambda s: type(s).__name__)
def test_phi_is_unbiased_even_at_coarse_sampling(estimated, strategy, fraction):
    mobility = estimated(strategy, fraction)
    assert deviations(mobility, PHI).max() < 4
    # The error bars are small enough for this to mean something: 3 % of Phi.
    assert np.linalg.norm(mobility.standard_error) < 0.03 * np.linalg.norm(PHI)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5])
def test_quadratic_variation_has_its_exact_expectation(sampled, estimated, fraction):
    """(I - e^{-Ah}) C / h for any h, which tends to Phi as h -> 0."""
    series, mobility = sampled(fraction)[0], estimated(el.QuadraticVariation(), fraction)
    expected = (np.eye(2) - expm(-A * series.dt)) @ C / series.dt
    assert deviations(mobility, expected).max() < 4


def test_quadratic_variation_converges_to_phi_at_fine_sampling(estimated):
    mobility = estimated(el.QuadraticVariation(), 0.01)
    # Its bias is h |A^2 C| / 2 = 0.7 % here, less than half a standard error.
    assert deviations(mobility, PHI).max() < 4


def test_quadratic_variation_is_biased_at_coarse_sampling(estimated):
    """What the other estimators are for; also shows that four standard errors can tell."""
    mobility = estimated(el.QuadraticVariation(), 0.5)
    assert deviations(mobility, PHI).min() > 10


def test_the_lag_of_an_estimator_counts_samples(sampled):
    series, score = sampled(0.1)
    for strategy in (el.QuadraticVariation, el.LogCorrelation):
        every_third = estimate_mobility(series, score, strategy(lag=3), NONE, key=KEY)
        exact = PHI if strategy is el.LogCorrelation else (np.eye(2) - expm(-3 * A * series.dt)) @ C / (3 * series.dt)
        assert deviations(every_third, exact).max() < 4


def test_correlation_fit_converges_to_phi(estimated):
    """A cubic through five lags of 0.08: its bias, of order h^3, is computed exactly and is below 1 %."""
    mobility = estimated(el.CorrelationFit(), 0.1)
    assert deviations(mobility, PHI).max() < 4
    assert np.linalg.norm(mobility.standard_error) < 0.03 * np.linalg.norm(PHI)


def test_correlation_fit_is_exact_for_a_polynomial_and_of_its_order_otherwise(sampled):
    """Degree 1 through one lag is the finite difference, degree = lags is Richardson extrapolation of that order."""
    series, score = sampled(0.1)
    correlation = [expm(-A * series.dt * k) @ C for k in range(4)]
    one = estimate_mobility(series, score, el.CorrelationFit(degree=1, lags=1), NONE, key=KEY)
    assert deviations(one, (correlation[0] - correlation[1]) / series.dt).max() < 4
    three = estimate_mobility(series, score, el.CorrelationFit(degree=3, lags=3), NONE, key=KEY)
    richardson = (11 * correlation[0] - 18 * correlation[1] + 9 * correlation[2] - 2 * correlation[3]) / (6 * series.dt)
    assert deviations(three, richardson).max() < 4


def test_skipping_lag_zero_makes_correlation_fit_immune_to_measurement_noise(sampled):
    series, score = sampled(0.1)
    rng = np.random.default_rng(9)
    noisy = series.map(lambda s: s + 0.3 * rng.normal(size=s.shape))
    immune = estimate_mobility(noisy, score, el.CorrelationFit(skip_zero=True), NONE, key=KEY)
    fooled = estimate_mobility(noisy, score, el.CorrelationFit(), NONE, key=KEY)
    assert deviations(immune, PHI).max() < 4
    assert np.diag(deviations(fooled, PHI)).min() > 10


@pytest.mark.parametrize(
    ("strategy", "fraction"),
    [
        (el.IntegratedResponse(), 0.1),
        (el.LogCorrelation(), 0.1),
        (el.CorrelationFit(), 0.1),
        (el.QuadraticVariation(), 0.01),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, float) else "",
)
def test_the_circulation_has_the_right_sign_and_is_not_transposed(estimated, strategy, fraction):
    mobility = estimated(strategy, fraction)
    exact = 0.5 * (PHI - PHI.T)
    assert exact[0, 1] > 0.7
    assert deviations(mobility, PHI).max() < 4
    # The error of Phi_A is at most that of the two entries it is made of.
    assert abs(mobility.antisymmetric[0, 1] - exact[0, 1]) < 4 * np.abs(mobility.standard_error).max()
    assert deviations(mobility, PHI.T).max() > 20
    np.testing.assert_allclose(mobility.symmetric + mobility.antisymmetric, mobility.matrix, rtol=1e-14)
    np.testing.assert_array_equal(mobility.antisymmetric, -mobility.antisymmetric.T)


@pytest.mark.slow
def test_error_bars_agree_with_the_scatter_of_independent_records():
    """z = (Phi_hat - Phi) / error over 20 records x 4 entries has standard deviation 1; entries of one record are
    correlated, so its own standard error is up to 1 / sqrt(2 x 20) = 0.16: three and a half of them are allowed."""
    z = []
    for seed in range(20):
        series = exact_paths(0.3, members=4, steps=500, seed=100 + seed)
        score = estimate_score(series, el.Gaussian(), NONE, key=KEY)
        mobility = estimate_mobility(series, score, el.IntegratedResponse(), NONE, key=KEY)
        z.append((mobility.matrix - PHI) / mobility.standard_error)
    assert 1 - 0.55 < np.std(z) < 1 + 0.55
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(20)


MAPS = [np.array([[2.0, 0.7], [-0.4, 0.5]]), np.array([[0.0, 1.0], [1.0, 0.0]])]


@pytest.mark.parametrize("strategy", [el.QuadraticVariation(), el.LogCorrelation()], ids=lambda s: type(s).__name__)
def test_a_linear_map_of_the_data_maps_phi_exactly(sampled, estimated, strategy):
    series, score = sampled(0.1)
    linear = MAPS[0]
    mapped = series.map(lambda s: s @ linear.T)
    phi = estimated(strategy, 0.1).matrix
    np.testing.assert_allclose(
        strategy.infer(mapped, score, space=NONE, key=KEY).phi, linear @ phi @ linear.T, rtol=1e-9
    )


@pytest.mark.parametrize("linear", MAPS, ids=["general", "orthogonal"])
def test_a_linear_map_of_the_data_maps_the_integrated_response_at_every_horizon(sampled, linear):
    """Exact at each horizon, up to the single precision of the score. The average over horizons has weights that are
    isotropic in the given units: Phi itself follows exactly for an orthogonal map only, else within its error."""
    series, score = sampled(0.1)
    mapped = series.map(lambda s: s @ linear.T)
    mapped_score = estimate_score(mapped, el.Gaussian(), NONE, key=KEY)
    strategy = el.IntegratedResponse(lags=8)
    phi = estimate_mobility(series, score, strategy, NONE, key=KEY)
    other = estimate_mobility(mapped, mapped_score, strategy, NONE, key=KEY)
    expected = linear @ np.array(phi.diagnostics["phi_by_horizon"]) @ linear.T
    np.testing.assert_allclose(other.diagnostics["phi_by_horizon"], expected, atol=1e-5 * np.abs(expected).max())
    if np.allclose(linear @ linear.T, np.eye(2)):
        np.testing.assert_allclose(other.matrix, linear @ phi.matrix @ linear.T, atol=1e-5)
    else:
        assert (np.abs(other.matrix - linear @ phi.matrix @ linear.T) < other.standard_error).all()


def test_integrated_response_solves_the_exact_identity():
    """From the exact C and G of the process, every horizon gives Phi, whatever matrix the score was multiplied with."""
    tau = 0.02 * np.arange(13)
    correlation = np.array([expm(-A * t) @ C for t in tau])
    wrong = np.array([[1.3, 0.2], [-0.1, 0.8]])
    response = np.array([-expm(-A * t) @ wrong.T for t in tau])
    lags, pairs = np.arange(13), np.ones((1, 13))
    moments = Moments(
        LaggedMoments(lags, correlation[None], pairs), LaggedMoments(lags, response[None], pairs), 0.02, 1, True
    )
    # The cubic spline's error is of order h^4: 1.6e-7.
    by_horizon = moments.phi_by_horizon(np.ones(1), NONE.symmetry)
    np.testing.assert_allclose(by_horizon, np.broadcast_to(PHI, (12, 2, 2)), rtol=1e-5)


def test_integrated_response_reports_the_curve_it_averaged(estimated):
    diagnostics = estimated(el.IntegratedResponse(lags=10), 0.1).diagnostics
    assert len(diagnostics["horizon"]) == len(diagnostics["phi_by_horizon"]) == 10
    assert sum(diagnostics["horizon_weight"]) == pytest.approx(1)


def test_integral_times_are_those_of_the_process(sampled):
    """The exact C_ii(tau) / C_ii(0) integrated up to its first zero; 10 % covers the sampling error and the grid."""
    series, _ = sampled(0.1)
    step = expm(-A * 0.01)
    acf = np.array([np.diag(np.linalg.matrix_power(step, k) @ C) / np.diag(C) for k in range(400)])
    exact = [0.01 * (a[: np.flatnonzero(a <= 0)[0]].sum() - 0.5) for a in acf.T]
    np.testing.assert_allclose(integral_times(series.segments, series.dt), exact, rtol=0.1)


def test_the_jackknife_of_a_mean_is_its_classical_standard_error():
    values = np.random.default_rng(0).normal(size=12)
    mean, error = jackknife(lambda w: w @ values / w.sum(), 12)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(12))


# The published recipe: a rate matrix on cells.

LABELS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=30), min_size=1, max_size=4).filter(
    lambda pieces: any(len(p) > 1 for p in pieces)
)


@given(labels=LABELS, correction=st.sampled_from(["none", "per-state", "global"]))
def test_columns_of_the_rate_matrix_sum_to_zero(labels, correction):
    counts = count_transitions([np.array(p) for p in labels], 6)
    q = rate_matrix(counts, 0.1, rate_corrections(counts, correction)).toarray()
    np.testing.assert_allclose(q.sum(axis=0), 0, atol=1e-9)
    assert (q - np.diag(np.diag(q)) >= 0).all()


@given(labels=LABELS, order=st.permutations(range(6)), correction=st.sampled_from(["none", "per-state", "global"]))
def test_relabelling_the_cells_permutes_the_rate_matrix(labels, order, correction):
    order = np.array(order)

    def rates(pieces):
        counts = count_transitions(pieces, 6)
        return rate_matrix(counts, 0.1, rate_corrections(counts, correction)).toarray()

    before, after = rates([np.array(p) for p in labels]), rates([order[np.array(p)] for p in labels])
    np.testing.assert_allclose(after[np.ix_(order, order)], before, atol=1e-9)


def test_rates_are_counts_per_visit_and_time_from_column_to_row():
    counts = count_transitions([np.array([0, 0, 1, 0, 2, 2, 2, 2])], 3)
    np.testing.assert_array_equal(counts.toarray(), [[1, 1, 0], [1, 0, 0], [1, 0, 3]])
    q = rate_matrix(counts, 0.5, np.ones(3)).toarray()
    np.testing.assert_allclose(q, np.array([[-2 / 3, 1, 0], [1 / 3, -1, 0], [1 / 3, 0, 0]]) / 0.5)


def test_transitions_are_not_counted_across_segments():
    pieces = [np.array([0, 0, 1]), np.array([2]), np.array([2, 0])]
    np.testing.assert_array_equal(count_transitions(pieces, 3).toarray(), [[1, 0, 1], [1, 0, 0], [0, 0, 0]])


def test_kappa_is_the_published_correction():
    """State 0 stays 3 times of 4, state 1 once of 2, state 2 never: half a count of one visit is used there."""
    counts = count_transitions([np.array([0, 0, 0, 0, 1, 1, 2, 0])], 3)
    stay = np.array([3 / 4, 1 / 2, 1 / 2])
    np.testing.assert_allclose(rate_corrections(counts, "per-state"), -np.log(stay) / (1 - stay))
    np.testing.assert_array_equal(rate_corrections(counts, "none"), 1)


def test_the_global_correction_matches_the_mean_corrected_diagonal():
    labels = np.random.default_rng(1).choice(4, p=[0.7, 0.1, 0.1, 0.1], size=300)
    counts = count_transitions([labels], 4)
    diagonals = [
        rate_matrix(counts, 0.1, rate_corrections(counts, correction)).diagonal().mean()
        for correction in ("per-state", "global")
    ]
    assert diagonals[0] == pytest.approx(diagonals[1], rel=1e-12)
    assert np.ptp(rate_corrections(counts, "global")) == 0


@given(labels=LABELS, seed=st.integers(0, 2**31))
def test_the_rate_matrix_is_a_finite_difference_of_the_quantised_series(labels, seed):
    """X Q diag(pi) X^T = [C_q(h) - C_q(0)] / h, with pi and C_q(0) over the origins of transitions: an identity."""
    centroids = np.random.default_rng(seed).normal(size=(6, 2))
    pieces = [np.array(p) for p in labels]
    counts = count_transitions(pieces, 6)
    origins = np.asarray(counts.sum(axis=0)).ravel()
    q = rate_matrix(counts, 0.1, rate_corrections(counts, "none"))
    derivative = centroids.T @ (q @ (origins[:, None] / origins.sum() * centroids))
    now = np.concatenate([centroids[p[:-1]] for p in pieces])
    later = np.concatenate([centroids[p[1:]] for p in pieces])
    np.testing.assert_allclose(derivative, (later.T @ now - now.T @ now) / len(now) / 0.1, atol=1e-10)


@pytest.mark.parametrize("arguments", [{"cells": 400}, {"min_mass": 0.002}], ids=["cells", "min_mass"])
def test_finite_volume_is_that_finite_difference_of_the_data(sampled, arguments):
    """Uncorrected, at noise level 0, with the Gaussian score of the data (V = -I): Phi = [C_q(0) - C_q(h)] / h.

    C_q differs from C by the variance within cells, < 1 % of C with 400 cells, which the difference over h = 0.1 x
    relaxation time magnifies to about 5 %; 10 % of |Phi| is allowed. The transpose of Phi is 90 % away.
    """
    series, score = sampled(0.1)
    mobility = estimate_mobility(series, score, el.FiniteVolume(correction="none", **arguments), NONE, key=KEY)
    finite_difference = (np.eye(2) - expm(-A * series.dt)) @ C / series.dt
    assert np.linalg.norm(mobility.matrix - finite_difference) < 0.10 * np.linalg.norm(PHI)
    np.testing.assert_allclose(mobility.diagnostics["stein"], -np.eye(2), atol=1e-4)
    assert (mobility.standard_error > 0).all()


def test_the_corrections_of_finite_volume_multiply_the_rates(sampled):
    series, score = sampled(0.5)
    plain, corrected = (
        el.FiniteVolume(correction=c, cells=8).infer(series, score, space=NONE, key=KEY) for c in ("none", "global")
    )
    factor = corrected.evidence.extra["mean_correction"]
    assert factor > 1.1
    np.testing.assert_allclose(corrected.phi, factor * plain.phi, rtol=1e-9)


# Positive diffusion.

NEGATIVE = np.array([[0.5, 2.0], [-0.4, 0.1]])  # symmetric part [[0.5, 0.8], [0.8, 0.1]]: eigenvalues 1.12 and -0.52


def test_the_published_shift_is_the_least_eigenvalue_and_a_margin():
    least = np.linalg.eigvalsh(0.5 * (NEGATIVE + NEGATIVE.T)).min()
    assert least < -0.5
    lifted = el.FiniteVolume().lift(NEGATIVE)
    np.testing.assert_allclose(lifted, NEGATIVE + (-least + 5e-4) * np.eye(2), rtol=1e-12)
    assert np.linalg.eigvalsh(0.5 * (lifted + lifted.T)).min() == pytest.approx(5e-4, rel=1e-6)
    np.testing.assert_array_equal(el.FiniteVolume().lift(PHI), PHI)


def test_lifting_raises_only_the_eigenvalues_below_the_floor():
    lifted = lift_eigenvalues(NEGATIVE)
    before, after = (np.linalg.eigvalsh(0.5 * (m + m.T)) for m in (NEGATIVE, lifted))
    np.testing.assert_allclose(after, [1e-4 * before[1], before[1]], rtol=1e-6)
    np.testing.assert_allclose(lifted - lifted.T, NEGATIVE - NEGATIVE.T, rtol=1e-12)
    np.testing.assert_array_equal(lift_eigenvalues(PHI), PHI)


@dataclass(frozen=True)
class NotPositive(MobilityStrategy):
    """A strategy that answers with a mobility of negative diffusion."""

    def infer(self, series, score, *, space, key):
        return Inference.of(lambda weights: NEGATIVE, 4)


def test_lifting_warns_and_enters_drift_and_noise_alike(linear_series):
    with (
        pytest.warns(el.EstimateWarning, match="Estimators of the mobility disagree"),
        pytest.warns(el.EstimateWarning, match="not positive definite: the mobility was moved by"),
    ):
        model = el.fit(linear_series, score=el.Gaussian(), mobility=NotPositive())
    phi = model.standardizer.mobility_to_standard(model.mobility.matrix)
    np.testing.assert_allclose(phi, lift_eigenvalues(NEGATIVE), rtol=1e-9)
    factor = model.mobility.noise_factor
    np.testing.assert_allclose(factor @ factor.T, model.mobility.symmetric, rtol=1e-9)
    x = linear_series.stacked()[:5]
    np.testing.assert_allclose(model.drift(x), model.score_function(x) @ model.mobility.matrix.T, rtol=1e-12)
    np.testing.assert_allclose(model.diffusion(x)[0], factor @ factor.T, rtol=1e-9)
    assert model.diagnostics["mobility"]["lifted_by"] == pytest.approx(
        np.linalg.norm(lift_eigenvalues(NEGATIVE) - NEGATIVE) / np.linalg.norm(NEGATIVE)
    )


def test_a_positive_mobility_is_left_alone_without_a_warning(estimated, recwarn):
    mobility = estimated(el.QuadraticVariation(), 0.1)
    assert mobility.diagnostics["lifted_by"] == 0
    assert not [w for w in recwarn if issubclass(w.category, el.EstimateWarning)]


def test_a_negative_eigenvalue_of_the_propagator_is_reported():
    """x(t + 1) = -0.5 x(t) + noise has no continuous-time linear model."""
    rng = np.random.default_rng(0)
    values = np.zeros((5000, 1))
    for t in range(1, 5000):
        values[t] = -0.5 * values[t - 1] + rng.normal(size=1)
    series = el.TimeSeries(values, dt=1.0)
    score = estimate_score(series, el.Gaussian(), NONE, key=KEY)
    with pytest.warns(el.EstimateWarning, match="too coarse for a linear inverse model"):
        el.LogCorrelation().infer(series, score, space=NONE, key=KEY)


def test_log_correlation_leaves_out_directions_narrower_than_the_noise_level():
    """With noise level 0.1 the drift is -A x for the score -(C + 0.01)^-1 y if Phi = A (C + 0.01). A third variable of
    variance 1e-4, too narrow to be seen, relaxes at the median rate of the others, 1.25."""
    level, narrow = 0.1, 1e-4
    rng = np.random.default_rng(1)
    wide = exact_paths(0.1).values
    series = el.TimeSeries(np.concatenate([wide, np.sqrt(narrow) * rng.normal(size=(*wide.shape[:2], 1))], axis=2), 0.1)
    blurred = np.diag([1.0, 1.0, narrow]) + level**2 * np.eye(3)
    score = ScoreFit(Score.linear(np.linalg.inv(blurred)), level, -np.eye(3), 0.0, blurred)
    mobility = estimate_mobility(series, score, el.LogCorrelation(), NONE, key=KEY)
    phi, error = mobility.matrix, mobility.standard_error
    assert (np.abs(phi[:2, :2] - A @ (C + level**2 * np.eye(2))) < 4 * error[:2, :2]).all()
    rate = np.linalg.eigvals(A).real.mean()
    assert phi[2, 2] == pytest.approx(rate * (narrow + level**2), abs=4 * error[2, 2])
    # At 1 / dt = 10 per unit time the white third variable would have been given a rate of 40 and more.
    assert phi[2, 2] < 2 * rate * (narrow + level**2)


def test_mobility_in_physical_units_scales_matrix_and_error():
    units = el.Standardizer(np.zeros(2), np.array([2.0, 0.1]))
    physical = el.Mobility(PHI, np.ones((2, 2)), "exact", np.ones((3, 2, 2))).to_physical(units)
    np.testing.assert_allclose(physical.matrix, PHI * [[4.0, 0.2], [0.2, 0.01]])
    np.testing.assert_allclose(physical.standard_error, [[4.0, 0.2], [0.2, 0.01]])


def test_a_constant_mobility_is_averaged_over_horizons(linear_series):
    model = el.fit(linear_series, score=el.Gaussian(), seed=0)
    assert model.mobility.diagnostics["horizon_rule"] == "mean"
    assert abs(model.mobility.diagnostics["quadratic_variation_slope"]) < 0.2


def test_the_noise_factor_of_an_indefinite_mean_leaves_out_what_is_negative():
    """The mean of D(x) is estimated apart from D(x), and errors can make it indefinite; a constant one is refused."""
    phi = np.diag([4.0, -1.0])
    fields = MobilityEvidence(closure=ClosureEvidence("diffusion"))
    drawn = np.array([phi, 1.2 * phi])
    mobility = el.Mobility(phi, 0.1 * np.abs(phi), "StateDependent", drawn, fields)
    np.testing.assert_allclose(mobility.noise_factor @ mobility.noise_factor.T, np.diag([4.0, 0.0]), atol=1e-12)
    assert np.isfinite(mobility.noise_factor_error).all()
    with pytest.raises(el.ArgumentError, match="negative eigenvalue"):
        _ = el.Mobility(phi, phi, "IntegratedResponse", drawn).noise_factor
