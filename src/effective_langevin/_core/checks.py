"""Argument checks: the only place that words argument errors.

Every message reads "Argument `name` must be ..., but got ...", plus a hint how to repair it.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from .errors import ArgumentError, DataError


def _bad(name: str, must: str, got: object, hint: str = "") -> ArgumentError:
    message = f"Argument `{name}` must be {must}, but got {got!r}."
    return ArgumentError(f"{message} {hint}".rstrip())


def refused(name: str, must: str, got: object, hint: str = "") -> ArgumentError:
    """The error for a value that only the caller can tell to be wrong; to be raised."""
    return _bad(name, must, got, hint)


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


def positive_number(name: str, value: Any, hint: str = "") -> float:
    """Return `value` as a float, or explain that it has to be a positive finite number."""
    if value is None:
        raise ArgumentError(f"Argument `{name}` is missing: it must be a positive number. {hint}".rstrip())
    if not _is_number(value) or not 0 < float(value) < np.inf:
        raise _bad(name, "a positive number", value, hint)
    return float(value)


def non_negative_number(name: str, value: Any) -> float:
    """Return `value` as a float that is finite and not negative."""
    if not _is_number(value) or not 0 <= float(value) < np.inf:
        raise _bad(name, "a number of at least 0", value)
    return float(value)


def positive_or_infinite(name: str, value: Any) -> float:
    """As `positive_number`, but `inf` will do."""
    return np.inf if _is_number(value) and value == np.inf else positive_number(name, value)


def optional_positive_number(name: str, value: Any, hint: str = "") -> float | None:
    """As `positive_number`, but None means "choose it for me"."""
    return None if value is None else positive_number(name, value, hint)


def number_or_numbers(name: str, value: Any, count: int, per: str) -> tuple[float, ...]:
    """Return one finite number per `per`; a single number serves for all."""
    many = [value] * count if _is_number(value) else list(value) if np.iterable(value) else []
    if len(many) != count or not all(_is_number(v) and np.isfinite(v) for v in many):
        raise _bad(name, f"a number, or {count} numbers, one per {per}", value)
    return tuple(float(v) for v in many)


def integer_at_least(name: str, value: Any, least: int) -> int:
    """Return `value` as an int that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise _bad(name, f"an integer of at least {least}", value)
    return int(value)


def integers_at_least(name: str, value: Any, least: int) -> tuple[int, ...]:
    """Return `value` as a tuple of ints that are at least `least`."""
    if not isinstance(value, list | tuple):
        raise _bad(name, f"a list of integers of at least {least}", value)
    return tuple(integer_at_least(name, v, least) for v in value)


def at_most(name: str, value: int, most: int, why: str) -> None:
    """Refuse a number beyond what the data allow."""
    if value > most:
        raise _bad(name, f"at most {most}, {why}", value)


def distinct(name: str, value: Sequence[Any]) -> None:
    """Refuse an empty list and one that repeats itself."""
    if not len(value) or len(set(value)) < len(value):
        raise _bad(name, "a list of one or more distinct entries", value)


def not_empty(name: str, value: Sequence[Any], describe: str) -> None:
    """Refuse an empty list."""
    if not len(value):
        raise _bad(name, describe, value)


def offers(name: str, value: Any, method: str, examples: str) -> Any:
    """Return `value` if it is an object with that method."""
    if not callable(getattr(value, method, None)) or isinstance(value, type):
        raise _bad(name, f"an object such as {examples}", value)
    return value


def fraction(name: str, value: Any) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    if not _is_number(value) or not 0 < float(value) < 1:
        raise _bad(name, "a number between 0 and 1", value)
    return float(value)


