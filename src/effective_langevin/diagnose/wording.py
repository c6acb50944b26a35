"""Numbers in sentences: rounded to what their error allows, with a unit."""

from collections.abc import Sequence

import numpy as np


def measured(value: float, error: float | None = None, unit: str = "") -> str:
    """`0.70 ± 0.02 s`: the error with two digits, the value to the same place; three digits where there is no error."""
    unit = f" {unit}" if unit else ""
    if not np.isfinite(value):
        return f"unknown{unit}"
    if error is None or not np.isfinite(error) or error <= 1e-9 * abs(value):
        return f"{rounded(value)}{unit}"
    place = 1 - int(np.floor(np.log10(error)))
    if place <= 0:
        return f"{round(value, place):.0f} ± {round(error, place):.0f}{unit}"
    if place > 6:
        return f"{value:.3g} ± {error:.1g}{unit}"
    return f"{value:.{place}f} ± {error:.{place}f}{unit}"


def rounded(value: float) -> str:
    """Three digits, without an exponent for the usual sizes."""
    if 100 <= abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:.3g}"


def percent(share: float, error: float | None = None) -> str:
    """`12.0 ± 0.4 %`."""
    return measured(100 * share, None if error is None else 100 * error) + " %"


def listed(names: Sequence[str], most: int = 4) -> str:
    """`x1, x2 and x3`, or `x1, x2, x3, x4 and 28 more`."""
    names = list(names)
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def count(number: int, noun: str) -> str:
    """`1 gap`, `3 gaps`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
