"""Training from a shuffled stream of blocks: every sample equally often, held-out ones never, the same bits again."""

import os
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effective_langevin as el
from effective_langevin._core import checkpoints
from effective_langevin.data import lazy, stream
from effective_langevin.data.lazy import Rows
from effective_langevin.data.stream import Stream
from effective_langevin.estimate.score import estimate_score, streamed
from effective_langevin.estimate.score.training import Schedule
from effective_langevin.estimate.space import StateSpace
from effective_langevin.statistics.velocities import differentiate, trim

KEY = jax.random.key(0)
LINES = StateSpace((None, None))


def read_by(values, block):
    return Rows(lambda first, stop: np.array(values[first:stop], float), values.shape, block)


def numbered(length, block):
    """Rows that hold their own number, and beside them rows that hold ten times that."""
    values = np.arange(float(length))[:, None]
    return [read_by(values, block), read_by(10 * np.hstack([values, values]), block)]


@pytest.fixture
def small_buffers(monkeypatch):
    """A buffer of 1500 numbers, pieces of 512, and no more than 4096 drawn."""
    monkeypatch.setattr(stream, "BUFFER_NUMBERS", 1500)
    monkeypatch.setattr(streamed, "_PIECE_NUMBERS", 512)
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 1 << 14)


@given(
    length=st.integers(1, 700),
    block=st.integers(1, 800),
    passes=st.floats(0.1, 3.5),
    buffer=st.integers(3, 3000),
    piece=st.integers(1, 200),
    seed=st.integers(0, 99),
)
def test_every_row_comes_equally_often_and_every_block_gives_its_share(length, block, passes, buffer, piece, seed):
    """Once in each pass; a pass that is short of rows takes no row twice, and of each block its share to one row."""
    before = stream.BUFFER_NUMBERS
    stream.BUFFER_NUMBERS = buffer
    try:
        total = max(1, int(passes * length))
        source = Stream(numbered(length, block), total, [seed, 1])
        pieces = [source.take(first, min(first + piece, total)) for first in range(0, total, piece)]
    finally:
        stream.BUFFER_NUMBERS = before
    rows, beside = (np.concatenate(parts) for parts in zip(*pieces))
    assert len(rows) == total
    np.testing.assert_array_equal(beside, np.hstack([10 * rows, 10 * rows]))
    for first in range(0, total, length):
        seen = rows[first : first + length, 0].astype(int)
        assert len(np.unique(seen)) == len(seen)
        counts = np.bincount(seen // block, minlength=-(-length // block))
        sizes = np.diff(np.append(np.arange(0, length, block), length))
        assert np.abs(counts - sizes * len(seen) / length).max() <= 1


def test_the_order_is_another_one_in_each_pass_and_for_each_seed():
    source, other = (Stream(numbered(300, 20), 900, [seed]) for seed in (1, 2))
    orders = [source.take(300 * k, 300 * (k + 1))[0][:, 0] for k in range(3)] + [other.take(0, 300)[0][:, 0]]
    for i, one in enumerate(orders):
        assert abs(np.corrcoef(one, np.arange(300))[0, 1]) < 4 / np.sqrt(300)
        assert all(np.mean(one == two) < 0.05 for two in orders[:i])


def test_a_stream_may_be_entered_anywhere(small_buffers):
    whole = Stream(numbered(2000, 90), 5000, [3]).take(0, 5000)
    for first, stop in [(4990, 5000), (0, 7), (1999, 2001), (700, 3100)]:
        for part, again in zip(whole, Stream(numbered(2000, 90), 5000, [3]).take(first, stop)):
            np.testing.assert_array_equal(again, part[first:stop])


@pytest.mark.parametrize("length", [2000, 20_000, 200_000])
def test_the_buffer_and_the_blocks_that_are_read_do_not_grow_with_the_series(small_buffers, length):
    read = []
    values = np.arange(float(length))[:, None]
    rows = Rows(lambda first, stop: read.append(stop - first) or values[first:stop].copy(), values.shape, 90)
    source, largest = Stream([rows], 3000, [0]), 0
    for first in range(0, 3000, 250):
        source.take(first, first + 250)
        largest = max(largest, sum(part.size for part in source._buffer))
    assert 1000 < largest <= stream.BUFFER_NUMBERS
    assert max(read) == 90


# What reaches the training.


def smooth_series(samples=3000, seed=0):
    """Three sums of waves; a gap in the middle."""
    rng, t = np.random.default_rng(seed), 0.1 * np.arange(samples)
    values = sum(
        rng.normal(size=2) * np.sin(rng.uniform(0.2, 1.5, 2) * t[:, None] + rng.uniform(0, 6, 2)) for _ in range(9)
    )
    values = values / values.std(axis=0)
    values[samples // 2 : samples // 2 + 3] = np.nan
    return values


STRATEGY = el.DenoisingScore(
    el.MLP((8,)), noise_level=0.3, batch=32, epochs=4, epoch_samples=1920, narrowest=np.inf, calibrate=False
)


@pytest.mark.usefixtures("small_buffers")
def test_the_stream_has_the_training_samples_and_their_velocities_and_no_held_out_ones(monkeypatch):
    """Velocities are made across the borders of blocks, none across gaps and held-out parts."""
    values, taken, train = smooth_series(), [], Stream.take
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 4000)
    monkeypatch.setattr(Stream, "take", lambda self, *places: taken.append(train(self, *places)) or taken[-1])
    series, blocks = el.TimeSeries(values, 0.1), el.TimeSeries(read_by(values, 70), 0.1)
    fit = estimate_score(blocks, STRATEGY, LINES, key=KEY, velocities=True)
    part, held_out = series.split()
    states, velocities = (np.concatenate(f) for f in (trim(part.segments), differentiate(part.segments, 0.1)))
    unit = np.sqrt(np.mean(np.concatenate(differentiate(series.segments, 0.1)) ** 2, axis=0))
    np.testing.assert_allclose(fit.velocity_unit, unit, rtol=1e-12)
    rows, beside = (np.concatenate(parts) for parts in zip(*taken[:-1]))  # the last piece is for the normalisation
    assert len(rows) == 4 * 60 * 16
    number = {tuple(row): i for i, row in enumerate(states.astype(np.float32).tolist())}
    places = np.array([number[tuple(row)] for row in rows.tolist()])
    counts = np.bincount(places, minlength=len(states))
    assert counts.min() >= len(rows) // len(states)
    assert counts.max() <= len(rows) // len(states) + 1
    np.testing.assert_allclose(beside, (-0.3 * velocities / unit)[places], rtol=1e-5, atol=1e-6)
    assert not {tuple(x) for x in np.concatenate(held_out.segments).astype(np.float32).tolist()} & set(number)
    passes = "3840 samples from a shuffled stream of 34 blocks, 1.66 passes over 2315 training samples"
    assert fit.evidence.extra["read"].startswith(passes)


def two_wells(samples=12_000):
    rng = np.random.default_rng(5)
    values = rng.normal(size=(samples, 2))
    values[:, 0] = np.where(rng.random(samples) < 0.4, -1.2, 0.8) + 0.3 * values[:, 0]
    return values / values.std(axis=0)


def test_the_loss_is_that_of_the_series_in_memory_within_its_scatter(monkeypatch):
    """Over four seeds, on the same held-out samples and noise: it changes by 0.05 %, over seeds by 2 %."""
    values = two_wells()
    strategy = el.DenoisingScore(
        el.MLP((32, 32)), noise_level=0.3, batch=128, epochs=10, epoch_samples=12_800, learning_rate=1e-2
    )

    def losses(series):
        fits = [estimate_score(series, strategy, LINES, key=jax.random.key(seed)) for seed in range(4)]
        return np.array([min(fit.evidence.held_out_loss_curve) for fit in fits]), fits[0].evidence.extra.get("read", "")

    memory, _ = losses(el.TimeSeries(values, 1.0))
    same, said = losses(el.TimeSeries(read_by(values, 500), 1.0))
    np.testing.assert_allclose(same, memory, rtol=1e-6)  # all fits: learned as in memory
    assert said == "9600 samples by blocks"
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 1 << 16)
    monkeypatch.setattr(stream, "BUFFER_NUMBERS", 6000)
    streamed_losses, said = losses(el.TimeSeries(read_by(values, 500), 1.0))
    assert "stream of 20 blocks, 6.67 passes over 9600 training samples" in said
    change = streamed_losses - memory
    assert 0 < change.std(ddof=1) < 0.002 * memory.mean()
    assert abs(change.mean()) < 4 * change.std(ddof=1) / np.sqrt(4)