def one_of(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """Return `value` if it is among `choices`."""
    choices = list(choices)
    if value not in choices:
        raise _bad(name, "one of " + ", ".join(repr(c) for c in choices), value)
    return value


def instance_of(name: str, value: Any, kinds: tuple[type, ...], hint: str = "") -> Any:
    """Return `value` if it is an instance of one of `kinds`."""
    if not isinstance(value, kinds):
        raise _bad(name, "a " + " or ".join(k.__name__ for k in kinds), value, hint)
    return value


def texts(name: str, value: Sequence[str] | None, count: int, default: Sequence[str]) -> tuple[str, ...]:
    """Return one text per variable."""
    if value is None:
        return tuple(default)
    if isinstance(value, str) or len(value) != count:
        raise _bad(name, f"a list of {count} texts, one per variable", value)
    return tuple(str(v) for v in value)


def periods(value: Any, names: Sequence[str]) -> tuple[float | None, ...]:
    """Return one period per variable, None on a line, from such a list or from periods by name."""
    if isinstance(value, Mapping):
        known_names("periods", value, names, "the series")
        value = [value.get(name) for name in names]
    value = [None] * len(names) if value is None else value
    if isinstance(value, str) or not np.iterable(value) or len(value) != len(names):
        raise _bad("periods", f"a list of {len(names)} periods, one per variable (None: not an angle)", value)
    return tuple(optional_positive_number("periods", period) for period in value)


def same_length(name: str, value: Sequence[Any], other: Sequence[Any]) -> None:
    """Refuse a list that does not replace `other` one for one."""
    if len(value) != len(other):
        raise ArgumentError(f"Argument `{name}` must have {len(other)} entries, as before, but got {len(value)}.")


def known_names(name: str, wanted: Any, known: Iterable[str], where: str) -> tuple[str, ...]:
    """Return the names asked for, all of which `where` must hold."""
    wanted = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    known = [str(k) for k in known]
    for entry in wanted:
        if entry not in known:
            shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            raise _bad(name, f"among the names in {where}", entry, f"There are: {shown or 'none'}.")
    return wanted


def agrees(name: str, value: float, known: str, holds: bool, hint: str) -> None:
    """Refuse a value that contradicts the time coordinate."""
    if not holds:
        raise ArgumentError(f"Argument `{name}` is {value!r}, but the time coordinate is spaced by {known}. {hint}")


def not_given(name: str, value: Any, reason: str) -> None:
    """Refuse an argument that has no meaning here."""
    if value is not None:
        raise ArgumentError(f"Argument `{name}` has no meaning here, but got {value!r}: {reason}")


def switch_or_positive(name: str, value: Any) -> bool | float:
    """Return True, False (also for None) or a positive number."""
    return bool(value) if value is None or isinstance(value, bool | np.bool_) else positive_number(name, value)


def shaped_array(name: str, value: Any, shape: tuple[int | None, ...], describe: str) -> np.ndarray:
    """Return `value` as a float64 array of the given shape (None: any length)."""
    array = np.asarray(value, dtype=float)
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
    """Return samples as a float64 array, refusing complex numbers, texts and infinities."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{where} is not a rectangular array of numbers: {error}.") from None
    if np.iscomplexobj(array):
        raise DataError(f"{where} is complex. Give real and imaginary parts as two variables.")
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"{where} holds {array.dtype.name} values where numbers are needed. Convert or drop those columns."
        )
    array = array.astype(float)
    if np.isinf(array).any():
        first = tuple(int(i) for i in np.argwhere(np.isinf(array))[0])
        raise DataError(
            f"{where} holds {int(np.isinf(array).sum())} infinite values, the first at index {first}. "
            "Mark missing samples as NaN or repair them."
        )
    return array


def enough_samples(count: int, least: int, purpose: str) -> None:
    """Refuse a series too short for `purpose`."""
    if count < least:
        raise DataError(f"The series has {count} usable samples; {purpose} needs at least {least}. Record for longer.")


def at_most_one_of(flags: Mapping[str, bool]) -> None:
    """Refuse options that exclude each other."""
    given = [name.replace("_", "-") for name, on in flags.items() if on]
    if len(given) > 1:
        raise ArgumentError(f"The options {' and '.join(f'--{name}' for name in given)} exclude each other: give one.")
