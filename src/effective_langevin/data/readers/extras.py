"""Optional packages: one sentence that says what to install."""

import importlib
from pathlib import Path
from types import ModuleType

from ..._core.errors import DataError


def needs(module: str, extra: str, path: Path) -> ModuleType:
    """The module, or how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DataError(
            f"Reading {path} needs {module}, which is not installed: pip install 'effective-langevin[{extra}]'."
        ) from error
