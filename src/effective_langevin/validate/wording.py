"""Numbers in words and digits: as many as mean something."""

from typing import Any

import numpy as np


def digits(value: float, error: float | None = None) -> tuple[str, str]:
    """A value and its error, both to the second digit of the error (without an error: three digits)."""
    if error is None or not np.isfinite(error) or error <= 0:
        return _general(value, 3), ""
    exponent = int(np.floor(np.log10(max(abs(value), error))))
    scale, suffix = (1.0, "") if -4 <= exponent < 5 else (10.0**exponent, f"e{exponent:d}")
    decimals = max(0, 1 - int(np.floor(np.log10(error / scale))))
    return f"{value / scale:z.{decimals}f}{suffix}", f"{error / scale:.{decimals}f}{suffix}"


def short(number: float) -> str:
    """Two significant digits, all digits of larger numbers."""
    return f"{number:,.0f}" if abs(number) >= 10 else _general(number, 2)


def plus_minus(value: float, error: float | None = None) -> str:
    """`value ± error` with the digits that mean something."""
    return " ± ".join(part for part in digits(value, error) if part)


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _general(number: float, figures: int) -> str:
    """So many significant figures, zeros kept, exponents without padding; exact zero is 0."""
    mantissa, e, exponent = f"{number:#.{figures}g}".partition("e")
    return f"{mantissa.rstrip('.')}{e}{int(exponent) if e else ''}" if number else "0"


def after_number(unit: str) -> str:
    """A unit as it stands after a number."""
    return f" {unit}" if unit else ""


def typeset(number: str) -> str:
    """A number with a minus sign in place of the hyphen."""
    return number.replace("-", "−")


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
