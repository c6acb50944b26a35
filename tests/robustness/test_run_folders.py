"""Run folders lose nothing: neither what a run has found nor what somebody else has put there."""

import fcntl
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from oracles.command_line import QUICK, ou_table, run_main

import effective_langevin as el
from effective_langevin.cli import run_folder, settings
from effective_langevin.cli.run_folder import RunFolder


def finished(path, **more):
    """A run folder with the files of a run, and others."""
    path.mkdir()
    for name, text in {"config.toml": "", "model.safetensors": "old", "metrics.json": "{}", **more}.items():
        (path / name).write_text(text)
    return path


def test_a_partial_folder_of_someone_else_is_left_alone(tmp_path):
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "thesis.txt").write_text("mine")
    with pytest.raises(el.ArgumentError, match=r"holds thesis\.txt, which no run wrote"), RunFolder(tmp_path / "run"):
        pass
    assert [p.name for p in (tmp_path / "run.partial").iterdir()] == ["thesis.txt"]


def test_overwriting_keeps_what_no_run_wrote(tmp_path):
    path = finished(
        tmp_path / "run", **{"paths.nc": "paths", "notes.txt": "mine", ".hidden": "mine", "curves.nc": "old"}
    )
    with RunFolder(path, overwrite=True) as folder:
        (folder.partial / "config.toml").write_text("new")
    assert {p.name for p in path.iterdir()} == {"config.toml", "figures", "paths.nc", "notes.txt", ".hidden"}
    assert (path / "config.toml").read_text() == "new"
    assert (path / "notes.txt").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_failed_run_leaves_the_old_folder(tmp_path):
    path = finished(tmp_path / "run", **{"notes.txt": "mine"})
    with pytest.raises(RuntimeError), RunFolder(path, overwrite=True):
        raise RuntimeError
    assert (path / "model.safetensors").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_one_run_at_a_time_fills_a_folder(tmp_path):
    with RunFolder(tmp_path / "run") as first:
        (first.partial / "config.toml").write_text("first")
        with pytest.raises(el.ArgumentError, match="Another process is writing to"), RunFolder(tmp_path / "run"):
            pass
    assert (tmp_path / "run" / "config.toml").read_text() == "first"
    with pytest.raises(el.ArgumentError, match="exists already"), RunFolder(tmp_path / "run"):
        pass


def test_a_run_that_ended_just_before_the_lock_is_not_replaced(tmp_path, monkeypatch):
    late = RunFolder(tmp_path / "run")
    finished(tmp_path / "run")
    with pytest.raises(el.ArgumentError, match="exists already"), late:
        pass
    assert (tmp_path / "run" / "model.safetensors").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_run_that_ends_leaves_the_lock_of_the_next_one(tmp_path, monkeypatch):
    """The next run begins between the renaming and the end of the first: a third one must still be kept out."""
    path, rename, begun = tmp_path / "run", Path.rename, []

    def begin_another(source, target):
        renamed = rename(source, target)
        if Path(target) == path:
            monkeypatch.setattr(Path, "rename", rename)
            begun.append(RunFolder(path, overwrite=True).__enter__())
        return renamed

    monkeypatch.setattr(Path, "rename", begin_another)
    with RunFolder(path) as first:
        (first.partial / "config.toml").write_text("first")
    with pytest.raises(el.ArgumentError, match="Another process is writing to"), RunFolder(path, overwrite=True):
        pass
    begun[0].__exit__(None, None, None)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def _fill(path, number):
    """Try to run into a folder; two files in it say by whom."""
    try:
        with RunFolder(path) as folder:
            for name in ("config.toml", "metrics.json"):
                (folder.partial / name).write_text(str(number))
                time.sleep(0.001)
            if number == 0:
                raise KeyboardInterrupt
    except (el.ArgumentError, KeyboardInterrupt) as error:
        return 3 if isinstance(error, KeyboardInterrupt) else 2
    return 0


