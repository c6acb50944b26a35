"""The command line where disks are full, streams closed, homes missing, and processes killed or started twice."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el

from ..robustness import Case

# The report and its folder have three of the figures, which are all written alike and take most of the time.
FEW_FIGURES = "from effective_langevin.validate import report\nreport.FIGURES = dict([*report.FIGURES.items()][:3])\n"
MAIN = FEW_FIGURES + "from effective_langevin.cli import main; main()"
NOBODY = "import pwd\ndef lost(*_): raise KeyError\npwd.getpwuid = lost\n" + MAIN
SETTINGS = """
score = "gaussian"
mobility = "quadratic-variation"
check = "off"
[validation]
members = 16
duration = 20.0
"""
FORMATS = ("nc", "csv", "npz", "h5", "zarr", "parquet")
ENOUGH_FOR_NOTHING = 4096  # bytes of a file on the full disk


def surroundings(folder: Path, count: int) -> Iterator[Case]:
    """Yield commands in surroundings that are hostile, slow or only unusual; each starts a process of its own."""
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(60.0, dt=0.1, seed=1)
    np.savez(folder / "ok.npz", x=series.values, dt=0.1, variables=["T", "h"])
    (folder / "settings.toml").write_text('data = "ok.npz"' + SETTINGS)
    fit = ("fit", "--config", "settings.toml", "--out")
    start(folder, *fit, "ready").check(0)
    for family in (_places, _streams, _full_disk, _signals):
        for case in family(folder, fit):
            yield case._replace(call=partial(_from_scratch, folder, case.call))


def _from_scratch(folder: Path, call: Callable[[], None]) -> None:
    """Run a case without what a case that failed has left."""
    for name in ("run", "run.partial"):
        shutil.rmtree(folder / name, ignore_errors=True)
    call()


class Answer:
    """What a process said and how it ended."""

    def __init__(self, process: subprocess.Popen):
        with ended(process):
            out, err = process.communicate(timeout=120)
        self.code, self.out, self.err = process.returncode, out or "", err or ""

    def check(self, *codes: int) -> None:
        """Raise the one line of a refusal; a traceback, or another exit code, is a crash."""
        if "Traceback" in self.err or self.code not in codes:
            raise RuntimeError(f"exit code {self.code}: {self.err[-400:]}")
        if self.code == 2:
            raise el.EffectiveLangevinError(self.err.strip().splitlines()[-1])


@contextmanager
def ended(*processes: subprocess.Popen) -> Iterator[None]:
    """End processes whose case is over before they are: they would hold the folder of the next case."""
    try:
        yield
    except BaseException:
        for process in processes:
            process.kill()
            process.wait()
        raise


def begin(folder: Path, *arguments: str, code: str = MAIN, env: dict[str, Any] | None = None, **options: Any):
    """Start a command; variables of the environment that are None are left out."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
    variables = {k: v for k, v in {**os.environ, **cache, **(env or {})}.items() if v is not None}
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=folder, env=variables, text=True, **{**streams, **options})


def start(folder: Path, *arguments: str, **options: Any) -> Answer:
    return Answer(begin(folder, *arguments, **options))


def _succeed(folder: Path, *arguments: str, **options: Any) -> None:
    """Run a command to its end; a run folder that it makes must be complete."""
    answer = start(folder, *arguments, **options)
    answer.check(0, 2)
    if "--out" in arguments:
        _is_complete(folder / arguments[arguments.index("--out") + 1], folder)


def _is_complete(run: Path, folder: Path) -> None:
    names = {p.name for p in run.iterdir()}
    files = {"config.toml", "model.safetensors", "metrics.json", "report.html", "figures"}
    assert names in (files, files | {"curves.nc"}), names
    assert (run / "model.safetensors").read_bytes() == (folder / "ready" / "model.safetensors").read_bytes(), (
        "other bits"
    )
    assert not run.with_name(f"{run.name}.partial").exists(), "a partial folder is left"
    shutil.rmtree(run)


