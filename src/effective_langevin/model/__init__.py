"""Stage 3: the fitted model, which stands alone: it simulates, explains itself and is stored without pickle."""

from .langevin import LangevinModel, load

__all__ = ["LangevinModel", "load"]
