"""Ensembles over eight devices, which one CPU can pretend to have; only a fresh process can be told so."""

import os
import subprocess
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from effective_langevin.execution.devices import spread
from effective_langevin.simulate import EulerMaruyama, LeimkuhlerMatthews, StochasticHeun, integrate
from effective_langevin.simulate.steppers import Equation

pytestmark = pytest.mark.integration

MEMBERS = 13


@cache
def ensembles() -> dict[str, np.ndarray]:
    """Pure noise, and a bistable drift, for a number of members that no even number divides; and noise of many."""
    options = {"frames": 3, "save_every": 5, "step": 0.01, "key": jax.random.key(4)}
    start = np.linspace(-1, 1, 2 * MEMBERS).reshape(MEMBERS, 2)
    idle, bistable = (Equation(drift, jnp.eye(2)) for drift in (lambda x: 0 * x, lambda x: x - x**3))
    return {
        "noise": integrate(LeimkuhlerMatthews().advance(idle, 0.01), start, **options).paths,
        "many": integrate(EulerMaruyama().advance(idle, 0.01), np.zeros((600, 2)), **options).paths,
        "drift": integrate(StochasticHeun().advance(bistable, 0.01), start, **options).paths,
    }


@pytest.fixture(scope="module")
def on_eight(tmp_path_factory):
    out = tmp_path_factory.mktemp("devices") / "paths.npz"
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"  # else other programs
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    env["PYTHONPATH"] = os.pathsep.join([*sys.path, env.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, __file__, str(out)], env=env, check=True, timeout=120)
    return np.load(out)


def test_every_device_gets_its_share_of_the_members(on_eight):
    assert on_eight["shares"].tolist() == [2] * 8


@pytest.mark.parametrize("case", ["noise", "many", "drift"])
def test_paths_have_the_same_bits_on_one_and_on_eight_devices(on_eight, case):
    """A unit of members is stepped whole, by the same program, on one device of a CPU."""
    np.testing.assert_array_equal(on_eight[case], ensembles()[case])


if __name__ == "__main__":
    shared = spread(jnp.zeros((MEMBERS, 2)))
    shares = [len(shard.data) for shard in shared.addressable_shards]
    np.savez(sys.argv[1], shares=shares, **ensembles())
