"""Variables that are angles: x and x + period are the same state.

A score on a circle is periodic, so the networks see cos and sin of an angle; what is known of moments on the line,
Stein's identity and the response of x, is asked of smooth functions on the circle instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Samples
from .symmetry import NoSymmetry

_HARMONICS = 3
_LEAST_ORDER = 0.1

Tests = Callable[[Samples], tuple[Samples, Samples]]


@dataclass(frozen=True)
class Circles(NoSymmetry):
    """The group of whole turns; `periods` are in standardised units, None for a variable that is no angle."""

    periods: tuple[float | None, ...]

    @property
    def angles(self) -> list[int]:
        """The variables that are angles."""
        return [i for i, period in enumerate(self.periods) if period]

    @property
    def owners(self) -> list[int]:
        """The variable that each entry of an embedded state is a function of."""
        return [i for i, period in enumerate(self.periods) for _ in range(2 if period else 1)]

    def embedded(self, x: Any, order: int = 0, library: Any = np) -> Any:
        """cos and sin of each angle, other variables as they are; with `order`, that derivative by their owner.

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

    def stein_tests(self, samples: Samples) -> Tests:
        """For each variable a function g_j, with its slope: x_j itself, or a sine around the middle of the angle.

        < s_i g_j > = -delta_ij < g_j' > for the exact score, on the circle as on the line. Of the first harmonics, that
        is taken which the angle follows most, so that the mean slope is as large as it can be.
        """
        waves = {i: _wave(samples[:, i], 2 * np.pi / period) for i, period in enumerate(self.periods) if period}

        def tests(y: Samples) -> tuple[Samples, Samples]:
            values, slopes = np.array(y, float), np.ones(y.shape)
            for i, (rate, middle) in waves.items():
                values[:, i], slopes[:, i] = np.sin(rate * (y[:, i] - middle)) / rate, np.cos(rate * (y[:, i] - middle))
            return values, slopes

        return tests


def _wave(angle: np.ndarray, rate: float) -> tuple[float, float]:
    """Wave number and phase of the harmonic with the largest mean."""
    means = [np.exp(1j * k * rate * angle.astype(float)).mean() for k in range(1, _HARMONICS + 1)]
    best = int(np.argmax(np.abs(means)))
    return (best + 1) * rate, float(np.angle(means[best]) / ((best + 1) * rate))


def solved_for_stein(products: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """V with V_ij < g_j' > = < s_i g_j >; towards -I where an angle is spread so evenly that nothing can be said."""
    weight = np.where(np.abs(slopes) < 1 - 1e-12, _LEAST_ORDER, 0.0) ** 2
    return (products * slopes - np.diag(weight)) / (slopes**2 + weight)
