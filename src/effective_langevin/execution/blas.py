"""How many threads the libraries of linear algebra use."""

from threading import current_thread, main_thread
from types import TracebackType

from threadpoolctl import ThreadpoolController


class _OneThread:
    """A context in which linear algebra starts no threads, for the whole process, if the main thread enters it.

    Two threads that each start two for products of moderate matrices were three times slower than two that start none.
    OpenBLAS listens to the main thread only; from others the context does nothing.
    """

    def __init__(self):
        self._inside, self._limits, self._libraries = 0, None, None

    def __enter__(self) -> None:
        if current_thread() is main_thread():
            self._inside += 1
            if self._inside == 1:
                self._libraries = self._libraries or ThreadpoolController()
                self._limits = self._libraries.limit(limits=1, user_api="blas")

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if current_thread() is main_thread():
            self._inside -= 1
            if self._inside == 0 and self._limits is not None:
                self._limits.restore_original_limits()


one_blas_thread = _OneThread()
