"""What was found about a closure that depends on the state, as typed records."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import inf, isfinite
from typing import Any, Self

from ..._core.format import after_number, count, plus_minus, short

KINDS = {
    "constant": "a constant mobility",
    "current": "a constant diffusion and a current that depends on the state",
    "diffusion": "a diffusion that depends on the state, without a current",
    "both": "a diffusion and a current that depend on the state",
}
MEMORIES = {"none": "no memory", "velocity": "velocities", "velocity:2": "velocities and accelerations"}


@dataclass(frozen=True)
class Candidate:
    """A closure that was tried, with its loss in held-out forecasts, the excess over the best, and its error.

    The loss is the mean energy score in units of that of the simplest closure at the same lag; less is better.
    """

    kind: str
    loss: float
    excess: float
    standard_error: float


@dataclass(frozen=True)
class Choice(ABC):
    """What was taken, and why; `candidates` are those whose forecasts were compared, simplest first.

    `lags` are those of the forecasts, in units of time, and `starts` is the number of states they begin at. A candidate
    with members that diverged has an infinite loss.
    """

    kind: str
    reason: str
    lags: tuple[float, ...] = ()
    starts: int = 0
    candidates: tuple[Candidate, ...] = ()

    @staticmethod
    @abstractmethod
    def describe(kind: str) -> str:
        """Return a kind in words."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, which has no infinite numbers."""
        plain = asdict(self)
        for tried in plain["candidates"]:
            tried |= {name: None for name, value in tried.items() if name != "kind" and not isfinite(value)}
        return plain

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        known: list[dict[str, Any]] = [
            {name: inf if v is None else v for name, v in tried.items()} for tried in state["candidates"]
        ]
        tried = tuple(Candidate(**candidate) for candidate in known)
        return cls(**{**state, "lags": tuple(state["lags"]), "candidates": tried})

    def summary(self) -> str:
        return f"The model has {self.describe(self.kind)}: {self.reason}."

    def rows(self) -> list[tuple[str, str, str]]:
        """Return what was tried, its loss and its excess over the best in words, for a table."""
        return [
            (
                self.describe(tried.kind).removeprefix("a ").capitalize() + " (taken)" * (tried.kind == self.kind),
                short(tried.loss) if isfinite(tried.loss) else "members diverged",
                plus_minus(tried.excess, tried.standard_error) if 0 < tried.excess < inf else "",
            )
            for tried in self.candidates
        ]

    def leads(self) -> str:
        """Return the lags of the forecasts in words."""
        return ", ".join(short(lag) for lag in self.lags)


@dataclass(frozen=True)
class ClosureChoice(Choice):
    """Which kind of closure was taken, and why.

    `asked` tells that it was asked for and not chosen. `better` is then the simpler kind whose held-out forecasts are
    better beyond chance; empty where there is none, and where nothing could be compared. `few` is the number of
    independent samples where they are too few for a comparison.
    """

    asked: bool = False
    better: str = ""
    few: float | None = None

    @staticmethod
    def describe(kind: str) -> str:
        return KINDS[kind]

    def doubt(self) -> str:
        """Say that the data do not support the closure that was asked for; empty where they do, or do not tell."""
        if self.asked and self.few:
            words = f"The series has about {self.few:.0f} independent samples, too few to show on stretches held out"
            return f"{words} that {KINDS[self.kind]} is better than a constant mobility."
        if not self.better:
            return ""
        taken = next(tried for tried in self.candidates if tried.kind == self.kind)
        simpler = KINDS[self.better].replace(", without a current", "")
        words = f"On stretches held out, the forecasts with {KINDS[self.kind]} are worse than those with {simpler}"
        if not isfinite(taken.loss):
            return f"{words}: members diverged."
        by = plus_minus(taken.excess, taken.standard_error)
        return f"{words}: their mean energy score is higher by {by}, in units of that of a constant mobility."

    def advice(self) -> str:
        """Name the strategy that the data support."""
        strategy = {
            "current": "`mobility=el.StateDependent(diffusion=False)`",
            "diffusion": "`mobility=el.StateDependent(current=False)`",
        }.get(self.better, "`mobility=el.IntegratedResponse()` (`--mobility integrated-response`)")
        return f"{strategy}, or leave `mobility` out: the fit chooses."


