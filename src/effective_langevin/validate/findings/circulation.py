"""The one test for circulation: is the antisymmetric part of Phi larger than its errors explain?"""

from dataclasses import dataclass

import numpy as np

from ...model import LangevinModel
from ...statistics.resampling import critical

_ASSUMED_GROUPS = 20
_CHANCE = 0.0027  # of a circulation that is not there: three standard errors for a single pair


@dataclass(frozen=True)
class CirculationTest:
    """The entry of Phi_A that is clearest, in standard errors from zero, and how many of them would be significant."""

    row: int
    column: int
    size: float
    limit: float
    groups: int

    @property
    def significant(self) -> bool:
        """Whether there is a circulation."""
        return self.size > self.limit


def check_circulation(model: LangevinModel, groups: int | None = None) -> CirculationTest | None:
    """Test every entry of Phi_A (Student, Bonferroni over all pairs); None where Phi_A is zero by construction.

    Only observed variables count: that hidden velocities turn x is no circulation.

    `groups` is the number of independent parts of the record, if the mobility does not know it.
    """
    phi, error = model.mobility.antisymmetric, model.mobility.antisymmetric_error
    if np.abs(phi).max() < 1e-9 * np.abs(model.mobility.matrix).max():
        return None
    rows, columns = np.triu_indices(model.space.observed, 1)
    if not len(rows):
        return None
    size = np.abs(phi[rows, columns]) / np.maximum(error[rows, columns], np.finfo(float).tiny)
    groups = model.mobility.evidence.blocks or groups or _ASSUMED_GROUPS
    top = int(np.argmax(size))
    limit = critical(groups, len(rows), _CHANCE)
    return CirculationTest(int(rows[top]), int(columns[top]), float(size[top]), limit, groups)
