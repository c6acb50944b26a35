"""Before the fit: what kind of series is this, and what stands between it and a Langevin equation?"""

from .diagnose import diagnose
from .finding import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "diagnose"]
