"""What a run is made of: flags of the command line over a TOML file, checked, resolved, and written down again."""

import hashlib
import os
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import typer

from .._core import checks
from .._core.errors import ArgumentError
from .._core.types import Samples
from ..data import TimeSeries
from ..data import preprocess as pp
from ..data.io import read
from ..data.io.codes import is_number
from ..data.preprocess.base import Transform
from ..data.provenance import hash_samples
from ..fit import fit
from ..many import ManyFits, fit_many
from ..memory import as_memory
from ..model import LangevinModel, match_variances
from ..validate import Validation, validate
from . import options
from .choices import choose
from .demo import choose_demo
from .output import complain
from .run_folder import RunFolder

READING = (*options.READING, "names", "units")
STRATEGIES = ("score", "mobility", "symmetry")
VALIDATION = ("seed", "members", "duration")
DEMO = ("system", "quick", "paper_scale", "seed")
# What a run writes beside its settings: read back without effect.
RECORDED = ("found", "versions")
KEYS = ("data", *READING, *options.TRANSFORMS, "preprocess", *options.MODEL, "seed", "settle", "validation", "demo",
        *RECORDED)  # fmt: skip


# Transforms from the text of a flag -----------------------------------------------------------------------------------


def _numbers(name: str, text: str, form: str, *kinds: Callable) -> list[Any]:
    """Return the parts of "A:B" as numbers of the given kinds; those at the end may be left out."""
    parts = text.split(":")
    try:
        if len(parts) <= len(kinds):
            return [kind(part) for kind, part in zip(kinds, parts)]
    except ValueError:
        pass
    raise checks.refused(name, form, text)


def _names(text: str) -> list[str] | None:
    """Return names separated by commas; "all" stands for all variables."""
    return None if text.strip() == "all" else [name.strip() for name in text.split(",")]


def _pca(text: str) -> Transform:
    form = "a number of components, or a share of the variance such as 0.9"
    if "." in text:
        return pp.PCA(variance=checks.fraction("pca", _numbers("pca", text, form, float)[0]))
    return pp.PCA(components=_numbers("pca", text, form, int)[0])


def _periodic(text: str) -> Transform:
    names, _, period = text.partition(":")
    form = "names, or names:PERIOD, such as phi,psi:360"
    return pp.Periodic(_names(names), *(_numbers("periodic", period, form, float) if period else []))


def _delay(text: str) -> Transform:
    count, *lag = _numbers("delay", text, "COUNT or COUNT:LAG, such as 3:2", int, int)
    checks.integer_at_least("delay", min(count, *lag, count), 1)
    return pp.DelayEmbedding([(lag or [1])[0] * (i + 1) for i in range(count)])


# In the order in which they are applied, whatever the order of the flags.
TRANSFORMS: dict[str, Callable[[str], Transform]] = {
    "log": lambda text: pp.Log(_names(text)),
    "box_cox": lambda text: pp.BoxCox(_names(text)),
    "detrend": lambda text: pp.Detrend(
        1 if text == "True" else _numbers("detrend", text, "true or a degree, such as 2", int)[0]
    ),
    "deseason": lambda text: pp.RemoveSeasonalCycle(
        *_numbers("deseason", text, "PERIOD or PERIOD:HARMONICS, such as 365.25:3", float, int)
    ),
    "periodic": _periodic,
    "pca": _pca,
    "delay": _delay,
    "phase": lambda text: pp.PhaseAugmentation(_numbers("phase", text, "a period, such as 12", float)[0]),
}


