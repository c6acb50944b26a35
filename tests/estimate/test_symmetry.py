from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.fields import exact_series, reversible_ring_process, ring_process, uneven_ring_process
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.estimate.score import LearnedScore, Score, ScoreStrategy, estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry, common_units, compare_with_projection

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
BOTH = el.TranslationsAndReflections

GROUPS = [
    el.Translations(),
    el.Translations(channels=2),
    BOTH(),
    BOTH(parity=-1),
    BOTH(channels=2),
    BOTH(channels=2, parity=-1),
    BOTH(channels=2, parity=(1, -1)),
    BOTH(channels=3, parity=(-1, 1, -1)),
]
each_group = pytest.mark.parametrize("symmetry", GROUPS, ids=repr)
odd_and_even = pytest.mark.parametrize("points", [5, 6])


def elements(symmetry, points):
    """Every U_g as a matrix: the value at point i goes to point i + k, or to point k - i with the sign of its field."""
    matrices = []
    for k in range(points):
        shift = np.eye(points)[(np.arange(points) - k) % points]
        matrices.append(np.kron(np.eye(symmetry.channels), shift))
        if isinstance(symmetry, BOTH):
            flip = np.eye(points)[(k - np.arange(points)) % points]
            matrices.append(np.kron(np.diag(symmetry.parity), flip))
    return np.array(matrices)


def a_matrix(symmetry, points, *stack):
    size = symmetry.channels * points
    return np.random.default_rng(points).normal(size=(*stack, size, size))


@each_group
@odd_and_even
def test_the_projection_is_the_mean_over_the_group(symmetry, points):
    matrix, group = a_matrix(symmetry, points), elements(symmetry, points)
    mean = np.mean([u @ matrix @ u.T for u in group], axis=0)
    np.testing.assert_allclose(symmetry.project(matrix), mean, atol=1e-12)
    assert np.abs(mean - matrix).max() > 0.5


@each_group
@odd_and_even
def test_a_projected_matrix_commutes_with_every_element_and_is_left_as_it_is(symmetry, points):
    projected = symmetry.project(a_matrix(symmetry, points))
    for u in elements(symmetry, points):
        np.testing.assert_allclose(u @ projected, projected @ u, atol=1e-12)
    np.testing.assert_allclose(symmetry.project(projected), projected, atol=1e-12)


