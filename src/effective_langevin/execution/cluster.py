"""Pieces of work on the workers of a dask cluster where a client is active, one after the other here otherwise.

Results come in the order of the pieces, which do not depend on the workers: neither do sums over them. A piece whose
worker dies is done again by another.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from .._core import checks
from .._core.errors import ArgumentError, ClusterError

_RETRIES = 3


def in_order(function: Callable[[Any], Any], pieces: Sequence[Any], *, spread: bool = True) -> Iterator[Any]:
    """Yield what the function makes of each piece, in order; with `spread` on the workers of an active client."""
    client = active_client() if spread and len(pieces) > 1 else None
    if client is None:
        yield from map(function, pieces)
        return
    futures = _at_scheduler(client.map, function, pieces, pure=False, retries=_RETRIES)
    try:
        for i, future in enumerate(futures):
            yield _at_scheduler(future.result)
            futures[i] = None
            del future
    finally:
        for left in futures:
            if left is not None and not left.done():
                left.cancel()


def active_client() -> Any:
    """Return the client of dask.distributed that the user has opened; None without one, and within a worker."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        distributed.get_worker()
        return None
    except (ValueError, AttributeError):
        pass
    try:
        return distributed.default_client()
    except ValueError:
        return None


@contextmanager
def opened(where: str | None) -> Iterator[None]:
    """Open a client: of so many workers on this machine (`local:4`) or of a scheduler (its address); None: nothing."""
    if where is None:
        yield
        return
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise ArgumentError("A cluster needs dask: pip install 'effective-langevin[dask]'.") from error
    kind, _, number = where.partition(":")
    with ExitStack() as stack:
        address = where
        if kind == "local":
            if not number.isdigit() or int(number) < 1:
                raise checks.refused("dask", "local:N or the address of a scheduler", where)
            local = distributed.LocalCluster(n_workers=int(number), threads_per_worker=1, dashboard_address=None)
            address = stack.enter_context(local)
        stack.enter_context(_at_scheduler(distributed.Client, address))
        yield


def _at_scheduler(function: Callable, *arguments: Any, **options: Any) -> Any:
    """Call the scheduler; say so where it is gone."""
    from concurrent.futures import CancelledError

    gone = (OSError, TimeoutError, CancelledError)
    try:
        return function(*arguments, **options)
    except Exception as error:
        if not isinstance(error, gone) and type(error).__name__ not in ("FutureCancelledError", "KilledWorker"):
            raise
        raise ClusterError(
            f"The cluster did not finish its part of the work ({type(error).__name__}: {error}). Start it again, or "
            "close the client to work on this machine; a fit with a checkpoint continues where it was."
        ) from error
