import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin._core import checkpoints, progress
from effective_langevin.estimate.score.denoising import Denoising
from effective_langevin.estimate.score.training import Schedule, Trained, train
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.execution.devices import computed_on_host

KEY = jax.random.key(0)
NONE = NoSymmetry()


class Point(eqx.Module):
    """The smallest network: a point that is moved about."""

    place: jax.Array


@dataclass(frozen=True)
class Pulled:
    """A point pulled towards random samples; the held-out loss is the distance from a target."""

    def batches(self, data, steps, *, key):
        return jax.random.randint(key, (steps,), 0, len(data))

    def loss(self, network, data, batch):
        return jnp.sum((network.place - data[batch]) ** 2)

    def held_out_loss(self, network, held_out):
        return jnp.sum((network.place - held_out) ** 2)


START = Point(jnp.array([0.0, 0.0]))
SAMPLES = jnp.asarray(np.random.default_rng(0).normal(1.0, 0.2, (50, 2)), jnp.float32)
SCHEDULE = Schedule(epochs=8, steps_per_epoch=10, learning_rate=0.03, average=0.8)
# The point passes here on its way from 0 to 1.
TARGET = jnp.array([0.5, 0.5])


PULLED = Pulled()


def trained(network=START, data=SAMPLES, schedule=SCHEDULE, key=KEY, held_out=None, objective=PULLED) -> Trained:
    return train(network, objective, data, schedule, key=key, label="Training", held_out=held_out)


# The schedule.


