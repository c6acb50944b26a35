"""Many small models: one fit per series on all cores or a cluster, one table of all results.

fit_many.py   the driver        task.py   one fit, in a worker process        result.py   folder and record of all
"""

from .fit_many import fit_many
from .result import ManyFits

__all__ = ["ManyFits", "fit_many"]
