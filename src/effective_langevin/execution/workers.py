"""Many independent pieces of work on the cores of this machine, or on the workers of an active dask client.

Processes are spawned, each with one thread and on the CPU: many small fits are then faster than one after the other. A
process that dies costs the piece of work that killed it, and no other.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, process
from typing import Any

from .._core.errors import EffectiveLangevinError
from .cluster import active_client
from .compilation import keep_compiled_programs

# What a worker process must know before it imports anything: one thread each, and no share of a GPU.
_ALONE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
_AHEAD = 2  # pieces of work that wait for each worker


def run_all(function: Callable[[Any], Any], tasks: Iterable[Any], workers: int) -> Iterator[tuple[Any, Any]]:
    """Yield (task, what the function returned, or the exception), in the order in which they are done.

    One worker is this process. The tasks are taken from their iterator as workers become free.
    """
    client = active_client()
    if client is not None:
        window = _AHEAD * max(1, sum(client.ncores().values()))
        yield from _through(client.get_executor(pure=False), function, iter(tasks), window, [])
    elif workers > 1:
        yield from _in_processes(function, iter(tasks), workers)
    else:
        yield from ((task, _outcome(function, task)) for task in tasks)


def _outcome(function: Callable[[Any], Any], task: Any) -> Any:
    try:
        return function(task)
    except Exception as error:
        return error


def _in_processes(function: Callable[[Any], Any], tasks: Iterator[Any], workers: int) -> Iterator[tuple[Any, Any]]:
    """Run in a pool of processes. If one dies, those in flight run one by one: the one that kills again is named."""
    if vars(process.current_process()).get("_inheriting"):  # the script that called this is being imported
        raise EffectiveLangevinError(_UNGUARDED)
    finished = 0
    while True:
        lost: list[Any] = []
        with _pool(workers) as pool:
            for found in _through(pool, function, tasks, _AHEAD * workers, lost):
                finished += 1
                yield found
        suspects = deque(lost)
        while suspects:
            guilty: list[Any] = []
            with _pool(1) as pool:
                one_by_one = (suspects.popleft() for _ in range(len(suspects)))
                for found in _through(pool, function, one_by_one, 1, guilty):
                    finished += 1
                    yield found
            if guilty and not finished:
                raise EffectiveLangevinError(_UNGUARDED)
            yield from ((task, EffectiveLangevinError(_DIED)) for task in guilty)
        if not lost:
            return


_UNGUARDED = (
    "The worker processes ended as soon as they began. They import the script that started them: put its calls under "
    '`if __name__ == "__main__":`, or pass workers=1.'
)
_DIED = "The process that fitted it was killed, for want of memory perhaps."


def _through(
    pool: Executor, function: Callable[[Any], Any], tasks: Iterator[Any], window: int, lost: list[Any]
) -> Iterator[tuple[Any, Any]]:
    """Keep `window` tasks in flight; what was in flight when the pool broke is `lost`."""
    running: dict[Future, Any] = {}
    broken = False
    while not broken:
        for task in islice(tasks, window - len(running)):
            try:
                running[pool.submit(function, task)] = task
            except BrokenExecutor:
                lost.append(task)
                broken = True
                break
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            task, error = running.pop(future), future.exception()
            if isinstance(error, BrokenExecutor):
                lost.append(task)
                broken = True
            else:
                yield task, future.result() if error is None else error
    lost.extend(running.values())


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """Open a pool of spawned processes; an error or an interrupt does not wait for what is in flight."""
    before = {name: os.environ.get(name) for name in _ALONE}
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=keep_compiled_programs)
    try:
        os.environ.update(_ALONE)
        yield pool
        pool.shutdown()
    except BaseException:
        for child in list((pool._processes or {}).values()):
            child.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
