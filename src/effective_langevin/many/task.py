"""One fit of many, in a worker process: series in, model file and row of the table out."""

import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import files
from .._core.errors import EffectiveLangevinError, EstimateWarning
from ..data import TimeSeries
from ..fit import fit
from ..model import LangevinModel, load
from ..validate import validate

if TYPE_CHECKING:
    from ..data.io.parts import Part

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """What a worker must know: the series, the arguments of `fit`, the files to write, and the digest of both."""

    part: "Part"
    learning: Mapping[str, Any]
    digest: str
    model: Path
    row: Path
    report: Path | None = None
    validated: bool = False
    known: Row | None = None

    @property
    def name(self) -> str:
        return self.part.name


def carry_out(task: Task) -> Row:
    """Fit, save and describe a model, unless that is done; validate it if asked for. The row is written last."""
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EstimateWarning)
        row = _attempt(task)
    row = {"name": task.name, "digest": task.digest, "failure": "", **(task.known or {}), **row}
    if task.known is None:
        said = [str(w.message) for w in caught if issubclass(w.category, EstimateWarning)]
        row |= {"seconds": time.perf_counter() - begun, "warnings": said}
    files.write_text(task.row, json.dumps(row))
    return row


def _attempt(task: Task) -> Row:
    """Return the columns of the table, or why there are none."""
    row: Row = {}
    try:
        series = task.part.load()
        if task.known is None:
            model = fit(series, **task.learning)
            model.save(task.model)
            row = {**describe_model(model), "samples": series.n_samples, "dt": series.dt, "time_unit": series.time_unit}
        else:
            model = load(task.model)
    except (EffectiveLangevinError, np.linalg.LinAlgError) as error:
        return {"failure": in_one_line(error)}
    return {**row, **_judge(task, model, series)} if task.report is not None or task.validated else row


def _judge(task: Task, model: LangevinModel, series: TimeSeries) -> Row:
    """Validate a model, and write its report if asked for; a validation that fails leaves the model."""
    try:
        found = validate(model, series, seed=task.learning["seed"] + 1, diagnosis=model.diagnosis)
        if task.report is not None:
            found.report(task.report)
    except EffectiveLangevinError as error:
        return {"level": "failed", "validation": in_one_line(error)}
    return {"level": found.verdict.level}


def describe_model(model: LangevinModel) -> Row:
    """Return mobility, relaxation times and entropy production of a model, each with its standard error."""
    columns: dict[str, float] = {}
    pairs = [(i, j) for i in range(model.dimension) for j in range(model.dimension)]
    for i, j in pairs:
        label = f"mobility_{model.names[i]}_{model.names[j]}"
        columns[label] = float(model.mobility.matrix[i, j])
        columns[f"{label}_se"] = float(model.mobility.standard_error[i, j])
    times, entropy = model.timescales(), model.entropy_production()
    for number, (value, error, period) in enumerate(zip(times.value, times.standard_error, times.period), 1):
        columns[f"relaxation_time_{number}"] = float(value)
        columns[f"relaxation_time_{number}_se"] = float(error)
        columns[f"period_{number}"] = float(period)
    columns |= {"entropy_production": float(entropy.value), "entropy_production_se": float(entropy.standard_error)}
    columns |= {"entropy_production_bias": float(entropy.bias), "smoothing_width": float(model.score.noise_level)}
    closure = model.mobility.evidence.closure
    return {"columns": columns, "closure": closure.kind if closure else "constant", "variables": list(model.names)}


def in_one_line(error: BaseException) -> str:
    """Return why a fit failed, as one line; errors that were not foreseen with their kind."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, EffectiveLangevinError) else f"{type(error).__name__}: {text}"
