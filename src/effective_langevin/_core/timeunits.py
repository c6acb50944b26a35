"""Units of time by their usual names."""

_DAY = 86400.0
_YEAR = 365.2425 * _DAY

SECONDS = {
    "fs": 1e-15, "ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "hour": 3600.0,
    "day": _DAY, "week": 7 * _DAY, "month": _YEAR / 12, "year": _YEAR,
}  # fmt: skip
CALENDAR = ("month", "year")
_ALIASES = {
    "fs": ("femtosecond",),
    "ps": ("picosecond",),
    "ns": ("nanosecond", "nanosec", "nsec"),
    "us": ("microsecond", "microsec", "usec", "µs"),
    "ms": ("millisecond", "millisec", "msec"),
    "s": ("second", "sec"),
    "min": ("minute",),
    "hour": ("h", "hr"),
    "day": ("d",),
    "week": (),
    "month": ("mon",),
    "year": ("yr", "a"),
}
_BY_NAME = {alias: unit for unit, aliases in _ALIASES.items() for alias in (unit, *aliases)}


def canonical(text: str) -> str:
    """The usual name of a unit of time: "days", "d" and "Days since 1979-01-01" are "day"; "" if it is none of ours."""
    word = text.split(" since ")[0].strip().lower()
    return _BY_NAME.get(word) or _BY_NAME.get(word.removesuffix("s"), "")


def ratio(unit: float, other: float) -> float:
    """How many of the `other` fill one `unit`, both in seconds: whole numbers and their inverses come out exact."""
    if unit < other:
        return 1 / ratio(other, unit)
    count = unit / other
    return float(round(count)) if abs(count - round(count)) < 1e-9 * count else count


def label(text: str) -> str:
    """What to print: the user's own word, or the usual name where the text is a CF reference such as "days since"."""
    return canonical(text) or text.split(" since ")[0].strip() if " since " in text else text.strip()
