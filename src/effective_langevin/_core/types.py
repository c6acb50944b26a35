"""Array types by shape. `sample` counts time and members alike; `var` is the state dimension."""

from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

Samples = Float[np.ndarray, "sample var"]
Vector = Float[np.ndarray, " var"]
Matrix = Float[np.ndarray, "var var"]
LagMatrices = Float[np.ndarray, "lag var var"]
Paths = Float[np.ndarray, "member time var"]


class Segment(Protocol):
    """A stretch without gaps, (time, var): an array, or rows that are read or made where they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any: ...
