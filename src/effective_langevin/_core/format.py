"""Numbers and names in texts: the only place that writes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

NO_UNITS = ("", "1")  # the latter is how files say that a variable has none
_NEGLIGIBLE = 1e-9  # relative error that is rounding


def digits(value: float, error: float | None = None) -> tuple[str, str]:
    """Write a value and its error to the second digit of the error (three digits of the value without one)."""
    if error is None or not np.isfinite(error) or error <= 0:
        return _general(value, 3), ""
    exponent = int(np.floor(np.log10(max(abs(value), error))))
    scale, suffix = (1.0, "") if -4 <= exponent < 5 else (10.0**exponent, f"e{exponent:d}")
    decimals = max(0, 1 - int(np.floor(np.log10(error / scale))))
    return f"{value / scale:z.{decimals}f}{suffix}", f"{error / scale:.{decimals}f}{suffix}"


def plus_minus(value: float, error: float | None = None) -> str:
    """Write `value ± error` with the digits that mean something; an error that is rounding is left out."""
    error = None if error is not None and error <= _NEGLIGIBLE * abs(value) else error
    return " ± ".join(part for part in digits(value, error) if part)


def measured(value: float, error: float | None = None, unit: str = "") -> str:
    """Write `0.703 ± 0.021 s`; a value without an error, or with a negligible one, like `rounded`."""
    if not np.isfinite(value):
        return f"unknown{after_number(unit)}"
    negligible = error is None or not np.isfinite(error) or error <= _NEGLIGIBLE * abs(value)
    return (rounded(value) if negligible else plus_minus(value, error)) + after_number(unit)


def rounded(value: float) -> str:
    """Write three digits, and whole numbers below ten million in full."""
    return f"{value:.0f}" if 100 <= abs(value) < 1e7 else f"{value:.3g}"


def short(number: float) -> str:
    """Write two significant digits, and all digits of larger whole numbers."""
    return f"{number:,.0f}" if abs(number) >= 10 else _general(number, 2)


def percent(share: float, error: float | None = None) -> str:
    """Write `12.34 ± 0.21 %`."""
    return measured(100 * share, None if error is None else 100 * error, "%")


def typeset(number: str) -> str:
    """Replace the hyphen of a number by a minus sign."""
    return number.replace("-", "−")


def count(number: int, noun: str) -> str:
    """Write `1 gap`, `3,000 gaps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Write `x1, x2 and x3`, or `x1, x2, x3, x4 and 28 more`."""
    names = list(names)
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def with_unit(name: str, unit: str) -> str:
    """Write `height [m]`, or the name alone if it has no unit."""
    return f"{name} [{unit}]" if unit not in NO_UNITS else name


def brief_unit(unit: str) -> str:
    """Write a unit without its remark in brackets, for which tables and axes have no room."""
    return unit.partition(" (")[0]


def after_number(unit: str) -> str:
    """Write a unit as it stands after a number."""
    return f" {unit}" if unit not in NO_UNITS else ""


def rows_of(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flatten nested settings into rows of a table; None was chosen from the data."""
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


def _general(number: float, figures: int) -> str:
    """Write so many significant figures, zeros kept, exponents without padding; exact zero is 0."""
    mantissa, e, exponent = f"{number:#.{figures}g}".partition("e")
    return f"{mantissa.rstrip('.')}{e}{int(exponent) if e else ''}" if number else "0"
