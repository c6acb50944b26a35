"""One finding: a name, a level, what it means, what to do about it, and the numbers behind it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Level = Literal["ok", "note", "warning", "stop"]
LEVELS: tuple[Level, ...] = ("ok", "note", "warning", "stop")


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
        words = {"name": self.name, "level": self.level, "meaning": self.meaning, "advice": self.advice}
        numbers = {
            name: {"value": plain(q.value), "error": plain(q.error), "unit": q.unit} for name, q in self.numbers.items()
        }
        return {**words, "numbers": numbers, "statistic": self.statistic, "p": self.p}

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


def worst_level(findings: Iterable[Finding]) -> Level:
    """Return the most serious level among the findings; "ok" if there are none."""
    return LEVELS[max((LEVELS.index(f.level) for f in findings), default=0)]


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
