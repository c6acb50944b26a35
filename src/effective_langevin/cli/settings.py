"""What a run is made of: flags of the command line over a TOML file, checked, resolved, and written down again."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._core import checks
from .._core.errors import ArgumentError
from ..data import TimeSeries
from ..data import preprocess as pp
from ..data.io import read
from ..data.preprocess.base import Transform
from .choices import chosen
from .demo import chosen as chosen_demo

READING = ("variables", "dt", "time", "member", "resample", "join", "names", "units", "time_unit")
STRATEGIES = ("score", "mobility", "symmetry")
VALIDATION = ("seed", "members", "duration")
DEMO = ("system", "quick", "paper_scale", "seed")
# What a run writes beside its settings: read back without effect.
RECORDED = ("found", "versions")


def _numbers(name: str, text: str, form: str, *kinds: Callable) -> list[Any]:
    """The parts of "A:B" as numbers of the given kinds; those at the end may be left out."""
    parts = text.split(":")
    try:
        if len(parts) <= len(kinds):
            return [kind(part) for kind, part in zip(kinds, parts)]
    except ValueError:
        pass
    raise checks.refused(name, form, text)


def _names(text: str) -> list[str] | None:
    """Names separated by commas; "all" stands for all variables."""
    return None if text.strip() == "all" else [name.strip() for name in text.split(",")]


def _detrend(text: str) -> Transform:
    return pp.Detrend(1 if text == "True" else _numbers("detrend", text, "true or a degree, such as 2", int)[0])


def _deseason(text: str) -> Transform:
    form = "PERIOD or PERIOD:HARMONICS, such as 365.25:3"
    return pp.RemoveSeasonalCycle(*_numbers("deseason", text, form, float, int))


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
    "detrend": _detrend,
    "deseason": _deseason,
    "periodic": _periodic,
    "pca": _pca,
    "delay": _delay,
    "phase": lambda text: pp.PhaseAugmentation(_numbers("phase", text, "a period, such as 12", float)[0]),
}

KEYS = (
    "data",
    *READING,
    *TRANSFORMS,
    "preprocess",
    *STRATEGIES,
    "seed",
    "force",
    "settle",
    "validation",
    "demo",
    *RECORDED,
)


@dataclass(frozen=True)
class Settings:
    """A run, resolved: where the series comes from, and how the model is learned and validated."""

    data: list[str]
    reading: dict[str, Any] = field(default_factory=dict)
    demo: dict[str, Any] = field(default_factory=dict)
    preprocess: list[Transform] = field(default_factory=list)
    strategies: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    force: bool = False
    settle: bool = False
    validation: dict[str, Any] = field(default_factory=dict)

    def series(self, data: list[str] | None = None) -> TimeSeries:
        """The series of the run, or another read in the same way."""
        if self.demo and not data:
            demo = dict(self.demo)
            seed = demo.pop("seed", 0)
            return chosen_demo(demo.pop("system"), **demo).series(seed)
        files = data or self.data
        if not files:
            raise ArgumentError("There is no series: name its file(s), or give `data` in the --config file.")
        return read(files if len(files) > 1 else files[0], **self.reading)

    def validating(self) -> dict[str, Any]:
        """Arguments of `validate`, apart from model and series."""
        exact = chosen_demo(self.demo["system"]).system.mobility if self.demo else None
        return {"seed": self.seed + 1, **self.validation, "exact_mobility": exact}

    def record(self) -> dict[str, Any]:
        """What a config file needs beside the provenance of the model; files by their full path."""
        source = {"demo": self.demo} if self.demo else {"data": [os.path.abspath(file) for file in self.data]}
        validation = {k: v for k, v in self.validating().items() if k in VALIDATION}
        return {**source, **self.reading, "force": self.force, "settle": self.settle, "validation": validation}


def resolved(flags: Mapping[str, Any], config: Path | None) -> Settings:
    """Settings from flags (None: not given) over those of a TOML file; every key of the file must be known."""
    given = {} if config is None else _from_file(config)
    flags = {key: value for key, value in flags.items() if value is not None}
    if any(key in TRANSFORMS for key in flags):
        given = {key: value for key, value in given.items() if key not in (*TRANSFORMS, "preprocess")}
    if "data" in flags:
        given.pop("demo", None)
    given = {**given, **flags}
    steps = _transforms(given)
    if given.get("settle") and steps and isinstance(steps[-1], pp.Periodic):
        raise ArgumentError("`settle` and `periodic` exclude each other: variances of angles mean nothing on a circle.")
    return Settings(
        data=_texts("data", given.get("data", [])),
        reading={key: _reading(key, given[key]) for key in READING if key in given},
        demo=_table("demo", given.get("demo", {}), DEMO),
        preprocess=steps,
        strategies={role: chosen(role, given[role]) for role in STRATEGIES if role in given},
        seed=checks.integer_at_least("seed", given.get("seed", 0), 0),
        force=checks.instance_of("force", given.get("force", False), (bool,)),
        settle=checks.instance_of("settle", given.get("settle", False), (bool,)),
        validation=_table("validation", given.get("validation", {}), VALIDATION),
    )


def _from_file(path: Path) -> dict[str, Any]:
    """The keys of a TOML file; its files are those beside it unless their path is full."""
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
    """The transforms of `preprocess`, in its order, or of single keys, in theirs."""
    single = [key for key in TRANSFORMS if given.get(key, False) is not False]
    if single and given.get("preprocess"):
        raise ArgumentError(f"Give either `preprocess` or `{single[0]}`, not both: the order would not be clear.")
    steps = given.get("preprocess", [])
    steps = steps if isinstance(steps, list) else [steps]
    return [TRANSFORMS[key](_text(given[key])) for key in single] or [chosen("preprocess", step) for step in steps]


def _text(value: Any) -> str:
    return ",".join(str(v) for v in value) if isinstance(value, list) else str(value)


def _texts(name: str, value: Any) -> list[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise checks.refused(name, "a text or a list of texts", value)
    return values


def _reading(key: str, value: Any) -> Any:
    """An argument of `read`; lists of names may be written with commas."""
    return _names(value) if key in ("variables", "names", "units") and isinstance(value, str) else value


def _table(name: str, value: Any, known: tuple[str, ...]) -> dict[str, Any]:
    checks.instance_of(name, value, (dict,))
    checks.known_keys(value, known, f"[{name}]")
    return value
