"""How many threads the libraries of linear algebra use."""

from threading import Lock
from types import TracebackType

from threadpoolctl import ThreadpoolController


class _OneThread:
    """A context in which linear algebra starts no threads, for the whole process; the last one to leave restores them.

    Two threads that each start two for products of moderate matrices were three times slower than two that start none.
    """

    def __init__(self):
        self._lock, self._inside, self._limits, self._libraries = Lock(), 0, None, None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._libraries = self._libraries or ThreadpoolController()
                self._limits = self._libraries.limit(limits=1, user_api="blas")

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limits is not None:
                self._limits.restore_original_limits()


one_blas_thread = _OneThread()
