"""Linear algebra starts no threads while our own share the cores, and gets them back afterwards."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import effective_langevin as el
from effective_langevin.execution import batches
from effective_langevin.execution.blas import one_blas_thread
from effective_langevin.statistics import integral_time, lags
from effective_langevin.statistics.integral_time import integral_times
from effective_langevin.statistics.lags import lagged_moments


def threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, "blas"):
        yield


def test_blas_has_one_thread_inside_and_as_many_as_before_afterwards():
    before = threads()
    with one_blas_thread:
        with one_blas_thread:
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert threads() == before


def test_another_thread_that_enters_and_leaves_changes_nothing():
    def enter():
        with one_blas_thread:
            return threads()

    before = threads()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(enter).result() == before
        with one_blas_thread:
            assert set(pool.submit(enter).result()) == {1}
            assert set(threads()) == {1}
        assert threads() == before


def test_work_shared_by_the_cores_has_one_blas_thread_each(monkeypatch):
    monkeypatch.setattr(batches, "count_threads", lambda: 2)
    assert batches.on_all_cores(lambda i: (i, set(threads())), range(3)) == [(i, {1}) for i in range(3)]


def test_sums_that_the_cores_share_have_the_same_bits(monkeypatch):
    x = [np.random.default_rng(0).normal(size=(700, 5)), np.random.default_rng(1).normal(size=(300, 5))]
    alone = lagged_moments(x, x, [0, 2, 9], 4)
    monkeypatch.setattr(lags, "_FOR_THREADS", 1)
    monkeypatch.setattr(batches, "count_threads", lambda: 2)
    np.testing.assert_array_equal(lagged_moments(x, x, [0, 2, 9], 4).sums, alone.sums)


@pytest.mark.parametrize("first", [2, 16])
def test_integral_times_do_not_depend_on_how_far_the_first_look_reaches(monkeypatch, first):
    """Correlation times of about 3 and 60 samples: the slower one crosses zero far beyond the first look."""
    series = el.systems.OrnsteinUhlenbeck(np.diag([0.3, 0.015]), np.eye(2)).simulate(4000.0, dt=1.0, seed=2)
    centred = [s - s.mean(axis=0) for s in series.segments]
    whole = integral_times(centred, 1.0)
    assert whole[1] > 5 * whole[0]
    monkeypatch.setattr(integral_time, "_FIRST_REACH", first)
    np.testing.assert_allclose(integral_times(centred, 1.0), whole, rtol=1e-9)
