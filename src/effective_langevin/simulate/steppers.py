"""One-step maps for dx = drift(x) dt + sqrt(2) noise(x) dW (Ito), written for a batch of members.

A stepper is a strategy; `stepper.advance(equation, step)` returns the map (x, dW) -> x' as a pytree whose arrays are
data, so that one compilation serves every model of the same shape. dW has variance `step` per component.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from .._core.errors import ArgumentError
from .._core.matrices import square_root
from ..execution.batches import over_members, times, times_each

_FEW = 4  # Brownian motions taken one by one, in one compiled expression; more of them in a loop

State = Float[Array, "member var"]
Noise = Float[Array, "member brownian"]
Factors = Float[Array, "member var brownian"]


@runtime_checkable
class NoiseField(Protocol):
    """Noise that depends on the state, for many states at once."""

    def factor(self, x: State) -> Factors:
        """Return noise(x) of every state."""
        ...


class Equation(eqx.Module):
    """dx = drift(x) dt + sqrt(2) noise(x) dW for one state.

    `noise` is a constant (var, brownian) matrix, a function of one state, or a `NoiseField`. `linear` is the
    linear part of the drift around `centre`, for steppers that solve it exactly. No variable drifts faster than
    `fastest`, where that is given: a step is then no longer than its length times that, however stiff the drift is.
    """

    drift: Callable
    noise: Any
    linear: Any = None
    centre: Any = None
    fastest: Any = None

    @property
    def additive(self) -> bool:
        """Whether the noise is the same at every state."""
        return not (callable(self.noise) or isinstance(self.noise, NoiseField))

    def drifts(self, x: State) -> State:
        found = over_members(self.drift, x)
        return found if self.fastest is None else jnp.clip(found, -self.fastest, self.fastest)

    def factors(self, x: State) -> Factors:
        """Return sqrt(2) noise(x) of every member, where the noise depends on the state."""
        batch = self.noise.factor if isinstance(self.noise, NoiseField) else jax.vmap(self.noise)
        return jnp.sqrt(2.0) * batch(x)

    def kicks(self, x: State, dw: Noise) -> State:
        return jnp.sqrt(2.0) * times(self.noise, dw) if self.additive else times_each(self.factors(x), dw)

    def needs_additive_noise(self, stepper: "Stepper") -> None:
        """Refuse state-dependent noise, for which most steppers converge to another equation."""
        if not self.additive:
            name = type(stepper).__name__
            raise ArgumentError(f"{name} needs noise that does not depend on the state; use StochasticMidpoint.")


class StepMap(eqx.Module):
    """The map (x, dW) -> x' of a batch of members.

    With `averages_noise`, the map is driven by the mean of two successive increments instead of by each increment.
    A map with two `draws` takes a second, independent increment behind each dW, (member, 2 brownian).
    """

    averages_noise: bool = eqx.field(default=False, static=True, kw_only=True)
    draws: int = eqx.field(default=1, static=True, kw_only=True)

    @abstractmethod
    def __call__(self, x: State, dw: Noise) -> State:
        """Return the states one step later."""


class Stepper(ABC):
    """A strategy that turns an equation and a step into a one-step map.

    `resolution` is the default step, in units of the fastest time scale, at which the steady state is right.
    `increments` is the one at which also the increments over a single step are.
    """

    resolution: ClassVar[float] = 0.05
    increments: ClassVar[float] = 0.05

    @abstractmethod
    def advance(self, equation: Equation, step: float) -> StepMap:
        """Return the map (x, dW) -> x'."""


class _EulerMap(StepMap):
    equation: Equation
    step: Array

    def __call__(self, x: State, dw: Noise) -> State:
        return x + self.step * self.equation.drifts(x) + self.equation.kicks(x, dw)


class _HeunMap(StepMap):
    equation: Equation
    step: Array

    def __call__(self, x: State, dw: Noise) -> State:
        kicks = self.equation.kicks(x, dw)
        slope = self.equation.drifts(x)
        predicted = x + self.step * slope + kicks
        return x + 0.5 * self.step * (slope + self.equation.drifts(predicted)) + kicks


