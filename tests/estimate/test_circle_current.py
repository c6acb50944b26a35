"""One angle: nu = J / p with J from the winding, and D given nu."""

import jax.numpy as jnp
import numpy as np
import pytest
from oracles.rings import StandardRing

import effective_langevin as el
from effective_langevin._core import keys
from effective_langevin.estimate.closure.circle import (
    CircleCurrent,
    close_ring,
    count_turns,
    density_around,
    infer_ring,
)
from effective_langevin.estimate.closure.storage import describe_fields, rebuild_fields
from effective_langevin.estimate.networks import OnGrid
from effective_langevin.estimate.score import Score
from effective_langevin.estimate.space import StateSpace

RING = el.systems.DrivenRing()
FAST = el.systems.DrivenRing(drive=4.0)
GRID = np.linspace(0, 2 * np.pi, 300, endpoint=False)[:, None]


@pytest.fixture(scope="module")
def fast():
    """The ring driven so fast that it looks smooth at dt = 0.1."""
    return StandardRing.of(FAST.simulate(100.0, dt=0.1, members=40, seed=7, step=0.01), el.KGMM(noise_level=0.1))


def exact_score():
    values = RING.score_function(np.arange(1024)[:, None] * 2 * np.pi / 1024)
    network = OnGrid(jnp.asarray(values, jnp.float32), (2 * np.pi,))
    return Score.learned(network, np.eye(1), np.array([-np.inf]), np.array([np.inf]))


def test_the_density_of_the_exact_score_is_the_exact_one():
    grid = np.arange(1024) * 2 * np.pi / 1024
    np.testing.assert_allclose(density_around(exact_score(), 2 * np.pi), RING.density(grid), rtol=1e-5)


def test_the_current_is_divergence_free_for_the_density_of_the_score():
    """nu' + nu s = 0 between grid points, within the error of linear interpolation on 1024 of them."""
    score = exact_score()
    field = CircleCurrent.of(density_around(score, 2 * np.pi), RING.flux, 2 * np.pi)
    np.testing.assert_allclose(np.asarray(field.in_batch(GRID, None)), RING.current(GRID), rtol=1e-4)
    width = 0.05
    ahead, behind = (np.asarray(field.in_batch(GRID + shift, None), float) for shift in (width, -width))
    here, push = np.asarray(field.in_batch(GRID, None), float), score.over(GRID)
    np.testing.assert_allclose((ahead - behind) / (2 * width), -here * push, atol=0.02 * np.abs(here * push).max())


def test_a_score_whose_mean_is_not_zero_still_gives_a_periodic_density():
    score = exact_score()
    tilted = Score.learned(
        OnGrid(score.network.values + 0.1, score.network.periods), np.eye(1), -np.inf * np.ones(1), np.inf * np.ones(1)
    )
    np.testing.assert_allclose(density_around(tilted, 2 * np.pi), density_around(score, 2 * np.pi), rtol=1e-5)


def test_turns_are_counted_the_short_way_and_never_across_a_gap():
    """Two records of a steady rotation through the border, one backwards; a jump between records is no motion."""
    forward, backward = 0.3 * np.arange(100), 5.0 - 0.1 * np.arange(50)
    segments = [x[:, None] % (2 * np.pi) for x in (forward, backward)]
    series = el.TimeSeries(segments, 0.5, periods=[2 * np.pi])
    flux = count_turns(series, 2 * np.pi, 3)
    exact = (99 * 0.3 - 49 * 0.1) / (148 * 0.5) / (2 * np.pi)
    assert flux(np.ones(3)) == pytest.approx(exact, rel=1e-9)
    assert flux(np.array([1.0, 0.0, 0.0])) == pytest.approx(0.3 / 0.5 / (2 * np.pi), rel=1e-9)


def test_current_and_diffusion_of_a_fast_ring(fast):
    """J, D and nu within four standard errors; the mobility without the current is far off."""
    found, scale = fast.infer(), fast.units.std[0] ** 2
    assert found.flux == pytest.approx(FAST.flux, abs=4 * found.flux_error)
    assert found.flux_error < 0.01 * FAST.flux
    assert found.diffusion * scale == pytest.approx(0.5, abs=4 * found.mobility.standard_error[0, 0] * scale)
    assert found.mobility.standard_error[0, 0] * scale < 0.01
    assert not found.mobility.evidence.ballistic
    np.testing.assert_allclose(fast.velocity(found, GRID), FAST.current(GRID), rtol=0.15)
    alone = el.IntegratedResponse().infer(fast.series, fast.score, space=fast.space, key=keys.key_from_seed(0))
    assert alone.phi[0, 0] * scale > 0.7


def test_the_closure_of_a_ring_holds_both_fields_with_replicas(fast):
    """40 draws with replacement scatter as the jackknife says, to a third; < M > is D."""
    found, closed = fast.infer(), close_ring(fast.series, fast.score, fast.space)
    drawn = closed.fields.drawn()
    ratios = np.array([float(f.current.values[0] / closed.fields.current.values[0]) for f in drawn])
    spread = np.std([float(f.diffusion.matrix[0, 0]) for f in drawn])
    assert np.std(ratios) == pytest.approx(found.flux_error / found.flux, rel=0.35)
    assert spread == pytest.approx(found.mobility.standard_error[0, 0], rel=0.35)
    np.testing.assert_allclose(closed.mobility.matrix, closed.fields.diffusion.matrix, rtol=1e-6)
    assert closed.mobility.evidence.closure.kind == "current"


def test_the_fields_of_a_ring_are_stored(fast):
    fields = close_ring(fast.series, fast.score, fast.space).fields
    again = rebuild_fields(*describe_fields(fields))
    x = np.linspace(-3, 3, 7)[:, None]
    np.testing.assert_array_equal(again.current.in_batch(x, None), fields.current.in_batch(x, None))
    np.testing.assert_array_equal(again.replicas[0].values, fields.replicas[0].values)


def test_several_angles_are_refused(fast):
    two = el.TimeSeries(np.zeros((100, 2)) + np.arange(100)[:, None], 0.1, periods=[2 * np.pi, 2 * np.pi])
    space = StateSpace((2 * np.pi, 2 * np.pi))
    with pytest.raises(el.ArgumentError, match="is that of one angle"):
        infer_ring(two, fast.score, space)
    with pytest.raises(el.ArgumentError, match="is that of one angle"):
        infer_ring(fast.series, fast.score, StateSpace((None,)))