@pytest.mark.usefixtures("small_buffers")
@pytest.mark.parametrize("kept_pieces", [1, 2, 11])
def test_an_interrupted_stream_goes_on_to_the_same_bits(monkeypatch, tmp_path, kept_pieces):
    """Interrupted within an epoch of four pieces, and at the end of one; the samples seen after that are the same."""
    values = smooth_series()
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 4000)
    series, keep = el.TimeSeries(read_by(values, 70), 0.1), checkpoints.Checkpoint.keep
    whole = estimate_score(series, STRATEGY, LINES, key=KEY)

    def interrupted(self, state, notes, done=[]):  # noqa: B006
        keep(self, state, notes)
        done.append(notes)
        if len(done) == kept_pieces:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints.Checkpoint, "keep", interrupted)
    with pytest.raises(KeyboardInterrupt), checkpoints.kept_in(tmp_path, 0.0):
        estimate_score(series, STRATEGY, LINES, key=KEY)
    monkeypatch.setattr(checkpoints.Checkpoint, "keep", keep)
    steps, run = [], streamed.StreamedSamples.piece
    monkeypatch.setattr(streamed.StreamedSamples, "piece", lambda self, *p: steps.append(p) or run(self, *p))
    with checkpoints.kept_in(tmp_path, 0.0):
        again = estimate_score(series, STRATEGY, LINES, key=KEY)
    assert steps[0] == (15 * kept_pieces, 15 * kept_pieces + 15)
    for a, b in zip(jax.tree.leaves(again.function), jax.tree.leaves(whole.function)):
        np.testing.assert_array_equal(a, b)
    assert again.evidence == whole.evidence


