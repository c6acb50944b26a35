"""What every reference system offers."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, keys
from .._core.deprecation import keywords_once_positional
from .._core.errors import DivergenceError
from .._core.types import Matrix, Paths, Samples
from ..data import TimeSeries
from ..simulate import Equation, EulerMaruyama, StochasticHeun, integrate
from ..simulate.steppers import WrapAngles


def _of_states(shape: str) -> Callable[[Any], Any]:
    """Complete the docstring of a function of states, whose values have this `shape`."""

    def complete(method: Any) -> Any:
        method.__doc__ += (
            "\n\n        Parameters\n        ----------\n        x : array, shape (..., var)\n            States.\n\n"
            f"        Returns\n        -------\n        array, shape {shape}\n        "
        )
        return method

    return complete


class System(eqx.Module):
    """A stochastic differential equation dx = drift(x) dt + sqrt(2) noise_factor(x) dW (Ito).

    A subclass gives `_drift(x)` and `_noise(x)` for one state, and says whether the noise is `additive` (the same at
    every state) and which quantities are `exact`: the score, the mean mobility < M > = -dC/dt(0+), the current velocity
    and the entropy production. The diffusion is always known.

    Examples
    --------
    >>> system = el.systems.CoxIngersollRoss(noise=0.5)
    >>> system.dimension, system.mobility
    (1, array([[0.5]]))
    """

    step: eqx.AbstractClassVar[float]
    burn_in: eqx.AbstractClassVar[float]
    additive: ClassVar[bool] = True
    exact: ClassVar[tuple[str, ...]] = ("score", "mobility", "current", "entropy production")

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""

    @abstractmethod
    def _drift(self, x: Any) -> Any:
        """Return the drift of one state."""

    @abstractmethod
    def _noise(self, x: Any) -> Any:
        """Return the noise factor of one state, (var, brownian)."""

    def _initial(self, members: int, rng: np.random.Generator) -> Samples:
        """Return starting points, before burn-in."""
        return rng.normal(size=(members, self.dimension))

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def periods(self) -> tuple[float | None, ...]:
        """Period of each variable that is an angle, None for the others."""
        return (None,) * self.dimension

    @property
    def brownian_dimension(self) -> int:
        """Number of independent Brownian motions."""
        return self.noise_factor(np.zeros(self.dimension)).shape[-1]

    @property
    def mobility(self) -> Matrix | None:
        """Exact mean mobility; None where it is not known."""
        return None

    @property
    def entropy_production(self) -> float | None:
        """Exact < nu . D^-1 nu >, zero on a line; None if it is not known, or undefined: no noise acts along nu."""
        on_a_line = self.dimension == 1 and not any(self.periods)
        return 0.0 if on_a_line and "entropy production" in self.exact else None

    @_of_states("(..., var), or None")
    def score_function(self, x: Samples) -> Samples | None:
        """Return the exact score grad ln p at each state, or None where it is not known."""
        return None

    @_of_states("(..., var)")
    def drift(self, x: Samples) -> Samples:
        """Return the drift at each state."""
        return _over_samples(self._drift, x)

    @_of_states("(..., var, brownian)")
    def noise_factor(self, x: Samples) -> np.ndarray:
        """Return the matrix in front of sqrt(2) dW at each state."""
        return _over_samples(self._noise, x)

    @_of_states("(..., var, var)")
    def diffusion(self, x: Samples) -> np.ndarray:
        """Return the noise factor times its transpose at each state."""
        factor = self.noise_factor(x)
        return factor @ np.swapaxes(factor, -1, -2)

    @_of_states("(..., var)")
    def divergence(self, x: Samples) -> Samples:
        """Return sum_j d_j D_ij of the diffusion D at each state."""
        return np.zeros(np.shape(x)) if self.additive else _over_samples(self._divergence, x)

    @_of_states("(..., var), or None")
    def current(self, x: Samples) -> Samples | None:
        """Return the exact current velocity nu = drift - D s - div D at each state, or None where it is not known."""
        score = self.score_function(x)
        if score is None:
            return None
        return self.drift(x) - np.einsum("...ij,...j->...i", self.diffusion(x), score) - self.divergence(x)

    def _divergence(self, x):
        return jnp.einsum("ijj->i", jax.jacfwd(lambda y: self._noise(y) @ self._noise(y).T)(x))

    @keywords_once_positional("dt", "members", "seed")
    def simulate(
        self,
        duration: float,
        *,
        dt: float,
        members: int = 1,
        seed: int = 0,
        step: float | None = None,
        burn_in: float | None = None,
        initial: Samples | None = None,
        noise: np.ndarray | None = None,
    ) -> TimeSeries:
        """Simulate independent records.

        Parameters
        ----------
        duration : float
            Length of each record.
        dt : float
            Sampling interval.
        members : int, default 1
            Number of records.
        seed : int, default 0
            Seed of the initial states and of the noise.
        step : float, optional
            Step of the integrator; default: that of the system.
        burn_in : float, optional
            Time simulated before each record; default: that of the system.
        initial : array, shape (member, var), optional
            States to start from, without burn-in.
        noise : array, shape (member, step, brownian), optional
            Brownian increments of variance `step`; default: drawn from `seed`.

        Returns
        -------
        TimeSeries
            One segment for each member, beginning with its initial state.

        Examples
        --------
        >>> el.systems.AsymmetricWells().simulate(1.0, dt=0.1, members=3).values.shape
        (3, 11, 2)
        """
        members, seed = checks.integer_at_least("members", members, 1), checks.integer_at_least("seed", seed, 0)
        frames, save_every, step = _split_time(duration, dt, self.step if step is None else step)
        options = {"members": members, "seed": seed, "burn_in": burn_in, "initial": initial, "noise": noise}
        paths = self._integrate(frames, save_every, step, **options)
        if lost := int((~np.isfinite(paths[:, -1]).all(axis=1)).sum()):
            raise DivergenceError(f"{lost} of {len(paths)} members diverged at step {step:g}. Give a smaller `step`.")
        return TimeSeries(paths, dt, names=self.names, periods=self.periods)

    def _integrate(
        self, frames: int, save_every: int, step: float, *, members: int, seed: int, burn_in, initial, noise
    ) -> Paths:
        """Return the initial and `frames` further states of every member, `save_every` steps apart."""
        noise_factor = jnp.asarray(self._noise(None), jnp.float32) if self.additive else self._noise
        stepper, brownian = StochasticHeun() if self.additive else EulerMaruyama(), self.brownian_dimension
        advance = stepper.advance(Equation(self._drift, noise_factor), step)
        if any(self.periods):
            advance = WrapAngles(advance, jnp.asarray([period or np.inf for period in self.periods]))
        run = partial(integrate, advance, step=step, brownian=brownian)
        if initial is None:
            initial = self._initial(members, np.random.default_rng(seed))
            if length := checks.non_negative_number("burn_in", self.burn_in if burn_in is None else burn_in):
                key, steps = keys.named(keys.key_from_seed(seed), "burn-in"), max(1, round(length / step))
                initial = run(initial, frames=1, save_every=steps, key=key, label="Burn-in").paths[:, -1]
        initial = checks.shaped_array("initial", initial, (members, self.dimension), "(member, var)")
        if noise is not None:
            shape = (members, frames * save_every, brownian)
            noise = checks.shaped_array("noise", noise, shape, f"(member, step, brownian) = {shape} at step {step:g}")
        key, label = keys.named(keys.key_from_seed(seed), "noise"), f"Simulating {type(self).__name__}"
        return run(initial, frames=frames, save_every=save_every, noise=noise, key=key, label=label).paths

    @keywords_once_positional("dt", "members", "seed")
    def simulate_with_noise(
        self, duration: float, *, dt: float, members: int = 1, seed: int = 0, step: float | None = None, **options: Any
    ) -> tuple[TimeSeries, np.ndarray]:
        """Simulate, and return the noise too, so that a model can be driven by the same.

        Parameters
        ----------
        duration, dt, step : float
            As for `simulate`.
        members, seed : int
            As for `simulate`.
        **options : dict
            Further arguments of `simulate`.

        Returns
        -------
        TimeSeries
            The records.
        array, shape (member, step, brownian)
            The Brownian increments that drove them.
        """
        frames, save_every, exact_step = _split_time(duration, dt, self.step if step is None else step)
        shape = (members, frames * save_every, self.brownian_dimension)
        normals = jax.random.normal(keys.named(keys.key_from_seed(seed), "returned noise"), shape)
        noise = np.sqrt(exact_step) * np.asarray(normals, float)
        paths = self.simulate(duration, dt=dt, members=members, seed=seed, step=step, noise=noise, **options)
        return paths, noise


def _split_time(duration: float, dt: float, step: float) -> tuple[int, int, float]:
    """Return the number of frames, the steps per frame, and the step that fits `dt` exactly."""
    duration, dt = checks.positive_number("duration", duration), checks.positive_number("dt", dt)
    save_every = max(1, round(dt / checks.positive_number("step", step)))
    return max(1, round(duration / dt)), save_every, dt / save_every


def _over_samples(function: Callable, x: Samples) -> np.ndarray:
    """Apply a function of one state over all leading axes, in float64."""
    x = np.asarray(x, float)
    with jax.enable_x64(True):
        values = np.asarray(jax.vmap(function)(jnp.asarray(x.reshape(-1, x.shape[-1]))))
    return values.reshape(*x.shape[:-1], *values.shape[1:])
