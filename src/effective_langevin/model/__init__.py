"""Stage 3: the fitted model, which stands alone: it simulates, explains itself and is stored without pickle."""

from .langevin import LangevinModel, load
from .variance_correction import match_variances

__all__ = ["LangevinModel", "load", "match_variances"]
