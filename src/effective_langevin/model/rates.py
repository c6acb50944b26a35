"""Basins of the steady state and first-passage times: of the model exactly on a grid, of data by counting.

The mean time T(x) to reach a set solves L T = -1 with T = 0 on the set, where L is the generator of the equation. In
one and two variables it is solved on a grid; in more, long paths are simulated and counted like data.

A record shows its states at intervals dt only. Visits between two samples are missed, so that times counted in data are
longer than T. The time to the first *sample* in the set solves T = dt + E[T(x(dt))] outside the set, on the same grid:
that one is compared with data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, gmres, splu

from .._core import checks
from .._core.errors import ArgumentError
from .._core.format import count, listed, measured, percent
from .._core.types import Samples, Vector
from ..data import TimeSeries
from ..statistics.passage import passage_times
from ..statistics.watershed import find_watersheds
from ..systems.fokker_planck import FokkerPlanck, expectation_after

if TYPE_CHECKING:
    from .langevin import LangevinModel

States = int | Callable[[Samples], np.ndarray]

_POINTS = {1: 801, 2: 101}
_MARGIN = 0.15
_CORE = np.exp(-1.0)
_UNLIKELY = 1e-5  # of the highest density
_PRECISION = 1e-2  # of a time that is solved for in float64
_REPLICAS = 8
_MEMBERS, _LENGTH = 256, 200


@dataclass(frozen=True, eq=False, repr=False)
class Basins:
    """Basins of the potential -ln p of a model, the most populated first, in the model's variables.

    `centres` (basin, var) are the most probable states, `shares` the probabilities, `barriers` (basin, basin) the climb
    from the bottom of one to the pass to another in units of kT, infinite where they do not touch. The core of a basin
    is what lies within kT of its bottom, and below half its lowest pass; `dwell` is the mean time from there to the
    core of any other.
    """

    centres: Float[np.ndarray, "basin var"]
    shares: Float[np.ndarray, " basin"]
    barriers: Float[np.ndarray, "basin basin"]
    dwell: Float[np.ndarray, " basin"]
    dwell_error: Float[np.ndarray, " basin"]
    names: tuple[str, ...]
    time_unit: str
    grid: "Landscape"

    def assign(self, states: Samples) -> np.ndarray:
        """Return the number of the basin in which each state lies.

        Parameters
        ----------
        states : array, shape (sample, var)
            States, in the model's variables.

        Returns
        -------
        array of int, shape (sample,)
        """
        return self.grid.labels[self.grid.locate(np.asarray(states, float))]

    def core(self, basin: int, states: Samples) -> np.ndarray:
        """Tell which states lie in the core of a basin.

        Parameters
        ----------
        basin : int
            Its number.
        states : array, shape (sample, var)
            States, in the model's variables.

        Returns
        -------
        array of bool, shape (sample,)
        """
        return self.grid.core(basin)[self.grid.locate(np.asarray(states, float))]

    def summary(self) -> str:
        """Return the basins as text: where, how probable, how long."""
        lines = [repr(self)]
        for k, centre in enumerate(self.centres):
            place = ", ".join(f"{name} = {value:.3g}" for name, value in zip(self.names, centre))
            stay = measured(float(self.dwell[k]), float(self.dwell_error[k]), self.time_unit)
            words = f"; dwell {stay}" if np.isfinite(self.dwell[k]) else ""
            lines.append(f"  {k}: {place}; {percent(float(self.shares[k]))}{words}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Basins({count(len(self.shares), 'basin')} of {listed(self.names)})"


@dataclass(frozen=True, repr=False)
class FirstPassage:
    """Mean time from states of one set, in the steady state, until another is reached: of the model, and of data.

    `value` is that of the equation. Data miss what happens between two samples: `data_value` compares with
    `sampled_value`, the time until a sample of the model at the interval of the data lies in the other set.
    """

    value: float
    standard_error: float
    data_value: float = np.nan
    data_error: float = np.nan
    time_unit: str = ""
    sampled_value: float = np.nan
    sampled_error: float = np.nan

    def summary(self) -> str:
        """Return the times, as text."""
        return repr(self).removeprefix("FirstPassage(").removesuffix(")")

    def __repr__(self) -> str:
        text = f"model {measured(self.value, self.standard_error, self.time_unit)}"
        if np.isfinite(self.sampled_value):
            text += f", sampled as the data {measured(self.sampled_value, self.sampled_error, self.time_unit)}"
        if np.isfinite(self.data_value):
            text += f"; data {measured(self.data_value, self.data_error, self.time_unit)}"
        return f"FirstPassage({text})"


@dataclass(frozen=True, eq=False)
class Landscape:
    """The equation of a model on a grid, its steady state, and the basins of that: those in which `states` lie."""

    equation: FokkerPlanck
    states: Samples | None = None

    @classmethod
    def of(cls, model: "LangevinModel", points: int | None = None) -> "Landscape":
        """Put the grid around the states of the data, with so many points along each variable."""
        low, high = model.states.min(axis=0), model.states.max(axis=0)
        margin = _MARGIN * (high - low)
        limits = list(zip(low - margin, high + margin))
        points = points or _POINTS[model.dimension]
        return cls(FokkerPlanck.from_functions(model.drift, model.diffusion, limits, points), model.states)

    @cached_property
    def density(self) -> np.ndarray:
        density = np.maximum(self.equation.density, 0.0)
        return density / density.sum()

    @cached_property
    def watersheds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Basin of each grid point, the peaks, and the densities of the passes between them."""
        density = self.density.reshape([len(axis) for axis in self.equation.axes])
        visited = None if self.states is None else self.locate(np.asarray(self.states, float))
        labels, peaks, passes = find_watersheds(density, visited=visited)
        shares = np.bincount(labels.ravel(), self.density)
        order = np.argsort(-shares)
        return np.argsort(order)[labels.ravel()], peaks[order], passes[np.ix_(order, order)]

    @property
    def labels(self) -> np.ndarray:
        return self.watersheds[0]

    def core(self, basin: int) -> np.ndarray:
        """Tell which grid points lie in the core of a basin."""
        labels, peaks, passes = self.watersheds
        if not 0 <= basin < len(peaks):
            raise checks.refused("basin", f"a basin from 0 to {len(peaks) - 1}", basin)
        height = self.density[peaks[basin]]
        return (labels == basin) & (self.density >= max(_CORE * height, np.sqrt(height * passes[basin].max())))

    def locate(self, states: Samples) -> np.ndarray:
        """Return the nearest grid point of each state."""
        axes = self.equation.axes
        places = [np.rint((x - a[0]) / (a[1] - a[0])).astype(int).clip(0, len(a) - 1) for x, a in zip(states.T, axes)]
        return np.asarray(np.ravel_multi_index(places, [len(a) for a in axes]))

    def times_to(self, target: np.ndarray, dt: float | None = None) -> Vector:
        """Return the mean time to reach a set of grid points from each, or until one of the samples every dt is there.

        The latter solves (1 - P) T = dt outside the set with P = exp(L dt), beginning with the former. NaN where the
        set is so hard to reach that rounding decides.
        """
        generator, times = sp.csr_array(self.equation.generator), np.zeros(len(target))
        outside = np.flatnonzero(~target)
        inverse, ones = splu(sp.csc_array(generator[outside][:, outside])), np.ones(len(outside))
        likely = self.density[outside] > _UNLIKELY * self.density.max()
        longest = _PRECISION / (np.finfo(float).eps * np.abs(generator.diagonal()).max())

        def checked(found: np.ndarray) -> np.ndarray | float:
            sure = (found[likely] > 0) & (found[likely] < longest)
            return found if sure.all() else np.nan

        times[outside] = checked(inverse.solve(-ones))
        if dt is None or np.isnan(times).any():
            return times
        advance = expectation_after(dt, self.equation.generator)

        def missed(inner: np.ndarray) -> np.ndarray:
            whole = np.zeros(len(target))
            whole[outside] = inner.ravel()
            return (inner.ravel() - advance(whole)[outside]) / dt

        operator: Any = LinearOperator
        left = operator(2 * (len(outside),), matvec=missed)
        guess = operator(left.shape, matvec=lambda rest: dt * rest.ravel() - inverse.solve(rest.ravel()))
        found, failed = gmres(left, ones, x0=times[outside] + dt, M=guess, rtol=1e-6, maxiter=20)
        times[outside] = np.nan if failed else checked(found)
        return times