@pytest.mark.parametrize(("epochs", "steps_per_epoch"), [(20, 10), (1, 7), (3, 1), (1, 1)])
def test_the_learning_rate_starts_at_zero_peaks_after_a_twentieth_and_ends_with_the_last_step(epochs, steps_per_epoch):
    schedule = Schedule(epochs, steps_per_epoch, learning_rate=0.3, final_rate=0.02)
    rate = np.array([float(schedule.rate()(step)) for step in range(schedule.steps + 3)])
    rise = max(1, schedule.steps // 20)
    assert schedule.steps == epochs * steps_per_epoch
    assert rate[0] == 0
    np.testing.assert_allclose(rate[: rise + 1], 0.3 * np.arange(rise + 1) / rise, rtol=1e-5)
    assert (np.diff(rate[rise : schedule.steps + 1]) < 0).all()
    # A cosine from the peak to the final rate, which is reached with the last step and not before.
    end = max(schedule.steps, rise + 1)
    turn = np.cos(np.pi * (np.arange(rise, end + 1) - rise) / (end - rise))
    np.testing.assert_allclose(rate[rise : end + 1], 0.3 * (0.02 + 0.98 * 0.5 * (1 + turn)), rtol=1e-4)


# What is trained.


def test_training_is_adam_with_a_running_mean_of_the_weights():
    """Against a plain loop: the same batches, gradients no longer than 1, Adam by hand, the mean with memory 0.8."""
    result = trained()
    rate, place, mean = SCHEDULE.rate(), np.zeros(2), np.zeros(2)
    first, second, losses, lengths = np.zeros(2), np.zeros(2), [], []
    for epoch in range(SCHEDULE.epochs):
        batches = Pulled().batches(SAMPLES, 10, key=jax.random.fold_in(KEY, epoch))
        for target in np.asarray(SAMPLES, float)[np.asarray(batches)]:
            losses.append(((place - target) ** 2).sum())
            gradient, step = 2 * (place - target), len(losses)
            lengths.append(np.linalg.norm(gradient))
            gradient = gradient / max(1.0, lengths[-1])
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            direction = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            place = place - float(rate(step - 1)) * direction
            mean = 0.8 * mean + 0.2 * place
    np.testing.assert_allclose(result.losses, losses, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result.network.place, mean, rtol=1e-4)
    assert np.abs(mean - place).max() > 1e-3
    assert min(lengths) < 0.5
    assert max(lengths) > 2
    assert len(result.held_out) == 0


def test_the_weights_returned_are_those_of_the_best_epoch_on_held_out_data():
    result = trained(held_out=TARGET)
    best = int(np.argmin(result.held_out))
    assert 0 < best < SCHEDULE.epochs - 1
    assert len(result.held_out) == SCHEDULE.epochs
    assert jnp.sum((result.network.place - TARGET) ** 2) == pytest.approx(result.held_out[best], rel=1e-5)
    assert result.held_out[best] < 0.5 * result.held_out[-1]


@pytest.mark.parametrize("patience", [1, 2])
def test_training_stops_when_the_held_out_loss_has_not_improved_for_a_while(patience):
    whole = trained(held_out=TARGET)
    stopped = trained(held_out=TARGET, schedule=replace(SCHEDULE, patience=patience))
    best = int(np.argmin(whole.held_out))
    assert len(stopped.held_out) == best + 1 + patience
    assert len(stopped.losses) == SCHEDULE.steps_per_epoch * (best + 1 + patience)
    np.testing.assert_array_equal(stopped.network.place, whole.network.place)
    assert len(trained(schedule=replace(SCHEDULE, patience=patience)).losses) == SCHEDULE.steps


def test_the_history_keeps_the_mean_of_a_long_curve():
    losses = np.random.default_rng(0).normal(size=1000)
    history = Trained(None, losses, np.array([1.0, 0.5])).history(points=10)
    np.testing.assert_allclose(history["loss_curve"], losses.reshape(10, 100).mean(axis=1))
    assert history["held_out_loss_curve"] == (1.0, 0.5)
    assert history["training_steps"] == 1000


# What an epoch sees.


@pytest.mark.parametrize(("antithetic", "each"), [(True, 4), (False, 8)])
def test_rows_of_an_epoch_are_drawn_without_replacement(antithetic, each):
    data = (jnp.zeros((100, 3)), 0.1)
    rows, keys = Denoising(NONE, 8, antithetic).rows(data, 12, key=KEY)
    assert rows.shape == (12, each)
    assert len(np.unique(rows)) == rows.size
    assert rows.min() >= 0
    assert rows.max() < 100
    assert len(np.unique(jax.random.key_data(keys), axis=0)) == 12
    others, _ = Denoising(NONE, 8, antithetic).rows(data, 12, key=jax.random.key(1))
    assert (np.asarray(rows) != np.asarray(others)).any()


def test_rows_are_drawn_with_replacement_where_there_are_too_few():
    rows, _ = Denoising(NONE, 8, False).rows((jnp.zeros((20, 3)), 0.1), 50, key=KEY)
    counts = np.bincount(np.asarray(rows).ravel(), minlength=20)
    assert rows.shape == (50, 8)
    # 400 draws from 20: each 20 times, with a standard deviation of 4.4.
    assert np.abs(counts - 20).max() < 4 * 4.4


def test_every_epoch_sees_other_batches():
    """Two epochs at rate ~0 leave the point where it is: equal batches would give equal losses."""
    result = trained(schedule=Schedule(epochs=2, steps_per_epoch=10, learning_rate=1e-12))
    assert (result.losses[:10] != result.losses[10:]).any()


# Interruption.


class Recorded:
    """A display that remembers its notes, and interrupts the work after so many epochs."""

    def __init__(self, until: int | None = None):
        self.notes, self.until, self.epochs = [], until, 0

    def task(self, name, total):
        def advance(units=1, note=""):
            self.notes.append(note)
            self.epochs += "loss" in note
            if self.epochs == self.until:
                raise KeyboardInterrupt

        return advance


@pytest.fixture
def watched():
    """Watch (and interrupt) what runs inside."""

    def run(work, until=None):
        display = Recorded(until)
        token = progress._display.set(display.task)
        try:
            return work(), display
        except KeyboardInterrupt:
            return None, display
        finally:
            progress._display.reset(token)

    return run


def kept(work, folder, every=10.0):
    def inside():
        with checkpoints.kept_in(folder, every):
            return work()

    return inside


def same_bits(one: Trained, other: Trained):
    for a, b in zip(jax.tree.leaves(one.network), jax.tree.leaves(other.network)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.losses, other.losses)
    np.testing.assert_array_equal(one.held_out, other.held_out)


@pytest.mark.parametrize("held_out", [None, TARGET], ids=["no held-out data", "held-out data"])
@pytest.mark.parametrize("until", [1, 5])
def test_an_interrupted_training_continues_to_the_same_bits(watched, tmp_path, until, held_out):
    def work():
        return trained(held_out=held_out)

    uninterrupted = work()
    _, display = watched(kept(work, tmp_path), until)
    assert display.epochs == until
    assert len(list(tmp_path.glob("checkpoint-*.npz"))) == 1
    result, display = watched(kept(work, tmp_path))
    assert display.notes[0] == "resumed"
    assert display.epochs == SCHEDULE.epochs - until
    same_bits(result, uninterrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_training_may_be_interrupted_again_and_again(watched, tmp_path):
    for _ in range(3):
        watched(kept(trained, tmp_path), until=2)
    result, display = watched(kept(trained, tmp_path))
    assert display.epochs == SCHEDULE.epochs - 6
    same_bits(result, trained())


CHANGES = {
    "seed": {"key": jax.random.key(1)},
    "data": {"data": SAMPLES.at[3, 1].add(1e-6)},
    "held-out data": {"held_out": TARGET},
    "learning rate": {"schedule": replace(SCHEDULE, learning_rate=0.051)},
    "length": {"schedule": replace(SCHEDULE, epochs=9)},
    "start": {"network": Point(jnp.array([0.0, 0.1]))},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_work_with_another_seed_other_data_or_other_settings_is_begun_anew(watched, tmp_path, change):
    watched(kept(trained, tmp_path), until=3)
    result, display = watched(kept(lambda: trained(**change), tmp_path))
    assert display.notes[0] == ""
    same_bits(result, trained(**change))


def test_another_objective_begins_anew():
    one, other = (
        checkpoints.digest((Denoising(symmetry, 8, True), SCHEDULE), (SAMPLES, KEY))
        for symmetry in (NONE, el.Translations())
    )
    assert one != other


def test_nothing_is_written_without_a_folder_or_before_its_time(watched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    watched(trained, until=3)
    assert list(tmp_path.iterdir()) == []
    written = []
    monkeypatch.setattr(checkpoints.Checkpoint, "flush", lambda self: written.append(self.pending))
    watched(kept(trained, tmp_path / "kept", every=1000.0))
    assert len(written) == 1
    written.clear()
    watched(kept(trained, tmp_path / "kept", every=0.0))
    assert len(written) == SCHEDULE.epochs + 1


def test_a_failed_write_leaves_the_older_checkpoint_and_nothing_else(watched, tmp_path, monkeypatch):
    watched(kept(trained, tmp_path), until=3)
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()

    def half(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="No space left"):
        watched(kept(trained, tmp_path))
    assert [f.name for f in tmp_path.iterdir()] == [file.name]
    assert file.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(el.ArgumentError, match="Cannot keep checkpoints in"), checkpoints.kept_in(tmp_path / "file"):
        pass


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with checkpoints.kept_in(tmp_path):
        trained()
    assert [f.name for f in tmp_path.iterdir()] == ["notes.txt"]


def test_a_training_that_had_stopped_early_is_not_continued(watched, tmp_path):
    """Interrupted after it, in a later stage of the fit."""

    def work():
        return trained(held_out=TARGET, schedule=replace(SCHEDULE, patience=1))

    def then_interrupted():
        work()
        raise KeyboardInterrupt

    watched(kept(then_interrupted, tmp_path))
    result, display = watched(kept(work, tmp_path))
    assert display.notes[0] == "resumed"
    same_bits(result, work())


# A whole fit, killed.

FIT = """
import os, signal, sys
from functools import partial
import numpy as np
import effective_langevin as el
from effective_langevin._core import checkpoints, progress


def fitted(folder=None):
    series = el.TimeSeries(np.random.default_rng(3).normal(size=(3, 500, 2)).cumsum(axis=1) % 5, dt=0.1)
    score = el.DenoisingScore(el.MLP((6,)), noise_level=0.3, epochs=6, epoch_samples=512, batch=64)
    return el.fit(series, score=score, mobility=el.QuadraticVariation(), seed=4, checkpoint=folder)


class Killing:
    def task(self, name, total):
        done = []

        def advance(units=1, note=""):
            done.append(note)
            if len([note for note in done if "loss" in note]) == 3:
                os.kill(os.getpid(), signal.SIGKILL)

        return advance


if __name__ == "__main__":
    checkpoints.kept_in = partial(checkpoints.kept_in, every=0.0)
    progress._display.set(Killing().task)
    fitted(sys.argv[1])
"""


@pytest.mark.integration
def test_a_fit_killed_in_the_middle_of_training_continues_to_the_same_model(watched, tmp_path, monkeypatch):
    """Killed without warning, so that only what was written in time is left."""
    (tmp_path / "killed_fit.py").write_text(FIT)
    folder = tmp_path / "kept"
    child = subprocess.run([sys.executable, tmp_path / "killed_fit.py", folder], timeout=120, env=os.environ)
    assert child.returncode == -signal.SIGKILL
    assert len(list(folder.glob("checkpoint-*.npz"))) == 1
    monkeypatch.syspath_prepend(tmp_path)
    from killed_fit import fitted

    uninterrupted = fitted()
    resumed, display = watched(lambda: fitted(folder))
    assert "resumed" in display.notes
    assert display.epochs == 3
    for a, b in zip(jax.tree.leaves(resumed.score.function), jax.tree.leaves(uninterrupted.score.function)):
        np.testing.assert_array_equal(a, b)
    assert resumed.diagnostics == uninterrupted.diagnostics
    np.testing.assert_array_equal(resumed.mobility.matrix, uninterrupted.mobility.matrix)
    assert list(folder.iterdir()) == []


def test_weights_made_on_the_host_are_bound_to_no_device(monkeypatch):
    """Otherwise an epoch is compiled twice: for what it is given first, and for what it returns."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = computed_on_host(lambda key: {"weights": jax.random.normal(key, (3,)), "name": "mine"}, jax.random.key(0))
    assert found["name"] == "mine"
    assert not found["weights"].committed
