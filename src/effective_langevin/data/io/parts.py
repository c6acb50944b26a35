"""Many series in one source: entries of a dictionary, files, labels along a dimension, values of a column."""

import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from ..._core import checks
from ..._core.errors import ArgumentError, DataError
from ..provenance import hash_samples
from ..series import TimeSeries, is_labelled
from . import read
from .records import ReadOptions, needs
from .sources import FORMATS
from .tables import as_pandas, load_text
from .xarray import open_labelled

_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class Part:
    """One series of many: a name, and a path or what is in memory, with the arguments of `read`."""

    name: str
    content: Any
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        return isinstance(self.content, str | os.PathLike)

    def load(self) -> TimeSeries:
        return self.content if isinstance(self.content, TimeSeries) else read(self.content, **self.reading)

    def fingerprint(self) -> str:
        """Return a digest of the samples and their labels, or of the bytes of a file and how it is read."""
        if self.is_file:
            _refuse_missing(Path(self.content))
            digest = hashlib.sha256(repr(sorted(self.reading.items())).encode())
            whole = Path(self.content)
            for path in sorted(p for p in whole.rglob("*") if p.is_file()) if whole.is_dir() else [whole]:
                digest.update(path.name.encode())
                with path.open("rb") as file:
                    while block := file.read(_CHUNK):
                        digest.update(block)
            return digest.hexdigest()
        series = self.load()
        labels = (series.units, series.time_unit, series.calendar, series.periods)
        return hashlib.sha256(f"{hash_samples(series)}{labels}".encode()).hexdigest()


def split_source(source: Any, by: str | None, reading: Mapping[str, Any]) -> list[Part]:
    """Return the series of a source under distinct names."""
    if isinstance(source, str | os.PathLike):
        parts = _of_files(os.fspath(source), reading) if by in (None, "file") else _of_file(source, by, reading)
    elif isinstance(source, list | tuple) and all(isinstance(path, str | os.PathLike) for path in source):
        checks.one_of("by", by, (None, "file"))
        parts = _named([Path(path) for path in source], reading)
    elif is_labelled(source):
        if by is None:
            raise ArgumentError(
                "Argument `by` is missing: it names the dimension or the column that tells series apart."
            )
        parts = [Part(name, content, reading) for name, content in _split(source, by, "the data")]
    elif isinstance(source, Mapping):
        checks.not_given("by", by, "the series of a dictionary have names already.")
        parts = [Part(str(name), content, reading) for name, content in source.items()]
    else:
        must = "a dictionary of series, labelled data with `by`, or a folder of files"
        raise checks.refused("source", must, type(source).__name__)
    checks.not_empty("source", parts, "one series or more")
    checks.distinct("names of the series", [checks.printable("name", part.name) for part in parts])
    return parts


def _refuse_missing(path: Path) -> None:
    if not path.exists():
        raise DataError(f"There is no file or folder at {path}.")


def _of_files(place: str, reading: Mapping[str, Any]) -> list[Part]:
    """Return a part for each file of a folder, or of those that match a pattern."""
    folder = Path(place)
    if folder.is_dir() and folder.suffix.lower() not in FORMATS:
        paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in FORMATS and not p.name.startswith("."))
    elif glob.has_magic(place) and not folder.exists():
        paths = [Path(path) for path in sorted(glob.glob(place, recursive=True))]
    else:
        raise ArgumentError(
            f"{place} is one file, and one series without `by`: name the dimension or the column that tells series "
            "apart, or a folder of files."
        )
    if not paths:
        raise DataError(f"There is no file that can be read at {place}. Known are: {', '.join(FORMATS)}.")
    return _named(paths, reading)


def _named(paths: list[Path], reading: Mapping[str, Any]) -> list[Part]:
    """Name files by the shortest of stem, name and path that tells them apart."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [path.name for path in paths]
    names = names if len(set(names)) == len(names) else [path.as_posix() for path in paths]
    return [Part(name, str(path), reading) for name, path in zip(names, paths)]


def _of_file(path: str | os.PathLike, by: str, reading: Mapping[str, Any]) -> list[Part]:
    path = Path(path)
    _refuse_missing(path)
    kind, _ = FORMATS.get(path.suffix.lower(), ("", None))
    if kind in ("NetCDF file", "Zarr store"):
        data: Any = open_labelled(path)
    elif kind == "text table":
        data = load_text(path, ReadOptions())
    elif kind == "Parquet file":
        import pandas as pd

        needs("pyarrow", "parquet", path)
        data = pd.read_parquet(path)
    else:
        raise DataError(f"{path} cannot be split by {by!r}: write nc, zarr, csv or parquet, or one file per series.")
    return [Part(name, content, reading) for name, content in _split(data, by, str(path))]


def _split(data: Any, by: str, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and the data of each label along a dimension, or of each value of a column."""
    if isinstance(data, xr.Dataset | xr.DataArray):
        if by in data.coords and by not in data.dims and data[by].ndim == 1:
            data = data.swap_dims({data[by].dims[0]: by})
        checks.known_names("by", by, [str(d) for d in data.dims], where)
        labels = data[by].values.tolist() if by in data.coords else range(data.sizes[by])
        yield from ((_text(label), data.isel({by: i}, drop=True)) for i, label in enumerate(labels))
        return
    frame = data if hasattr(data, "groupby") else as_pandas(data)
    frame = frame.reset_index(by) if by in frame.index.names else frame
    checks.known_names("by", by, [str(c) for c in frame.columns], where)
    for label, rows in frame.groupby(by, sort=False):
        yield _text(label), rows.drop(columns=by)


def _text(label: Any) -> str:
    return label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)
