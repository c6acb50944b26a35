"""Run folders, settings and names that the command line must refuse in one line, leaving every file as it is."""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import effective_langevin as el

from ..robustness import Case

QUICK = ("--score", "gaussian", "--mobility", "quadratic-variation")


def run_command(*arguments: object) -> str:
    """Run a command inside this process; return what it printed, or raise what it refused in one line."""
    from effective_langevin import cli

    out, err, given = io.StringIO(), io.StringIO(), sys.argv
    try:
        sys.argv = ["effective-langevin", *map(str, arguments)]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = given
    if code == 0:
        return out.getvalue()
    errors = [line for line in err.getvalue().splitlines() if line.startswith("Error: ")]
    if code != 2 or len(errors) != 1:
        raise RuntimeError(f"exit code {code}: {err.getvalue()[-300:]}")
    raise el.EffectiveLangevinError(errors[0])


SETTINGS = {
    "cut short": "seed = ", "seed huge": "seed = 99999999999999999999999", "seed a fraction": "seed = 1.5",
    "dt text": 'dt = "x"', "resample text": 'resample = "x"', "variables number": "variables = 7",
    "variables of numbers": "variables = [7]", "names number": "names = 7", "time unit number": "time_unit = 7",
    "member number": "member = 7", "time table": "time = {a = 1}", "join text": 'join = "yes"',
    "thin text": 'thin = "x"',
    "missing table": "missing = {a = 1}", "members negative": "[validation]\nmembers = -3",
    "duration text": '[validation]\nduration = "long"', "validation seed text": '[validation]\nseed = "x"',
    "demo without system": "[demo]\nseed = 3", "demo of a number": "[demo]\nsystem = 3", "demo quick number":
    '[demo]\nsystem = "wells"\nquick = 3', "demo seed text": '[demo]\nsystem = "wells"\nseed = "x"',
    "password file": 'data = "/etc/passwd"', "path upwards": 'data = "../../../../etc/passwd"',
    "environment": 'data = "/proc/self/environ"', "import": '[score]\nkind = "__import__"', "data number": "data = 5",
    "no data": "data = []", "preprocess number": "preprocess = [3]", "score number": "score = 3",
    "score list": 'score = ["kgmm"]', "cells text": '[score]\nkind = "kgmm"\ncells = "many"',
    "noise level text": '[score]\nkind = "gaussian"\nnoise_level = "x"',
    "noise level negative": '[score]\nkind = "gaussian"\nnoise_level = -5.0',
    "horizon negative": '[mobility]\nkind = "integrated-response"\nhorizon = -1', "pca 0": "pca = 0",
    "deseason a date": "deseason = 2000-01-01", "detrend negative": "detrend = -1", "detrend 500": "detrend = 500",
    "force text": 'force = "yes"', "unknown key": "colour = 3", "check unknown": 'check = "maybe"',
}  # fmt: skip


def run_folders(folder: Path, count: int) -> Iterator[Case]:
    """Yield settings, folders and flags that cannot be; a good run folder and its data lie in `folder`."""
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(60.0, dt=0.1, seed=1)
    np.savez(folder / "ok.npz", x=series.values, dt=0.1, variables=["T", "h"])
    np.savez(folder / "other.npz", x=series.values, dt=0.1, variables=["p", "q"])
    good = folder / "good"
    good.mkdir()
    model = el.fit(el.read(folder / "ok.npz"), score=el.Gaussian(), mobility=el.QuadraticVariation())
    model.save(good / "model.safetensors")
    (good / "config.toml").write_text('data = "../ok.npz"\n')
    for name, text in SETTINGS.items():
        data = "" if "data =" in text or "[demo]" in text else 'data = "ok.npz"\n'
        yield Case(f"settings: {name}", partial(_refuse_settings, folder, data + text), "refused")
    yield Case("settings: not UTF-8", partial(_refuse_settings, folder, b'data = "\xff"'), "refused")
    for name, prepare in _FOLDERS.items():
        yield Case(f"folder: {name}", partial(_refuse_folder, folder, prepare), "refused")
    for flags in _FLAGS:
        yield Case(" ".join(flags), partial(_keep_files, folder, *_placed(folder, flags)), "refused")
    for name, content in {"empty": b"", "half": b"half", "no archive": b"PK" + bytes(60)}.items():
        yield Case(f"checkpoint: {name}", partial(_restore, folder / f"checkpoint {name}", content), "right")
    yield Case("settings of infinity", partial(_read_settings_back, folder), "right")


def _restore(folder: Path, content: bytes) -> None:
    """A damaged checkpoint is set aside, and the work begins anew."""
    from effective_langevin._core import checkpoints

    folder.mkdir()
    state = {"weights": np.zeros(3, np.float32)}
    with checkpoints.kept_in(folder, every=0.0), checkpoints.of("work", np.ones(2)) as checkpoint:
        assert checkpoint.path is not None
        checkpoint.path.write_bytes(content)
        assert checkpoint.restored(state) == (state, {}), "something was restored"
        assert not checkpoint.path.exists(), "the damaged checkpoint blocks the folder"


