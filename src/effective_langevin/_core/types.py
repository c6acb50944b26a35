"""Array types by shape. `sample` counts time and members alike; `var` is the state dimension."""

import numpy as np
from jaxtyping import Float

Samples = Float[np.ndarray, "sample var"]
Vector = Float[np.ndarray, " var"]
Matrix = Float[np.ndarray, "var var"]
LagMatrices = Float[np.ndarray, "lag var var"]
Paths = Float[np.ndarray, "member time var"]
