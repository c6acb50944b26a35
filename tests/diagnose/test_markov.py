import jax
import numpy as np
from oracles.processes import ornstein_uhlenbeck, with_noise

import effective_langevin as el
from effective_langevin.diagnose.markov import cell_memory, implied_times, label_samples, linear_memory, remainders
from effective_langevin.diagnose.moments import measure_moments

KEY = jax.random.key(0)


def test_what_is_left_over_is_orthogonal_to_the_regressors_in_every_cell():
    rng = np.random.default_rng(0)
    points, targets, labels = rng.normal(size=(500, 2)), rng.normal(size=(500, 3)), rng.integers(0, 4, 500)
    left = remainders(targets, points, labels, 4)
    for cell in range(4):
        rows = labels == cell
        np.testing.assert_allclose(left[rows].sum(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(points[rows].T @ left[rows], 0, atol=1e-9)


def test_labels_stay_with_their_samples():
    """Two records of unequal length, far apart: no cell is shared, and points of one cell are neighbours."""
    records = [np.linspace(0, 1, 300)[:, None], np.linspace(10, 11, 117)[:, None]]
    labels = label_samples(el.TimeSeries(records, 1.0), 8, key=KEY)
    assert [p.shape for p in labels] == [(300, 1), (117, 1)]
    assert not set(labels[0].ravel()) & set(labels[1].ravel())
    runs = [1 + np.count_nonzero(np.diff(p[:, 0])) for p in labels]
    assert runs == [len(np.unique(p)) for p in labels]


def test_implied_times_of_a_two_state_chain_are_exact_and_the_same_at_all_lags():
    """Leaving probabilities p, q: lambda_2 = 1 - p - q."""
    p, q, rng = 0.05, 0.1, np.random.default_rng(0)
    state, states = 0, []
    for u in rng.random(100_000):
        state = 1 - state if u < (p, q)[state] else state
        states.append(state)
    times, errors = implied_times([np.array(states)[:, None]], 2, 1, 0.5, 32)
    exact = -0.5 / np.log(1 - p - q)
    assert (np.abs(times - exact) < 4 * errors).all()
    assert (errors < 0.05 * exact).all()


def test_implied_times_of_a_linear_process_are_its_relaxation_time():
    labels = label_samples(ornstein_uhlenbeck(60_000, 10.0), 32, key=KEY)
    times, errors = implied_times(labels, 32, 5, 1.0, 32)
    # 32 cells of unit variance: the discretisation costs 1 - (1/32)^2-ish of the eigenvalue, below the error.
    assert (np.abs(times - 10.0) < 4 * errors + 0.3).all()
    assert (errors < 1.0).all()


def test_nonlinear_motion_fails_the_linear_test_and_passes_on_a_partition(wells_series):
    found = measure_moments(wells_series.thin(10))
    linear, cells = linear_memory(found), cell_memory(found, key=KEY)
    assert np.abs(linear.value[0] / linear.error[0]).max() > 8
    assert cells is not None
    assert cells.cells == 128
    assert (np.abs(cells.value) < 4 * cells.error).all()


def test_noise_is_memory_on_a_partition_too():
    found = cell_memory(measure_moments(with_noise(ornstein_uhlenbeck(30_000, 20.0), 0.3)), key=KEY)
    assert found is not None
    # a^2 nu / ((1 + nu)^2 - a^2) with a = exp(-1/20), nu = 0.09; conditioning on cells changes little for a Gaussian.
    a, nu = np.exp(-1 / 20), 0.09
    assert abs(found.value[0, 0, 0] - a * a * nu / ((1 + nu) ** 2 - a * a)) < 4 * found.error[0, 0, 0]


def test_inertia_is_negative_memory():
    position = np.cumsum(ornstein_uhlenbeck(30_000, 5.0).segments[0], axis=0)
    position = position - np.convolve(np.pad(position[:, 0], 200, mode="edge"), np.ones(401) / 401, "valid")[:, None]
    found = cell_memory(measure_moments(el.TimeSeries(position, 1.0)), key=KEY)
    assert found is not None
    assert found.value[0, 0, 0] < -0.5


def test_many_variables_or_few_samples_get_no_partition():
    assert (
        cell_memory(measure_moments(el.TimeSeries(np.random.default_rng(0).normal(size=(5000, 7)), 1.0)), key=KEY)
        is None
    )
    assert cell_memory(measure_moments(ornstein_uhlenbeck(300, 5.0)), key=KEY) is None
