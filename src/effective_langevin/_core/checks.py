"""Argument checks: the only place that words argument errors.

Every message reads "Argument `name` must be ..., but got ...", plus a hint how to correct it.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from .errors import UNPRINTABLE, ArgumentError, DataError

_LARGEST = 1e75
_LONGEST = 256  # characters of a name


def refused(name: str, must: str, got: object, hint: str = "") -> ArgumentError:
    """Return the error for a value that cannot work, to be raised."""
    return ArgumentError(f"Argument `{name}` must be {must}, but got {got!r}. {hint}".rstrip())


def known_keys(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a setting that does not exist, and name the nearest that does."""
    known = list(known)
    for key in given:
        if key not in known:
            near = get_close_matches(key, known, 1, 0.5)
            hint = f"Did you mean `{near[0]}`?" if near else f"There are: {', '.join(known) or 'none'}."
            raise ArgumentError(f"There is no setting `{key}` in {where}. {hint}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _number(name: str, value: Any, must: str, holds: Callable[[float], bool], hint: str = "") -> float:
    if not _is_number(value) or not holds(float(value)):
        raise refused(name, must, value, hint)
    return float(value)


def positive_number(name: str, value: Any, hint: str = "") -> float:
    """Return `value` as a positive finite float."""
    if value is None:
        raise ArgumentError(f"Argument `{name}` is missing: it must be a positive number. {hint}".rstrip())
    return _number(name, value, "a positive number", lambda v: 0 < v < np.inf, hint)


def sensible_number(name: str, value: float, hint: str) -> None:
    """Refuse a positive number of which the fourth power leaves the range of float64."""
    if not 1 / _LARGEST < value < _LARGEST:
        raise refused(name, f"between {1 / _LARGEST:.0e} and {_LARGEST:.0e}", value, hint)


def optional_positive_number(name: str, value: Any) -> float | None:
    """As `positive_number`, or None for "choose it for me"."""
    return None if value is None else positive_number(name, value)


def positive_or_infinite(name: str, value: Any) -> float:
    """Return `value` as a positive float, which may be infinite."""
    return _number(name, value, "a positive number", lambda v: v > 0)


def non_negative_number(name: str, value: Any) -> float:
    """Return `value` as a finite float of at least 0."""
    return _number(name, value, "a number of at least 0", lambda v: 0 <= v < np.inf)


def fraction(name: str, value: Any) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    return _number(name, value, "a number between 0 and 1", lambda v: 0 < v < 1)


def number_or_numbers(name: str, value: Any, count: int, per: str) -> tuple[float, ...]:
    """Return one finite number per `per`; a single number serves for all."""
    many = [value] * count if _is_number(value) else list(value) if np.iterable(value) else []
    if len(many) != count or not all(_is_number(v) and np.isfinite(v) for v in many):
        raise refused(name, f"a number, or {count} numbers, one per {per}", value)
    return tuple(float(v) for v in many)


def integer_at_least(name: str, value: Any, least: int) -> int:
    """Return `value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise refused(name, f"an integer of at least {least}", value)
    return int(value)


def integers_at_least(name: str, value: Any, least: int) -> tuple[int, ...]:
    """Return `value` as a tuple of ints of at least `least`."""
    if not isinstance(value, list | tuple):
        raise refused(name, f"a list of integers of at least {least}", value)
    return tuple(integer_at_least(name, v, least) for v in value)


def not_empty(name: str, value: Sequence[Any], describe: str) -> None:
    """Refuse an empty list."""
    if not len(value):
        raise refused(name, describe, value)


def offers(name: str, value: Any, method: str, examples: str) -> Any:
    """Return `value` if it is an object with that method."""
    if not callable(getattr(value, method, None)) or isinstance(value, type):
        raise refused(name, f"an object such as {examples}", value)
    return value


def one_of(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """Return `value` if it is among `choices`."""
    choices = list(choices)
    if value not in choices:
        raise refused(name, "one of " + ", ".join(repr(c) for c in choices), value)
    return value


def instance_of(name: str, value: Any, kinds: tuple[type, ...], hint: str = "") -> Any:
    """Return `value` if it is an instance of one of `kinds`."""
    if not isinstance(value, kinds):
        raise refused(name, "a " + " or ".join(k.__name__ for k in kinds), value, hint)
    return value


def texts(name: str, value: Sequence[str] | None, count: int, default: Sequence[str]) -> tuple[str, ...]:
    """Return one short printable text per variable."""
    if value is None:
        return tuple(default)
    if isinstance(value, str) or len(value) != count:
        raise refused(name, f"a list of {count} texts, one per variable", value)
    return tuple(printable(name, str(v).strip()) for v in value)


def printable(name: str, text: str) -> str:
    """Return a text that every file and every terminal can hold."""
    if len(text) > _LONGEST or UNPRINTABLE.search(text) or "\n" in text or "\t" in text:
        must = f"at most {_LONGEST} characters without line breaks and control characters"
        raise refused(name, must, text[:40] + "..." * (len(text) > 40), f"Give others: {name}=...")
    return text


def periods(value: Any, names: Sequence[str]) -> tuple[float | None, ...]:
    """Return one period per variable, None on a line, from such a list or from periods by name."""
    if isinstance(value, Mapping):
        known_names("periods", value, names, "the series")
        value = [value.get(name) for name in names]
    value = [None] * len(names) if value is None else value
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray) or len(value) != len(names):
        raise refused("periods", f"a list of {len(names)} periods, one per variable (None: not an angle)", value)
    return tuple(optional_positive_number("periods", period) for period in value)


def known_names(name: str, wanted: Any, known: Iterable[str], where: str) -> tuple[str, ...]:
    """Return the names asked for, all of which `where` must hold."""
    wanted = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    known = dict.fromkeys(str(k) for k in known)
    for entry in wanted:
        if entry not in known:
            known = list(known)
            shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            raise refused(name, f"among the names in {where}", entry, f"There are: {shown or 'none'}.")
    return wanted


def distinct(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return names of which none is empty or occurs twice."""
    names = tuple(names)
    if "" in names:
        raise refused(name, "names", "", "Name every variable.")
    if len(set(names)) < len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise refused(name, "different names", twice, "It occurs twice. Rename one of them.")
    return names


def not_given(name: str, value: Any, reason: str) -> None:
    """Refuse an argument that has no meaning here."""
    if value is not None:
        raise ArgumentError(f"Argument `{name}` has no meaning here, but got {value!r}: {reason}")


def shaped_array(name: str, value: Any, shape: tuple[int | None, ...], describe: str) -> np.ndarray:
    """Return `value` as a float64 array of the given shape (None: any length)."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise refused(name, f"an array of numbers of shape {describe}", value) from None
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape))
    if not fits:
        raise ArgumentError(f"Argument `{name}` must have shape {describe}, but got {array.shape}.")
    return array


def finite(name: str, value: np.ndarray) -> np.ndarray:
    """Return an array that holds neither NaN nor infinities."""
    if not np.isfinite(value).all():
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
        raise ArgumentError(f"Argument `{name}` must be finite, but got {value[first]!r} at index {first}.")
    return value


def real_samples(value: Any, where: str = "The series") -> np.ndarray:
    """Return samples as a float64 array; refuse complex numbers, texts and infinities."""
    try:
        array = np.asarray(unmasked(value))
    except ValueError as error:
        raise DataError(f"{where} is not a rectangular array of numbers: {error}.") from None
    if np.iscomplexobj(array):
        raise DataError(f"{where} is complex. Give real and imaginary parts as two variables.")
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"{where} holds {array.dtype.name} values where numbers are needed. Convert or drop those columns."
        )
    array = array.astype(float)
    infinite = np.isinf(array)
    if infinite.any():
        first = tuple(int(i) for i in np.argwhere(infinite)[0])
        raise DataError(
            f"{where} holds {int(infinite.sum())} infinite values, the first at index {first}. "
            "Mark missing samples as NaN or correct them."
        )
    return array


def unmasked(value: Any) -> Any:
    """Return a masked array with NaN where it is masked, anything else as it is."""
    if not isinstance(value, np.ma.MaskedArray):
        return value
    return np.where(np.ma.getmaskarray(value), np.nan, value.data) if value.dtype.kind in "fiub" else value.filled()


def dependent(name: str, others: Sequence[str], factors: Sequence[float], digits: int) -> DataError:
    """Return the error for a variable that repeats others, to be raised."""
    if len(others) == 1:
        equals = f"equals {others[0]}" if abs(factors[0] - 1) < 1e-9 else f"is {factors[0]:.4g} times {others[0]}"
    else:
        terms = (f"{factor:+.4g} {other}" for factor, other in zip(factors, others))
        equals = f"is {' '.join(terms).removeprefix('+')}"
    return DataError(f"{name} {equals}, up to a constant, to {digits} digits: drop one, or use PCA (--pca).")


def fits_in_memory(size: float, what: str, hint: str = "Read fewer variables, or a shorter stretch.") -> None:
    """Refuse arrays of so many bytes if this machine cannot hold them."""
    try:
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on Windows
        most = 2**40
    if size > most:
        raise ArgumentError(
            f"{what} would take {size / 2**30:,.3g} GiB, but this machine has {most / 2**30:.3g}. {hint}"
        )


def enough_samples(count: int, least: int, purpose: str) -> None:
    """Refuse a series too short for `purpose`."""
    if count < least:
        raise DataError(f"The series has {count} usable samples; {purpose} needs at least {least}. Record for longer.")
