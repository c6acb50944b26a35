"""The state space of a model: lines and circles, a group that acts on them, observed and hidden variables.

An angle lives on a circle: x and x + period are the same state, and a score there is periodic. Networks see cos and sin
of an angle. Identities for x on the line (Stein's, the response of x) hold for smooth functions on the circle instead.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

import numpy as np

from .._core.errors import ArgumentError
from .._core.types import Samples, Vector
from ..data import Standardizer, TimeSeries, angles
from ..data.preprocess.pointwise import embed_angles
from .symmetry import SYMMETRIES, NoSymmetry, Symmetry, common_units

_HARMONICS = 3
_LEAST_ORDER = 0.1

Tests = Callable[[Samples], tuple[Samples, Samples]]


@dataclass(frozen=True)
class StateSpace:
    """Where the states of a model live.

    `periods` has one entry per variable: the period of an angle, None for a variable on the line; `lowest` says where
    the period of each angle begins. `symmetry` is the group under which the process looks the same. The last `hidden`
    variables are not observed. If they are velocities v of the others, `rates` says how fast these move: dx/dt = rate
    times v; `errors` are those with which they are known from the past.
    """

    periods: tuple[float | None, ...]
    symmetry: Symmetry = field(default_factory=NoSymmetry)
    hidden: int = 0
    lowest: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()

    @classmethod
    def of(cls, series: TimeSeries, symmetry: Symmetry) -> "StateSpace":
        """Read the angles that the series declares; refuse a group that cannot act on its variables."""
        space = cls(series.periods, symmetry, lowest=tuple(angles.lowest(series).tolist()))
        space.check()
        return space

    def with_hidden(self, observed: int, errors: Sequence[float] = ()) -> "StateSpace":
        """Return the space in which only the first variables are observed; with `errors`, the others are velocities."""
        rates = (1.0,) * len(errors)
        return replace(self, hidden=self.dimension - observed, rates=rates, errors=tuple(errors))

    @property
    def dimension(self) -> int:
        return len(self.periods)

    @property
    def observed(self) -> int:
        """Number of variables that the data show."""
        return self.dimension - self.hidden

    @property
    def angles(self) -> tuple[int, ...]:
        return tuple(i for i, period in enumerate(self.periods) if period)

    @property
    def channels(self) -> int | None:
        """Number of fields on a periodic grid; None where the variables are not points of a grid."""
        return self.symmetry.channels

    def check(self) -> None:
        self.symmetry.check(self.dimension)
        if self.angles and self.channels:
            raise ArgumentError(
                f"{type(self.symmetry).__name__} acts on fields of real numbers, but variables {self.angles} are "
                "angles. Leave out `symmetry`, or give cos and sin of the angles as fields."
            )

    def in_units_of(self, widths: Vector) -> "StateSpace":
        """Return the space with each variable measured in units of its width."""
        periods = tuple(period and float(period / width) for period, width in zip(self.periods, widths))
        ratios = zip(self.rates, widths[len(self.rates) :], widths)
        rates = tuple(float(r * v / x) for r, v, x in ratios)
        errors = tuple(float(e / v) for e, v in zip(self.errors, widths[len(rates) :]))
        return replace(self, periods=periods, lowest=(), rates=rates, errors=errors)

    def observe(self, series: TimeSeries) -> TimeSeries:
        """Return a series of these variables without the hidden ones."""
        if not self.hidden:
            return series
        labels = {name: getattr(series, name)[: self.observed] for name in ("names", "units", "periods")}
        return series.with_segments([s[:, : self.observed] for s in series.segments], **labels)

    def embed_observed(self, series: TimeSeries) -> TimeSeries:
        """Return a series of these variables without the hidden ones, with cos and sin in place of angles."""
        return embed_angles(self.observe(series))

    def unfold(self, series: TimeSeries) -> TimeSeries:
        """Let the period of each angle begin where samples are rarest, so that few paths jump."""
        return angles.unfold(series)

    def units_of(self, series: TimeSeries) -> Standardizer:
        """Return standardised units: common ones where the symmetry asks for them, and velocities around zero."""
        units = common_units(Standardizer.from_series(series), self.symmetry)
        hidden = np.arange(self.dimension) >= self.observed
        return replace(units, mean=np.where(hidden, 0.0, units.mean)) if self.rates else units

    def blur_hidden(self, states: Samples, normals: Samples) -> Samples:
        """Return states, in the units of this space, with the errors of their velocities drawn."""
        width = np.zeros(self.dimension)
        width[self.dimension - len(self.errors) :] = self.errors
        return states + width * normals

    def blur_series(self, series: TimeSeries) -> TimeSeries:
        """Return a series with the errors of its velocities drawn: these then have the spread of the velocities.

        A velocity known from the past is a mean, and what it misses does not depend on it.
        """
        if not any(self.errors):
            return series
        draw = np.random.default_rng(0)
        return series.with_segments([self.blur_hidden(s, draw.normal(size=s.shape)) for s in series.segments])

    def declare(self, series: TimeSeries) -> TimeSeries:
        """Return a series of these variables with its angles declared."""
        return series.with_segments(series.segments, periods=self.periods)

    def wrap(self, series: TimeSeries) -> TimeSeries:
        """Declare the angles of a series and bring them into their periods."""
        return angles.wrap(self.declare(series), self.lowest) if self.angles else series

    @property
    def owners(self) -> list[int]:
        """The variable that each entry of an embedded state is a function of."""
        return [i for i, period in enumerate(self.periods) for _ in range(2 if period else 1)]

    def embed(self, x: Any, order: int = 0, library: Any = np) -> Any:
        """Return cos and sin of each angle, other variables as they are; with `order`, that derivative by their owner.

        `library` is `jax.numpy` for states that are traced.
        """
        parts = []
        for i, period in enumerate(self.periods):
            if period:
                rate, quarter = 2 * np.pi / period, 0.5 * np.pi * order
                parts += [rate**order * library.cos(rate * x[..., i] + q) for q in (quarter, quarter - 0.5 * np.pi)]
            else:
                parts.append((x[..., i], library.ones_like(x[..., i]), library.zeros_like(x[..., i]))[order])
        return library.stack(parts, axis=-1)

    def stein_tests(self, samples: Samples) -> Tests | None:
        """Return functions g_j with their slopes: x_j itself, or a sine around the middle of an angle; None on lines.

        < s_i g_j > = -delta_ij < g_j' > for the exact score, on the circle as on the line. Of the first harmonics, that
        is taken which the angle follows most, so that the mean slope is as large as it can be.
        """
        if not self.angles:
            return None
        waves = {i: _wave(samples[:, i], 2 * np.pi / period) for i, period in enumerate(self.periods) if period}

        def tests(y: Samples) -> tuple[Samples, Samples]:
            values, slopes = np.array(y, float), np.ones(y.shape)
            for i, (rate, middle) in waves.items():
                values[:, i], slopes[:, i] = np.sin(rate * (y[:, i] - middle)) / rate, np.cos(rate * (y[:, i] - middle))
            return values, slopes

        return tests

    def to_dict(self) -> dict[str, Any]:
        settings = asdict(self.symmetry) if is_dataclass(self.symmetry) else {}
        kind = type(self.symmetry).__name__
        where = {"periods": list(self.periods), "lowest": list(self.lowest), "hidden": self.hidden}
        where |= {"rates": list(self.rates), "errors": list(self.errors)} if self.rates else {}
        return {**where, "symmetry": {"kind": kind, **settings}}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "StateSpace":
        """Undo `to_dict`; a group that only its author knows is left out, as a stored model does not need it."""
        settings: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in state["symmetry"].items()}
        kind = SYMMETRIES.get(settings.pop("kind"))
        group = kind(**settings) if kind else NoSymmetry()
        lists = (tuple(state.get(name, ())) for name in ("lowest", "rates", "errors"))
        return cls(tuple(state["periods"]), group, state.get("hidden", 0), *lists)


def _wave(angle: np.ndarray, rate: float) -> tuple[float, float]:
    """Return wave number and phase of the harmonic with the largest mean."""
    means = [np.exp(1j * k * rate * angle.astype(float)).mean() for k in range(1, _HARMONICS + 1)]
    best = int(np.argmax(np.abs(means)))
    return (best + 1) * rate, float(np.angle(means[best]) / ((best + 1) * rate))


def solve_for_stein(products: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Solve V_ij < g_j' > = < s_i g_j >; V tends to -I where an angle is spread so evenly that nothing can be said."""
    weight = np.where(np.abs(slopes) < 1 - 1e-12, _LEAST_ORDER, 0.0) ** 2
    return (products * slopes - np.diag(weight)) / (slopes**2 + weight)
