import jax
import jax.numpy as jnp
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.simulate import integrate
from effective_langevin.simulate.steppers import Equation

KEY = jax.random.key(0)
STEP, MEMBERS, STEPS = 0.01, 5, 60


def cubic(x):
    """A drift that explodes when the step is too long for where it starts."""
    return x - x**3 + jnp.array([0.5, -0.5]) * x[::-1]


ADVANCE = el.EulerMaruyama().advance(Equation(cubic, jnp.array([[0.5, 0.0], [0.2, 0.4]])), STEP)


@pytest.fixture
def initial():
    return np.random.default_rng(0).normal(size=(MEMBERS, 2)).astype(np.float32)


@pytest.fixture
def noise():
    return np.sqrt(STEP) * np.random.default_rng(1).normal(size=(MEMBERS, STEPS, 2))


def run(initial, save_every=1, frames=None, **arguments):
    frames = frames or STEPS // save_every
    return integrate(
        ADVANCE, initial, frames=frames, save_every=save_every, step=STEP, **{"key": KEY, "bound": 1e3, **arguments}
    )


def test_supplied_noise_gives_the_path_of_a_plain_loop(initial, noise):
    x, expected = initial.astype(float), [initial]
    for k in range(STEPS):
        drift = x - x**3 + np.array([0.5, -0.5]) * x[:, ::-1]
        x = x + STEP * drift + np.sqrt(2) * noise[:, k] @ np.array([[0.5, 0.0], [0.2, 0.4]]).T
        expected.append(x)
    paths = run(initial, noise=noise).paths
    assert paths.shape == (MEMBERS, STEPS + 1, 2)
    # Single precision over 60 steps of a contracting map.
    np.testing.assert_allclose(paths, np.stack(expected, axis=1), atol=1e-5)


@pytest.mark.parametrize("save_every", [2, 3, 10, 60])
def test_saving_every_kth_state_saves_those_states(initial, noise, save_every):
    """Thinning and the cutting into frames change nothing, bit for bit, when the noise is supplied."""
    every, thinned = run(initial, noise=noise), run(initial, save_every, noise=noise)
    np.testing.assert_array_equal(thinned.paths, every.paths[:, ::save_every])


def test_the_initial_state_is_the_first_frame_unless_dropped(initial, noise):
    kept, dropped = run(initial, noise=noise), run(initial, noise=noise, keep_initial=False)
    np.testing.assert_array_equal(kept.paths[:, 0], initial)
    np.testing.assert_array_equal(dropped.paths, kept.paths[:, 1:])


def test_same_key_same_bits_other_key_other_path(initial):
    one, again, other = (run(initial, 3, key=jax.random.key(k)).paths for k in (4, 4, 5))
    np.testing.assert_array_equal(one, again)
    assert (one[:, 1:] != other[:, 1:]).all()


@pytest.mark.parametrize("save_every", [1, 7])
def test_drawn_increments_have_the_variance_of_the_step(save_every):
    """Pure noise: increments between frames are independent normals of variance 2 sigma^2 h save_every."""

    def still(x):
        return jnp.zeros_like(x)

    advance = el.EulerMaruyama().advance(Equation(still, 0.5 * jnp.eye(2)), STEP)
    paths = integrate(
        advance, np.zeros((200, 2)), frames=150, save_every=save_every, step=STEP, key=KEY, bound=1e3
    ).paths  # 150 frames are more than one compiled call makes, so the joints are inside
    increments = np.diff(paths, axis=1) / np.sqrt(2 * 0.25 * STEP * save_every)
    count = increments.size
    assert increments.shape == (200, 150, 2)
    assert abs(increments.mean()) < 4 / np.sqrt(count)
    assert abs(increments.var() - 1) < 4 * np.sqrt(2 / count)
    # No stretch of noise is used twice, neither by two frames nor by two members: of 20000 correlations between pairs
    # of 300 or 400 normals each the largest is about 4.5 standard errors; a repetition would be 1.
    frames, members = increments.transpose(1, 0, 2).reshape(150, -1), increments.reshape(200, -1)
    for rows in (frames, members):
        correlation = np.corrcoef(rows) - np.eye(len(rows))
        assert np.abs(correlation).max() < 6 / np.sqrt(rows.shape[1])


@pytest.mark.parametrize("given", [True, False], ids=["noise given", "noise drawn"])
def test_a_member_that_explodes_is_marked_and_leaves_the_others_alone(initial, noise, given):
    arguments = {"noise": noise} if given else {}
    wild = initial.copy()
    wild[2] = 1e30
    calm, mixed = run(initial, 4, **arguments), run(wild, 4, **arguments)
    assert mixed.diverged.tolist() == [False, False, True, False, False]
    assert mixed.alive.tolist() == [True, True, False, True, True]
    assert not calm.diverged.any()
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(mixed.paths[others], calm.paths[others])
    assert np.isnan(mixed.paths[2, 1:]).all()


def test_a_member_beyond_the_bound_is_nan_from_that_frame_on():
    def outwards(x):
        return x

    advance = el.EulerMaruyama().advance(Equation(outwards, jnp.zeros((1, 1))), 1.0)
    run = integrate(
        advance,
        np.array([[1.0], [0.0]]),
        frames=6,
        save_every=1,
        step=1.0,
        key=KEY,
        noise=np.zeros((2, 6, 1)),
        bound=10,
    )
    np.testing.assert_array_equal(run.paths[0, :, 0], [1, 2, 4, 8, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(run.paths[1], 0)
    assert run.diverged.tolist() == [True, False]


def test_more_brownian_motions_than_variables():
    def still(x):
        return jnp.zeros_like(x)

    advance = el.EulerMaruyama().advance(Equation(still, jnp.array([[1.0, 2.0, 3.0]])), STEP)
    dw = np.random.default_rng(2).normal(size=(4, 10, 3))
    run = integrate(
        advance, np.zeros((4, 1)), frames=10, save_every=1, step=STEP, key=KEY, brownian=3, noise=dw, bound=1e6
    )
    np.testing.assert_allclose(
        run.paths[:, 1:, 0], np.sqrt(2) * np.cumsum(dw @ [1.0, 2.0, 3.0], axis=1), rtol=1e-4, atol=1e-4
    )