class _MidpointMap(StepMap):
    equation: Equation
    step: Array

    def __call__(self, x: State, dw: Noise) -> State:
        dw, dv = jnp.split(dw, 2, axis=1)
        equation, step = self.equation, self.step
        factors = None if equation.additive else equation.factors(x)
        kick, aside = (equation.kicks(x, d) if factors is None else times_each(factors, d) for d in (dw, dv))
        slope = equation.drifts(x + 0.25 * aside)
        middle = x + 0.5 * (step * slope + kick + aside)
        moved = x + step * equation.drifts(middle) + kick
        return moved if factors is None else moved + self._change_of_noise(x, slope, factors, dw, dv)

    def _change_of_noise(self, x: State, slope: State, factors: Factors, dw: Noise, dv: Noise) -> State:
        """Return what the change of the noise within the step adds, from its values at x +- sqrt(h) b_r.

        With b_r the columns: sum_rj (b_r . grad) b_j I_rj + h/2 (drift . grad + 1/2 sum_r b_r b_r : grad grad) b_j dW_j
        where I_rj has the moments, to the order needed, of the double integral of dW_r and dW_j.
        """
        root, brownian = jnp.sqrt(self.step), factors.shape[-1]
        centre = x + self.step / brownian * slope

        def along(column, only, dw_r, dv_r):
            above, below = (self.equation.factors(centre + sign * root * column) for sign in (1, -1))
            area = (dv_r[:, None] * dw - dv * dw_r[:, None]) / 2**0.5
            double = 0.5 * (dw_r[:, None] * dw - self.step * only + area)
            return times_each(above + below - 2 * factors, 0.25 * dw) + times_each(above - below, double / (2 * root))

        each = jnp.moveaxis(factors, -1, 0), jnp.eye(brownian, dtype=dw.dtype), dw.T, dv.T
        if brownian > _FEW:
            return jnp.sum(jax.lax.map(lambda one: along(*one), each), axis=0)
        return sum((along(*one) for one in zip(*each)), jnp.zeros_like(x))


class _ExponentialMap(StepMap):
    equation: Equation
    decay: Array
    response: Array
    noise: Array

    def __call__(self, x: State, dw: Noise) -> State:
        shifted = x - self.equation.centre
        rest = self.equation.drifts(x) - times(self.equation.linear, shifted)
        return self.equation.centre + times(self.decay, shifted) + times(self.response, rest) + times(self.noise, dw)


class WrapAngles(StepMap):
    """A one-step map followed by wrapping: angles stay within half a period of zero; `periods` is inf elsewhere."""

    advance: Any
    periods: Float[Array, " var"]

    def __call__(self, x: State, dw: Noise) -> State:
        new = self.advance(x, dw)
        round_trip = jnp.isfinite(self.periods)
        width = jnp.where(round_trip, self.periods, 1.0)
        return new - jnp.where(round_trip, width * jnp.round(new / width), 0.0)


@dataclass(frozen=True)
class EulerMaruyama(Stepper):
    """x' = x + drift h + sqrt(2) noise dW. Weak order 1, strong order 1/2; also right for state-dependent (Ito) noise.

    Examples
    --------
    >>> el.EulerMaruyama().resolution  # default step, in units of the fastest time scale
    0.05
    """

    def advance(self, equation: Equation, step: float) -> StepMap:
        return _EulerMap(equation, jnp.asarray(step, jnp.float32))


