"""What a score strategy returns, and what it found on its way: typed records that travel into the model file."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..._core.format import count, short
from .score import Score


@dataclass(frozen=True)
class NoiseLevelChoice:
    """The smoothing widths tried, their held-out losses above the best, and the standard errors of these."""

    noise_level: tuple[float, ...]
    held_out_loss: tuple[float, ...]
    standard_error: tuple[float, ...]


@dataclass(frozen=True)
class GainOverGaussian:
    """By how much the score learned at `noise_level` beats the Gaussian one on held-out samples."""

    noise_level: float
    gain: float
    standard_error: float
    gaussian_used: bool


@dataclass(frozen=True)
class VarianceCorrection:
    """Variances of the model over those of the data, by round and direction, before each round of the correction."""

    variance_ratio: tuple[tuple[float, ...], ...]
    duration: float
    members: int


@dataclass(frozen=True)
class ScoreEvidence:
    """What a score fit found; fields are None where a strategy does not produce them.

    `extra` holds what a strategy outside of this package reports.
    """

    noise_level_choice: NoiseLevelChoice | None = None
    gain_over_gaussian: GainOverGaussian | None = None
    cells: int | None = None
    draws: int | None = None
    monte_carlo_error: float | None = None
    sampling_error: float | None = None
    loss_curve: tuple[float, ...] | None = None
    held_out_loss_curve: tuple[float, ...] | None = None
    training_steps: int | None = None
    stein_before_calibration: tuple[tuple[float, ...], ...] | None = None
    extrapolated_from: float | None = None
    settled: VarianceCorrection | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "ScoreEvidence":
        """Return the record that `to_dict` wrote; unknown entries go to `extra`."""
        known = {f.name for f in fields(cls)} - {"extra"}
        values = {name: _with_sequences(tuple, value) for name, value in found.items() if name in known}
        values |= {name: _RECORDS[name](**values[name]) for name in _RECORDS if values.get(name) is not None}
        return cls(**values, extra={name: value for name, value in found.items() if name not in known})

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain data, ready for JSON."""
        values = asdict(self)
        extra = values.pop("extra")
        return _with_sequences(list, {name: value for name, value in values.items() if value is not None}) | extra

    def summary(self) -> str:
        lines = []
        if choice := self.noise_level_choice:
            lines.append(f"smoothing width chosen among {', '.join(f'{level:g}' for level in choice.noise_level)}")
        if gain := self.gain_over_gaussian:
            text = f"gain over the Gaussian score {short(gain.gain)} ± {short(gain.standard_error)}"
            lines.append(text + (": Gaussian score used" if gain.gaussian_used else ""))
        if self.cells is not None:
            lines.append(count(self.cells, "cell") + (f", {count(self.draws, 'draw')} of noise" if self.draws else ""))
        if self.training_steps is not None and self.loss_curve:
            lines.append(f"{count(self.training_steps, 'training step')}, final loss {short(self.loss_curve[-1])}")
        if self.extrapolated_from is not None:
            lines.append(f"extrapolated to smoothing width 0 from {self.extrapolated_from:g}")
        if self.settled:
            lines.append(f"variances corrected in {count(len(self.settled.variance_ratio), 'round')} of simulation")
        return "\n".join([*lines, *(f"{name}: {value}" for name, value in self.extra.items())])


_RECORDS = {
    "noise_level_choice": NoiseLevelChoice,
    "gain_over_gaussian": GainOverGaussian,
    "settled": VarianceCorrection,
}


def _with_sequences(kind: type, value: Any) -> Any:
    """Convert every list and tuple inside plain data to one kind."""
    if isinstance(value, Mapping):
        return {name: _with_sequences(kind, entry) for name, entry in value.items()}
    return kind(_with_sequences(kind, entry) for entry in value) if isinstance(value, list | tuple) else value


@dataclass(frozen=True, eq=False)
class LearnedScore:
    """What a strategy returns: a score, not yet calibrated, its smoothing width, and what was found on the way."""

    function: Score
    noise_level: float = 0.0
    evidence: ScoreEvidence = field(default_factory=ScoreEvidence)

    @classmethod
    def from_result(cls, result: Any) -> "LearnedScore":
        """Accept the tuple (score, noise level, dictionary) of strategies written for earlier versions."""
        if isinstance(result, cls):
            return result
        warnings.warn("`learn` should return a `LearnedScore`, not a tuple.", DeprecationWarning, stacklevel=3)
        function, noise_level, found = result
        return cls(function, noise_level, ScoreEvidence.from_dict(found))
