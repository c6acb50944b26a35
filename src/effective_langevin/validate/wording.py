"""Words around numbers, and settings as rows."""

from typing import Any

from .._core.numbers import digits, plus_minus, short, typeset

__all__ = ["after_number", "count", "digits", "plus_minus", "rows_of", "short", "typeset"]


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def after_number(unit: str) -> str:
    """A unit as it stands after a number."""
    return f" {unit}" if unit else ""


def rows_of(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested dictionary as rows of a table; a setting that was left open was chosen from the data."""
    rows = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            value = {str(number + 1): entry for number, entry in enumerate(value)}
        if isinstance(value, dict):
            rows += rows_of(value, f"{name}.")
        elif value != []:
            rows.append((name, "chosen from the data" if value is None else str(value)))
    return rows