@each_group
@odd_and_even
def test_blocks_and_joined_are_inverse_to_each_other_for_stacks_too(symmetry, points):
    matrices = a_matrix(symmetry, points, 2, 3)
    blocks = symmetry.blocks(matrices)
    assert blocks.shape == (2, 3, points // 2 + 1, symmetry.channels, symmetry.channels)
    joined = symmetry.joined(blocks, symmetry.channels * points)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(joined[i, j], symmetry.project(matrices[i, j]), atol=1e-12)
    np.testing.assert_allclose(symmetry.blocks(joined), blocks, atol=1e-12)


@each_group
@odd_and_even
def test_blocks_of_a_product_inverse_and_transpose_are_those_of_the_blocks(symmetry, points):
    """What allows matrix equations to be solved block by block."""
    one, other = symmetry.project(a_matrix(symmetry, points, 2))
    np.testing.assert_allclose(symmetry.blocks(one @ other), symmetry.blocks(one) @ symmetry.blocks(other), atol=1e-11)
    np.testing.assert_allclose(symmetry.blocks(one.T), symmetry.blocks(one).conj().swapaxes(-1, -2), atol=1e-12)
    inverse = symmetry.joined(np.linalg.inv(symmetry.blocks(one)), len(one))
    np.testing.assert_allclose(inverse @ one, np.eye(len(one)), atol=1e-8)


@odd_and_even
def test_reflections_leave_nothing_antisymmetric_of_a_single_field_but_something_between_unlike_fields(points):
    matrix = a_matrix(el.Translations(), points)
    for parity in (1, -1):
        projected = BOTH(parity=parity).project(matrix)
        np.testing.assert_allclose(projected, projected.T, atol=1e-12)
    circulating = el.Translations().project(matrix)
    assert np.abs(circulating - circulating.T).max() > 0.1
    two = BOTH(channels=2, parity=(1, -1)).project(a_matrix(el.Translations(2), points))
    assert np.abs(two - two.T).max() > 0.1


@each_group
@odd_and_even
def test_moved_samples_are_spread_evenly_over_their_orbit(symmetry, points):
    """A generic state has as many images as the group has elements; of 6000 copies each image gets its share.

    Chi-squared has mean n - 1 and variance 2 (n - 1).
    """
    state = np.random.default_rng(points).normal(size=symmetry.channels * points).astype(np.float32)
    images = elements(symmetry, points).astype(np.float32) @ state
    moved = np.asarray(symmetry.moved(jnp.asarray(np.tile(state, (6000, 1))), key=KEY))
    which = np.array([np.flatnonzero((row == images).all(axis=1)) for row in moved])
    assert which.shape == (6000, 1)
    share = 6000 / len(images)
    chi_squared = np.sum((np.bincount(which[:, 0], minlength=len(images)) - share) ** 2 / share)
    assert abs(chi_squared - (len(images) - 1)) < 4 * np.sqrt(2 * (len(images) - 1))


def test_moved_depends_on_its_key_and_moves_every_sample_on_its_own():
    x = jnp.asarray(RNG.normal(size=(200, 7)), jnp.float32)
    one, again, other = (BOTH().moved(x, key=jax.random.key(k)) for k in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (np.asarray(one) != np.asarray(other)).any()
    np.testing.assert_array_equal(np.sort(one, axis=1), np.sort(x, axis=1))


@each_group
@odd_and_even
def test_a_projected_vector_is_the_mean_over_the_group(symmetry, points):
    vector = np.random.default_rng(1).normal(size=symmetry.channels * points)
    mean = np.mean([u @ vector for u in elements(symmetry, points)], axis=0)
    np.testing.assert_allclose(symmetry.project_vector(vector), mean, atol=1e-12)


@each_group
def test_common_units_are_mean_and_spread_over_all_points_and_samples(symmetry):
    """Of the data moved by every element of the group."""
    points = 5
    size = symmetry.channels * points
    data = RNG.normal(size=(300, size)) * (1 + np.arange(size)) + np.arange(size)
    units = common_units(el.Standardizer.from_series(el.TimeSeries(data, dt=1.0)), symmetry)
    everywhere = np.concatenate([data @ u.T for u in elements(symmetry, points)])
    np.testing.assert_allclose(units.mean, everywhere.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(units.std, everywhere.std(axis=0), rtol=1e-10)


def test_no_symmetry_changes_nothing():
    none, matrix, x = NoSymmetry(), RNG.normal(size=(2, 3, 3)), jnp.ones((4, 3))
    np.testing.assert_array_equal(none.project(matrix), matrix)
    np.testing.assert_array_equal(none.project_vector(matrix[0, 0]), matrix[0, 0])
    assert none.blocks(matrix).shape == (2, 1, 3, 3)
    np.testing.assert_array_equal(none.joined(none.blocks(matrix), 3), matrix)
    np.testing.assert_array_equal(none.moved(x, key=KEY), x)


@pytest.mark.parametrize(
    ("symmetry", "dimension"),
    [(el.Translations(), 2), (el.Translations(2), 7), (el.Translations(2), 4), (BOTH(3, parity=(1, 1, -1)), 8)],
    ids=repr,
)
def test_a_series_that_the_group_cannot_act_on_is_refused(symmetry, dimension):
    series = el.TimeSeries(np.random.default_rng(0).normal(size=(200, dimension)), dt=1.0)
    message = f"acts on {symmetry.channels} field.s. of at least 3 points on a ring, but the series has {dimension}"
    with pytest.raises(el.ArgumentError, match=message):
        el.fit(series, score=el.Gaussian(), symmetry=symmetry)


@pytest.mark.parametrize("parity", [0, 2, (1, -1), (1, 1, 0), "even"])
def test_a_parity_other_than_one_sign_per_field_is_refused(parity):
    with pytest.raises(el.ArgumentError, match="Argument `parity` must be 1 or -1, for all fields or for each of 3"):
        BOTH(channels=3, parity=parity)


def test_one_parity_stands_for_all_fields():
    assert BOTH(channels=2, parity=-1) == BOTH(channels=2, parity=(-1, -1))
    assert BOTH(channels=2, parity=[1, -1]).parity == (1, -1)


# Is the symmetry there?


def compared(process, symmetry, records, members, seed):
    """The test on so many records of `members` x 1000 samples, dt = 0.3."""
    return [
        compare_with_projection(exact_series(process, 0.3, members, 1000, seed + i), symmetry, 1)
        for i in range(records)
    ]


@pytest.mark.slow
def test_a_series_with_the_symmetry_is_rarely_accused():
    """At 1 in 1000, one accusation in 40 has a probability of 4 %, two of 0.1 %.

    Nor is the chance often small: uniform for a fair test, its mean over 40 has standard error 0.046. The bootstrap
    over 32 blocks is a little too narrow (0.44 instead of 0.5 over many records), hence the limit.
    """
    results = compared(ring_process(6), el.Translations(), 20, 2, 100)
    results += compared(reversible_ring_process(6), BOTH(), 20, 2, 100)
    assert sum(not result.respected for result in results) <= 1
    assert 0.44 - 4 * 0.046 < np.mean([result.chance for result in results]) < 0.5 + 4 * 0.046


@pytest.mark.parametrize(
    ("process", "symmetry"),
    [(uneven_ring_process(6), el.Translations()), (ring_process(6), BOTH())],
    ids=["one point is special", "one direction is special"],
)
def test_a_series_without_the_symmetry_is_found_out(process, symmetry):
    results = compared(process, symmetry, 5, 4, 200)
    assert not any(result.respected for result in results)
    # The distance is that of the exact correlations; the sampling error of 4000 samples adds up to a third.
    stacked = np.array([process.covariance, expm(-0.3 * process.drift_matrix) @ process.covariance])
    exact = np.linalg.norm(stacked - symmetry.project(stacked)) / np.linalg.norm(stacked)
    assert np.mean([result.distance for result in results]) == pytest.approx(exact, rel=1 / 3)


def fitted(process, symmetry):
    series = exact_series(process, 0.3, 4, 1500, 5)
    return el.fit(series.map(lambda s: 2 * s + 3), score=el.Gaussian(), mobility=el.LogCorrelation(), symmetry=symmetry)


@pytest.mark.slow
def test_fit_imposes_the_symmetry_on_units_score_and_mobility_and_records_it():
    symmetry = el.Translations()
    model = fitted(ring_process(6), symmetry)
    assert np.ptp(model.standardizer.mean) == 0
    assert np.ptp(model.standardizer.std) < 1e-12
    for matrix in (model.mobility.matrix, model.score.covariance, model.score.stein, model.score.function.precision):
        np.testing.assert_allclose(matrix, symmetry.project(np.asarray(matrix, float)), atol=1e-6)
    assert model.provenance["symmetry"] == {"kind": "Translations", "channels": 1, "continuous": False}
    evidence = model.diagnostics["mobility"]
    assert 0 < evidence["symmetry_distance"] < 0.1
    assert evidence["symmetry_chance"] > 1e-3


def test_fit_warns_when_the_data_do_not_respect_the_symmetry():
    with pytest.warns(el.EstimateWarning, match="The data do not respect Translations: .* Leave out `symmetry`"):
        model = fitted(uneven_ring_process(6), el.Translations())
    assert model.diagnostics["mobility"]["symmetry_chance"] <= 1e-3


def test_without_a_symmetry_nothing_is_tested_or_projected():
    model = fitted(uneven_ring_process(6), None)
    assert "symmetry_distance" not in model.diagnostics["mobility"]
    assert np.ptp(model.standardizer.std) > 0.1


def test_the_gaussian_score_with_a_symmetry_is_the_inverse_of_the_mean_covariance():
    series, symmetry = exact_series(ring_process(6), 0.3, 2, 600, 6), el.Translations()
    fit = estimate_score(series, el.Gaussian(), StateSpace((None,) * 6, symmetry), key=KEY)
    covariance = np.cov(series.stacked().T, bias=True)
    np.testing.assert_allclose(fit.function.precision, np.linalg.inv(symmetry.project(covariance)), rtol=1e-4)


@dataclass(frozen=True)
class Misscaled(ScoreStrategy):
    """A strategy that returns twice -y, with the symmetry but not the score of anything."""

    calibrate: bool = True
    narrowest: float = np.inf

    def learn(self, train, held_out, *, space, key):
        return LearnedScore(Score.linear(2 * np.eye(6)), 0.2)


def test_calibration_and_its_evidence_are_projected_on_the_symmetry():
    """The data are not symmetric, so that nothing is by itself; V = -2 (C + sigma^2), its mean over shifts."""
    series, symmetry = exact_series(uneven_ring_process(6), 0.3, 4, 1500, 7), el.Translations()
    fit = estimate_score(series, Misscaled(), StateSpace((None,) * 6, symmetry), key=KEY)
    for matrix in (fit.function.gain, fit.stein, fit.covariance):
        np.testing.assert_allclose(matrix, symmetry.project(np.asarray(matrix, float)), atol=1e-5)
    parts = series.stacked(), series.split()[0].stacked()
    everything, blurred = (symmetry.project(np.cov(part.T, bias=True)) + 0.2**2 * np.eye(6) for part in parts)
    np.testing.assert_allclose(fit.covariance, everything, atol=1e-6)
    # Gain times 2 (C + sigma^2) is I up to the sampling error of the noise, 0.2 / sqrt(4800) and its square.
    np.testing.assert_allclose(fit.function.gain @ (2 * blurred), np.eye(6), atol=0.03)


@dataclass(frozen=True)
class Mirror(NoSymmetry):
    """A group that is easily seen to act: every sample on the other side."""

    def moved(self, x, *, key):
        return -x


def test_kgmm_learns_from_samples_moved_by_the_symmetry():
    samples = np.random.default_rng(0).normal(5.0, 1.0, (400, 1)).astype(np.float32)
    strategy = el.KGMM(noise_level=0.3, cells=4, hidden=(4,), steps=20, max_draws=4)
    score = strategy.learn(samples, samples, space=StateSpace((None,), Mirror()), key=KEY).function
    # The box that it was trained in holds the mirrored samples.
    assert score.high[0] == pytest.approx(-np.quantile(samples, 0.0005), rel=0.01)


@pytest.mark.parametrize("points", [7, 8])
def test_a_continuous_shift_moves_a_resolved_field_by_any_distance(points):
    """Two fields of low Fourier modes, shifted by a fraction of a point, are the same waves elsewhere."""
    symmetry, here = el.Translations(channels=2, continuous=True), 2 * np.pi * np.arange(points) / points

    def fields(by):
        angle = here - 2 * np.pi * by / points
        return np.concatenate([1 + np.cos(angle) + np.sin(2 * angle), np.cos(2 * angle)])

    for by in (0.0, 0.3, 2.0, 6.5):
        shifted = symmetry._glided(jnp.asarray(fields(0.0))[None], jnp.full((1, 1, 1), by))[0]
        np.testing.assert_allclose(shifted, fields(by), atol=1e-5)
    moved = np.asarray(symmetry.moved(jnp.tile(fields(0.0), (500, 1)), key=jax.random.key(0)))
    crest = np.angle(np.fft.rfft(moved[:, :points])[:, 1]) / (2 * np.pi) % 1
    assert abs(np.mean(crest) - 0.5) < 0.05
    assert np.ptp(crest * points % 1) > 0.9
