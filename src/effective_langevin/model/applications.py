"""What a model is used for: forecasts, the response to a push, basins and passage times."""

from collections.abc import Sequence
from typing import Any

from .._core.types import Samples
from ..data import TimeSeries
from ..simulate.forcing import Forcing
from .forecast import Forecast, forecast
from .rates import Basins, FirstPassage, States, find_basins, first_passage
from .response import Observable, Response, respond


class Applications:
    """The methods of a model that put it to use."""

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
            Data in which to count the same times, with errors from groups of samples. What happens between two
            samples is not seen.
        seed : int, default 0
            Seed of the simulation, if there is one.

        Returns
        -------
        FirstPassage
            `value` and `standard_error` of the model, `data_value` and `data_error` of the data.

        Examples
        --------
        >>> series = el.systems.OrnsteinUhlenbeck([[1.0]]).simulate(200.0, dt=0.1, seed=1)
        >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
        >>> found = model.first_passage(lambda x: x[:, 0] < 0, lambda x: x[:, 0] > 1.5)
        >>> bool(found.value > 1)
        True
        """
        return first_passage(self, from_, to, series=series, seed=seed)
