"""Many small models: every series is fitted by itself, on all cores or a cluster, and nothing is done twice."""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from .._core import checks, progress
from .._core.errors import EffectiveLangevinError
from ..data import TimeSeries
from ..data.preprocess.base import Transform
from ..estimate.mobility import IntegratedResponse
from ..estimate.mobility.base import ClosureStrategy
from ..estimate.score import ScoreStrategy
from ..estimate.symmetry import Symmetry
from ..execution.batches import count_cores
from ..execution.cluster import active_client
from ..execution.workers import run_all
from ..fit import describe
from .result import ManyFits, ManyFolder, wanted_reports
from .task import Row, Task, carry_out, in_one_line

if TYPE_CHECKING:
    from ..data.io.parts import Part

_FEW = 8  # fits that are done before other processes have started


def fit_many(
    source: Any,
    *,
    by: str | None = None,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    seed: int = 0,
    preprocess: Transform | Sequence[Transform] | None = None,
    score: ScoreStrategy | None = None,
    mobility: ClosureStrategy | None = IntegratedResponse(),  # noqa: B008  a frozen record
    symmetry: Symmetry | None = None,
    check: str = "off",
    compare_estimators: bool = False,
    validate: bool = False,
    report: bool | str | Sequence[str] = False,
    reading: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    show_progress: bool = False,
) -> ManyFits:
    """Fit a model to each of many series, on all cores, or on the workers of an active dask client.

    The model of a series is that of `el.fit` with the same arguments and seed; it does not depend on the other series.
    A series that cannot be fitted is listed with the reason, and the others go on. With `out`, a run that was
    interrupted or killed continues when it is called again, and nothing is fitted twice.

    Parameters
    ----------
    source : dict of series by name, labelled data, or path
        A dictionary of `TimeSeries`, labelled data or paths; a DataArray, Dataset or DataFrame that `by` splits; a
        folder or a pattern of files, one series each; or one file that `by` splits.
    by : str, optional
        The dimension or the column that tells series apart.
    out : path, optional
        Folder for models, table, reports and `index.html`. Default: a temporary one, which goes with the result.
        On a cluster, one that all workers see.
    workers : int, optional
        Processes, each on one core; 1 is this process. Default: one per core, or 1 for a few series.
    seed : int, default 0
        Seed of every fit.
    preprocess, score, symmetry : optional
        As for `el.fit`.
    mobility : mobility strategy, default `IntegratedResponse()`
        One constant mobility, so that the entries of the table compare. None: chosen for every series, as by `el.fit`.
    check : {"off", "warn", "error"}, default "off"
        As for `el.fit`; "error" lists series that are not stationary among the failures.
    compare_estimators : bool, default False
        As for `el.fit`.
    validate : bool, default False
        Validate every model too: the table then has the level of the verdict.
    report : bool, or names of series, default False
        Validate these (True: all) and write their reports.
    reading : dict, optional
        Arguments of `el.read` for files and labelled data.
    overwrite : bool, default False
        Fit again in a folder that holds fits with other settings.
    show_progress : bool, default False
        Show a progress bar over all fits.

    Returns
    -------
    ManyFits
        With `models`, `table`, `failures`, `to_xarray()` and `summary()`.

    Examples
    --------
    >>> system = el.systems.OrnsteinUhlenbeck.rotating(2)
    >>> series = {f"station {i}": system.simulate(200.0, dt=0.1, seed=i) for i in range(2)}
    >>> fits = el.fit_many({**series, "broken": np.zeros(50)}, score=el.Gaussian(), reading={"dt": 0.1})
    >>> fits
    ManyFits(2 models, 1 failure; 2 fitted now in ... s)
    >>> fits.failures
    {'broken': 'The series has 50 usable samples; a fit needs at least 100. Record for longer.'}
    """
    from ..data.io.parts import split_source

    begun = time.monotonic()
    checks.one_of("check", check, ("warn", "error", "off"))
    learning = {"preprocess": preprocess, "score": score, "mobility": mobility, "symmetry": symmetry}
    learning |= {"check": check, "compare_estimators": compare_estimators}
    learning |= {"seed": checks.integer_at_least("seed", seed, 0)}
    parts = split_source(source, by, dict(reading or {}))
    names = [part.name for part in parts]
    temporary = tempfile.TemporaryDirectory(prefix="fits-") if out is None else None
    folder = ManyFolder(Path(temporary.name if temporary else os.fspath(out or "")), names)
    settings = {name: describe(value) for name, value in learning.items()}
    digest = _digest(settings)
    folder.begin(settings, digest, overwrite)
    tasks = _tasks(sorted(parts, key=_shape), folder, learning, digest, wanted_reports(report, names), validate)
    rows: dict[str, Row] = {}
    count = _choose_workers(workers, len(parts))
    with progress.shown() if show_progress else nullcontext(), progress.task("Fitting", len(parts)) as tick:
        fitted = _run(tasks, count, rows, tick)
    result = ManyFits(folder, tuple(rows[name] for name in names), time.monotonic() - begun, fitted, temporary)
    result.write()
    return result


def _run(tasks: Iterator[Task | Row], workers: int, rows: dict[str, Row], tick: progress.Advance) -> int:
    """Collect the row of every series; return how many models were fitted now."""
    fitted = failed = 0

    def pending() -> Iterator[Task]:
        for entry in tasks:
            if isinstance(entry, Task):
                yield entry
            else:
                rows[entry["name"]] = entry
                tick(1)

    for task, found in run_all(carry_out, pending(), workers):
        unforeseen = isinstance(found, BaseException)
        row = {"name": task.name, "digest": "", "failure": in_one_line(found)} if unforeseen else found
        rows[task.name] = row
        fitted += task.known is None and not row["failure"]
        failed += bool(row["failure"])
        tick(1, f"{failed} failed" if failed else "")
    return fitted


def _tasks(
    parts: "Sequence[Part]",
    folder: ManyFolder,
    learning: Mapping[str, Any],
    settings: str,
    reports: set[str],
    validated: bool,
) -> Iterator[Task | Row]:
    """Yield what is left to do, and the rows of what is done; data in memory are read here, files by the workers."""
    for part in parts:
        name = part.name
        try:
            part = part if part.is_file else replace(part, content=part.load())
            digest = hashlib.blake2b(f"{part.fingerprint()}{settings}".encode(), digest_size=16).hexdigest()
        except (EffectiveLangevinError, OSError) as error:
            yield {"name": name, "digest": "", "failure": in_one_line(error)}
            continue
        row, report = folder.done(name, digest), folder.report(name) if name in reports else None
        left = (report is not None and not report.is_file()) or (validated and row is not None and not row.get("level"))
        if row is not None and (row["failure"] or not left):
            yield row
            continue
        if row is None:
            folder.report(name).unlink(missing_ok=True)  # of other data
        yield Task(part, learning, digest, folder.model(name), folder.row(name), report, validated, row)


def _shape(part: "Part") -> tuple[int, int]:
    """Return what compiled programs depend on: series of one shape come one after the other."""
    series = part.content
    return (series.dimension, series.n_samples) if isinstance(series, TimeSeries) else (0, 0)


def _digest(settings: Mapping[str, Any]) -> str:
    """Return a digest of everything but the data that a model depends on."""
    versions = (version("effective-langevin"), jax.__version__)
    text = json.dumps([settings, versions], default=repr, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _choose_workers(workers: int | None, fits: int) -> int:
    if workers is not None:
        return checks.integer_at_least("workers", workers, 1)
    return 1 if fits < _FEW or active_client() is not None else min(count_cores(), fits)