class PassageMethods:
    """The methods of a model that tell where it stays, and how long it takes to go elsewhere."""

    def basins(self: Any) -> Basins:
        """Return the basins of the potential -ln p in one or two variables: where they are, and how long paths stay.

        All is exact for the equation of the model, on a grid; errors are those of the mobility.

        Returns
        -------
        Basins
            With `centres`, `shares`, `barriers` in kT, `dwell` and `assign(states)`.

        Examples
        --------
        >>> series = el.systems.OrnsteinUhlenbeck([[1.0]]).simulate(200.0, dt=0.1, seed=1)
        >>> el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation()).basins()
        Basins(1 basin of x1)
        """
        model: LangevinModel = self
        if model.dimension > 2 or model.space.angles:
            raise ArgumentError(
                f"Basins are found in one or two variables on lines, but the model has {listed(model.names)}. Use "
                "`model.first_passage` with functions of states, such as lambda x: x[:, 0] > 1."
            )
        grid = Landscape.of(model)
        labels, peaks, passes = grid.watersheds
        heights = grid.density[peaks]
        with np.errstate(divide="ignore"):
            barriers = np.log(heights[:, None] / passes)
        np.fill_diagonal(barriers, 0.0)
        cores = [grid.core(k) for k in range(len(peaks))]
        dwell = np.full((len(cores), 2), np.nan)
        for k, core in enumerate(cores if len(cores) > 1 else ()):
            dwell[k] = _mean_time(model, grid, core, np.any(cores[:k] + cores[k + 1 :], axis=0))
        value, error = dwell.T
        shares = np.bincount(labels, grid.density)
        return Basins(grid.equation.states[peaks], shares, barriers, value, error, model.names, model.time_unit, grid)

    def first_passage(
        self: Any, from_: States, to: States, *, series: TimeSeries | None = None, seed: int = 0
    ) -> FirstPassage:
        """Return the mean time from one set of states, in the steady state, until another is first reached.

        In one and two variables it is exact for the equation of the model, on a grid, with errors from those of the
        mobility; in more, simulated paths are counted.

        Parameters
        ----------
        from_, to : int or function
            The core of a basin of `model.basins()`, by its number, or a function from states (sample, var) of the
            model's variables to truth values, such as ``lambda x: x[:, 0] > 1``.
        series : TimeSeries, optional
            Data in which to count the same times, with errors from groups of samples. A record shows nothing between
            two samples, so that its times are longer; the model's time with the same blindness stands beside them.
        seed : int, default 0
            Seed of the simulation, if there is one.

        Returns
        -------
        FirstPassage
            `value` and `standard_error` of the model, `data_value` and `data_error` of the data, `sampled_value` and
            `sampled_error` of the model seen at the interval of the data: compare these two.

        Examples
        --------
        >>> series = el.systems.OrnsteinUhlenbeck([[1.0]]).simulate(200.0, dt=0.1, seed=1)
        >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
        >>> found = model.first_passage(lambda x: x[:, 0] < 0, lambda x: x[:, 0] > 1.5)
        >>> bool(found.value > 1)
        True
        """
        model: LangevinModel = self
        grid = Landscape.of(model) if model.dimension <= 2 and not model.space.angles else None
        begin, end = (_as_set(name, states, grid) for name, states in (("from_", from_), ("to", to)))
        observed = sampled = (np.nan, np.nan)
        if series is not None:
            series = model.to_model_variables(series)
            observed = _count(series, begin, end)
        if grid is not None:
            sets = [states(grid.equation.states) for states in (begin, end)]
            time = _mean_time(model, grid, *sets)
            if series is not None:
                sampled = _mean_time(model, grid, *sets, dt=series.dt)
        else:
            duration = _LENGTH * float(np.max(model.timescales().value))
            dt = None if series is None else series.dt
            time = _count(model.simulate(duration, dt=dt, members=_MEMBERS, seed=seed, transformed=True), begin, end)
            sampled = sampled if series is None else time
        return FirstPassage(*time, *observed, model.time_unit, *sampled)