# Settings -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """A run, resolved: where the series comes from, and how the model is learned and validated."""

    data: list[str] = field(default_factory=list)
    reading: dict[str, Any] = field(default_factory=dict)
    demo: dict[str, Any] = field(default_factory=dict)
    preprocess: list[Transform] = field(default_factory=list)
    strategies: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    check: str = "error"
    force: bool = False
    settle: bool = False
    validation: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""

    @classmethod
    def for_demo(cls, system: str, *, seed: int = 0, settle: bool = False, **size: bool) -> "Settings":
        """Return the settings of a demonstration; its stages use different seeds."""
        demo = choose_demo(system, **size)
        return cls(
            demo={"system": system, **size, "seed": checks.integer_at_least("seed", seed, 0)},
            strategies={"score": demo.score, "mobility": demo.mobility, "symmetry": demo.symmetry},
            seed=seed + 1,
            check="off",
            settle=settle,
            validation={"seed": seed + 2, **demo.validation},
        )

    def series(self, data: list[str] | None = None) -> TimeSeries:
        """Return the series of the run, or another read in the same way."""
        if self.demo and not data:
            demo = dict(self.demo)
            seed = demo.pop("seed", 0)
            return choose_demo(demo.pop("system"), **demo).series(seed)
        files = data or self.data
        if not files:
            raise ArgumentError("There is no series: name its file(s), or give `data` in the --config file.")
        series = read(files if len(files) > 1 else files[0], **self.reading)
        if not data and self.sha256 not in ("", hash_samples(series)):
            named = ", ".join(Path(file).name for file in files)
            complain("Warning", f"{named} changed since the fit: the model was learned from other samples.")
        return series

    def states(self, begin: str, model: LangevinModel, data: list[str] | None) -> TimeSeries | Samples:
        """Return where a forecast begins: a state written by hand, or the series up to its end or to a time of it."""
        from ..data.io.dates import count_time  # needs pandas, which takes a second to import

        if "=" in begin:
            return _read_state(begin, model.names if model.transform is None else model.transform.names)
        series = self.series(data)
        if begin == "last":
            last = int(np.argmax([times[-1] for times in series.times]))
            return _cut(series, last, len(series.segments[last]))
        time = count_time(begin, model.time_unit, model.calendar)
        for number, times in enumerate(series.times):
            row = round((time - times[0]) / series.dt)
            if 0 <= row < len(times) and abs(times[row] - time) < 0.5 * series.dt:
                return _cut(series, number, row + 1)
        raise ArgumentError(
            f"The series has no sample at {begin}. Give `last`, a time at which there is one, or a state such as "
            f"{','.join(f'{name}=0' for name in series.names[:2])}."
        )

    def run(self, folder: RunFolder | None = None) -> tuple[Validation, dict[str, float]]:
        """Get the series, learn a model, validate it; a run folder gets the model as soon as it exists.

        Returns the validation, and the seconds that each stage took.
        """
        seconds, last = {}, time.monotonic()

        def finish(stage: str) -> None:
            nonlocal last
            seconds[f"{stage}_seconds"] = time.monotonic() - last
            last += seconds[f"{stage}_seconds"]

        def keep(model: LangevinModel) -> None:
            if folder:
                folder.keep_model(model, self.record(folder.path))

        series = self.series()
        finish("data")
        print_of_run = self._fingerprint(series)
        model = folder.fitted(print_of_run) if folder else None
        if model is None:
            learning = {"preprocess": self.preprocess, **self.strategies, "seed": self.seed, "check_held_out": True}
            check = "warn" if self.force and self.check == "error" else self.check
            model = fit(series, **learning, check=check, checkpoint=folder.checkpoints if folder else None)
            if folder:
                folder.keep_fitted(model, print_of_run)
        finish("fit")
        diagnosis = model.diagnosis
        findings = [f for f in diagnosis.findings if f.level in ("warning", "stop")] if diagnosis else []
        if alarms := [f.name for f in findings if (f.name, f.level) != ("stationarity", "stop")]:
            complain("Note", f"the diagnosis warns of {', '.join(alarms)}; `effective-langevin diagnose` says more.")
        keep(model)
        if self.settle:
            model = match_variances(model, members=self.validation.get("members", 1024), seed=self.seed + 2)
            finish("settle")
            keep(model)
        validation = self.validate(model, series, diagnosis=diagnosis)
        finish("validation")
        return validation, seconds

    def run_many(
        self, by: str, out: Path | None, *, workers: int | None, report: str | None, checked: bool, again: bool
    ) -> ManyFits:
        """Fit every series of the data; the same command continues what was interrupted."""
        if not self.data:
            raise ArgumentError("There is no series: name its file(s) or its folder before --by.")
        if self.settle:
            raise ArgumentError("The options --settle and --by exclude each other.")
        folder = out or Path(f"langevin-{Path(os.path.commonpath(self.data)).stem or 'series'}-by-{by}")
        wanted = False if report is None else True if report == "all" else [name.strip() for name in report.split(",")]
        try:
            return fit_many(
                self.data if len(self.data) > 1 else self.data[0],
                by=by,
                out=folder,
                workers=workers,
                seed=self.seed,
                preprocess=self.preprocess or None,
                **self.strategies,
                check=self.check if checked else "off",
                report=wanted,
                reading=self.reading,
                overwrite=again,
            )
        except KeyboardInterrupt:
            complain("Interrupted", f"What is done stays in {folder}; the same command continues.")
            raise typer.Exit(130) from None

    def _fingerprint(self, series: TimeSeries) -> str:
        """Return a digest of everything that the fitted model depends on."""
        learning = (self.preprocess, self.strategies, self.seed, self.check, self.force)
        labels = (series.units, series.time_unit, series.calendar, series.periods)
        parts = (hash_samples(series), *labels, *learning, version("effective-langevin"), jax.__version__)
        return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()

    def validate(self, model: LangevinModel, series: TimeSeries, **asked: Any) -> Validation:
        """Compare a model with a series; what is asked for (None: nothing) replaces the settings."""
        given = {key: value for key, value in asked.items() if value is not None}
        return validate(model, series, **{**self.validating(), **given})

    def validating(self) -> dict[str, Any]:
        exact = choose_demo(self.demo["system"]).system.mobility if self.demo else None
        return {"seed": self.seed + 1, **self.validation, "exact_mobility": exact}

    def record(self, folder: Path = Path()) -> dict[str, Any]:
        """Return what a config file in `folder` needs beside the provenance of the model; files as seen from there."""
        source = {"demo": self.demo} if self.demo else {"data": [_seen_from(folder, file) for file in self.data]}
        validation = {k: v for k, v in self.validating().items() if k in VALIDATION}
        policy = {"check": self.check, "force": self.force, "settle": self.settle}
        return {**source, **self.reading, **policy, "validation": validation}


