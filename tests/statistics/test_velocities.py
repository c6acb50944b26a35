"""Velocities of smooth segments."""

import numpy as np

import effective_langevin as el
from effective_langevin.data.segments import as_rows
from effective_langevin.statistics.velocities import differentiate, trim

REACH = 4


def test_velocities_of_polynomials_of_degree_eight_are_exact():
    polynomial = np.polynomial.Polynomial(np.random.default_rng(0).normal(size=9))
    time = np.linspace(-1, 1, 41)
    (velocity,) = differentiate([polynomial(time)[:, None]], time[1] - time[0])
    np.testing.assert_allclose(velocity[:, 0], polynomial.deriv()(time[REACH:-REACH]), atol=1e-9)


def test_velocities_belong_to_the_samples_that_are_kept():
    time = 0.3 * np.arange(100)
    segments = [np.sin(time[:, None]), np.sin(time[:8, None]), np.sin(time[:9, None])]
    for kept, velocity in zip(trim(segments), differentiate(segments, 0.3)):
        assert kept.shape == velocity.shape
        np.testing.assert_allclose(velocity, np.cos(np.arcsin(kept)) * np.sign(velocity), atol=1e-5)
    assert [len(kept) for kept in trim(segments)] == [92, 0, 1]


def test_velocities_by_blocks_are_those_in_memory():
    x = np.random.default_rng(1).normal(size=(1000, 2))
    (whole,), (rows,) = differentiate([x], 0.1), differentiate([as_rows(x)], 0.1)
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks())), whole)


def test_velocities_of_a_coarsely_sampled_chaotic_field_are_not_too_slow():
    system = el.systems.KuramotoSivashinsky(grid=64, stride=1)
    series = system.simulate(60.0, dt=1.0, members=10, seed=5, burn_in=500.0)
    exact = np.stack([system.drift(part) for part in trim(series.segments)])
    found = np.stack(differentiate(series.segments, 1.0))
    modes, exact_modes = (np.fft.rfft(v, axis=2)[:, :, 1:9] for v in (found, exact))
    gain = np.mean((modes * exact_modes.conj()).real, axis=(0, 1)) / np.mean(np.abs(exact_modes) ** 2, axis=(0, 1))
    assert np.all(np.abs(gain - 1) < 0.006)
    assert np.mean((found - exact) ** 2) < 0.02**2 * np.mean(exact**2)
