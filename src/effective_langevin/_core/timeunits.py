"""Units of time by their usual names."""

_YEAR = 365.2425 * 86400.0

# The length of a unit in seconds, and its other names; a plural s is understood.
_UNITS: dict[str, tuple[float, tuple[str, ...]]] = {
    "fs": (1e-15, ("femtosecond",)),
    "ps": (1e-12, ("picosecond",)),
    "ns": (1e-9, ("nanosecond", "nanosec", "nsec")),
    "us": (1e-6, ("microsecond", "microsec", "usec", "µs")),
    "ms": (1e-3, ("millisecond", "millisec", "msec")),
    "s": (1.0, ("second", "sec")),
    "min": (60.0, ("minute",)),
    "hour": (3600.0, ("h", "hr")),
    "day": (86400.0, ("d",)),
    "week": (7 * 86400.0, ()),
    "month": (_YEAR / 12, ("mon",)),
    "year": (_YEAR, ("yr", "a")),
}
SECONDS = {unit: seconds for unit, (seconds, _) in _UNITS.items()}
CALENDAR = ("month", "year")
_BY_NAME = {alias: unit for unit, (_, aliases) in _UNITS.items() for alias in (unit, *aliases)}


def canonical(text: str) -> str:
    """Return the usual name of a unit of time: "day" for "days", "d" and "Days since 1979-01-01"; "" if unknown."""
    word = text.split(" since ")[0].strip().lower()
    return _BY_NAME.get(word) or _BY_NAME.get(word.removesuffix("s"), "")


def plural(unit: str) -> str:
    """Return the full name of a usual unit in the plural, as CF wants it: "seconds" for "s"."""
    return max((unit, *_UNITS[unit][1]), key=len) + "s"


def ratio(unit: float, other: float) -> float:
    """Return how many of the `other` fill one `unit`, both in seconds; whole numbers and their inverses are exact."""
    if unit < other:
        return 1 / ratio(other, unit)
    count = unit / other
    return float(round(count)) if abs(count - round(count)) < 1e-9 * count else count


def label(text: str) -> str:
    """Return what to print: the word of the user, or the usual name of a CF reference such as "days since"."""
    return canonical(text) or text.split(" since ")[0].strip() if " since " in text else text.strip()
