import json
import pickle
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import effective_langevin as el
from effective_langevin.model import storage


@pytest.fixture
def path(linear_model, tmp_path):
    linear_model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def contents(path):
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())  # noqa: SIM118


def edited(path, **metadata):
    """Write the file again with other metadata; None removes an entry."""
    arrays, old = contents(path)
    save_file(arrays, path, {k: v for k, v in {**old, **metadata}.items() if v is not None})


@pytest.mark.parametrize("name", ["linear_model", "wells_model"])
def test_load_is_the_inverse_of_save(name, request, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "model.safetensors")
    loaded = el.load(tmp_path / "model.safetensors")
    leaves, others = (jax.tree_util.tree_leaves_with_path(m.score.function) for m in (model, loaded))
    assert [path for path, _ in leaves] == [path for path, _ in others]
    for (_, a), (_, b) in zip(leaves, others):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    for part in (
        "mobility.matrix",
        "mobility.standard_error",
        "standardizer.mean",
        "standardizer.std",
        "states",
        "score.stein",
    ):
        one, other = model, loaded
        for attribute in part.split("."):
            one, other = getattr(one, attribute), getattr(other, attribute)
        np.testing.assert_array_equal(one, other)
    for part in ("dt", "names", "units", "time_unit"):
        assert getattr(model, part) == getattr(loaded, part)
    assert json.dumps(loaded.diagnostics) == json.dumps(model.diagnostics)
    assert json.dumps(loaded.provenance) == json.dumps(model.provenance)
    assert repr(loaded) == repr(model)


@pytest.mark.parametrize("name", ["linear_model", "wells_model"])
def test_a_loaded_model_simulates_the_same_bits(name, request, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "model.safetensors")
    loaded = el.load(tmp_path / "model.safetensors")
    x = model.states[:20]
    np.testing.assert_array_equal(loaded.drift(x), model.drift(x))
    paths = [m.simulate(duration=1.0, members=3, seed=7).values for m in (model, loaded)]
    np.testing.assert_array_equal(*paths)


def test_saving_a_loaded_model_gives_the_same_file(path, tmp_path):
    """Ten times, because the library shuffles the entries of its header."""
    for i in range(10):
        el.load(path).save(tmp_path / f"{i}.safetensors")
        assert (tmp_path / f"{i}.safetensors").read_bytes() == path.read_bytes()


def test_a_path_may_be_a_text(path):
    assert repr(el.load(str(path))) == repr(el.load(path))


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(el.ModelFileError, match=r"There is no model file at .*nothing\.safetensors"):
        el.load(tmp_path / "nothing.safetensors")


def test_a_missing_folder_is_reported(linear_model, tmp_path):
    with pytest.raises(el.ModelFileError, match=r"Cannot save to .*: the folder .*nowhere does not exist"):
        linear_model.save(tmp_path / "nowhere" / "model.safetensors")


@pytest.mark.parametrize("kept", [0, 5, 0.5, 0.99])
def test_a_truncated_file_is_reported(path, kept):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    with pytest.raises(
        el.ModelFileError, match=r"is not a readable model file \(damaged, truncated or of another kind\)"
    ):
        el.load(path)


@pytest.mark.parametrize("foreign", [b"time,x\n0,1\n" * 50, pickle.dumps({"a": 1})], ids=["text", "pickle"])
def test_a_file_of_another_kind_is_reported(tmp_path, foreign):
    (tmp_path / "data.csv").write_bytes(foreign)
    with pytest.raises(el.ModelFileError, match="is not a readable model file"):
        el.load(tmp_path / "data.csv")


def test_a_safetensors_file_of_someone_else_is_reported(tmp_path):
    save_file({"weights": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(el.ModelFileError, match="a safetensors file, but not a model written by effective-langevin"):
        el.load(tmp_path / "other.safetensors")


def test_a_newer_format_asks_for_an_upgrade(path):
    edited(path, format_version=str(storage.FORMAT_VERSION + 1))
    with pytest.raises(el.ModelFileError, match=rf"has format version {storage.FORMAT_VERSION + 1}.*Upgrade"):
        el.load(path)


def test_a_missing_array_is_reported(path):
    arrays, metadata = contents(path)
    del arrays["mobility.matrix"], metadata["sha256"]
    save_file(arrays, path, metadata)
    with pytest.raises(el.ModelFileError, match=r"lacks a part of the model.*mobility\.matrix"):
        el.load(path)


@pytest.mark.parametrize(
    "metadata",
    [{"format_version": None}, {"format_version": "two"}, {"model": None}, {"model": "{not json"}],
    ids=["no version", "version not a number", "no header", "header not JSON"],
)
def test_a_damaged_header_is_reported(path, metadata):
    edited(path, **metadata)
    with pytest.raises(el.ModelFileError):
        el.load(path)


@pytest.mark.parametrize(
    ("failure", "seen"),
    [(OSError(28, "No space left on device"), el.ModelFileError), (KeyboardInterrupt(), KeyboardInterrupt)],
    ids=["full disk", "interrupt"],
)
def test_a_failed_save_leaves_the_old_file_and_nothing_else(monkeypatch, wells_model, path, failure, seen):
    """The failure comes half-way, with a part of the new model already written."""
    before = path.read_bytes()

    def write_half(target, data):
        with open(target, "wb") as file:
            file.write(data[: len(data) // 2])
        raise failure

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(seen, match=r"Cannot write .*No space left on device" if seen is el.ModelFileError else None):
        wells_model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_save_replaces_an_older_model(wells_model, path):
    wells_model.save(path)
    assert repr(el.load(path)) == repr(wells_model)


def test_a_saved_model_can_be_read_by_those_who_may_read_new_files(path, tmp_path):
    """Not only by its owner: it gets the permissions that any new file gets."""
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
