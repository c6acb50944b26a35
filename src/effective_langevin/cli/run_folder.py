"""Run folders: everything a run produced, complete or clearly marked as partial.

config.toml   model.safetensors   metrics.json   curves.nc   report.html   figures/*.png, *.pdf
"""

import contextlib
import importlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import IO, Any

import tomli_w

from .._core import checkpoints, files
from .._core.errors import ArgumentError, ModelFileError
from ..model import LangevinModel, load
from ..validate import Validation
from .output import complain

try:
    import fcntl
except ImportError:  # Windows: two runs into one folder are not noticed there
    fcntl = None

CONFIG, MODEL, METRICS, CURVES = "config.toml", "model.safetensors", "metrics.json", "curves.nc"
_LOCK, _TRIES = "run.lock", 100
_LITTER = ".*.part*"  # of a run that was killed while it wrote
_OURS = {CONFIG, MODEL, METRICS, CURVES, _LOCK, "report.html", "figures", "checkpoints"}


class RunFolder:
    """A folder that is filled under the name `NAME.partial` and renamed when the run is complete.

    If the run is interrupted once the model exists, or a checkpoint of its training, the partial folder stays with it,
    and the same run begun again continues there; otherwise nothing is left. One process at a time holds the lock of the
    partial folder; killed after the renaming, it leaves the lock's file, which nothing minds. Files that no run writes
    are never removed.
    """

    def __init__(self, path: Path, overwrite: bool = False):
        path = Path(os.path.realpath(path)) if path.is_symlink() or path.name in ("", "..") else path
        if not path.name:
            raise ArgumentError(f"{path} cannot be a run folder. Choose another --out.")
        self.path, self.overwrite = path, overwrite
        self.partial, self.replaced = path.with_name(f"{path.name}.partial"), path.with_name(f".{path.name}.replaced")
        self.model_path, self.checkpoints = self.partial / MODEL, self.partial / "checkpoints"
        self.started, self.lock = time.monotonic(), None
        self._check()

    def __enter__(self) -> "RunFolder":
        if found := _foreign(self.partial):
            raise ArgumentError(
                f"{self.partial} holds {found[0]}, which no run wrote. Move it, or choose another --out."
            )
        self.lock = _lock(self.partial)
        try:
            self._put_back()
            self._check()  # another run may have ended just now
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        for litter in self.partial.rglob(_LITTER):
            litter.unlink()
        (self.partial / "figures").mkdir(exist_ok=True)
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is None:
            if self.path.exists():
                self.path.rename(self.replaced)
            self.partial.rename(self.path)
            self._put_back()
            shutil.rmtree(self.path / "checkpoints", ignore_errors=True)
            _remove_lock(self.path, self.lock)
        elif self.model_path.exists() or self.resumable:
            _remove_lock(self.partial, self.lock)
        else:
            shutil.rmtree(self.partial, ignore_errors=True)
        if self.lock is not None:
            self.lock.close()

    def _check(self) -> None:
        """Refuse a folder that is there already, unless it is a run folder that may be replaced."""
        if not self.path.exists():
            return
        if not self.overwrite:
            raise ArgumentError(f"The folder {self.path} exists already. Choose another --out, or pass --overwrite.")
        if not (self.path / CONFIG).is_file():
            raise ArgumentError(
                f"{self.path} exists and is not a run folder of effective-langevin: it is left untouched."
            )
        if Path.cwd().is_relative_to(self.path.resolve()):
            raise ArgumentError(f"{self.path} is the folder you work in. Change to another one to replace it.")

    def _put_back(self) -> None:
        """Keep from a replaced run what no run wrote; undo a replacement that was cut short."""
        if not self.replaced.is_dir():
            return
        if not self.path.exists():
            self.replaced.rename(self.path)
            return
        for name in _foreign(self.replaced):
            if not (self.path / name).exists():
                (self.replaced / name).rename(self.path / name)
        if not _foreign(self.replaced):
            shutil.rmtree(self.replaced)

    @property
    def resumable(self) -> bool:
        """Whether an unfinished training, or a fitted model, is there to be continued."""
        return self.checkpoints.is_dir() and any(self.checkpoints.iterdir())

    def left_behind(self) -> str:
        """Say what an interrupted run leaves."""
        if self.model_path.exists():
            return f"The fitted model is in {self.partial}: run the same command again to continue."
        if self.resumable:
            return f"The training so far is in {self.partial}: run the same command again to continue."
        return "Nothing was written."

    def fitted(self, fingerprint: str) -> LangevinModel | None:
        """Return the model that an interrupted run with this fingerprint has fitted; refuse to lose that of another."""
        path = self._fitted_path(fingerprint)
        others = [file for file in self.checkpoints.glob("model-*.safetensors") if file != path]
        if (others or (self.model_path.exists() and not path.exists())) and not self.overwrite:
            raise ArgumentError(
                f"{self.partial} holds a model fitted with other data or settings. Choose another --out, or pass "
                "--overwrite."
            )
        for file in others:
            file.unlink()
        try:
            model = load(path) if path.is_file() else None
        except ModelFileError as error:
            checkpoints.set_aside(path, error)
            return None
        if model is not None:
            complain("Note", f"{self.partial} holds the fitted model: the run continues with it.")
        return model

    def keep_fitted(self, model: LangevinModel, fingerprint: str) -> None:
        """Keep a fitted model for a run that is interrupted from here on."""
        self.checkpoints.mkdir(exist_ok=True)
        model.save(self._fitted_path(fingerprint))

    def _fitted_path(self, fingerprint: str) -> Path:
        return self.checkpoints / f"model-{fingerprint}.safetensors"

    def keep_model(self, model: LangevinModel, settings: dict[str, Any]) -> None:
        """Store the model and its settings as soon as they exist."""
        model.save(self.model_path)
        files.write_text(self.partial / CONFIG, to_toml({**settings, **record_model(model)}))


