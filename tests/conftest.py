"""What several test modules share. Everything is seeded; the derivations of the oracles are in README.md."""

import os
import subprocess
import sys
from pathlib import Path

import hypothesis
import jax
import pytest

import effective_langevin as el
from effective_langevin.execution import compilation

MOST_WORKERS = 8  # each takes one to two gigabytes
ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
COMPILATION_CACHE = {
    "jax_compilation_cache_dir": str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.1,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
# A fourth of the time of compilation, programs as fast: `jit(_run_drawn)` 1.1 -> 0.27 s, its run 6.7 -> 5.3 ms.
QUICK_COMPILATION = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1 --xla_cpu_parallel_codegen_split_count=1"
)


def pytest_xdist_auto_num_workers(config):
    """Run the whole suite on every core; run a named file or folder in this process, which starts faster."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)


def pytest_configure(config):
    """Keep compiled programs between runs, for this process and those it starts; one thread for each of many workers.

    Variables that the environment sets already are left alone.
    """
    for option, value in COMPILATION_CACHE.items():
        if option.upper() not in os.environ:
            os.environ[option.upper()] = str(value)
            jax.config.update(option, value)
    if "XLA_FLAGS" not in os.environ and _takes_flags(QUICK_COMPILATION):
        os.environ["XLA_FLAGS"] = QUICK_COMPILATION
    compilation._MOST_SHAPES = 10_000  # the many shapes of the tests are a bounded number
    if config.getoption("numprocesses", 0):
        os.environ.update({name: value for name, value in ONE_THREAD.items() if name not in os.environ})


def _takes_flags(flags: str) -> bool:
    """Try them in a process of its own: a version of XLA that does not know a flag ends the process."""
    start = [sys.executable, "-c", "import jax; jax.numpy.zeros(1)"]
    tried = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(start, env=tried, capture_output=True, check=False).returncode == 0


hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, max_examples=40)
hypothesis.settings.load_profile("repeatable")

SHARED_DATA = Path(
    os.environ.get("EFFECTIVE_LANGEVIN_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


@pytest.fixture(scope="session")
def shared_data():
    """A function from the name of a file in ../shared/data to its path; skips the test where the file is not there.

    The folder can be elsewhere: EFFECTIVE_LANGEVIN_SHARED_DATA names it.
    """

    def find(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.is_file():
            pytest.skip(f"{path} is not on this machine")
        return path

    return find


@pytest.fixture(scope="session")
def wells():
    return el.systems.AsymmetricWells()


@pytest.fixture(scope="session")
def wells_series(wells):
    """2e5 samples of the four wells in 20 records, dt = 0.05."""
    return wells.simulate(duration=500.0, dt=0.05, members=20, seed=1)


@pytest.fixture(scope="session")
def wells_model(wells_series):
    """A quick fit of the four wells: good to about 10 %, which is all its tests ask for."""
    return el.fit(wells_series, score=el.KGMM(noise_level=0.05, steps=600, max_draws=8), seed=0)


@pytest.fixture(scope="session")
def linear_series():
    """A rotating Ornstein-Uhlenbeck process, 2e4 samples in 4 records, with names and units."""
    paths = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(duration=500.0, dt=0.1, members=4, seed=3, step=0.05)
    return el.TimeSeries(
        paths.values * [3.0, 0.2] + [10.0, -1.0], 0.1, names=["T", "h"], units=["K", "m"], time_unit="d"
    )


@pytest.fixture(scope="session")
def linear_model(linear_series):
    """The linear inverse model of `linear_series`: no network, fitted in no time."""
    return el.fit(linear_series, score=el.Gaussian(), mobility=el.LogCorrelation(), seed=0)


@pytest.fixture(scope="module")
def compiled_quickly():
    """For tests of networks, where compiling takes most of the time and running next to none."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
