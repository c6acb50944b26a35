"""Angles: a score that is periodic, weights of basins that are right, a mobility known exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin import preprocess as pp
from effective_langevin.data.angles import lowest, unfold, wrap
from effective_langevin.estimate.score.calibration import stein_matrix
from effective_langevin.estimate.score.circular_density import CircularDensity, choose_noise_level
from effective_langevin.estimate.space import StateSpace
from effective_langevin.execution.lowering import lower
from effective_langevin.simulate.steppers import WrapAngles

PHI = np.array([[1.0, -0.6], [0.5, 0.7]])
KEY = jax.random.key(0)


def torus_score(x):
    """grad of 0.8 cos(a - 3) + 1.2 cos 2b + 0.5 cos b + 0.7 cos(a - b): asymmetric, and across the border at pi."""
    a, b = x[..., 0], x[..., 1]
    pull = 0.7 * np.sin(a - b)
    return np.stack([-0.8 * np.sin(a - 3) - pull, -2.4 * np.sin(2 * b) - 0.5 * np.sin(b) + pull], axis=-1)


@pytest.fixture(scope="module")
def torus():
    """Fifty thousand samples of dx = PHI s dt + sqrt(2) Sigma dW on two circles, 0.05 apart, angles in degrees."""
    rng, step, every = np.random.default_rng(1), 0.01, 5
    noise = np.sqrt(2 * step) * np.linalg.cholesky(0.5 * (PHI + PHI.T))
    x, kept = rng.uniform(-np.pi, np.pi, (100, 2)), []
    for k in range(3500):
        x = x + step * torus_score(x) @ PHI.T + rng.normal(size=x.shape) @ noise.T
        if k >= 1000 and k % every == 0:
            kept.append(x)
    paths = (np.degrees(np.stack(kept, axis=1)) + 180) % 360 - 180
    return el.TimeSeries(paths, step * every, names=["a", "b"], units=["deg", "deg"])


@pytest.fixture(scope="module")
def model(torus):
    return el.fit(torus, preprocess=pp.Periodic(period=360.0))


def test_the_mobility_of_angles_is_that_of_the_process(model):
    """Each entry within 4 standard errors and the stated error of discretisation; its transpose is not."""
    assert (model.names, model.units) == (("a", "b"), ("deg", "deg"))
    scale = np.radians(1) ** 2
    found, error = model.mobility.matrix * scale, model.mobility.standard_error * scale
    allowed = 4 * error + model.mobility.discretisation_error * scale
    assert (np.abs(found - PHI) < allowed).all()
    assert allowed.max() < 0.45
    assert np.abs(found - PHI.T).max() > 2 * np.abs(found - PHI).max()


def test_the_score_of_angles_is_periodic_and_close_to_the_exact_one(model, torus):
    x = torus.stacked()[::50]
    exact = torus_score(np.radians(x)) * np.pi / 180
    found = model.score_function(x)
    np.testing.assert_allclose(model.score_function(x + np.array([360, -720])), found, atol=2e-3 * np.abs(found).max())
    assert np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)) < 0.3


def test_simulated_angles_have_the_density_of_the_data_and_stay_within_their_period(model, torus):
    result = el.validate(model, torus, members=256, seed=3)
    assert result.data.names == ("cos(a)", "sin(a)", "cos(b)", "sin(b)")
    assert result.original.paths.names == ("a", "b")
    assert np.abs(result.original.paths.stacked()).max() <= 180
    assert result.metrics["pdf_kl_original"] < 0.03
    assert "b has 2 basins" in result.summary()


def test_a_model_of_angles_is_the_same_from_its_file(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    loaded = el.load(tmp_path / "model.safetensors")
    start = np.array([[170.0, 10.0], [-170.0, 350.0]])
    one, other = (m.simulate(1.0, members=2, seed=5, initial=start) for m in (model, loaded))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_allclose(one.values[:, 0], [[170, 10], [-170, -10]], atol=1e-3)


def test_a_step_beyond_the_border_of_the_period_comes_back_on_the_other_side():
    advance = WrapAngles(lambda x, dw: x + dw, jnp.array([4.0, np.inf]))
    found = advance(jnp.array([[1.9, 5.0], [-1.0, 0.0]]), jnp.array([[0.3, 7.0], [-41.5, 1.0]]))
    np.testing.assert_allclose(found, [[-1.8, 12.0], [1.5, 1.0]], atol=1e-5)


@pytest.mark.slow
def test_other_variables_may_stand_beside_angles():
    """With a variable on the line the score is a network that sees cos and sin of the angle."""
    rng = np.random.default_rng(2)
    level, angle = np.zeros((2, 4000))
    for t in range(1, 4000):
        level[t] = 0.9 * level[t - 1] + 0.4 * rng.normal()
        angle[t] = angle[t - 1] - 0.1 * np.sin(angle[t - 1]) + 0.3 * rng.normal()
    series = el.TimeSeries(np.column_stack([level, angle]), 0.1, names=["level", "angle"])
    score = el.DenoisingScore(network=el.MLP((16,)), noise_level=0.3, epochs=4, epoch_samples=20_000)
    model = el.fit(series, preprocess=pp.Periodic(["angle"]), score=score)
    x = np.column_stack([level, angle])[::100]
    np.testing.assert_allclose(model.score_function(x), model.score_function(x + np.array([0, 2 * np.pi])), atol=1e-3)
    assert np.abs(model.score_function(x) - model.score_function(x + np.array([1, 0]))).max() > 0.1
    np.testing.assert_allclose(np.diagonal(model.mobility.matrix), [0.8, 0.45], rtol=0.3)


def test_angles_declared_on_the_series_are_those_of_periodic(torus, model):
    declared = el.TimeSeries(torus.values, torus.dt, names=["a", "b"], units=["deg", "deg"], periods=[360.0, 360.0])
    again = el.fit(declared)
    assert again.space == model.space
    assert (again.space.periods, again.space.lowest) == ((360.0, 360.0), (-180.0, -180.0))
    np.testing.assert_array_equal(again.mobility.matrix, model.mobility.matrix)
    assert again.simulate(1.0, seed=1).periods == (360.0, 360.0)


def test_angles_are_never_turned_into_cos_and_sin_on_the_way_to_a_model_of_angles(torus, monkeypatch):
    monkeypatch.setattr(pp.pointwise.FittedPeriodic, "_forward", None)
    model = el.fit(torus, preprocess=pp.Periodic(period=360.0), score=el.KGMM(noise_level=0.2), check="off")
    assert model.simulate(0.5, seed=1).names == ("a", "b")


def test_angles_and_a_symmetry_of_fields_are_refused(torus):
    three = el.TimeSeries(np.zeros((200, 3)) + np.arange(200)[:, None], 0.1, periods=[360.0, None, None])
    with pytest.raises(el.ArgumentError, match="Leave out `symmetry`"):
        el.fit(three, symmetry=el.Translations())


def test_a_strategy_that_knows_no_angles_has_cos_and_sin_for_variables(torus):
    model = el.fit(torus, preprocess=pp.Periodic(period=360.0), score=el.Gaussian(), mobility=el.QuadraticVariation())
    assert model.names == ("cos(a)", "sin(a)", "cos(b)", "sin(b)")
    assert model.space.angles == ()


def test_derivatives_on_circles_are_those_of_the_embedding():
    circles, x, small = StateSpace((2.0, None)), np.array([[0.3, 0.7], [-0.9, 2.0]]), 1e-5
    assert circles.owners == [0, 0, 1]
    for order in (0, 1):
        both = [sum(circles.embed(x + step, order) for step in [np.array([small, small]) * sign]) for sign in (1, -1)]
        np.testing.assert_allclose(circles.embed(x, order + 1), (both[0] - both[1]) / (2 * small), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("harmonic", [1, 2])
def test_stein_holds_on_the_circle_for_the_exact_score(harmonic):
    """Von Mises with one or two maxima; where x itself has a border, < s x > is not -1. 5 standard errors."""
    rng, circles = np.random.default_rng(0), StateSpace((2 * np.pi,))
    angle = rng.vonmises(2.5, 1.5, 40_000)
    x = ((angle + 2 * np.pi * rng.integers(0, harmonic, len(angle))) / harmonic)[:, None] % (2 * np.pi)

    def score(y):
        return -1.5 * harmonic * np.sin(harmonic * y - 2.5)

    found = stein_matrix(score, x, 0.0, key=KEY, tests=circles.stein_tests(x))
    assert found[0, 0] == pytest.approx(-1, abs=5 * 1.5 * harmonic / np.sqrt(len(x)))
    assert abs(stein_matrix(score, x - np.pi, 0.0, key=KEY)[0, 0] + 1) > 0.05


def test_an_angle_spread_evenly_leaves_the_score_as_it_is():
    x = np.random.default_rng(0).uniform(0, 2 * np.pi, (5000, 1))
    found = stein_matrix(lambda y: 0.1 * np.cos(y), x, 0.0, key=KEY, tests=StateSpace((2 * np.pi,)).stein_tests(x))
    assert found[0, 0] == pytest.approx(-1, abs=0.1)


def test_the_blurred_density_of_one_place_is_a_gaussian_and_its_score_a_straight_line():
    place, sigma = np.array([[2.0, 5.0]]), 0.3
    density = CircularDensity(np.repeat(place, 100_000, axis=0), StateSpace((4.0, 6.0)))
    away = np.array([[0.3, -0.5], [-0.6, 0.2]])
    found = np.asarray(jax.vmap(density.score(sigma))(place + away))
    np.testing.assert_allclose(found, -away / sigma**2, rtol=0.02)
    np.testing.assert_allclose(np.asarray(jax.vmap(lower(density.score(sigma), 2))(place + away)), found, rtol=1e-5)


def test_the_weights_of_basins_far_apart_are_those_of_the_samples():
    """Between them are no samples at all, which a score learned from its samples alone cannot bridge."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(1, 0.1, (9700, 1)), rng.normal(4, 0.1, (300, 1))])
    density = CircularDensity(x, StateSpace((2 * np.pi,)))
    weights = density.density(0.1)
    grid = np.arange(len(weights)) * 2 * np.pi / len(weights)
    assert weights[(grid > 2.5) & (grid < 5.5)].sum() == pytest.approx(0.03, abs=1e-3)
    slope = np.asarray(density.score(0.1).values)[:, 0]
    climbed = np.cumsum(0.5 * (slope[1:] + slope[:-1])) * grid[1]
    np.testing.assert_allclose(climbed, np.log(weights[1:] / weights[0]), atol=0.02)


