"""Before the fit: what kind of series is this, and what stands between it and a Langevin equation?"""

from .checkup import diagnose
from .findings.finding import Finding
from .records import Diagnosis

__all__ = ["Diagnosis", "Finding", "diagnose"]
