"""The interface between a function of one state and the way it runs fast: two generic functions.

Every network runs as it is defined. A faster form is registered for its class, in `estimate.networks.forms`.
"""

from functools import singledispatch
from typing import Any

from jaxtyping import Array, Float


@singledispatch
def lower(network: Any, dimension: int, low_precision: bool = False) -> Any:
    """Return the form of a trained network that is stepped fastest here; `low_precision` allows bfloat16 on a GPU."""
    return network


@singledispatch
def absorb_matrix(network: Any, matrix: Float[Array, "var var"]) -> Any:
    """Return one network for a lowered network followed by a matrix, or None where it cannot absorb one."""
    return None
