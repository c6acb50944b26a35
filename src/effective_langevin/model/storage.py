"""Models on disk: safetensors with a JSON header, no pickle.

The header says what the file is, its format version, the architecture of the score and everything that is not an
array; the arrays are stored by the name of their place in the model.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .._core import files
from .._core.errors import ModelFileError

FORMAT = "effective-langevin"
FORMAT_VERSION = 1


def write(path: str | os.PathLike, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write the file whole or not at all: a full disk or an interrupt leaves the old file intact."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ModelFileError(f"Cannot save to {path}: the folder {path.parent} does not exist.")
    metadata = {"format": FORMAT, "format_version": str(FORMAT_VERSION), "model": json.dumps(header)}
    try:
        with files.replaced(path) as temporary:
            temporary.write_bytes(_ordered(save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, metadata)))
    except (OSError, SafetensorError) as error:
        raise ModelFileError(f"Cannot write {path}: {error}.") from error


def _ordered(content: bytes) -> bytes:
    """The same file with its metadata in order, which the library shuffles: equal models are equal files."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[start:]


def read(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and header of a file made by `write`."""
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no model file at {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(
            f"{path} is not a readable model file (damaged, truncated or of another kind): {error}."
        ) from error
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file, but not a model written by effective-langevin.")
    written_with = metadata.get("format_version", "")
    if written_with.isdecimal() and int(written_with) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {written_with}; this version of effective-langevin reads up to "
            f"{FORMAT_VERSION}. Upgrade effective-langevin."
        )
    try:
        int(written_with)
        return arrays, json.loads(metadata.get("model", ""))
    except ValueError as error:
        raise ModelFileError(f"The header of {path} is damaged: {error}.") from error