def resolve(flags: Mapping[str, Any], config: Path | None) -> Settings:
    """Return the settings from flags (None: not given) over those of a TOML file, whose keys must all be known."""
    given = {} if config is None else _read_file(config)
    flags = {key: value for key, value in flags.items() if value is not None}
    if any(key in TRANSFORMS for key in flags):
        given = {key: value for key, value in given.items() if key not in (*TRANSFORMS, "preprocess")}
    if "data" in flags:
        given.pop("demo", None)
    given = {**given, **flags}
    reading = {key: given[key] for key in READING if key in given}
    if reading.pop("no_time", False):
        checks.not_given("time", reading.get("time"), "--no-time ignores the time coordinate.")
        reading["time"] = False
    if str(reading.get("chunks", "")).isdigit():
        reading["chunks"] = int(reading["chunks"])
    if isinstance(reading.get("missing"), str):
        codes = [] if reading["missing"] == "none" else reading["missing"].split(",")
        reading["missing"] = [float(code) if is_number(code) else code.strip() for code in codes]
    for key in ("variables", "names", "units"):
        if key in reading:
            value = _names(reading[key]) if isinstance(reading[key], str) else reading[key]
            reading[key] = None if value is None else _texts(key, value)
    for key in ("time", "time_unit", "member", "calendar"):
        checks.instance_of(key, reading.get(key, ""), (str,) if key != "time" else (str, bool))
    steps = _transforms(given)
    if given.get("settle") and steps and isinstance(steps[-1], pp.Periodic):
        raise ArgumentError("`settle` and `periodic` exclude each other: variances of angles mean nothing on a circle.")
    return Settings(
        data=_texts("data", given.get("data", [])),
        reading=reading,
        demo=_demo(_table("demo", given, DEMO)),
        preprocess=steps,
        strategies={
            **{role: choose(role, given[role]) for role in STRATEGIES if role in given},
            **({"memory": as_memory(given["memory"])} if "memory" in given else {}),
        },
        seed=checks.integer_at_least("seed", given.get("seed", 0), 0),
        check=checks.one_of("check", given.get("check", "error"), ("error", "warn", "off")),
        force=checks.instance_of("force", given.get("force", False), (bool,)),
        settle=checks.instance_of("settle", given.get("settle", False), (bool,)),
        validation=_validation(_table("validation", given, VALIDATION)),
        sha256="" if {*READING, "data"} & set(flags) else given.get("found", {}).get("sha256", ""),
    )


