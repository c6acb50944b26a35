"""What every reference system offers."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, keys
from .._core.errors import ArgumentError, DivergenceError
from .._core.types import Matrix, Samples
from ..data import TimeSeries
from ..simulate import EulerMaruyama, StochasticHeun, integrate
from ..simulate.steppers import Equation


class System(eqx.Module):
    """A stochastic differential equation dx = drift(x) dt + sqrt(2) noise_factor(x) dW (Ito).

    A subclass gives `_drift(x)` and either a constant `_noise` or a function `_noise(x)` for one state, and where they
    exist the exact score and the exact mean mobility <M> = -dC/dt(0+).
    """

    names: eqx.AbstractClassVar[tuple[str, ...]]
    step: eqx.AbstractClassVar[float]
    burn_in: eqx.AbstractClassVar[float]

    @abstractmethod
    def _equation(self) -> tuple[Callable, Callable | np.ndarray]:
        """Drift of one state, and the noise factor: a constant matrix or a function of one state."""

    def _initial(self, members: int, rng: np.random.Generator) -> Samples:
        """Starting points, before burn-in."""
        return rng.normal(size=(members, self.dimension))

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def mobility(self) -> Matrix | None:
        """The exact mean mobility, where it is known."""
        return None

    def score_function(self, x: Samples) -> Samples | None:
        """The exact grad ln p at each sample, where it is known."""
        return None

    def drift(self, x: Samples) -> Samples:
        """Drift at each sample, (..., var) -> (..., var)."""
        return _over_samples(self._equation()[0], x)

    def noise_factor(self, x: Samples) -> np.ndarray:
        """Noise factor at each sample, (..., var) -> (..., var, brownian)."""
        noise = self._equation()[1]
        if callable(noise):
            return _over_samples(noise, x)
        return np.broadcast_to(np.asarray(noise), (*np.shape(x)[:-1], *noise.shape))

    def diffusion(self, x: Samples) -> np.ndarray:
        """Diffusion tensor noise_factor noise_factor^T at each sample."""
        factor = self.noise_factor(x)
        return factor @ np.swapaxes(factor, -1, -2)

    def simulate(
        self,
        duration: float,
        dt: float,
        members: int = 1,
        seed: int = 0,
        *,
        step: float | None = None,
        burn_in: float | None = None,
        initial: Samples | None = None,
        noise: np.ndarray | None = None,
    ) -> TimeSeries:
        """Simulate `members` independent records of length `duration`, sampled every `dt`.

        `noise` supplies the Brownian increments, (member, step, brownian), each of variance `step`.
        """
        members, seed = checks.integer_at_least("members", members, 1), checks.integer_at_least("seed", seed, 0)
        frames, save_every, step = self._timing(duration, dt, step)
        drift, factor = self._equation()
        equation = Equation(drift, factor if callable(factor) else jnp.asarray(factor, jnp.float32))
        advance = (EulerMaruyama() if callable(factor) else StochasticHeun()).advance(equation, step)
        start = self._spun_up(advance, members, seed, step, burn_in) if initial is None else initial
        start = checks.shaped_array("initial", start, (members, self.dimension), "(member, var)")
        if noise is not None:
            shape = (members, frames * save_every, self.brownian_dimension)
            noise = checks.shaped_array("noise", noise, shape, f"(member, step, brownian) = {shape} at step {step:g}")
        run = integrate(
            advance,
            start,
            frames=frames,
            save_every=save_every,
            step=step,
            brownian=self.brownian_dimension,
            noise=noise,
            key=keys.named(keys.key_from_seed(seed), "noise"),
            label=f"Simulating {type(self).__name__}",
        )
        if run.diverged.any():
            lost = int(run.diverged.sum())
            raise DivergenceError(f"{lost} of {members} members diverged at step {step:g}. Give a smaller `step`.")
        return TimeSeries(run.paths, dt, names=self.names)

    def simulate_with_noise(
        self, duration: float, dt: float, members: int = 1, seed: int = 0, *, step: float | None = None, **options: Any
    ) -> tuple[TimeSeries, np.ndarray]:
        """As `simulate`, and the Brownian increments that drove it, so that a model can be driven by the same."""
        frames, save_every, exact_step = self._timing(duration, dt, step)
        shape = (members, frames * save_every, self.brownian_dimension)
        normals = jax.random.normal(keys.named(keys.key_from_seed(seed), "returned noise"), shape)
        noise = np.sqrt(exact_step) * np.asarray(normals, float)
        return self.simulate(duration, dt, members, seed, step=step, noise=noise, **options), noise

    def _timing(self, duration: float, dt: float, step: float | None) -> tuple[int, int, float]:
        """Frames, steps per frame, and the step that fits `dt` exactly."""
        duration, dt = checks.positive_number("duration", duration), checks.positive_number("dt", dt)
        save_every = max(1, round(dt / (checks.optional_positive_number("step", step) or self.step)))
        return max(1, round(duration / dt)), save_every, dt / save_every

    @property
    def brownian_dimension(self) -> int:
        """Number of independent Brownian motions."""
        return self.noise_factor(np.zeros(self.dimension)).shape[-1]

    def _spun_up(self, advance, members: int, seed: int, step: float, burn_in: float | None) -> Samples:
        length = self.burn_in if burn_in is None else burn_in
        if length < 0:
            raise ArgumentError(f"Argument `burn_in` must be at least 0, but got {length!r}.")
        start = self._initial(members, np.random.default_rng(seed))
        if length == 0:
            return start
        run = integrate(
            advance,
            start,
            frames=1,
            save_every=max(1, round(length / step)),
            step=step,
            brownian=self.brownian_dimension,
            key=keys.named(keys.key_from_seed(seed), "burn-in"),
            label="Burn-in",
        )
        return run.paths[:, -1]


def _over_samples(function: Callable, x: Samples) -> np.ndarray:
    """Apply a one-state function over all leading axes, in float64."""
    x = np.asarray(x, float)
    with jax.enable_x64(True):
        values = np.asarray(jax.vmap(function)(jnp.asarray(x.reshape(-1, x.shape[-1]))))
    return values.reshape(*x.shape[:-1], *values.shape[1:])
