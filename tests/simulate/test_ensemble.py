import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.simulate import integrate
from effective_langevin.simulate.steppers import Equation, StepMap

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


def test_the_initial_state_is_the_first_frame(initial, noise):
    np.testing.assert_array_equal(run(initial, noise=noise).paths[:, 0], initial)


def test_same_key_same_bits_other_key_other_path(initial):
    one, again, other = (run(initial, 3, key=jax.random.key(k)).paths for k in (4, 4, 5))
    np.testing.assert_array_equal(one, again)
    assert (one[:, 1:] != other[:, 1:]).all()


class Made(list):
    """A list that may be a static field: it is equal to itself alone."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Counted(StepMap):
    """Adds the noise, and notes each time that a program is made of it."""

    made: Made = eqx.field(static=True)

    def __call__(self, x, dw):
        self.made.append(x.shape)
        return x + dw


def test_runs_of_several_lengths_are_one_program_and_the_same_noise(initial):
    advance = Counted(Made())
    longest, *shorter = (
        (integrate(advance, initial, frames=frames, save_every=2, step=STEP, key=KEY).paths, len(advance.made))
        for frames in (8, 5, 7)
    )
    assert longest[1] > 0
    for paths, made in shorter:
        assert made == longest[1]
        np.testing.assert_array_equal(paths, longest[0][:, : paths.shape[1]])


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


def test_many_members_have_noise_of_their_own_and_the_same_paths_on_any_number_of_cores(monkeypatch):
    """1000 members are four blocks, each with a key of its own; a repeated key would make a correlation of 1."""
    start = np.zeros((1000, 2), np.float32)
    paths = run(start, 2, frames=70).paths
    for cores in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        np.testing.assert_array_equal(run(start, 2, frames=70).paths, paths)
    assert paths.shape == (1000, 71, 2)
    increments = np.diff(paths, axis=1).reshape(1000, -1)
    assert np.abs(np.corrcoef(increments) - np.eye(1000)).max() < 6.5 / np.sqrt(140)


def test_members_stay_in_their_places_however_they_are_shared_out():
    """Without noise, each goes its own way down a linear drift; 16999 members make shares of several blocks."""
    start = np.linspace(1.0, 2.0, 2 * 16_999).reshape(-1, 2)
    advance = el.EulerMaruyama().advance(Equation(lambda x: -x, jnp.zeros((2, 2))), 0.5)
    paths = integrate(advance, start, frames=2, save_every=1, step=0.5, key=KEY).paths
    np.testing.assert_allclose(paths, np.stack([start, start / 2, start / 4], axis=1), rtol=1e-6)


@pytest.mark.parametrize("given", [True, False], ids=["noise given", "noise drawn"])
def test_a_member_that_explodes_is_marked_and_leaves_the_others_alone(initial, noise, given):
    arguments = {"noise": noise} if given else {}
    wild = initial.copy()
    wild[2] = 1e30
    calm, mixed = run(initial, 4, **arguments), run(wild, 4, **arguments)
    assert mixed.diverged.tolist() == [False, False, True, False, False]
    assert mixed.diverged.tolist() == [False, False, True, False, False]
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


# Which increments a step is driven by.


class Register(StepMap):
    """A map that keeps the last `length` increments it was driven by, oldest first."""

    def __call__(self, x, dw):
        return jnp.concatenate([x[:, 1:], dw], axis=1)


def increments_used(advance, members=3, frames=150, save_every=7, **arguments):
    """The increments that drove a simulation, (member, step)."""
    paths = integrate(
        advance,
        np.zeros((members, save_every)),
        frames=frames,
        save_every=save_every,
        step=STEP,
        key=KEY,
        brownian=1,
        bound=1e3,
        **arguments,
    ).paths
    return paths[:, 1:].reshape(members, frames * save_every)


@pytest.mark.parametrize(("members", "at_once"), [(3, 1 << 22), (5, 15)], ids=["frame by frame", "three steps at once"])
def test_a_stepper_that_averages_is_driven_by_the_mean_of_successive_increments_across_all_borders(
    monkeypatch, members, at_once
):
    """150 frames are three compiled calls; of 7 steps to a frame, three at once are drawn in two batches and a rest."""
    monkeypatch.setattr("effective_langevin.simulate.ensemble._NORMALS_AT_ONCE", at_once)
    drawn, used = (increments_used(advance, members) for advance in (Register(), Register(averages_noise=True)))
    np.testing.assert_allclose(used[:, 1:], 0.5 * (drawn[:, 1:] + drawn[:, :-1]), atol=1e-6)
    # The first has a predecessor of its own, drawn before the start.
    assert (np.abs(used[:, 0] - drawn[:, 0]) > 1e-4).all()
    assert drawn.var() == pytest.approx(STEP, rel=4 * np.sqrt(2 / drawn.size))


def test_the_first_averaged_increment_has_the_variance_of_the_others():
    used = increments_used(Register(averages_noise=True), members=4000, frames=1, save_every=2)
    assert used.var(axis=0) == pytest.approx(STEP / 2, rel=4 * np.sqrt(2 / 4000))
    assert np.corrcoef(used.T)[0, 1] == pytest.approx(0.5, abs=4 / np.sqrt(4000))


def test_supplied_increments_are_averaged_too_with_nothing_before_the_first():
    noise = np.random.default_rng(3).normal(size=(3, 35, 1))
    used = increments_used(Register(averages_noise=True), frames=5, noise=noise)
    np.testing.assert_allclose(used[:, 0], noise[:, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(used[:, 1:], 0.5 * (noise[:, 1:, 0] + noise[:, :-1, 0]), atol=1e-6)
    np.testing.assert_allclose(increments_used(Register(), frames=5, noise=noise), noise[..., 0], rtol=1e-6)


def test_leimkuhler_matthews_keeps_the_variance_of_a_linear_equation_at_a_large_step_in_a_long_run():
    """dx = -x dt + sqrt(2) dW at step 0.8: variance 1, where Euler-Maruyama has 1 / 0.6. 4 standard errors of 2000
    members at 20 times each, every 6th step apart, by when the correlation is gone."""

    def relaxing(x):
        return -x

    variances = []
    for stepper in (el.LeimkuhlerMatthews(), el.EulerMaruyama()):
        advance = stepper.advance(Equation(relaxing, jnp.eye(1)), 0.8)
        paths = integrate(advance, np.zeros((2000, 1)), frames=25, save_every=6, step=0.8, key=KEY).paths
        variances.append(paths[:, 6:].var())
    assert variances[0] == pytest.approx(1, abs=4 * np.sqrt(2 / 40000))
    assert variances[1] == pytest.approx(1 / 0.6, rel=4 * np.sqrt(2 / 40000))
