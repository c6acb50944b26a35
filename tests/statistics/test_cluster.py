"""Sums on the workers of a dask cluster: the digits of one machine, whatever the workers, also if one is killed."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from effective_langevin._core.errors import ArgumentError, ClusterError
from effective_langevin.data.lazy import Rows
from effective_langevin.execution import cluster
from effective_langevin.statistics import lags
from effective_langevin.statistics.lags import autocovariances, lagged_moments

distributed = pytest.importorskip("distributed")


class SlowReader:
    """Rows of a file, each block read with a pause, so that there is a middle in which to kill a worker."""

    def __init__(self, path, pause=0.0):
        self.path, self.pause = path, pause

    def __call__(self, first, stop):
        time.sleep(self.pause)
        return np.array(np.load(self.path, mmap_mode="r")[first:stop], float)


@pytest.fixture
def series(tmp_path, monkeypatch):
    monkeypatch.setattr(lags, "_TASK", 500)
    monkeypatch.setattr(lags, "_TASK_BLOCKS", 1)
    values = np.random.default_rng(0).normal(size=(20_000, 3)).cumsum(axis=0) * 0.01
    np.save(tmp_path / "x.npy", values)
    return lambda pause=0.0: [Rows(SlowReader(tmp_path / "x.npy", pause), values.shape, 1000)]


def sums(rows):
    return lagged_moments(rows, rows, [0, 1, 7, 300], 4).sums, autocovariances(rows, 200)


@pytest.mark.integration
def test_results_do_not_depend_on_workers_nor_on_their_deaths(series):
    alone = sums(series())
    for workers in (2, 4):
        with (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local,
            distributed.Client(local) as client,
        ):
            assert cluster.active_client() is client
            found = sums(series())
            assert all(np.array_equal(a, b) for a, b in zip(found, alone))
            if workers == 2:
                pids = client.run(os.getpid)
                victim = next(iter(pids.values()))
                threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
                found = sums(series(0.15))
                assert victim not in client.run(os.getpid).values()
                assert all(np.array_equal(a, b) for a, b in zip(found, alone))
    assert cluster.active_client() is None


@pytest.mark.parametrize("where", ["local", "local:0", "local:two"])
def test_workers_on_this_machine_are_counted(where):
    with pytest.raises(ArgumentError, match="local:N"), cluster.opened(where):
        pass


@pytest.mark.integration
def test_a_scheduler_that_is_gone_is_named(series):
    local = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False)
    client = distributed.Client(local, timeout=2)
    threading.Timer(1.0, local.close).start()
    with pytest.raises(ClusterError, match="Start it again"):
        sums(series(0.2))
    client.close(timeout=1)
