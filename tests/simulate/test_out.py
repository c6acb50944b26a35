"""Paths written into a store as they are simulated: those of memory, for any block, after any interrupt."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

import effective_langevin as el
from effective_langevin.data.io import store as stores
from effective_langevin.model import streaming

MEMBERS, FRAMES = 600, 150  # three blocks of members, three calls
HOW = {"members": MEMBERS, "seed": 3, "step": 0.05}


@pytest.fixture(scope="module")
def model():
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(100.0, dt=0.1, seed=1)
    shifted = el.TimeSeries(series.values + 5.0, 0.1, names=["a", "b"], units=["K", ""], time_unit="s", start=7.0)
    return el.fit(shifted, score=el.Gaussian(), mobility=el.QuadraticVariation(), check="off")


@pytest.fixture(scope="module")
def in_memory(model):
    return model.simulate(0.1 * FRAMES, **HOW)


def values_of(path):
    with xr.open_dataset(path, engine="zarr", consolidated=False) as data:
        return np.stack([data[name].values for name in ("a", "b")], axis=-1)


def content_of(path):
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def differing(path, other):
    """Return the names of the files that are not the same in two stores."""
    one, two = content_of(path), content_of(other)
    return sorted(name for name in {*one, *two} if one.get(name) != two.get(name))


@pytest.mark.parametrize(("block", "slice_"), [(1 << 22, 1 << 20), (1, 1), (600 * 2 * 100, 5000)])
def test_a_store_holds_the_paths_of_memory_for_any_block(block, slice_, model, in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_BLOCK", block)
    monkeypatch.setattr(streaming, "_SLICE", slice_)
    found = model.simulate(0.1 * FRAMES, out=tmp_path / "paths.zarr", **HOW)
    assert (found.members, found.samples, found.names, found.diverged) == (MEMBERS, FRAMES + 1, ("a", "b"), 0)
    np.testing.assert_array_equal(values_of(found.path), in_memory.values.astype(np.float32))
    assert [p.name for p in tmp_path.iterdir()] == ["paths.zarr"]


def test_a_store_is_read_back_with_names_units_and_times(model, in_memory, tmp_path):
    found = model.simulate(0.1 * FRAMES, out=tmp_path / "paths.zarr", **HOW)
    back = el.read(found.path)
    assert (back.names, back.units, back.time_unit) == (("a", "b"), ("K", ""), "s")
    np.testing.assert_allclose(back.starts, in_memory.starts)
    assert back.dt == pytest.approx(0.1)
    with found.open() as data:
        assert dict(data.sizes) == {"member": MEMBERS, "time": FRAMES + 1}
        assert data.attrs["Conventions"] == "CF-1.11"
    assert "600 paths of 151 samples of a and b" in found.summary()


def test_dates_transforms_and_far_values_are_as_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_BLOCK", 1)  # a block for every call
    time_ = np.arange(1500.0)
    noise = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(150.0, dt=0.1, seed=1).values[:1500]
    values = 1e4 + noise + np.cos(2 * np.pi * time_ / 30)[:, None]
    series = el.TimeSeries(values, 1.0, names=["a", "b"], time_unit="day", start=100.0, calendar="standard")
    cycle = el.preprocess.RemoveSeasonalCycle(30)
    model = el.fit(series, preprocess=cycle, score=el.Gaussian(), mobility=el.QuadraticVariation(), check="off")
    given = {"members": 3, "seed": 1}
    found = model.simulate(200.0, out=tmp_path / "p.zarr", **given)
    memory = model.simulate(200.0, **given)
    np.testing.assert_allclose(values_of(found.path), memory.values, rtol=1e-12)  # double precision: far from zero
    with found.open() as data, memory.to_xarray(dataset=True) as expected:
        np.testing.assert_array_equal(data["time"].values, expected["time"].values)
        assert data["a"].dtype == np.float64


class Stopped(Exception):
    """An interrupt in the middle of the paths."""


@pytest.mark.parametrize("after", [1, 2, 4])
def test_an_interrupted_store_goes_on_to_the_same_bytes(after, model, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_BLOCK", 1)  # a block for every call
    monkeypatch.setattr(streaming, "_PAUSE", -1.0)
    monkeypatch.setattr(streaming, "count_cores", lambda: 2)
    whole, part = tmp_path / "whole.zarr", tmp_path / "part.zarr"
    model.simulate(0.1 * FRAMES, out=whole, **HOW)
    advance, calls = streaming._advance, []

    def stop(*given):
        if len(calls) == after:
            raise Stopped
        calls.append(given[-1])
        return advance(*given)

    monkeypatch.setattr(streaming, "_advance", stop)
    with pytest.raises(Stopped):
        model.simulate(0.1 * FRAMES, out=part, **HOW)
    with pytest.raises(el.DataError, match="not complete"):
        el.read(part)
    with pytest.raises(el.ArgumentError, match="other settings"):
        model.simulate(0.1 * FRAMES, out=part, **{**HOW, "seed": 4})
    monkeypatch.setattr(streaming, "_advance", lambda *given: calls.append(given[-1]) or advance(*given))
    model.simulate(0.1 * FRAMES, out=part, **HOW)
    assert len(calls) == 6  # two groups of units with three calls: nothing twice
    assert differing(part, whole) == []


def test_members_that_diverge_are_nan_and_counted(model, tmp_path):
    far = model.states[:MEMBERS].copy() if len(model.states) >= MEMBERS else np.resize(model.states, (MEMBERS, 2))
    far[300] += 1e6 * model.standardizer.std
    with pytest.warns(el.EstimateWarning, match="1 of 600 members diverged"):
        found = model.simulate(5.0, out=tmp_path / "p.zarr", initial=far, **HOW)
    lost = np.isnan(values_of(found.path)).any(axis=(1, 2))
    assert (found.diverged, np.flatnonzero(lost).tolist()) == (1, [300])
    with found.open() as data:
        assert np.ravel(data.attrs["diverged_members"]).tolist() == [300]


def test_what_cannot_be_written_is_refused(model, tmp_path):
    (tmp_path / "there.zarr").mkdir()
    cases = [
        ({"out": tmp_path / "paths.nc"}, "ends in .zarr"),
        ({"out": tmp_path / "no" / "paths.zarr"}, "does not exist"),
        ({"out": tmp_path / "there.zarr"}, "exists already"),
        ({"out": tmp_path / "p.zarr", "noise": np.zeros((1, 10, 2))}, "Argument `noise`"),
    ]
    for given, words in cases:
        with pytest.raises(el.ArgumentError, match=words):
            model.simulate(1.0, **given)
    assert model.simulate(1.0, out=tmp_path / "there.zarr", overwrite=True).samples == 11


def test_forced_paths_with_starts_of_their_own_are_those_of_memory(model, tmp_path):
    given = {"members": 2, "seed": 1, "start": [0.0, 0.5], "forcing": lambda t: np.outer(np.sin(t), [1.0, 2.0])}
    found = model.simulate(20.0, out=tmp_path / "p.zarr", **given)
    memory = model.simulate(20.0, **given)
    np.testing.assert_array_equal(values_of(found.path), memory.values.astype(np.float32))
    np.testing.assert_allclose(el.read(found.path).starts, memory.starts)


SCRIPT = """
import sys, numpy as np, effective_langevin as el
from effective_langevin.model import streaming
streaming._PAUSE = 0.05
if sys.argv[3] == "slow":
    import time
    advance = streaming._advance
    streaming._advance = lambda *given: (time.sleep(0.2), advance(*given))[1]
model = el.load(sys.argv[1])
model.simulate(600.0, members=2000, seed=3, out=sys.argv[2])
"""


def run(*arguments, devices=1):
    env = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
    env["PYTHONPATH"] = os.pathsep.join([*sys.path, env.get("PYTHONPATH", "")])
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *map(str, arguments)], env=env)


@pytest.mark.integration
def test_a_store_that_was_killed_goes_on_to_the_same_bytes_also_on_eight_devices(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    whole, part = tmp_path / "whole.zarr", tmp_path / "part.zarr"
    killed = run(tmp_path / "model.safetensors", part, "slow")
    limit = time.monotonic() + 120
    while not (part / "a" / "c").is_dir() or len(list((part / "a" / "c").rglob("*"))) < 6:
        assert time.monotonic() < limit
        assert killed.poll() is None
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert (part / "unfinished.npz").is_file()
    assert run(tmp_path / "model.safetensors", part, "fast").wait() == 0
    assert run(tmp_path / "model.safetensors", whole, "fast", devices=8).wait() == 0
    assert differing(part, whole) == []
