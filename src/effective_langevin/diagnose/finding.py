"""A finding: name, level, meaning, advice and the numbers behind it. A diagnosis: findings, the most serious first."""

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from .._core.format import count

Level = Literal["ok", "note", "warning", "stop"]
LEVELS: tuple[Level, ...] = ("ok", "note", "warning", "stop")
_WIDTH = 110


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number, or one per variable or lag, with its standard error and unit where it has them."""

    value: Any
    error: Any = None
    unit: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Finding:
    """One statement about a series or a model.

    Parameters
    ----------
    name : str
        What was examined, such as "stationarity".
    level : {"ok", "note", "warning", "stop"}
        "note" is worth knowing, "warning" spoils the fit unless you act on it, "stop" makes a fit meaningless.
    meaning : str
        What was found, in one or two sentences.
    advice : str, default ""
        What to do about it.
    numbers : mapping of str to Quantity, default {}
        The values, standard errors and units that the sentences rest on.
    statistic, p : float, optional
        Of a test: its statistic, and the chance of one so large if nothing is wrong.

    Examples
    --------
    >>> finding = el.Finding("gaps", "note", "3 rows were dropped.", "Fill short gaps.")
    >>> finding
    Finding('gaps', 'note': 3 rows were dropped.)
    """

    name: str
    level: Level
    meaning: str
    advice: str = ""
    numbers: Mapping[str, Quantity] = field(default_factory=dict)
    statistic: float | None = None
    p: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; values that are not finite become None."""
        return plain(asdict(self))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Finding":
        """Restore a finding from the plain data of `to_dict`.

        Parameters
        ----------
        content : mapping
            What `to_dict` returned, also after a round trip through JSON.

        Returns
        -------
        Finding
        """
        numbers = {name: Quantity(**number) for name, number in content["numbers"].items()}
        return cls(**{**content, "numbers": numbers})

    def __repr__(self) -> str:
        return f"Finding({self.name!r}, {self.level!r}: {self.meaning})"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What kind of series this is, and what stands between it and a Langevin equation.

    Parameters
    ----------
    regime : str
        How the series moves over one sampling interval: "diffusive", "ballistic" (smooth), "mixed" (some variables
        smooth, some not), "measurement noise", "coarse" (much happens between two samples) or
        "white noise / unresolved".
    findings : tuple of Finding
        The most serious first.
    series : mapping
        Size, names and units of the series, and a sentence about them under "description".

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=500)
    >>> diagnosis = el.diagnose(el.TimeSeries(values, dt=0.1))
    >>> diagnosis
    Diagnosis('white noise / unresolved', level='stop', 14 findings)
    >>> diagnosis.finding("regime").level
    'stop'
    """

    regime: str
    findings: tuple[Finding, ...]
    series: Mapping[str, Any]

    @property
    def level(self) -> Level:
        """The most serious level among the findings."""
        return LEVELS[max((LEVELS.index(f.level) for f in self.findings), default=0)]

    def finding(self, name: str) -> Finding:
        """Return the finding of that name.

        Parameters
        ----------
        name : str
            Such as "stationarity", "regime", "sample size".

        Returns
        -------
        Finding
        """
        by_name = {f.name: f for f in self.findings}
        if name not in by_name:
            raise KeyError(f"There is no finding {name!r}. There are: {', '.join(by_name)}.")
        return by_name[name]

    def summary(self) -> str:
        """Return the diagnosis as text: what the series is, then each finding and what to do about it."""
        tally = [count(n, level) for level in LEVELS[:0:-1] if (n := sum(f.level == level for f in self.findings))]
        levels = ", ".join(tally) or "nothing to worry about"
        head = [f"Regime: {self.regime}. {levels[0].upper()}{levels[1:]}.", self.series["description"], ""]
        return "\n".join(head + [line for f in self.findings for line in _lines(f)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; values that are not finite become None."""
        findings = [f.to_dict() for f in self.findings]
        return {"regime": self.regime, "level": self.level, "series": plain(self.series), "findings": findings}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Diagnosis":
        """Restore a diagnosis from the plain data of `to_dict`.

        Parameters
        ----------
        content : mapping
            What `to_dict` returned, also after a round trip through JSON.

        Returns
        -------
        Diagnosis
        """
        findings = tuple(Finding.from_dict(finding) for finding in content["findings"])
        return cls(content["regime"], findings, content["series"])

    def __repr__(self) -> str:
        return f"Diagnosis({self.regime!r}, level={self.level!r}, {count(len(self.findings), 'finding')})"


def _lines(finding: Finding) -> list[str]:
    tag = f"[{finding.level}]".ljust(10)
    lines = textwrap.wrap(f"{finding.name[0].upper()}{finding.name[1:]}: {finding.meaning}", _WIDTH - 10)
    advice = textwrap.wrap(finding.advice, _WIDTH - 13) if finding.level != "ok" else []
    marked = [("-> " if k == 0 else "   ") + line for k, line in enumerate(advice)]
    return [(tag if k == 0 else " " * 10) + line for k, line in enumerate(lines + marked)]


def plain(value: Any) -> Any:
    """Turn arrays into lists, numpy numbers into numbers, and what is not finite into None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value