def _foreign(folder: Path) -> list[str]:
    """Return the names in a folder that no run writes there."""
    try:
        return sorted(p.name for p in folder.iterdir() if p.name not in _OURS and not p.match(_LITTER))
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return [folder.name]


def _lock(folder: Path) -> IO[str]:
    """Return the lock of a folder, held by this process alone until it is closed or ends."""
    lock = _open_lock(folder)
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = os.path.samestat(os.fstat(lock.fileno()), (folder / _LOCK).stat())
    except (BlockingIOError, FileNotFoundError):
        free = False
    except OSError:  # a file system without locks
        free = True
    if not free:
        lock.close()
        raise ArgumentError(f"Another process is writing to {folder}. Wait for it, or choose another --out.")
    return lock


def _open_lock(folder: Path) -> IO[str]:
    """Open the lock file; a run that ends may remove or rename the folder in between, but not again and again."""
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            folder.mkdir(parents=True, exist_ok=True)
            return (folder / _LOCK).open("a")
    raise ArgumentError(f"Another process is writing to {folder}. Wait for it, or choose another --out.")


def _remove_lock(folder: Path, lock: IO[str] | None) -> None:
    """Remove the lock file that this process holds, and not that of a run which began just now."""
    with contextlib.suppress(FileNotFoundError):
        if lock is not None and os.path.samestat(os.fstat(lock.fileno()), (folder / _LOCK).stat()):
            (folder / _LOCK).unlink()


def record_model(model: LangevinModel) -> dict[str, Any]:
    """Return the provenance of a model as settings that repeat the run, with what was found under `found`."""
    found = {"names": model.names, "dt": model.dt, "time_unit": model.time_unit}
    settings = dict(model.provenance)
    told = ("samples", "segments", "dropped", "sha256", "source", "forced")
    if (choice := model.mobility.evidence.choice) and not choice.asked:
        told += ("mobility",)  # it was chosen, and a repeated run chooses again
    if model.mobility.evidence.memory:
        found["memory"], settings["memory"] = settings["memory"], "auto"
    found |= {key: settings.pop(key) for key in told if key in settings}
    versions = settings.pop("versions", {})
    return {**settings, "found": found, "versions": versions}


def write_validation(validation: Validation, folder: Path, spent: dict[str, float]) -> dict[str, float]:
    """Write figures, report and metrics into a run folder; each file appears once it is complete."""
    from ..validate.report import figures, save_figures, write_report

    drawn = figures(validation)
    save_figures(drawn, folder / "figures")
    write_report(validation, folder / "report.html", drawn=drawn)
    if validation.sides is not None:
        validation.save(folder / CURVES)
    metrics = {**validation.metrics, **spent}
    files.write_text(folder / METRICS, json.dumps(metrics, indent=2) + "\n")
    return metrics


def find_unused_folder(stem: str) -> Path:
    """Return the first of stem, stem-2, stem-3, ... that does not exist."""
    path, number = Path(stem), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}")
    return path


def measure_memory() -> dict[str, float]:
    """Return the largest resident memory of this process so far, in MB; nothing on a system that does not tell."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # Windows
        return {}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"peak_memory_mb": peak / (2**20 if sys.platform == "darwin" else 2**10)}


def to_toml(settings: dict[str, Any]) -> str:
    """Write plain settings as TOML, which has no None: such entries are left out."""
    return tomli_w.dumps(_drop_none(settings))


def _drop_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_none(entry) for key, entry in value.items() if entry is not None}
    return [_drop_none(entry) for entry in value] if isinstance(value, list | tuple) else value
