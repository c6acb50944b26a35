"""One-step maps for dx = drift(x) dt + sqrt(2) noise(x) dW, written for a batch of members.

A stepper is a strategy; `stepper.advance(equation, step)` returns the map (x, dW) -> x' as a pytree whose arrays are
data, so that one compilation serves every model of the same shape. dW has variance `step` per component.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from .._core.matrices import square_root
from ..execution.batches import over_members, times

State = Float[Array, "member var"]
Noise = Float[Array, "member brownian"]


class Equation(eqx.Module):
    """dx = drift(x) dt + sqrt(2) noise(x) dW for one state.

    `noise` is either a constant (var, brownian) matrix or a function of the state. `linear` is the linear part of the
    drift around `centre`, for steppers that solve it exactly.
    """

    drift: Callable
    noise: Any
    linear: Any = None
    centre: Any = None

    def drifts(self, x: State) -> State:
        """Return the drift of every member."""
        return over_members(self.drift, x)

    def kicks(self, x: State, dw: Noise) -> State:
        """Return sqrt(2) noise(x) dW of every member."""
        if callable(self.noise):
            return jnp.sqrt(2.0) * jax.vmap(lambda xi, wi: self.noise(xi) @ wi)(x, dw)
        return jnp.sqrt(2.0) * times(self.noise, dw)

    def needs_additive_noise(self, stepper: "Stepper") -> None:
        """Refuse state-dependent noise, for which most steppers converge to another equation."""
        if callable(self.noise):
            name = type(stepper).__name__
            raise ValueError(f"{name} needs noise that does not depend on the state; use EulerMaruyama.")


class StepMap(eqx.Module):
    """The map (x, dW) -> x' of a batch of members.

    With `averages_noise`, the map is driven by the mean of two successive increments instead of by each increment.
    """

    averages_noise: bool = eqx.field(default=False, static=True, kw_only=True)

    @abstractmethod
    def __call__(self, x: State, dw: Noise) -> State:
        """Return the states one step later."""


class Stepper(ABC):
    """A strategy that turns an equation and a step into a one-step map.

    `resolution` is the default step, in units of the fastest time scale of the drift.
    """

    resolution: ClassVar[float] = 0.05

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
    """x' = x + drift h + sqrt(2) noise dW. Weak order 1; also right for state-dependent (Ito) noise.

    Examples
    --------
    >>> el.EulerMaruyama().resolution  # default step, in units of the fastest time scale
    0.05
    """

    resolution: ClassVar[float] = 0.05

    def advance(self, equation: Equation, step: float) -> StepMap:
        return _EulerMap(equation, jnp.asarray(step, jnp.float32))


@dataclass(frozen=True)
class LeimkuhlerMatthews(Stepper):
    """The Euler step driven by the mean of two successive increments, for reversible equations (symmetric Phi).

    The steady state is then of second order in the step, and exact at any stable step where the drift is linear: the
    cheapest way to a right density when the drift is stiff. With circulation it is only of first order.

    Examples
    --------
    >>> el.LeimkuhlerMatthews().resolution  # default step, in units of the fastest time scale
    0.5
    """

    resolution: ClassVar[float] = 0.5

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

    def advance(self, equation: Equation, step: float) -> StepMap:
        equation.needs_additive_noise(self)
        return _HeunMap(equation, jnp.asarray(step, jnp.float32))


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

    def advance(self, equation: Equation, step: float) -> StepMap:
        equation.needs_additive_noise(self)
        if equation.linear is None:
            raise ValueError("ExponentialEuler needs an equation with a known linear part.")
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
