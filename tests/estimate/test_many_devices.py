"""Training on several devices: every step shares its samples out, and the losses are those of one device."""

import json
import os
import socket
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

PROGRAM = """
import json, jax, numpy as np
from effective_langevin.estimate.score import training
from effective_langevin.estimate.score.denoising import DenoisingScore
from effective_langevin.estimate.networks import MLP
from effective_langevin.estimate.space import StateSpace
from effective_langevin.execution.devices import on_every_device, shared_out

placed, run = [], training._run_epoch
def watched(state, *rest):
    found = run(state, *rest)
    placed.append(len(found[0][0].sharding.device_set))
    return found
training._run_epoch = watched
samples = np.random.default_rng(0).normal(size=(4000, 3)).astype(np.float32) ** 3 / 4
strategy = DenoisingScore(MLP((32, 32)), noise_level=0.3, batch=256, epochs=2, epoch_samples=5120)
learned = strategy.learn(samples[:3000], samples[3000:], space=StateSpace((None,) * 3), key=jax.random.key(1))
score = learned.function.over(samples[:50])
batch = jax.jit(shared_out)(on_every_device(jax.numpy.ones((128, 3))))
parts = sorted({part.data.shape[0] for part in batch.addressable_shards})
print(json.dumps([parts, placed, learned.evidence.loss_curve, score.tolist()]))
"""


JOINED = """
import sys, jax
jax.distributed.initialize(f"localhost:{sys.argv[1]}", num_processes=2, process_id=int(sys.argv[2]))
assert (jax.process_count(), len(jax.devices())) == (2, 4)
"""


def train_in_two_processes():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    commands = ([sys.executable, "-c", JOINED + PROGRAM, str(port), str(i)] for i in range(2))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": {**os.environ, **flags}}
    children = [subprocess.Popen(command, **pipes) for command in commands]
    try:
        told = [child.communicate(timeout=240) for child in children]
    finally:
        for child in children:
            child.kill()
    assert [child.returncode for child in children] == [0, 0], told[0][1][-2000:] + told[1][1][-2000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in told]


@cache
def train_on(devices):
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env={**os.environ, **flags})
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.integration
def test_losses_on_eight_devices_are_those_on_one():
    (whole, _, losses, scores), (parts, placed, others, other_scores) = (train_on(devices) for devices in (1, 8))
    assert (whole, parts) == ([128], [16])
    assert set(placed) == {8}
    assert len(losses) == 40
    np.testing.assert_allclose(others, losses, rtol=1e-5)
    np.testing.assert_allclose(other_scores, scores, atol=2e-3)


@pytest.mark.integration
def test_losses_in_two_processes_are_those_in_one():
    """Each of the processes has two devices, on which it sees a quarter of every batch, and both end with one model."""
    (_, _, losses, scores), (one, other) = train_on(1), train_in_two_processes()
    assert one[0] == other[0] == [32]
    assert set(one[1]) == set(other[1]) == {4}
    assert one[2:] == other[2:]
    np.testing.assert_allclose(one[2], losses, rtol=1e-5)
    np.testing.assert_allclose(one[3], scores, atol=2e-3)