def _mean_time(
    model: "LangevinModel", grid: Landscape, begin: np.ndarray, end: np.ndarray, dt: float | None = None
) -> tuple[float, float]:
    """Return the time from one set of grid points to another, and its scatter over closures from blocks of time."""
    if not begin.any() or not end.any():
        raise ArgumentError("One of the two sets holds no state of the model's range: its passage time is not defined.")
    weights = np.where(begin, grid.density, 0.0)
    weights = weights / weights.sum()
    value = float(weights @ grid.times_to(end, dt))
    drawn = [weights @ Landscape.of(replica).times_to(end, dt) for replica in islice(model.replicas(), _REPLICAS)]
    return value, float(np.std(drawn, ddof=1)) if len(drawn) > 1 else 0.0


def _count(series: TimeSeries, begin: Callable, end: Callable) -> tuple[float, float]:
    segments = series.segments
    return passage_times([begin(s) for s in segments], [end(s) for s in segments], series.dt)


def _as_set(name: str, states: States, grid: Landscape | None) -> Callable:
    """Return a set of states as a function: the core of a basin, or what was given."""
    if callable(states):
        return lambda x: np.asarray(states(x), bool).reshape(len(x))
    if grid is None:
        raise checks.refused(name, "a function of states (sample, var), in more than two variables or angles", states)
    core = grid.core(checks.integer_at_least(name, states, 0))
    return lambda x: core[grid.locate(x)]
