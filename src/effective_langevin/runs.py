"""Run folders: everything a run produced, complete or clearly marked as partial.

config.toml   model.safetensors   metrics.json   report.html   figures/*.png
"""

import json
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from ._core.errors import ArgumentError
from .model import LangevinModel
from .validate import Validation


class RunFolder:
    """A folder that is filled under the name `NAME.partial` and renamed when the run is complete.

    If the run is interrupted once the model exists, or a checkpoint of its training, the partial folder stays with it,
    and the same run begun again continues there; otherwise nothing is left.
    """

    def __init__(self, path: Path, overwrite: bool = False):
        if path.exists() and not overwrite:
            raise ArgumentError(f"The folder {path} exists already. Choose another --out, or pass --overwrite.")
        if path.exists() and not (path / "config.toml").is_file():
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
        return self.checkpoints.is_dir() and any(self.checkpoints.glob("*.npz"))

    @property
    def model_path(self) -> Path:
        """Where the model is kept while the run goes on."""
        return self.partial / "model.safetensors"

    def left_behind(self) -> str:
        """What an interrupted run leaves, in words."""
        if self.model_path.exists():
            return f"The fitted model is in {self.partial}."
        if self.resumable:
            return f"The training so far is in {self.partial}: run the same command again to continue."
        return "Nothing was written."

    def keep_model(self, model: LangevinModel, settings: dict[str, Any]) -> None:
        """Store the model and its settings as soon as they exist."""
        model.save(self.model_path)
        (self.partial / "config.toml").write_text(to_toml({**settings, **model.provenance}))

    def keep_validation(self, validation: Validation, seconds: dict[str, float]) -> dict[str, float]:
        """Store figures, report and metrics; returns the metrics with the time of each stage and memory."""
        from .validate.report import figures, write_report

        drawn = figures(validation)
        for name, figure in drawn.items():
            figure.savefig(self.partial / "figures" / f"{name}.png", dpi=150)
        write_report(validation, self.partial / "report.html", drawn=drawn)
        metrics = {
            **validation.metrics,
            **seconds,
            "wall_seconds": time.monotonic() - self.started,
            "peak_memory_mb": peak_memory_mb(),
        }
        (self.partial / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
        return metrics


def unused_folder(stem: str) -> Path:
    """The first of stem, stem-2, stem-3, ... that does not exist."""
    path, number = Path(stem), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}")
    return path


def peak_memory_mb() -> float:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def to_toml(settings: dict[str, Any], table: str = "") -> str:
    """Plain settings as TOML: scalars and lists first, then one table per nested dictionary; None is left out."""
    plain = {k: v for k, v in settings.items() if v is not None and not isinstance(v, dict)}
    lines = [f"{key} = {json.dumps(list(v) if isinstance(v, tuple) else v)}" for key, v in plain.items()]
    head = [f"[{table}]"] if table and lines else []
    text = "\n".join(head + lines) + "\n" if lines else ""
    for key, value in settings.items():
        if isinstance(value, dict):
            name = json.dumps(key) if not key.replace("-", "").replace("_", "").isalnum() else key
            text += ("\n" if text else "") + to_toml(value, f"{table}.{name}" if table else name)
    return text