def _places(folder: Path, fit: tuple[str, ...]) -> Iterator[Case]:
    (folder / "file").touch()
    variables: dict[str, dict[str, Any]] = {
        "HOME unset": {"HOME": None},
        "HOME nowhere": {"HOME": "/nonexistent"},
        "HOME a file": {"HOME": str(folder / "file")},
        "cache a file": {"XDG_CACHE_HOME": str(folder / "file")},
        "cache of JAX a file": {"JAX_COMPILATION_CACHE_DIR": str(folder / "file")},
        "MPLCONFIGDIR nowhere": {"MPLCONFIGDIR": "/proc/nowhere"},
        "LC_ALL=C": {"LC_ALL": "C"},
        "LC_ALL=C without UTF-8": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        "ASCII output": {"PYTHONIOENCODING": "ascii"},
        "a dumb terminal": {"TERM": "dumb", "COLUMNS": "1", "NO_COLOR": "1"},
        "another hash seed": {"PYTHONHASHSEED": "7"},
        "one thread": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        "double precision": {"JAX_ENABLE_X64": "1"},
    }
    for name, env in variables.items():
        options = {"env": env} if name != "double precision" else {"env": env, "same": False}
        yield Case(name, partial(_fit_and_compare, folder, fit, **options), "right")
    bare = {**dict.fromkeys(os.environ), "PYTHONPATH": os.environ.get("PYTHONPATH"), "PATH": os.environ.get("PATH")}
    yield Case("no environment", partial(_succeed, folder, "diagnose", "ok.npz", env=bare), "right")
    lost = {"HOME": None, "XDG_CACHE_HOME": None, "JAX_COMPILATION_CACHE_DIR": None}
    yield Case("a user without a home", partial(_succeed, folder, "validate", "ready", code=NOBODY, env=lost), "right")
    for name in ("two words", "-dash", "温度", "a\nb"):
        shutil.copy(folder / "ok.npz", folder / f"{name}.npz")
        yield Case(f"file {name!r}", partial(_succeed, folder, "diagnose", "--", f"{name}.npz"), "right")
    yield Case("read-only place", partial(_succeed, folder, *fit, "/proc/run"), "refused")
    yield Case(
        "read-only place for paths",
        partial(_succeed, folder, "simulate", "ready", "--duration", "5", "--out", "/proc/p.nc"),
        "refused",
    )
    yield Case("data gone", partial(_succeed, folder, "fit", "--config", "settings.toml", "gone.npz"), "refused")


def _fit_and_compare(folder: Path, fit: tuple[str, ...], env: dict[str, Any], same: bool = True) -> None:
    answer = start(folder, *fit, "run", env=env)
    answer.check(0)
    if same:
        _is_complete(folder / "run", folder)
    else:
        shutil.rmtree(folder / "run")


def _streams(folder: Path, fit: tuple[str, ...]) -> Iterator[Case]:
    full = Path("/dev/full")
    diagnose = ("diagnose", "ok.npz")
    if full.exists():
        yield Case("output full", partial(_to, folder, {"stdout": full}, *diagnose), "refused")
        yield Case("JSON output full", partial(_to, folder, {"stdout": full}, *diagnose, "--json"), "refused")
        yield Case("errors full", partial(_to, folder, {"stderr": full}, *fit, "run"), "right")
    for name, arguments in {"systems": ("systems",), "info --json": ("info", "--json"), "fit": (*fit, "run")}.items():
        yield Case(f"{name} | head -1", partial(_to_a_reader_that_leaves, folder, *arguments), "right")
    for name, closed in {"output": (1,), "errors": (2,), "both": (1, 2), "input": (0,)}.items():
        yield Case(f"{name} closed", partial(_closed, folder, closed, *fit, "run"), "right")