def _seen_from(folder: Path, file: str) -> str:
    """Return the path of a file relative to a folder, so that both can be moved together."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return os.path.abspath(file)


def _read_file(path: Path) -> dict[str, Any]:
    """Return the keys of a TOML file; its files are those beside it unless their path is full."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"Cannot read the settings in {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The settings in {path} are not TOML: {error}.") from error
    content = {key.replace("-", "_"): value for key, value in content.items()}
    checks.known_keys(content, KEYS, str(path))
    if "data" in content:
        content["data"] = [str(path.parent / file) for file in _texts("data", content["data"])]
    return content


def _transforms(given: Mapping[str, Any]) -> list[Transform]:
    """Return the transforms of `preprocess`, in its order, or of single keys, in theirs."""
    single = {key: given[key] for key in TRANSFORMS if given.get(key, False) is not False}
    if single and given.get("preprocess"):
        raise ArgumentError(f"Give either `preprocess` or `{next(iter(single))}`, not both: the order is not clear.")
    if single:
        texts = {key: ",".join(map(str, v)) if isinstance(v, list) else str(v) for key, v in single.items()}
        return [TRANSFORMS[key](text) for key, text in texts.items()]
    steps = given.get("preprocess", [])
    return [choose("preprocess", step) for step in (steps if isinstance(steps, list) else [steps])]


def _texts(name: str, value: Any) -> list[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise checks.refused(name, "a text or a list of texts", value)
    return values


def _validation(table: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a validation, checked before the fit rather than after it."""
    for key, least in (("seed", 0), ("members", 1)):
        checks.integer_at_least(key, table.get(key, least), least)
    checks.optional_positive_number("duration", table.get("duration"))
    return table


def _demo(table: dict[str, Any]) -> dict[str, Any]:
    for key in ("quick", "paper_scale"):
        checks.instance_of(key, table.get(key, False), (bool,))
    if table:
        choose_demo(table.get("system", ""))
        checks.integer_at_least("seed", table.get("seed", 0), 0)
    return table


def _table(name: str, given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    table = checks.instance_of(name, given.get(name, {}), (dict,))
    checks.known_keys(table, known, f"[{name}]")
    return table


def _cut(series: TimeSeries, segment: int, rows: int) -> TimeSeries:
    """Return the first rows of one segment, as a series."""
    place = (series.records[segment], series.starts[segment])
    return series.with_segments([series.segments[segment][:rows]], places=[place])


def _read_state(text: str, names: tuple[str, ...]) -> Samples:
    """Read `x=0.5,y=-1`, one number for every variable."""
    parts = (part.partition("=") for part in text.split(","))
    known = {name.strip(): number for name, _, number in parts}
    checks.known_names("from", known, names, "the model")
    try:
        return np.array([[float(known[name]) for name in names]])
    except (KeyError, ValueError):
        raise checks.refused("from", f"a number for each of {', '.join(names)}, such as x=0.5,y=-1", text) from None
