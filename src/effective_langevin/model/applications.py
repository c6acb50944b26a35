"""What a model is used for: simulations, forecasts, the response to a push, basins and passage times."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .._core.deprecation import keywords_once_positional
from .._core.types import Samples
from ..data import TimeSeries
from ..simulate import Stepper
from ..simulate.forcing import Forcing
from .forecast import Forecast, forecast
from .rates import Basins, FirstPassage, States, find_basins, first_passage
from .response import Observable, Response, respond
from .simulation import simulate

if TYPE_CHECKING:
    from ..data.io.store import StoredPaths


class Applications:
    """The methods of a model that put it to use."""

    @overload
    def simulate(self, duration: float, *, out: None = None, **given: Any) -> TimeSeries: ...

    @overload
    def simulate(self, duration: float, *, out: str | os.PathLike[str], **given: Any) -> "StoredPaths": ...

    @keywords_once_positional("members", "seed")
    def simulate(
        self: Any,
        duration: float,
        *,
        dt: float | None = None,
        members: int = 1,
        seed: int = 0,
        step: float | None = None,
        initial: Samples | None = None,
        noise: np.ndarray | None = None,
        stepper: Stepper | None = None,
        denoise: bool | None = None,
        start: float | Sequence[float] | None = None,
        transformed: bool = False,
        forcing: Forcing | None = None,
        out: str | os.PathLike[str] | None = None,
        origin: str | None = None,
        overwrite: bool = False,
    ) -> Any:
        """Simulate an ensemble, in the variables of the series.

        What `preprocess` removed is added again. A member that diverges is left out with a warning.

        Parameters
        ----------
        duration : float
            Length of each path.
        dt : float, optional
            Sampling interval of the paths; default: that of the data.
        members : int, default 1
            Number of paths.
        seed : int, default 0
            Seed of the initial states and of the noise.
        step : float, optional
            Step of the integrator; default: from the stiffness of the drift.
        initial : array, shape (member, var) or (member, time, var), optional
            States at `start` in the variables of the series, or the past up to then, for a model with delays; default:
            states of the data, whatever their season.
        noise : array, shape (member, step, var), optional
            Brownian increments of variance `step`; default: drawn from `seed`.
        stepper : Stepper, optional
            Default: `StochasticMidpoint`. With given `noise`, `StochasticHeun`, or `EulerMaruyama` where the noise
            depends on the state.
        denoise : bool, optional
            The equation has the steady state of the smoothed data. If true, return the expected clean states instead,
            with the spread of clean ones; default: where the smoothing width exceeds the spread of the data somewhere.
        start : float or list of float, optional
            Time at which the paths, or each of them, begin; default: the start of the record. Beyond the record a
            season goes on and a trend keeps its last value.
        transformed : bool, default False
            If true, the paths stay in the model's variables.
        forcing : array, shape (var,), or function of times, optional
            A push that is added to the drift, in the model's variables: constant, or a function from times (time,) of
            the first path to pushes (time, var).
        out : path, optional
            A Zarr store, ending in .zarr, into which the paths are written as they are simulated, whatever the memory.
            A call that was interrupted or killed goes on when it is made again. Members that diverge are NaN from then
            on. Values are in single precision, or in double if a variable is far from zero.
        origin : str, optional
            With `out`, the date of time zero: times are then dates, as they are for a series that was read from dates.
        overwrite : bool, default False
            Whether to replace a store that is there.

        Returns
        -------
        TimeSeries, or StoredPaths with `out`
            One segment for each member, beginning with its initial state; or a record with the `path` of the store,
            whose `open()` shows it as an xarray.Dataset.
        """
        given: dict[str, Any] = {"initial": initial, "noise": noise, "stepper": stepper, "denoise": denoise}
        given |= {"dt": dt, "step": step, "start": start, "transformed": transformed, "forcing": forcing}
        given |= {"out": out, "origin": origin, "overwrite": overwrite}
        return simulate(self, duration, members=members, seed=seed, **given)

    def forecast(
        self: Any,
        states: Samples | TimeSeries,
        leads: float | Sequence[float],
        *,
        members: int = 100,
        seed: int = 0,
        start: float | Sequence[float] | None = None,
    ) -> Forecast:
        """Forecast from given states: an ensemble at given times ahead, in the variables of the series.

        Measurement noise is added where `fit` found it, so that forecasts are those of new observations.

        Parameters
        ----------
        states : array, shape (var,), (start, var) or (start, time, var), or TimeSeries
            States in the variables of the series, or the past up to then, for a model with delays. Of a series, the
            last state of every record, with its date.
        leads : float or sequence of float
            Times ahead, in the unit of time of the series, multiples of its `dt`; a number stands for all of them up
            to it.
        members : int, default 100
            Members of each ensemble.
        seed : int, default 0
            Seed of the noise.
        start : float or sequence of float, optional
            Time of the states, for models that know a season or a trend; default: the start of the record.

        Returns
        -------
        Forecast
            With `values` (start, member, lead, var), `mean`, `spread`, `quantiles`, `to_xarray` and `plot`.

        Examples
        --------
        >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, seed=1)
        >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
        >>> found = model.forecast([[1.0, 0.0], [0.0, 1.0]], leads=[0.1, 0.5, 1.0], members=200)
        >>> found
        Forecast(x1 and x2; 2 starts, 200 members, 3 leads up to 1)
        >>> found.mean.shape
        (2, 3, 2)
        """
        return forecast(self, states, leads, members=members, seed=seed, start=start)

    def response(
        self: Any,
        observable: Observable | None,
        forcing: Forcing,
        leads: float | Sequence[float],
        *,
        series: TimeSeries | None = None,
        members: int = 4096,
        seed: int = 0,
    ) -> Response:
        """Return how the mean of an observable answers to a small push that begins at time zero, found in two ways.

        One needs no push: the fluctuation-dissipation relation, from states and the score. The other simulates pushed
        paths. Where they differ beyond errors, the push is too large for a linear response, or the model is off.

        Parameters
        ----------
        observable : function, or None
            From states (sample, var) of the model's variables to (sample,) or (sample, component); None: the
            variables themselves.
        forcing : array, shape (var,), or function of times
            The push that is added to the drift, in the model's variables: constant from time zero on, or a function
            from times (time,) to pushes (time, var).
        leads : float or sequence of float
            Times after the push begins, multiples of `dt`; a number stands for all of them up to it.
        series : TimeSeries, optional
            Data for the first way; default: simulated paths of the model.
        members : int, default 4096
            Simulated paths.
        seed : int, default 0
            Seed of the simulations.

        Returns
        -------
        Response
            With `fluctuation` and `simulation` (lead, component), their errors, `agrees` and `plot`.

        Examples
        --------
        >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, seed=1)
        >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
        >>> found = model.response(None, [1.0, 0.0], leads=[0.5, 1.0], members=500)
        >>> found.simulation.shape, found.agrees
        ((2, 2), True)
        """
        return respond(self, observable, forcing, leads, series=series, members=members, seed=seed)

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
        return find_basins(self)

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
        return first_passage(self, from_, to, series=series, seed=seed)
