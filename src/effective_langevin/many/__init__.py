"""Many small models: one fit per series on all cores or a cluster, one table of all results.

fit_many.py   the driver        task.py   one fit, in a worker process        folder.py   names of files, what is done
result.py     the record that comes back, and its page
"""

from .fit_many import fit_many
from .result import ManyFits

__all__ = ["ManyFits", "fit_many"]
