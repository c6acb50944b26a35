"""Before the fit: what kind of series is this, and what stands between it and a Langevin equation?"""

from .diagnose import diagnose
from .diagnosis import Diagnosis
from .finding import Finding

__all__ = ["Diagnosis", "Finding", "diagnose"]