@dataclass(frozen=True)
class MemoryChoice(Choice):
    """Which memory was taken, and why: "none", "velocity", "velocity:N" or "delays:N:LAG"."""

    @staticmethod
    def describe(kind: str) -> str:
        if kind in MEMORIES:
            return MEMORIES[kind]
        name, *numbers = kind.split(":")
        if name == "velocity":
            return f"{numbers[0]} derivatives"
        copies, lag = map(int, numbers)
        return f"{count(copies, 'delay')} of {f'{lag} steps' if lag > 1 else 'a step'}"


class _Plain:
    """A record as plain data, ready for JSON; what is None is left out."""

    def to_dict(self: Any) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls: Any, state: Mapping[str, Any]) -> Any:
        known = {f.name: state[f.name] for f in fields(cls) if f.name in state}
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in known.items()})


@dataclass(frozen=True)
class HeldOutCheck(_Plain):
    """How well a closure inferred without some stretches forecasts them.

    Ensembles of `members` forecasts begin at `starts` states. Two numbers are known for a right model, at every lag:
    the "share" of outcomes between the lowest and the highest forecast, and the "slope" of outcomes against mean
    forecasts. `value`, with its standard `error`, departs most from what is `expected`; it is of this `kind`, of this
    `variable`, at `lag`. `p` is the chance that any departs so far beyond what matters.

    `of_climatology` and `of_persistence` are the energy scores of the forecasts at each lag, in units of those of
    states of the series drawn at random and of the state at the start; `shares` are means over variables.
    """

    lags: tuple[float, ...]
    starts: int
    members: int
    kind: str
    variable: str
    lag: float
    expected: float
    value: float
    error: float
    p: float
    of_climatology: tuple[float, ...] = ()
    of_climatology_error: tuple[float, ...] = ()
    of_persistence: tuple[float, ...] = ()
    of_persistence_error: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def words(self, unit: str = "") -> str:
        """Name what departs most."""
        at = f" of {self.variable} after {short(self.lag)}{after_number(unit)}"
        if self.kind == "share":
            share = plus_minus(100 * self.value, 100 * self.error)
            found = f"the range of {self.members} forecasts from held-out states holds {share} % of the outcomes{at}"
            return f"{found}; {100 * self.expected:.0f} % are expected"
        slope = plus_minus(self.value, self.error)
        return f"outcomes{at} are {slope} times the mean forecasts from held-out states; 1 is expected"

    def summary(self) -> str:
        """Give what departs most."""
        return f"Held-out stretches: {self.words()}."


@dataclass(frozen=True)
class ClosureEvidence(_Plain):
    """How current and diffusion were found.

    `kind` is one of `KINDS`. `current_error` is |sym < nu x^T >| / |< nu nu^T >| on held-out samples, zero for the
    exact current. `explained` is the share of the squared velocity that the current explains there, and `white` tells
    whether what it leaves over is white noise.
    """

    kind: str
    current_by: str = ""
    degree: int | None = None
    diffusion_form: str = "constant"
    diffusion_degree: int = 0
    current_error: float | None = None
    current_error_se: float | None = None
    explained: tuple[float, ...] | None = None
    white: bool | None = None

    @property
    def from_correlations(self) -> bool:
        """Whether the fields were found from correlations at several lags, without velocities."""
        return self.current_by == "the weak form"

    def summary(self) -> str:
        lines = [f"The model has {KINDS[self.kind]}."]
        if self.current_by:
            what = "diffusion" if self.kind == "diffusion" else "current"
            lines.append(f"The {what} was found by {self.current_by}.")
        if self.current_error is not None:
            error = plus_minus(self.current_error, self.current_error_se or 0.0)
            lines.append(f"current_error {error}: the exact current has 0.")
        return "\n".join(lines)