@pytest.mark.integration
def test_of_many_at_once_one_fills_the_folder(tmp_path):
    """Forty rounds of five processes, one of which is interrupted: the folder is whole, and of one of them."""
    for turn in range(40):
        path, children = tmp_path / f"run{turn}", []
        for number in range(5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they do not use JAX
                children.append(os.fork())
            if children[-1] == 0:
                try:
                    code = _fill(path, number)
                except BaseException:
                    code = 1
                os._exit(code)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if 0 in codes:
            assert sorted(p.name for p in path.iterdir()) == ["config.toml", "figures", "metrics.json"]
            written = {(path / name).read_text() for name in ("config.toml", "metrics.json")}
            assert written == {str(codes.index(0))}
        assert codes.count(0) + codes.count(2) + codes.count(3) == 5, codes
        assert codes.count(0) <= 1, codes
        assert not (tmp_path / f"run{turn}.partial").exists()


def test_a_folder_that_another_run_removes_just_now_is_made_again(tmp_path, monkeypatch):
    opened = Path.open

    def remove_first(path, *mode):
        monkeypatch.setattr(Path, "open", opened)
        path.parent.rmdir()
        return opened(path, *mode)

    monkeypatch.setattr(Path, "open", remove_first)
    with RunFolder(tmp_path / "run"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_lock_of_a_killed_run_does_not_hold(tmp_path):
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "run.lock").touch()
    (tmp_path / "run.partial" / ".report.123.part.html").write_text("half")
    with RunFolder(tmp_path / "run"):
        pass
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["figures"]


def test_a_file_system_without_locks_still_works(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with RunFolder(tmp_path / "run"):
        pass
    assert (tmp_path / "run").is_dir()


def test_a_replacement_that_was_cut_short_is_undone(tmp_path, monkeypatch):
    """The process dies between the two renames."""
    path = finished(tmp_path / "run", **{"notes.txt": "mine"})
    rename = Path.rename

    def die(source, target):
        if Path(target) == path:
            os.unlink(source / "run.lock")
            raise KeyboardInterrupt
        return rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", die)
        with pytest.raises(KeyboardInterrupt), RunFolder(path, overwrite=True) as folder:
            (folder.partial / "model.safetensors").write_text("new")
    assert not path.exists()
    with pytest.raises(el.ArgumentError, match="exists already"), RunFolder(path):
        pass
    assert (path / "model.safetensors").read_text() == "old"
    assert (path / "notes.txt").read_text() == "mine"


def test_the_folder_one_works_in_is_not_replaced(tmp_path, monkeypatch):
    path = finished(tmp_path / "run")
    monkeypatch.chdir(path)
    for name in (".", "", "../run"):
        with pytest.raises(el.ArgumentError, match="is the folder you work in"):
            RunFolder(Path(name), overwrite=True)
    with pytest.raises(el.ArgumentError, match="is not a run folder"):
        RunFolder(Path(".."), overwrite=True)


def test_a_link_to_a_run_folder_is_followed(tmp_path):
    finished(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with RunFolder(tmp_path / "link", overwrite=True) as folder:
        (folder.partial / "config.toml").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "run" / "config.toml").read_text() == "new"


# A fitted model ------------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path, monkeypatch, capsys):
    """A run that was interrupted during its validation, and the command that began it."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    command = ["fit", ou_table(tmp_path / "ou.csv", 300), *QUICK, "--out", tmp_path / "run"]
    with monkeypatch.context() as patch:
        patch.setattr(settings, "validate", stop)
        code, _, err = run_main(monkeypatch, capsys, *command)
    assert (code, "run the same command again to continue" in err) == (130, True)
    return command


def refuse_to_fit(*_, **__):
    raise AssertionError("fitted again")


def written(validation, folder, spent):
    (folder / "metrics.json").write_text("{}")
    return {}


def test_the_same_command_continues_with_the_fitted_model(stopped, tmp_path, monkeypatch, capsys):
    kept = (tmp_path / "run.partial" / "model.safetensors").read_bytes()
    monkeypatch.setattr(settings, "fit", refuse_to_fit)
    seen = []
    monkeypatch.setattr(settings, "validate", lambda model, series, **_: seen.append(model))
    monkeypatch.setattr(run_folder, "write_validation", written)
    monkeypatch.setattr("effective_langevin.cli.commands.show_validation", lambda *_: None)
    code, _, err = run_main(monkeypatch, capsys, *stopped)
    assert (code, "holds the fitted model: the run continues" in err) == (0, True)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == kept
    assert isinstance(seen[0], el.LangevinModel)
    assert {p.name for p in (tmp_path / "run").iterdir()} == {
        "config.toml", "model.safetensors", "metrics.json", "figures"
    }  # fmt: skip


def test_another_command_does_not_lose_the_fitted_model(stopped, tmp_path, monkeypatch, capsys):
    kept = (tmp_path / "run.partial" / "model.safetensors").read_bytes()
    code, _, err = run_main(monkeypatch, capsys, *stopped, "--seed", "5")
    assert (code, "holds a model fitted with other data or settings" in err) == (2, True)
    assert (tmp_path / "run.partial" / "model.safetensors").read_bytes() == kept


def test_a_damaged_fitted_model_is_set_aside(stopped, tmp_path, monkeypatch, capsys):
    (file,) = (tmp_path / "run.partial" / "checkpoints").glob("model-*.safetensors")
    file.write_bytes(file.read_bytes()[:-50])
    code, _, _ = run_main(monkeypatch, capsys, *stopped, "--duration", "1")  # an unknown flag: nothing is touched
    assert (code, file.exists()) == (2, True)
    monkeypatch.setattr(settings, "validate", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_main(monkeypatch, capsys, *stopped)
    assert "is damaged (ModelFileError)" in capsys.readouterr().err
    assert el.load(file).names == ("a", "b")
    assert file.with_name(f"damaged-{file.name}").is_file()


@pytest.mark.parametrize("content", [b"", b"half", b"PK\x03\x04" + bytes(60)], ids=["empty", "text", "no zip"])
def test_a_damaged_checkpoint_is_set_aside_with_one_line(content, tmp_path):
    from effective_langevin._core import checkpoints

    state = {"weights": np.zeros(3, np.float32)}
    with checkpoints.kept_in(tmp_path, every=0.0), checkpoints.of("work", np.ones(2)) as checkpoint:
        assert checkpoint.path is not None
        checkpoint.path.write_bytes(content)
        with pytest.warns(el.EstimateWarning, match="is damaged .* the work begins anew"):
            assert checkpoint.restored(state) == (state, {})
        assert not checkpoint.path.exists()
    assert [p.name[:19] for p in tmp_path.iterdir()] == ["damaged-checkpoint-"]
