"""Data against model where the variables are points on a ring, all alike: pooled over points, and mode by mode."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .._core.format import short
from ..statistics import distances
from ..statistics.densities import BINS
from ..statistics.integral_time import integral_time
from ..statistics.lags import LaggedMoments
from ..statistics.resampling import GROUPS, jackknife
from . import fields

if TYPE_CHECKING:
    from .validation import Validation

SIDES = ("data", "model")
BySide = dict[str, np.ndarray]


@dataclass(frozen=True)
class FieldsComparison:
    """What figures, tables and verdict need; curves are {data, model}, of standardised fields, (..., channel, mode)."""

    validation: "Validation"
    channels: int

    @classmethod
    def of(cls, validation: "Validation") -> "FieldsComparison | None":
        """The comparison, if the model was fitted with the symmetry of a ring."""
        channels = fields.channels_of(validation.model.provenance)
        return None if channels is None else cls(validation, channels)

    @property
    def points(self) -> int:
        """Points on the ring."""
        return self.validation.model.dimension // self.channels

    @property
    def fields(self) -> list[str]:
        """A name for each field: those of its first and its last point."""
        names = self.validation.data.names
        return [f"{names[c * self.points]} … {names[(c + 1) * self.points - 1]}" for c in range(self.channels)]

    @property
    def units(self) -> list[str]:
        """The unit of each field."""
        return [self.validation.data.units[c * self.points] for c in range(self.channels)]

    @property
    def tau(self) -> np.ndarray:
        """Lag times."""
        return self.validation.data_statistics.tau

    @cached_property
    def moments(self) -> dict[str, LaggedMoments]:
        """Lagged covariances of the modes, in groups."""
        v = self.validation
        square = v.model.standardizer.std[:: self.points, None] ** 2
        found = {"data": v.data_statistics.lagged, "model": v.model_statistics.lagged}
        return {side: replace(m, sums=fields.modes_of(m.sums, self.channels) / square) for side, m in found.items()}

    @cached_property
    def variances(self) -> BySide:
        """Variance of each mode, (channel, mode)."""
        return {side: m.mean()[0] for side, m in self.moments.items()}

    @cached_property
    def mode_acfs(self) -> BySide:
        """Autocorrelation of each mode, (lag, channel, mode)."""
        return {side: fields.mode_acf(m.mean()) for side, m in self.moments.items()}

    @cached_property
    def point_acfs(self) -> BySide:
        """Autocorrelation at a point, (lag, channel)."""
        return {side: fields.point_acf(m.mean(), self.points) for side, m in self.moments.items()}

    def errors(self, of: Callable[[np.ndarray], np.ndarray]) -> BySide:
        """Leave-one-group-out errors of a function of the covariances (lag, channel, mode)."""
        return {side: jackknife(lambda w, m=m: of(m.mean(w)), GROUPS)[1] for side, m in self.moments.items()}

    def leading(self, channel: int) -> list[int]:
        """The modes of the data that hold most of the variance of a field."""
        return fields.leading_modes(self.variances["data"][channel], self.points)

    def shares(self, channel: int) -> np.ndarray:
        """Fraction of the variance of a field in each mode of the data."""
        return fields.variance_shares(self.variances["data"][channel], self.points)

    def integral_times(self, acf: Float[np.ndarray, " lag"]) -> float:
        """Integral of an autocorrelation up to its first zero, over the lags compared."""
        return float(integral_time(acf, self.tau))

    @cached_property
    def edges(self) -> Float[np.ndarray, "channel edge"]:
        """Bins of each field, between the mean quantiles of its points."""
        ends = self.validation.data_statistics.edges[:, [0, -1]].reshape(self.channels, self.points, 2).mean(axis=1)
        return np.linspace(ends[:, 0], ends[:, 1], BINS + 1, axis=1)

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """All states, (sample, channel, point)."""
        series = {"data": self.validation.data, "model": self.validation.paths}
        return {side: s.stacked().reshape(-1, self.channels, self.points) for side, s in series.items()}

    @cached_property
    def counts(self) -> BySide:
        """Counts of each field in its bins, pooled over points, (channel, bin)."""
        low, high = (np.repeat(ends, self.points) for ends in (self.edges[:, 0], self.edges[:, -1]))
        flat = {side: s.reshape(len(s), -1) for side, s in self.samples.items()}
        counts = {side: fields.histograms(s, low, high, BINS) for side, s in flat.items()}
        return {side: c.reshape(self.channels, self.points, BINS).sum(axis=1) for side, c in counts.items()}

    def kl(self) -> Float[np.ndarray, " channel"]:
        """KL(data || model) of the density of each field at a point."""
        return distances.pdf_kl(self.counts["data"], self.counts["model"])

    def pair_counts(self, channel: int, bins: int) -> BySide:
        """Joint counts of a field at two points, (offset, bin, bin), pooled over points."""
        low, high = self.edges[channel, [0, -1]]
        return {side: fields.pair_counts(s[:, channel], low, high, bins=bins) for side, s in self.samples.items()}

    def worst_mode(self) -> tuple[int, int, float]:
        """Channel, mode and rms difference of the autocorrelation that is off most among the leading modes."""
        gap = np.sqrt(np.mean((self.mode_acfs["data"] - self.mode_acfs["model"]) ** 2, axis=0))
        places = [(c, k) for c in range(self.channels) for k in self.leading(c)]
        channel, mode = max(places, key=lambda place: gap[place])
        return channel, mode, float(gap[channel, mode])

    def clock_words(self) -> str:
        """The integral time at a point, and the mode whose clock is off most."""
        ratios = [
            self.integral_times(self.point_acfs["model"][:, c]) / self.integral_times(self.point_acfs["data"][:, c])
            for c in range(self.channels)
        ]
        off = int(np.argmax(np.abs(np.log(ratios))))
        channel, mode, gap = self.worst_mode()
        of_field = f" of {self.fields[off]}" if self.channels > 1 else ""
        in_field = f" of {self.fields[channel]}" if self.channels > 1 else ""
        return (
            f"The integral time at a point{of_field} is {ratios[off]:.2f} times that of the data; of the modes that "
            f"hold most of the variance, mode {mode}{in_field} is off most ({short(gap)} rms)."
        )
