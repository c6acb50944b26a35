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
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    env["PYTHONPATH"] = os.pathsep.join([*sys.path, env.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, __file__, str(out)], env=env, check=True, timeout=120)
    return np.load(out)


def test_every_device_gets_its_share_of_the_members(on_eight):
    assert on_eight["shares"].tolist() == [2] * 8


def test_the_same_noise_drives_the_same_member_on_any_number_of_devices(on_eight):
    for case in ("noise", "many"):
        np.testing.assert_allclose(on_eight[case], ensembles()[case], rtol=0, atol=1e-6)


def test_paths_differ_between_one_and_eight_devices_by_rounding_alone(on_eight):
    """Batches of another size are vectorised otherwise, which moves the last bit of a product; nothing more."""
    np.testing.assert_allclose(on_eight["drift"], ensembles()["drift"], rtol=0, atol=1e-5)


if __name__ == "__main__":
    shared = spread(jnp.zeros((MEMBERS, 2)))
    shares = [len(shard.data) for shard in shared.addressable_shards]
    np.savez(sys.argv[1], shares=shares, **ensembles())