def _read_settings_back(folder: Path) -> None:
    """Settings that a run wrote are settings that a run reads."""
    import tomllib

    out = folder / "infinite"
    score = ("--score", "kgmm:noise_level=0.3,cells=20,narrowest=inf,steps=20")
    run_command("fit", folder / "ok.npz", *score, *QUICK[2:], "--out", out)
    tomllib.loads((out / "config.toml").read_text())
    run_command("simulate", out, "--duration", "1", "--out", folder / "infinite.nc")


def _placed(folder: Path, flags: tuple[str, ...]) -> list[str]:
    return [str(folder / flag[1:]) if flag.startswith("@") else flag for flag in flags]


_FLAGS = [
    ("fit", "@ok.npz", *QUICK, "--seed", "18446744073709551616", "--out", "@new"),
    ("fit", "@ok.npz", *QUICK, "--seed", "-1", "--out", "@new"),
    ("fit", "@ok.npz", "--dt", "nan", "--out", "@new"),
    ("fit", "@ok.npz", "--score", "kgmm:cells=500}; x={", "--out", "@new"),
    ("simulate", "@good", "--duration", "nan", "--out", "@q.nc"),
    ("simulate", "@good", "--duration", "5", "--out", "@q.xyz"),
    ("simulate", "@good", "--duration", "1e8", "--members", "1000", "--out", "@q.nc"),
    ("simulate", "@good", "--duration", "1e300", "--out", "@q.nc"),
    ("simulate", "@good", "--duration", "1000", "--members", "1000000000", "--out", "@q.nc"),
    ("simulate", "@good", "--duration", "5", "--origin", "yesterday", "--out", "@q.nc"),
    ("simulate", "@good", "--duration", "5", "--origin", "999999-01-01", "--start", "1e30", "--out", "@q.nc"),
    ("simulate", "@good", "--duration", "5", "--start", "1e18", "--out", "@q.nc"),
    ("validate", "@good", "--members", "0"),
    ("validate", "@good", "--duration", "-1"),
    ("validate", "@good", "@other.npz"),
    ("validate", "@nowhere"),
    ("report", "@ok.npz"),
]


def _refuse_settings(folder: Path, text: str | bytes) -> None:
    config = folder / "settings.toml"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    _keep_files(folder, "fit", "--config", str(config), "--out", str(folder / "new"))


def _a_file(folder: Path) -> list[str]:
    (folder / "a").write_text("mine")
    return ["--out", str(folder / "a")]


def _a_foreign_folder(folder: Path) -> list[str]:
    (folder / "b").mkdir()
    (folder / "b" / "thesis.txt").write_text("mine")
    return ["--out", str(folder / "b"), "--overwrite"]


def _a_foreign_partial(folder: Path) -> list[str]:
    (folder / "c.partial").mkdir()
    (folder / "c.partial" / "thesis.txt").write_text("mine")
    return ["--out", str(folder / "c")]


def _an_empty_link(folder: Path) -> list[str]:
    (folder / "d").mkdir()
    (folder / "link").symlink_to(folder / "d")
    return ["--out", str(folder / "link"), "--overwrite"]


_FOLDERS: dict[str, Callable[[Path], list[str]]] = {
    "a file": _a_file,
    "a file, --overwrite": lambda folder: [*_a_file(folder), "--overwrite"],
    "a folder of someone else": _a_foreign_folder,
    "a partial folder of someone else": _a_foreign_partial,
    "a link to an empty folder": _an_empty_link,
    "there already": lambda folder: ["--out", str(folder / "good")],
    "empty": lambda _: ["--out", ""],
    "here": lambda _: ["--out", "."],
    "above": lambda _: ["--out", "..", "--overwrite"],
    "the root": lambda _: ["--out", "/", "--overwrite"],
    "on a read-only file system": lambda _: ["--out", "/proc/run"],
}


def _refuse_folder(folder: Path, prepare: Callable[[Path], list[str]]) -> None:
    flags = prepare(folder)
    try:
        _keep_files(folder, "fit", str(folder / "ok.npz"), *QUICK, *flags)
    finally:
        for name in ("a", "b", "c.partial", "d", "link"):
            path = folder / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def _keep_files(folder: Path, *arguments: str) -> None:
    """Run a command, inside `folder`, that must leave all its files as they are."""
    before, here = _look(folder), Path.cwd()
    try:
        os.chdir(folder)
        run_command(*arguments)
    finally:
        os.chdir(here)
        assert _look(folder) == before, "files changed"


def _look(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in sorted(folder.rglob("*"))}