def _to(folder: Path, streams: dict[str, Path], *arguments: str) -> None:
    with next(iter(streams.values())).open("w") as target:
        _succeed(folder, *arguments, **dict.fromkeys(streams, target))


def _to_a_reader_that_leaves(folder: Path, *arguments: str) -> None:
    read, write = os.pipe()
    process = begin(folder, *arguments, stdout=write)
    os.close(write)
    os.close(read)
    Answer(process).check(0)
    if "--out" in arguments:
        _is_complete(folder / "run", folder)


def _closed(folder: Path, closed: tuple[int, ...], *arguments: str) -> None:
    def close() -> None:
        for stream in closed:
            os.close(stream)

    Answer(begin(folder, *arguments, preexec_fn=close)).check(0)
    _is_complete(folder / "run", folder)


def _full_disk(folder: Path, fit: tuple[str, ...]) -> Iterator[Case]:
    """Limit the size of files, which fails in the middle of a write as a full disk does."""
    yield Case("full disk: fit", partial(_limited, folder, *fit, "run"), "refused")
    for suffix in FORMATS:
        out = ("--duration", "500", "--members", "20", "--out", f"paths.{suffix}")
        yield Case(f"full disk: {suffix}", partial(_limited, folder, "simulate", "ready", *out), "refused")
    yield Case("full disk: report", partial(_limited, folder, "report", "ready"), "refused")
    yield Case(
        "full disk: report of a validation",
        partial(_limited, folder, "validate", "ready", "--report", "ready/report.html"),
        "refused",
    )


def _limited(folder: Path, *arguments: str) -> None:
    before = _look(folder)
    limit: Callable = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (ENOUGH_FOR_NOTHING,) * 2)
    answer = start(folder, *arguments, preexec_fn=limit, env={"JAX_ENABLE_COMPILATION_CACHE": "false"})
    assert _look(folder) == before, f"files changed: {set(_look(folder)) ^ set(before)}"
    answer.check(0, 2)


def _look(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file() and "compiled" not in p.parts)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def _signals(folder: Path, fit: tuple[str, ...]) -> Iterator[Case]:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        for moment in ("run.partial", "run.partial/model.safetensors", "run.partial/report.html"):
            name = f"{number.name} once {Path(moment).name} is there"
            yield Case(name, partial(_end_and_repeat, folder, fit, number, moment), "right")
    yield Case("two at once", partial(_fit_twice, folder, fit), "right")


def _end_and_repeat(folder: Path, fit: tuple[str, ...], number: signal.Signals, moment: str) -> None:
    """Send a signal once a file is there; the same command then ends with the same model."""
    process, patience = begin(folder, *fit, "run"), time.monotonic() + 60
    with ended(process):
        while not (folder / moment).exists() and process.poll() is None and time.monotonic() < patience:
            time.sleep(0.01)
    process.send_signal(number)
    answer = Answer(process)
    assert "Traceback" not in answer.err, answer.err[-300:]
    if answer.code != 0:
        start(folder, *fit, "run").check(0)
    _is_complete(folder / "run", folder)


def _fit_twice(folder: Path, fit: tuple[str, ...]) -> None:
    """The folder is that of one of the two, and the other says why it gives up."""
    processes = [begin(folder, *fit, "run", "--seed", str(seed)) for seed in (1, 2)]
    with ended(*processes):
        answers = [Answer(process) for process in processes]
    assert sorted(a.code for a in answers) == [0, 2], [a.err[-200:] for a in answers]
    refused = next(a for a in answers if a.code == 2)
    assert "Another process is writing" in refused.err or "exists already" in refused.err, refused.err
    seed = 1 + [a.code for a in answers].index(0)
    assert el.load(folder / "run" / "model.safetensors").provenance["seed"] == seed
    assert json.loads((folder / "run" / "metrics.json").read_text())["pdf_kl_max"] >= 0
    shutil.rmtree(folder / "run")
