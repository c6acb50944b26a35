"""Numbers with as many digits as mean something."""

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


def typeset(number: str) -> str:
    """A number with a minus sign in place of the hyphen."""
    return number.replace("-", "−")


def _general(number: float, figures: int) -> str:
    """So many significant figures, zeros kept, exponents without padding; exact zero is 0."""
    mantissa, e, exponent = f"{number:#.{figures}g}".partition("e")
    return f"{mantissa.rstrip('.')}{e}{int(exponent) if e else ''}" if number else "0"
