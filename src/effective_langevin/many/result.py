"""What comes back from many fits: models that are read when asked for, one table, one page."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from .._core import checks, files
from .._core.format import count, listed, measured, rounded
from ..model import LangevinModel, load
from .folder import INDEX, TABLE, ManyFolder, read_manifest
from .task import Row

_SHOWN = 5


class Models(Mapping[str, LangevinModel]):
    """The models by the names of their series, read from their files when they are asked for."""

    def __init__(self, folder: ManyFolder, names: Sequence[str]):
        self._folder, self._names = folder, dict.fromkeys(names)

    def __getitem__(self, name: str) -> LangevinModel:
        if name not in self._names:
            raise KeyError(name)
        return load(self._folder.model(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Models({listed(list(self._names))})"


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
        return Models(self.folder, [row["name"] for row in self.rows if not row["failure"]])

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
