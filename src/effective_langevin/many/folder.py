"""The folder of many fits: names of files, what is done already.

fits.json   models/NAME.safetensors   rows/NAME.json   reports/NAME.html   table.parquet   table.nc   index.html
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._core import files
from .._core.errors import ArgumentError, ModelFileError
from .task import Row

MANIFEST, INDEX, TABLE = "fits.json", "index.html", "table"
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # names of devices on Windows
_LITTER = ".*.part*"


def file_stems(names: Sequence[str]) -> dict[str, str]:
    """Return a name for the files of each series: as it is where every file system takes it, otherwise with a digest.

    Names that differ in case only, or in characters that files cannot have, stay apart.
    """
    alike = Counter(name.casefold() for name in names)
    stems = {}
    for name in names:
        plain = _SAFE.fullmatch(name) and not _RESERVED.fullmatch(name) and name[-1] != "."
        readable = re.sub(r"[^A-Za-z0-9_+-]+", "-", name).strip("-")[:40] or "series"
        digest = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=6).hexdigest()
        stems[name] = name if plain and alike[name.casefold()] == 1 else f"{readable}~{digest}"
    return stems


class ManyFolder:
    """Where the files of each series are, and which of them are there."""

    def __init__(self, path: Path, names: Sequence[str]):
        self.path, self.names, self.stems = path, list(names), file_stems(names)

    def model(self, name: str) -> Path:
        return self.path / "models" / f"{self.stems[name]}.safetensors"

    def row(self, name: str) -> Path:
        return self.path / "rows" / f"{self.stems[name]}.json"

    def report(self, name: str) -> Path:
        return self.path / "reports" / f"{self.stems[name]}.html"

    def begin(self, settings: dict[str, Any], digest: str, overwrite: bool) -> None:
        """Make the folder and note what is fitted there; refuse one with fits of other settings."""
        try:
            for place in (self.path, *(self.path / part for part in ("models", "rows", "reports"))):
                place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"Cannot write to {self.path}: {error.strerror or error}.") from error
        before = read_manifest(self.path) if (self.path / MANIFEST).is_file() else {"digest": digest}
        if before.get("digest") != digest and not overwrite:
            raise ArgumentError(
                f"{self.path} holds fits with other settings. Choose another `out`, or pass overwrite=True "
                "(--overwrite)."
            )
        for litter in self.path.rglob(_LITTER):
            litter.unlink(missing_ok=True)
        content = {"settings": settings, "digest": digest, "names": self.names}
        files.write_text(self.path / MANIFEST, json.dumps(content, default=repr))

    def done(self, name: str, digest: str | None = None) -> Row | None:
        """Return the row of a series that was fitted to these data with these settings."""
        try:
            row = json.loads(self.row(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        complete = row.get("name") == name and digest in (None, row.get("digest"))
        return row if complete and (row["failure"] or self.model(name).is_file()) else None


def read_manifest(path: Path) -> dict[str, Any]:
    """Return what a folder of many fits says about itself."""
    try:
        content = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        return {**content, "names": list(content["names"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is not a folder written by `fit_many`: {MANIFEST} cannot be read.") from error
