"""The state space of a model: lines and circles, a group that acts on them, observed and hidden variables."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from .._core.errors import ArgumentError
from .symmetry import SYMMETRIES, NoSymmetry, Symmetry


@dataclass(frozen=True)
class StateSpace:
    """Where the states of a model live.

    `periods` has one entry per variable: the period of an angle, None for a variable on the line. `symmetry` is the
    group under which the process looks the same. The last `hidden` variables are not observed.
    """

    periods: tuple[float | None, ...]
    symmetry: Symmetry = field(default_factory=NoSymmetry)
    hidden: int = 0

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return len(self.periods)

    @property
    def observed(self) -> int:
        """Number of variables that the data show."""
        return self.dimension - self.hidden

    @property
    def angles(self) -> tuple[int, ...]:
        """The variables that are angles."""
        return tuple(i for i, period in enumerate(self.periods) if period)

    @property
    def channels(self) -> int | None:
        """Number of fields on a periodic grid; None where the variables are not points of a grid."""
        return self.symmetry.channels

    def check(self) -> None:
        """Refuse a group that cannot act on these variables."""
        self.symmetry.check(self.dimension)
        if self.angles and self.channels:
            raise ArgumentError(
                f"{type(self.symmetry).__name__} acts on fields of real numbers, but variables {self.angles} are "
                "angles. Leave out `symmetry`, or give cos and sin of the angles as fields."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        settings = asdict(self.symmetry) if is_dataclass(self.symmetry) else {}
        kind = type(self.symmetry).__name__
        return {"periods": list(self.periods), "symmetry": {"kind": kind, **settings}, "hidden": self.hidden}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "StateSpace":
        """Undo `to_dict`; a group that only its author knows is left out, as a stored model does not need it."""
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in state["symmetry"].items()}
        kind = SYMMETRIES.get(settings.pop("kind"))
        return cls(tuple(state["periods"]), kind(**settings) if kind else NoSymmetry(), state.get("hidden", 0))
