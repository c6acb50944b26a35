"""Checkpoints of long work, without file access inside the stages.

A stage asks `checkpoint = checkpoints.of(settings, arrays)`, continues from `checkpoint.restored(state)` and calls
`checkpoint.keep(state, notes)` as it goes. Nothing is kept unless a front end has opened a folder with
`checkpoints.kept_in(folder)`. The file is named by a digest of settings and arrays: work is only ever continued with
exactly the data, seed and options it was begun with. Arrays that are read by `blocks` are read once for that.
"""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import jax
import numpy as np

from . import files
from .errors import ArgumentError, EstimateWarning

# The folder, and the seconds between two checkpoints.
_folder: ContextVar[tuple[Path, float] | None] = ContextVar("checkpoint_folder", default=None)


@contextmanager
def kept_in(folder: str | os.PathLike, every: float = 10.0) -> Iterator[None]:
    """Keep checkpoints in `folder`, at most one per `every` seconds; delete them once the work inside has succeeded."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"Cannot keep checkpoints in {path}: {error}.") from error
    token = _folder.set((path, every))
    try:
        yield
    finally:
        _folder.reset(token)
    for file in path.glob("checkpoint-*.npz"):
        file.unlink(missing_ok=True)  # another process may have done it


def set_aside(path: Path, error: Exception) -> None:
    """Rename a damaged file and say so: the work begins anew."""
    aside = path.with_name(f"damaged-{path.name}")
    os.replace(path, aside)
    text = f"The checkpoint {path.name} is damaged ({type(error).__name__}) and is now {aside}: the work begins anew."
    warnings.warn(text, EstimateWarning, stacklevel=3)


class Checkpoint:
    """The kept state of one piece of work; without a path it does nothing."""

    def __init__(self, path: Path | None, every: float):
        self.path, self.every, self.last = path, every, time.monotonic()
        self.pending: tuple[Any, dict[str, Any]] | None = None

    def restored(self, state: Any) -> tuple[Any, dict[str, Any]]:
        """Return the kept state, in the form of `state`, and its notes; `state` itself if none was kept."""
        if self.path is None or not self.path.is_file():
            return state, {}
        leaves, structure = jax.tree.flatten(state)
        try:
            with np.load(self.path) as file:
                kept = [jax.numpy.asarray(file[f"leaf{i}"], leaf.dtype) for i, leaf in enumerate(leaves)]
                notes = json.loads(str(file["notes"]))
            if [leaf.shape for leaf in kept] != [leaf.shape for leaf in leaves]:
                raise ValueError("arrays of other shapes")
        except Exception as error:  # whatever the damage makes of the file
            set_aside(self.path, error)
            return state, {}
        return jax.tree.unflatten(structure, kept), notes

    def keep(self, state: Any, notes: dict[str, Any]) -> None:
        """Remember the state; write it if the last writing is long enough ago."""
        self.pending = (state, notes)
        if time.monotonic() - self.last >= self.every:
            self.flush()

    def flush(self) -> None:
        """Write what was remembered; an older file is replaced only by a complete one."""
        if self.path is None or self.pending is None or jax.process_index() > 0:  # the first process writes for all
            return
        state, notes = self.pending
        arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
        with files.replaced(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, notes=np.array(json.dumps(notes)), **arrays)
        self.pending, self.last = None, time.monotonic()


@contextmanager
def of(settings: Any, arrays: Any) -> Iterator[Checkpoint]:
    """Open the checkpoint of a piece of work defined by its settings and arrays; an interrupt leaves the last state."""
    kept = _folder.get()
    path = kept[0] / f"checkpoint-{digest(settings, arrays)}.npz" if kept else None
    checkpoint = Checkpoint(path, kept[1] if kept else 0.0)
    try:
        yield checkpoint
    finally:
        checkpoint.flush()


def digest(settings: Any, arrays: Any) -> str:
    """Return a digest of what a piece of work is defined by; settings are told apart by how they are shown."""
    found = hashlib.blake2b(repr(settings).encode(), digest_size=8)
    leaves = (
        part for leaf in jax.tree.leaves(arrays) for part in (leaf.blocks() if hasattr(leaf, "blocks") else [leaf])
    )
    for leaf in leaves:
        is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
        found.update(f"{array.shape}{array.dtype}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