def test_the_noise_level_follows_the_width_of_what_there_is_to_see():
    rng = np.random.default_rng(0)
    chosen = []
    for width in (0.5, 0.05):
        x = np.concatenate([rng.normal(m, width, (4000, 1)) for m in (1, 3)]) % (2 * np.pi)
        level, choice = choose_noise_level(CircularDensity(x[::2], StateSpace((2 * np.pi,))), x[1::2])
        assert min(choice.held_out_loss) == 0
        chosen.append(level)
    assert chosen[0] > 2 * chosen[1]


def test_angles_are_unfolded_where_they_are_rarest():
    angle = np.random.default_rng(0).normal(np.pi, 0.3, (1000, 1))
    series = el.TimeSeries((angle + np.pi) % (2 * np.pi) - np.pi, 1.0, periods=[2 * np.pi])
    assert series.stacked().std() > 2
    assert unfold(series).stacked().std() == pytest.approx(0.3, rel=0.1)
    np.testing.assert_allclose(wrap(unfold(series), lowest(series)).stacked(), series.stacked(), atol=1e-12)


@pytest.mark.slow
def test_smooth_motion_on_a_circle_gets_an_effective_mobility_at_a_finite_horizon():
    """A pendulum with friction and noise on its velocity: the angle is smooth, Phi(T) rises and then falls."""
    rng, angle, speed, kept = np.random.default_rng(4), np.zeros(40), np.zeros(40), []
    for _ in range(1500):
        speed = speed + 0.05 * (-speed - 2 * np.sin(angle)) + np.sqrt(0.1) * rng.normal(size=40)
        angle = angle + 0.05 * speed
        kept.append(angle)
    series = el.TimeSeries(np.stack(kept, axis=1)[..., None] % (2 * np.pi), 0.05, periods=[2 * np.pi])
    mobility = el.fit(series, score=el.KGMM(noise_level=0.1), check="off").mobility
    horizon = mobility.evidence.horizon
    assert mobility.evidence.ballistic
    assert horizon.horizons[0] < horizon.chosen[0] < horizon.horizons[-1]
    assert mobility.matrix[0, 0] > 3 * horizon.phi[0, 0, 0] > 0
