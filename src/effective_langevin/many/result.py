"""What comes back from many fits: their folder, models that are read when asked for, one table, one page.

fits.json   models/NAME.safetensors   rows/NAME.json   reports/NAME.html   table.parquet   table.nc   index.html
"""

import hashlib
import json
import re
import tempfile
from collections import Counter, UserDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from .._core import checks, files
from .._core.errors import ArgumentError, ModelFileError
from .._core.format import count, listed, measured, rounded
from ..model import LangevinModel, load
from .task import Row

MANIFEST, INDEX, TABLE = "fits.json", "index.html", "table"
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # names of devices on Windows
_LITTER = ".*.part*"
_SHOWN = 5


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


class Models(UserDict[str, Any]):
    """The models by the names of their series, read from their files when they are asked for."""

    def __getitem__(self, name: str) -> LangevinModel:
        return load(self.data[name])

    def __repr__(self) -> str:
        return f"Models({listed(list(self))})"


@dataclass(frozen=True, eq=False, repr=False)
class ManyFits:
    """Models of many series, and their numbers in one table.

    `fit_many` makes it, and `ManyFits.open(folder)` reads it again.
    """

    folder: ManyFolder
    rows: tuple[Row, ...]
    seconds: float = float("nan")
    fitted: int = 0
    kept: tempfile.TemporaryDirectory | None = field(default=None)

    @classmethod
    def open(cls, folder: str | Path) -> "ManyFits":
        """Read the folder of many fits; series that are not fitted yet are left out.

        Parameters
        ----------
        folder : str or Path
            What was `out` of `fit_many`.

        Returns
        -------
        ManyFits
        """
        place = Path(folder)
        many = ManyFolder(place, read_manifest(place)["names"])
        return cls(many, tuple(row for name in many.names if (row := many.done(name)) is not None))

    @property
    def path(self) -> Path:
        """The folder."""
        return self.folder.path

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the series, also of those without a model."""
        return tuple(row["name"] for row in self.rows)

    @cached_property
    def models(self) -> Models:
        """The models by name, read from their files when they are asked for."""
        return Models({row["name"]: self.folder.model(row["name"]) for row in self.rows if not row["failure"]})

    @property
    def failures(self) -> dict[str, str]:
        """Series without a model, and why."""
        return {row["name"]: row["failure"] for row in self.rows if row["failure"]}

    @cached_property
    def table(self) -> Any:
        """A DataFrame, one line per series: mobility, relaxation times, entropy production, with errors (`_se`)."""
        from ..data.io.rows import to_frame

        return to_frame(self.rows)

    def to_xarray(self) -> Any:
        """Return the table as a dataset along `series`.

        Returns
        -------
        xarray.Dataset
        """
        from ..data.io.rows import table_to_dataset

        return table_to_dataset(self.table)

    def write(self) -> list[Path]:
        """Write the table (NetCDF, and Parquet where pyarrow is there) and the page that links to the reports.

        Returns
        -------
        list of Path
            The files.
        """
        from ..data.io.rows import write_table

        page = self.path / INDEX
        files.write_text(page, _page(self))
        return [*write_table(self.table, self.path / TABLE), page]

    def summary(self) -> str:
        """Return how many fits there are, and which failed, as text."""
        lines = [repr(self)]
        failures = list(self.failures.items())
        lines += [f"  {name}: {reason}" for name, reason in failures[:_SHOWN]]
        if len(failures) > _SHOWN:
            lines.append(f"  and {count(len(failures) - _SHOWN, 'more failure')}: see `failures`")
        return "\n".join(lines)

    def __repr__(self) -> str:
        now = f"; {self.fitted} fitted now in {rounded(self.seconds)} s" if self.fitted else ""
        return f"ManyFits({count(len(self.models), 'model')}, {count(len(self.failures), 'failure')}{now})"


def wanted_reports(report: Any, names: Sequence[str]) -> set[str]:
    """Return the series of which a report is asked for: names, or True for all."""
    if isinstance(report, bool) or report is None:
        return set(names) if report else set()
    return set(checks.known_names("report", report, names, "the series"))


_STYLE = (
    "body{font-family:sans-serif;margin:2em;line-height:1.4}table{border-collapse:collapse}"
    "th,td{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:left}td.n{text-align:right;white-space:nowrap}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)


def _page(fits: ManyFits) -> str:
    """Return one page with a line per series, linked to its report where there is one."""
    head = ("series", "slowest relaxation time", "entropy production", "closure", "verdict", "samples")
    rows = "".join(_line(fits, row) for row in fits.rows)
    cells = "".join(f"<th>{text}</th>" for text in head)
    title = f"{count(len(fits.models), 'model')}, {count(len(fits.failures), 'failure')}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"</head><body><h1>{title}</h1><p>All numbers, with errors: {TABLE}.nc, {TABLE}.parquet.</p>"
        f"<table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></body></html>\n"
    )


def _line(fits: ManyFits, row: Row) -> str:
    report = fits.folder.report(row["name"])
    name = escape(row["name"])
    linked = f'<a href="reports/{escape(report.name)}">{name}</a>' if report.is_file() else name
    if row["failure"]:
        return f'<tr><td>{linked}</td><td colspan="5">{escape(row["failure"])}</td></tr>'
    found, unit = row["columns"], row.get("time_unit") or ""
    time = measured(found["relaxation_time_1"], found["relaxation_time_1_se"], unit)
    entropy = measured(found["entropy_production"], found["entropy_production_se"], unit and f"per {unit}")
    numbers = "".join(f'<td class="n">{escape(text)}</td>' for text in (time, entropy))
    rest = "".join(f"<td>{escape(str(text))}</td>" for text in (row["closure"], row.get("level") or "", row["samples"]))
    return f"<tr><td>{linked}</td>{numbers}{rest}</tr>"
