"""How the size of a step depends on the state it starts from: data against model.

    q_i(b) = < (x_i(t + tau) - x_i(t))^2 | x(t) in bin b > / < (x_i(t + tau) - x_i(t))^2 >

over a time tau so short that it is mostly noise. A model with a constant mobility has steps of nearly one size; what
the data have beyond it is noise that depends on the state, which no constant mobility can hold.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._core.format import after_number, plus_minus, short
from ..data import TimeSeries
from ..statistics.resampling import GROUPS, critical
from ..statistics.step_profiles import Profiles, StateBins, step_profiles

_SHORT = 0.1  # of the shortest integral time
_MATTERS = 0.25  # of the mean squared step


@dataclass(frozen=True)
class StepSizes:
    """Mean squared steps by state, relative to their mean: by the value of the variable itself, and by the radius.

    The radius is the distance from the mean in units of the covariance, |C^-1/2 x|.
    """

    data: Profiles
    model: Profiles
    data_error: Profiles
    model_error: Profiles
    names: tuple[str, ...]
    tau: float
    time_unit: str

    @classmethod
    def of(cls, data: TimeSeries, paths: TimeSeries, shortest: float) -> "StepSizes":
        """From standardised series and paths; `shortest` is the shortest integral time."""
        lag = min(max(1, round(_SHORT * shortest / data.dt)), min(len(s) for s in paths.segments) - 1)
        bins = StateBins.from_samples(data.stacked())
        (one, one_error), (other, other_error) = (step_profiles(s.segments, lag, bins) for s in (data, paths))
        return cls(one, other, one_error, other_error, data.names, lag * data.dt, data.time_unit)

    @cached_property
    def clearest(self) -> tuple[int, int] | None:
        """Kind and variable of the profile that data and model disagree on most, if beyond errors and worth a word."""
        gap, error = self.data - self.model, np.hypot(self.data_error, self.model_error)
        size = np.abs(gap) / np.maximum(error, 1e-12)
        real = (size > critical(GROUPS, gap.size)) & (np.abs(gap) > _MATTERS)
        if not real.any():
            return None
        kind, variable, _ = np.unravel_index(int(np.argmax(np.where(real, np.abs(gap), 0))), gap.shape)
        return int(kind), int(variable)

    def words(self) -> str:
        """What the clearest profile says; nothing where data and model agree."""
        if self.clearest is None:
            return ""
        kind, variable = self.clearest
        place, name = self.clearest, self.names[variable]
        high, low = int(np.argmax(self.data[place])), int(np.argmin(self.data[place]))
        where = [_where(kind, name, b) for b in (high, low)]
        ends = [plus_minus(float(self.data[place][b]), float(self.data_error[place][b])) for b in (high, low)]
        model = [short(float(self.model[place][b])) for b in (high, low)]
        return (
            f"State-dependent steps: the mean squared step of {name} over {short(self.tau)}"
            f"{after_number(self.time_unit)} is {ends[0]} times its mean {where[0]} and {ends[1]} times {where[1]}; in "
            f"the model {model[0]} and {model[1]}. A constant mobility cannot hold this: the noise depends on the "
            "state, or the motion over that time is more than noise."
        )


_FIFTHS = (
    ("lowest", "second", "middle", "fourth", "highest"),
    ("innermost", "second", "middle", "fourth", "outermost"),
)


def _where(kind: int, name: str, number: int) -> str:
    """One of the bins in words: fifths of the states, ordered by the variable or by the distance from the mean."""
    return f"in the {_FIFTHS[kind][number]} fifth of {'the states' if kind else name}"
