"""What the pages take from files of the repository when they are built: tables of results, metrics, figures.

A line `<!-- table: PATH -->`, `<!-- metrics: PATH -->` (JSON, {row: {metric: value}}) or
`<!-- figure: PATH | CAPTION -->` is replaced. A path may be a pattern: the first match is taken. What has not been made
yet leaves a sentence that says so.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
_WANTED = re.compile(r"^<!-- (table|metrics|figure): (\S+)(?: \| (.+))? -->$", re.MULTILINE)


def filled(page: str) -> str:
    """The page with its tables and figures put in."""
    return _WANTED.sub(lambda wanted: _content(*wanted.groups()), page)


def _content(kind: str, pattern: str, caption: str | None) -> str:
    found = sorted(ROOT.glob(pattern))
    if not found:
        return f"*(Not made yet: `{pattern.rpartition('/')[2]}`.)*"
    if kind == "figure":
        return figure(found[0], caption or "")
    return (table if kind == "table" else metrics)(found[0].read_text(encoding="utf-8"))


def table(text: str) -> str:
    """The first Markdown table of a text."""
    rows = re.search(r"(^\|.*\n)+", text, flags=re.MULTILINE)
    if rows is None:
        raise ValueError("A page asks for a table of a file that holds none.")
    return rows[0]


def metrics(text: str) -> str:
    """A table with one column per entry of a JSON object whose values are objects of numbers."""
    rows = {name: row for name, row in json.loads(text).items() if isinstance(row, dict) and name != "extra"}
    names = list(dict.fromkeys(metric for row in rows.values() for metric in row))
    lines = ["| | " + " | ".join(rows) + " |", "|---|" + "---|" * len(rows)]
    for name in names:
        cells = (f"{row[name]:.4f}" if name in row else "" for row in rows.values())
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(path: Path, caption: str) -> str:
    """A figure of the repository with its caption."""
    place = path.relative_to(ROOT)
    return f":::{{figure}} ../{place}\n:alt: {re.sub('[$`]', '', caption)}\n\n{caption}\n:::"
