"""Small cards for notebooks: they set no colours, so that they can be read on light and dark backgrounds."""

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "padding:.15em .7em .15em 0;background:transparent;border:0"
_QUIET = "opacity:.7;font-weight:normal"


def card(title: str, facts: Iterable[tuple[str, str]], *tables: str, note: str = "") -> str:
    """Write a title, facts line by line, and tables from `table`; all texts are escaped."""
    rows = "".join(
        f'<tr style="background:transparent"><th style="text-align:left;{_CELL};{_QUIET}">{escape(name)}</th>'
        f'<td style="text-align:left;{_CELL}">{escape(value)}</td></tr>'
        for name, value in facts
    )
    end = f'<div style="{_QUIET}">{escape(note)}</div>' if note else ""
    return (
        '<div style="font-family:sans-serif;line-height:1.4;overflow-x:auto;max-width:100%">'
        f'<div style="font-weight:bold">{escape(title)}</div>'
        f'<table style="border-collapse:collapse;margin:.2em 0"><tbody>{rows}</tbody></table>'
        f"{''.join(tables)}{end}</div>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table with a head; the first column is text, the others are numbers."""
    sides = ["left", *["right"] * (len(head) - 1)]
    line = "border-bottom:1px solid currentColor"

    def cells(tag: str, texts: Sequence[str], style: str) -> str:
        return "".join(
            f'<{tag} style="text-align:{side};{_CELL};{style}">{escape(t)}</{tag}>' for side, t in zip(sides, texts)
        )

    body = "".join(f'<tr style="background:transparent">{cells("td", row, "white-space:nowrap")}</tr>' for row in rows)
    return (
        '<table style="border-collapse:collapse;margin:.4em 0">'
        f"<thead><tr>{cells('th', head, f'{_QUIET};{line}')}</tr></thead><tbody>{body}</tbody></table>"
    )
