"""The response of the steady state to a small push, in two ways.

    < A >(t) - < A >  =  int_0^t K(t - u) f(u) du,    K(tau) = -< A(x(tau)) s(x(0))^T >

is the generalised fluctuation-dissipation relation: it needs no perturbed path, only the score and states as they are.
The other way is to simulate with +f and with -f, driven by the same noise, and to take half the difference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline

from .._core import checks, keys
from .._core.format import after_number, count, listed, measured, rounded
from .._core.types import Samples
from ..data import TimeSeries
from ..simulate.forcing import Forcing, tabulate_forcing
from ..statistics.integral_time import error_groups
from ..statistics.lags import lagged_moments
from ..statistics.resampling import critical, jackknife
from .forecast import count_leads
from .simulation import run_model, starting_states

if TYPE_CHECKING:
    from .langevin import LangevinModel

Observable = Callable[[Samples], np.ndarray]

_FINER = 8
_SMALLER = 4  # steps of pushed paths, whose differences do not scatter: what the step costs would show
_LENGTH = 4  # of the simulated paths, in units of the longest lead


@dataclass(frozen=True, eq=False, repr=False)
class Response:
    """Change of the mean of an observable after a push begins, (lead, component), found in two ways with their errors.

    `fluctuation` follows from states and score, without a push; `simulation` from pushed paths of the model.
    """

    leads: Float[np.ndarray, " lead"]
    fluctuation: Float[np.ndarray, "lead component"]
    fluctuation_error: Float[np.ndarray, "lead component"]
    simulation: Float[np.ndarray, "lead component"]
    simulation_error: Float[np.ndarray, "lead component"]
    names: tuple[str, ...]
    time_unit: str
    groups: int

    @property
    def difference(self) -> Float[np.ndarray, "lead component"]:
        """Difference of the two ways, in standard errors."""
        error = np.hypot(self.fluctuation_error, self.simulation_error)
        return (self.fluctuation - self.simulation) / np.where(error > 0, error, np.inf)

    @property
    def agrees(self) -> bool:
        """Whether no difference is larger than chance allows, once in 500 cases, over all leads and components."""
        return bool(np.abs(self.difference).max() <= critical(self.groups, self.difference.size))

    def plot(self, ax: Any = None) -> Any:
        """Draw both ways against the lead, with bands of two standard errors.

        Parameters
        ----------
        ax : Axes or array of Axes, optional
            Where to draw, one for each component; by default a new figure.

        Returns
        -------
        array of Axes
        """
        from ..validate.plots import plot_response

        return plot_response(self, ax)

    def summary(self) -> str:
        """Return the response at a few leads, as text."""
        shown = np.unique(np.linspace(0, len(self.leads) - 1, 4).astype(int))
        lines = [repr(self)]
        for k in shown:
            for i, name in enumerate(self.names):
                one = measured(float(self.fluctuation[k, i]), float(self.fluctuation_error[k, i]))
                other = measured(float(self.simulation[k, i]), float(self.simulation_error[k, i]))
                lead = f"{rounded(float(self.leads[k]))}{after_number(self.time_unit)}"
                lines.append(f"  {name} at {lead}: {one} (fluctuations), {other} (simulated)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        largest = f"{np.abs(self.difference).max():.1f} standard errors apart at most"
        words = (
            "both ways agree" if self.agrees else "the two ways DISAGREE: the push is not small, or the score is off"
        )
        return f"Response({listed(self.names)}; {count(len(self.leads), 'lead')}; {words}, {largest})"


class ResponseMethods:
    """The method of a model that tells its response to a small push."""

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
        model: LangevinModel = self
        steps, members = count_leads(leads, model.dt), checks.integer_at_least("members", members, 100)
        names = model.names if observable is None else ()
        observe = _observer(observable)
        if series is None:
            duration = model.dt * _LENGTH * int(steps[-1])
            series = model.simulate(duration, members=members, seed=seed, transformed=True)
            groups = 32
        else:
            series = model.to_model_variables(series)
            groups = error_groups(series.map(model.standardizer.to_standard).segments, series.dt)
        fluctuation = _from_fluctuations(model, observe, forcing, steps, series, groups)
        simulation = _from_simulation(model, observe, forcing, steps, members, seed + 1)
        width = fluctuation[0].shape[1]
        names = names or tuple(f"A{i + 1}" if width > 1 else "A" for i in range(width))
        return Response(steps * model.dt, *fluctuation, *simulation, names, model.time_unit, groups)


def _observer(observable: Observable | None) -> Observable:
    """Return the observable as a function from states (sample, var) to (sample, component)."""
    if observable is None:
        return lambda x: x
    if not callable(observable):
        raise checks.refused("observable", "a function of states (sample, var)", observable)

    def observe(x: Samples) -> np.ndarray:
        value = np.asarray(observable(x), float)
        if value.shape[:1] != x.shape[:1] or value.ndim > 2:
            shapes = f"({len(x)},) or ({len(x)}, component) for {len(x)} states"
            raise checks.refused("observable", f"a function to {shapes}", value.shape)
        return value.reshape(len(x), -1)

    return observe


def _from_fluctuations(
    model: "LangevinModel", observe: Observable, forcing: Forcing, steps: np.ndarray, series: TimeSeries, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate K over the push. < x s^T > = -1 holds for the exact score: K is calibrated by what it is."""
    scores = [model.score_function(segment) for segment in series.segments]
    centre = series.stacked().mean(axis=0)
    own = [np.hstack([segment - centre, observe(segment)]) for segment in series.segments]
    middle = np.concatenate(own).mean(axis=0)
    moments = lagged_moments([part - middle for part in own], scores, np.arange(steps[-1] + 1), groups)
    tau = model.dt * np.arange(steps[-1] + 1)
    fine = np.linspace(0, tau[-1], _FINER * int(steps[-1]) + 1)
    pushes = tabulate_forcing(forcing, fine, model.dimension) * np.ones((len(fine), 1))

    def integrated(weights: np.ndarray) -> np.ndarray:
        products = -moments.mean(weights)
        stein, kernel = products[0, : model.dimension], products[:, model.dimension :]
        kernel = CubicSpline(tau, kernel @ np.linalg.inv(stein))(fine)
        found = []
        for step in steps:
            last = _FINER * int(step)
            now = np.einsum("tai,ti->ta", kernel[: last + 1], pushes[last::-1])
            found.append(np.trapezoid(now, dx=fine[1], axis=0))
        return np.array(found)

    return jackknife(integrated, groups)


def _from_simulation(
    model: "LangevinModel", observe: Observable, forcing: Forcing, steps: np.ndarray, members: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Half the difference of paths pushed one way and the other, from the same states, driven by the same noise."""
    key = keys.key_from_seed(seed)
    states = starting_states(model, None, members, (model.start,), key)
    found, step = [], model.automatic_step() / _SMALLER
    for sign in (1, -1):
        push: Forcing = (
            (lambda t, s=sign: s * np.asarray(forcing(t))) if callable(forcing) else sign * np.asarray(forcing, float)
        )
        ensemble, _ = run_model(model, states, int(steps[-1]), dt=model.dt, key=key, step=step, forcing=push)
        paths = model.standardizer.to_physical(ensemble.paths[:, steps].astype(float))
        values = observe(paths.reshape(-1, model.dimension))
        found.append(values.reshape(members, len(steps), -1))
    half = 0.5 * (found[0] - found[1])
    alive = np.isfinite(half).all(axis=(1, 2))
    return half[alive].mean(axis=0), half[alive].std(axis=0, ddof=1) / np.sqrt(alive.sum())
