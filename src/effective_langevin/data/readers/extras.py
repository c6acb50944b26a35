"""Optional packages: one sentence that says what to install."""

import importlib
from pathlib import Path
from types import ModuleType

from ..._core.errors import DataError


def needs(module: str, extra: str, path: Path) -> ModuleType:
    """The module, or how to get it: an extra of this package, or, where `extra` is empty, the package itself."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = f"'effective-langevin[{extra}]'" if extra else module
        raise DataError(f"{path} needs {module}, which is not installed: pip install {package}.") from error
