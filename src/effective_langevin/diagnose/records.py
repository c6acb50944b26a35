"""What a diagnosis is made of: quantities with errors, findings in plain words, and the whole."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._core.format import count

LEVELS = ("ok", "note", "warning", "stop")
_WIDTH = 110


@dataclass(frozen=True)
class Quantity:
    """A number, or one per variable or lag, with its standard error where there is one."""

    value: Any
    error: Any = None
    unit: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing found out about the series.

    `level` is "ok", "note" (worth knowing), "warning" (will spoil the fit unless dealt with) or "stop" (a fit would be
    meaningless). `meaning` says what was found, `advice` what to do about it, `numbers` what both rest on.
    """

    name: str
    level: str
    meaning: str
    advice: str = ""
    numbers: Mapping[str, Quantity] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        numbers = {
            name: {"value": plain(q.value), "error": plain(q.error), "unit": q.unit} for name, q in self.numbers.items()
        }
        words = {"name": self.name, "level": self.level, "meaning": self.meaning, "advice": self.advice}
        return {**words, "numbers": numbers}


@dataclass(frozen=True)
class Diagnosis:
    """What kind of series this is, and what stands between it and a Langevin equation.

    `regime` says how the series moves over one sampling interval: "diffusive", "ballistic" (smooth), "mixed" (some
    variables smooth, some not), "measurement noise", "coarse" (much happens between two samples) or
    "white noise / unresolved". `findings` come with the most serious first. `curves` is what `plot_diagnosis` draws.
    """

    regime: str
    findings: tuple[Finding, ...]
    series: Mapping[str, Any]
    curves: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def level(self) -> str:
        """The most serious level among the findings."""
        return max((f.level for f in self.findings), key=LEVELS.index)

    def finding(self, name: str) -> Finding:
        """The finding of that name."""
        found = {f.name: f for f in self.findings}
        if name not in found:
            raise KeyError(f"There is no finding {name!r}. There are: {', '.join(found)}.")
        return found[name]

    def summary(self) -> str:
        """The diagnosis as text: what the series is, then each finding and what to do about it."""
        tally = [count(n, level) for level in LEVELS[:0:-1] if (n := sum(f.level == level for f in self.findings))]
        levels = ", ".join(tally) or "nothing to worry about"
        head = [f"Regime: {self.regime}. {levels[0].upper()}{levels[1:]}.", self.series["description"], ""]
        return "\n".join(head + [line for f in self.findings for line in _lines(f)])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; what is not finite becomes None."""
        return {
            "regime": self.regime,
            "level": self.level,
            "series": plain(self.series),
            "findings": [f.to_dict() for f in self.findings],
            "curves": plain(self.curves),
        }


def _lines(finding: Finding) -> list[str]:
    tag = f"[{finding.level}]".ljust(10)
    lines = textwrap.wrap(f"{finding.name[0].upper()}{finding.name[1:]}: {finding.meaning}", _WIDTH - 10)
    advice = textwrap.wrap(finding.advice, _WIDTH - 13) if finding.level != "ok" else []
    marked = [("-> " if k == 0 else "   ") + line for k, line in enumerate(advice)]
    return [(tag if k == 0 else " " * 10) + line for k, line in enumerate(lines + marked)]


def plain(value: Any) -> Any:
    """Arrays as lists, numpy numbers as numbers, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value
