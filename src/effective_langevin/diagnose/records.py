"""A diagnosis: its findings, the most serious first, as text and as plain data."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.format import count
from .findings.finding import LEVELS, Finding, plain, worst_level

_WIDTH = 110


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
        return worst_level(self.findings)

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
