"""Derivatives of a path from its samples."""

from collections.abc import Sequence
from math import factorial

import numpy as np

from .types import Vector


def derivative_weights(places: Sequence[int], order: int) -> Vector:
    """Return weights of samples at `places` whose sum is a derivative at 0, that of the polynomial through them.

    Places count sampling intervals, and the derivative is one per interval to the power of `order`.
    """
    powers = np.vander(places, increasing=True).astype(float)
    return factorial(order) * np.linalg.inv(powers)[order]
