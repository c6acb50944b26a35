"""Run folders: everything a run produced, complete or clearly marked as partial.

config.toml   model.safetensors   metrics.json   curves.nc   report.html   figures/*.png, *.pdf
"""

import importlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import tomli_w

from .._core import files
from .._core.errors import ArgumentError
from ..model import LangevinModel
from ..validate import Validation

CONFIG, MODEL, METRICS, CURVES = "config.toml", "model.safetensors", "metrics.json", "curves.nc"


class RunFolder:
    """A folder that is filled under the name `NAME.partial` and renamed when the run is complete.

    If the run is interrupted once the model exists, or a checkpoint of its training, the partial folder stays with it,
    and the same run begun again continues there; otherwise nothing is left.
    """

    def __init__(self, path: Path, overwrite: bool = False):
        if path.exists() and not overwrite:
            raise ArgumentError(f"The folder {path} exists already. Choose another --out, or pass --overwrite.")
        if path.exists() and not (path / CONFIG).is_file():
            raise ArgumentError(f"{path} exists and is not a run folder of effective-langevin: it is left untouched.")
        self.path, self.partial = path, path.with_name(path.name + ".partial")
        self.started = time.monotonic()

    def __enter__(self) -> "RunFolder":
        if not self.resumable:
            shutil.rmtree(self.partial, ignore_errors=True)
        (self.partial / "figures").mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is None:
            if self.path.exists():
                shutil.rmtree(self.path)
            shutil.rmtree(self.checkpoints, ignore_errors=True)
            self.partial.rename(self.path)
        elif not (self.model_path.exists() or self.resumable):
            shutil.rmtree(self.partial, ignore_errors=True)

    @property
    def checkpoints(self) -> Path:
        """Where the state of an unfinished training is kept."""
        return self.partial / "checkpoints"

    @property
    def resumable(self) -> bool:
        """Whether an unfinished training is there to be continued."""
        return self.checkpoints.is_dir() and any(self.checkpoints.glob("checkpoint-*.npz"))

    @property
    def model_path(self) -> Path:
        """Where the model is kept while the run goes on."""
        return self.partial / MODEL

    def left_behind(self) -> str:
        """Say what an interrupted run leaves."""
        if self.model_path.exists():
            return f"The fitted model is in {self.partial}."
        if self.resumable:
            return f"The training so far is in {self.partial}: run the same command again to continue."
        return "Nothing was written."

    def keep_model(self, model: LangevinModel, settings: dict[str, Any]) -> None:
        """Store the model and its settings as soon as they exist."""
        model.save(self.model_path)
        write_text(self.partial / CONFIG, to_toml({**settings, **record_model(model)}))

    def keep_validation(self, validation: Validation, seconds: dict[str, float]) -> dict[str, float]:
        """Store figures, report and metrics; return the metrics with the time of each stage and memory."""
        spent = {"wall_seconds": time.monotonic() - self.started, **measure_memory()}
        return write_validation(validation, self.partial, {**seconds, **spent})


def record_model(model: LangevinModel) -> dict[str, Any]:
    """Return the provenance of a model as settings that repeat the run, with what was found under `found`."""
    found = {"names": model.names, "dt": model.dt, "time_unit": model.time_unit}
    settings = dict(model.provenance)
    told = ("samples", "segments", "dropped", "sha256", "source", "forced")
    if model.mobility.evidence.choice:
        told += ("mobility",)  # it was chosen, and a repeated run chooses again
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
    write_text(folder / METRICS, json.dumps(metrics, indent=2) + "\n")
    return metrics


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with files.replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


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