@dataclass(frozen=True)
class LeimkuhlerMatthews(Stepper):
    """The Euler step driven by the mean of two successive increments, for reversible equations (symmetric Phi).

    The steady state is then of second order in the step, and exact at any stable step where the drift is linear: the
    cheapest way to a right density when the drift is stiff. With circulation it is only of first order. The paths are
    too smooth: over n steps the mean squared increment is too small by a share of 1 / 2n.

    Examples
    --------
    >>> el.LeimkuhlerMatthews().resolution  # default step, in units of the fastest time scale
    0.5
    """

    resolution: ClassVar[float] = 0.5
    increments: ClassVar[float] = 0.5

    def advance(self, equation: Equation, step: float) -> StepMap:
        equation.needs_additive_noise(self)
        return _EulerMap(equation, jnp.asarray(step, jnp.float32), averages_noise=True)


@dataclass(frozen=True)
class StochasticHeun(Stepper):
    """Trapezoidal drift with one noise increment: weak order 2 for additive noise.

    Examples
    --------
    >>> el.StochasticHeun().resolution  # default step, in units of the fastest time scale
    0.2
    """

    resolution: ClassVar[float] = 0.2
    increments: ClassVar[float] = 0.15

    def advance(self, equation: Equation, step: float) -> StepMap:
        equation.needs_additive_noise(self)
        return _HeunMap(equation, jnp.asarray(step, jnp.float32))


@dataclass(frozen=True)
class StochasticMidpoint(Stepper):
    """The drift in the middle of the step, seen from a Brownian path with its middle: weak order 2 for any Ito noise.

    With u = sqrt(2) noise(x) dW, and v the same of a second, independent increment dV:

    k = drift(x + v / 4),   x' = x + h drift(x + (h k + u + v) / 2) + u + (change of the noise)

    (W + V) / 2 has the law of a Brownian path in the middle of the step. With v / 4, the variance of a linear equation
    of rate r is right to (r h)^4 / 64. The change of the noise within the step is zero for additive noise; otherwise it
    is found without derivatives, from two more values of the noise for each Brownian motion.

    Examples
    --------
    >>> el.StochasticMidpoint().resolution  # default step, in units of the fastest time scale
    0.7
    """

    resolution: ClassVar[float] = 0.7
    increments: ClassVar[float] = 0.25

    def advance(self, equation: Equation, step: float) -> StepMap:
        return _MidpointMap(equation, jnp.asarray(step, jnp.float32), draws=2)


@dataclass(frozen=True)
class ExponentialEuler(Stepper):
    """The linear part of the drift solved exactly with its exact noise, the rest by an exponential Euler step.

    x' = e^{Lh} x + h phi1(Lh) (drift(x) - L x) + N dW with N N^T h = 2 int_0^h e^{Lu} Phi_S e^{L^T u} du.

    Examples
    --------
    >>> el.ExponentialEuler().resolution  # default step, in units of the fastest time scale
    0.1
    """

    resolution: ClassVar[float] = 0.1
    increments: ClassVar[float] = 0.1

    def advance(self, equation: Equation, step: float) -> StepMap:
        equation.needs_additive_noise(self)
        if equation.linear is None:
            raise ArgumentError("ExponentialEuler needs an equation with a known linear part.")
        noise = np.asarray(equation.noise, float)
        decay, response, covariance = exponential_matrices(np.asarray(equation.linear, float), noise @ noise.T, step)
        matrices = decay, response, square_root(covariance / step)
        return _ExponentialMap(equation, *(jnp.asarray(matrix, jnp.float32) for matrix in matrices))


def exponential_matrices(linear: np.ndarray, diffusion: np.ndarray, step: float):
    """Return e^{Lh}, int_0^h e^{Lu} du and 2 int_0^h e^{Lu} D e^{L^T u} du, by block exponentials (Van Loan)."""
    size = len(linear)
    zero, eye = np.zeros((size, size)), np.eye(size)
    decay, response = np.split(scipy.linalg.expm(step * np.block([[linear, eye], [zero, zero]]))[:size], 2, axis=1)
    van_loan = scipy.linalg.expm(step * np.block([[-linear, 2 * diffusion], [zero, linear.T]]))
    covariance = van_loan[size:, size:].T @ van_loan[:size, size:]
    return decay, response, 0.5 * (covariance + covariance.T)
