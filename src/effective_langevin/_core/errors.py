"""The exceptions and warnings a user can meet. Each carries a sentence in the user's words."""

import re

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Spell out characters that steer a terminal or turn the order of what follows: names come from files."""
    return UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


class EffectiveLangevinError(Exception):
    """Base of every error raised on purpose by this package; control characters are shown as escapes."""

    def __str__(self) -> str:
        return visible(super().__str__())


class ArgumentError(EffectiveLangevinError, ValueError):
    """An argument has a value that cannot work."""


class DataError(EffectiveLangevinError, ValueError):
    """The series handed in cannot be modelled as it is."""


class ModelFileError(EffectiveLangevinError, ValueError):
    """A model file is missing, damaged, foreign or from a newer version."""


class DivergenceError(EffectiveLangevinError, ArithmeticError):
    """Every member of a simulation left the finite numbers."""


class ClusterError(EffectiveLangevinError):
    """The scheduler or the workers of a cluster are gone."""


class EstimateWarning(UserWarning):
    """An estimate was made, but there is evidence that it should not be trusted blindly."""
