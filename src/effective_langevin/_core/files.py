"""Files that are written whole or not at all."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def replaced(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path for a file or folder, which replaces `path` if all went well.

    A full disk or an interrupt leaves what was there before, and nothing else.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield temporary
        if temporary.is_file():
            with temporary.open("rb") as file:
                os.fsync(file.fileno())  # a power cut must not leave an empty file under the final name
        if path.is_dir() and temporary.is_dir():
            shutil.rmtree(path)
        os.replace(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text file whole or not at all."""
    with replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_by_memory(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Let a library fill a file in memory, then write its bytes.

    HDF5 must not see a full disk: a file that it cannot flush stays open, and the process crashes when it ends.
    """
    memory = BytesIO()
    fill(memory)
    with memory.getbuffer() as content, path.open("wb") as file:
        file.write(content)


def write_netcdf(data: Any, path: Path) -> None:
    """Write a labelled array or dataset as NetCDF-4, in this process: a lock of a cluster has no name in memory."""
    dask = sys.modules.get("dask.config")
    with dask.set(scheduler="synchronous") if dask else nullcontext():
        write_by_memory(path, partial(data.to_netcdf, engine="h5netcdf"))