def test_other_samples_in_one_block_begin_anew(small_buffers):
    values = smooth_series()[:1000]

    def digest(values):
        data = streamed.StreamedSamples([read_by(values, 70)], 0.3, 16, Schedule(4, 60, 1e-3), key=KEY)
        return checkpoints.digest(*data.identity)

    other = values.copy()
    other[512, 1] += 1e-9
    assert digest(values) == digest(values.copy())
    assert digest(values) != digest(other)


# A whole fit of a file, killed.

FIT = """
import os, signal, sys
import effective_langevin as el
from effective_langevin._core import checkpoints
from effective_langevin.data import lazy, stream
from effective_langevin.estimate.score import streamed

lazy.MOST_NUMBERS, stream.BUFFER_NUMBERS, streamed._PIECE_NUMBERS = 4000, 1500, 512


def fitted(path, folder=None):
    score = el.DenoisingScore(el.MLP((6,)), noise_level=0.3, epochs=3, epoch_samples=1920, batch=32)
    series = el.read(path, dt=0.1, chunks=70)
    return el.fit(series, score=score, mobility=el.QuadraticVariation(), check="off", seed=4, checkpoint=folder)


if __name__ == "__main__":
    kept_in, flush, written = checkpoints.kept_in, checkpoints.Checkpoint.flush, []

    def flushed(self):
        flush(self)
        written.append(self)
        if len(written) == 6:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.kept_in, checkpoints.Checkpoint.flush = lambda folder: kept_in(folder, 0.0), flushed
    fitted(*sys.argv[1:])
"""


@pytest.mark.integration
def test_a_fit_killed_within_an_epoch_of_its_stream_goes_on_to_the_same_model(tmp_path, monkeypatch):
    (tmp_path / "killed_stream.py").write_text(FIT)
    np.save(tmp_path / "series.npy", smooth_series()[:1500])
    for name, module in (("MOST_NUMBERS", lazy), ("BUFFER_NUMBERS", stream), ("_PIECE_NUMBERS", streamed)):
        monkeypatch.setattr(module, name, getattr(module, name))  # set by the script, and set back
    arguments = [tmp_path / "series.npy", tmp_path / "kept"]
    child = subprocess.run([sys.executable, tmp_path / "killed_stream.py", *arguments], timeout=120, env=os.environ)
    assert child.returncode == -signal.SIGKILL
    assert len(list(arguments[1].glob("checkpoint-*.npz"))) == 1
    monkeypatch.syspath_prepend(tmp_path)
    from killed_stream import fitted

    pieces, run = [], streamed.StreamedSamples.piece
    monkeypatch.setattr(streamed.StreamedSamples, "piece", lambda self, *p: pieces.append(p) or run(self, *p))
    resumed = fitted(*arguments)
    assert pieces[0] == (90, 105)
    whole = fitted(arguments[0])
    for a, b in zip(jax.tree.leaves(resumed.score.function), jax.tree.leaves(whole.score.function)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(resumed.mobility.matrix, whole.mobility.matrix)
    assert resumed.diagnostics == whole.diagnostics
