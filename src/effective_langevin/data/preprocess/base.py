"""What every fitted transform does: apply, invert, describe itself, become plain data and come back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from ..._core.errors import DataError, ModelFileError
from ..._core.format import listed
from ..._core.types import Samples
from ..series import Label, TimeSeries


class Transform(Protocol):
    """A setting that learns from a series."""

    def fit(self, series: TimeSeries) -> "FittedTransform":
        """Learn what the transform needs from `series`."""
        ...


@dataclass(frozen=True, eq=False)
class FittedTransform(ABC):
    """A transform that knows all it needs; what ``fit`` of every transform returns.

    Gaps and records are kept.

    Attributes
    ----------
    names, units, periods : tuple
        Labels of the variables of the series, and periods of those that are angles.
    time_unit : str
        Unit of time of the series.

    Examples
    --------
    >>> series = el.TimeSeries(np.arange(10.0) ** 2, dt=1.0)
    >>> fitted = el.preprocess.Detrend().fit(series)
    >>> bool(np.allclose(fitted.invert(fitted.apply(series)).values, series.values))
    True
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    time_unit: str
    periods: tuple[float | None, ...]

    kinds: ClassVar[dict[str, type["FittedTransform"]]] = {}

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if cls.__name__.startswith("Fitted"):
            FittedTransform.kinds[cls.__name__.removeprefix("Fitted")] = cls

    @property
    def labels(self) -> list[Label]:
        """Name, unit and period of each variable."""
        return list(zip(self.names, self.units, self.periods))

    @property
    def new_labels(self) -> list[Label]:
        """Name, unit and period of each variable after `apply`."""
        return self.labels

    @property
    def new_names(self) -> tuple[str, ...]:
        """Names of the variables after `apply`."""
        return tuple(name for name, _, _ in self.new_labels)

    @property
    def new_units(self) -> tuple[str, ...]:
        """Units of the variables after `apply`."""
        return tuple(unit for _, unit, _ in self.new_labels)

    @property
    def new_periods(self) -> tuple[float | None, ...]:
        """Periods of the variables after `apply`, None for those that are not angles."""
        return tuple(period for _, _, period in self.new_labels)

    @property
    def embeds_angles(self) -> bool:
        """Whether angles become cos and sin."""
        return False

    @abstractmethod
    def apply(self, series: TimeSeries) -> TimeSeries:
        """Transform a series.

        Parameters
        ----------
        series : TimeSeries
            A series of the variables that the transform was fitted to.

        Returns
        -------
        TimeSeries
            The same samples in the new variables.
        """

    @abstractmethod
    def invert(self, series: TimeSeries) -> TimeSeries:
        """Undo the transform.

        Parameters
        ----------
        series : TimeSeries
            A series of the new variables, such as simulated paths.

        Returns
        -------
        TimeSeries
            The same samples in the original variables.
        """

    @property
    def kind(self) -> str:
        """Name of the transform that was fitted."""
        return type(self).__name__.removeprefix("Fitted")

    def summary(self) -> str:
        """Describe in one line what was learned."""
        return f"{self.kind} of {listed(self.names)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data and arrays, for storage."""
        content = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"kind": self.kind, **{name: list(v) if isinstance(v, tuple) else v for name, v in content.items()}}

    @classmethod
    def _from_dict(cls, state: Mapping[str, Any]) -> "FittedTransform":
        """Return the fitted transform that `to_dict` described."""
        state = state if "periods" in state else {"periods": cls._periods_before_they_were_stored(state), **state}
        content = {f.name: state[f.name] for f in fields(cls)}
        arguments: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
        return cls(**arguments)

    @staticmethod
    def _periods_before_they_were_stored(state: Mapping[str, Any]) -> list[float | None]:
        """Return the periods for a file of version 0.1, which has none."""
        return [None] * len(state["names"])

    def _expect(self, series: TimeSeries, names: Sequence[str]) -> None:
        """Refuse a series of other variables, or one that counts time in another unit."""
        if tuple(series.names) != tuple(names):
            raise DataError(
                f"This {self.kind} takes the variables {listed(names)}, but the series has {listed(series.names)}."
            )
        if self.time_unit and series.time_unit and self.time_unit != series.time_unit:
            raise DataError(
                f"This {self.kind} counts time in {self.time_unit}, but the series in {series.time_unit}. "
                "Read it with the same `time_unit`."
            )


class SegmentTransform(FittedTransform):
    """A fitted transform that works row by row: all times are kept."""

    def apply(self, series: TimeSeries) -> TimeSeries:
        self._expect(series, self.names)
        segments = [self._forward(s, t) for s, t in zip(series.segments, series.times)]
        return series.with_segments(segments, names=self.new_names, units=self.new_units, periods=self.new_periods)

    def invert(self, series: TimeSeries) -> TimeSeries:
        self._expect(series, self.new_names)
        segments = [self._backward(s, t) for s, t in zip(series.segments, series.times)]
        return series.with_segments(segments, names=self.names, units=self.units, periods=self.periods)

    @abstractmethod
    def _forward(self, values: Samples, times: np.ndarray) -> Samples: ...

    @abstractmethod
    def _backward(self, values: Samples, times: np.ndarray) -> Samples: ...


def from_dict(state: Mapping[str, Any]) -> FittedTransform:
    """Return the fitted transform that `FittedTransform.to_dict` described."""
    kind = state.get("kind")
    if kind not in FittedTransform.kinds:
        known = ", ".join(sorted(FittedTransform.kinds))
        raise ModelFileError(
            f"There is no transform {kind!r} in this version of effective-langevin; known are {known}."
        )
    try:
        return FittedTransform.kinds[kind]._from_dict(state)
    except KeyError as error:
        raise ModelFileError(f"The stored {kind} lacks its entry {error}: the file is damaged.") from error


def pack(state: Any, prefix: str = "preprocess") -> tuple[Any, dict[str, np.ndarray]]:
    """Split the result of `to_dict` into what JSON holds and arrays by name, for the header and the body of a file."""
    if isinstance(state, np.ndarray):
        return {"array": prefix}, {prefix: state}
    if isinstance(state, dict | list):
        items = state.items() if isinstance(state, dict) else enumerate(state)
        packed = {key: pack(value, f"{prefix}.{key}") for key, value in items}
        arrays = {name: array for _, part in packed.values() for name, array in part.items()}
        plain = {key: value for key, (value, _) in packed.items()}
        return (plain if isinstance(state, dict) else list(plain.values())), arrays
    return state, {}


def unpack(plain: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Undo `pack`."""
    if isinstance(plain, dict):
        if set(plain) == {"array"}:
            if plain["array"] not in arrays:
                raise ModelFileError(
                    f"The array {plain['array']} of a stored transform is missing: the file is damaged."
                )
            return np.asarray(arrays[plain["array"]])
        return {key: unpack(value, arrays) for key, value in plain.items()}
    return [unpack(value, arrays) for value in plain] if isinstance(plain, list) else plain


def described(series: TimeSeries) -> dict[str, Any]:
    """Return the fields that every fitted transform takes over from its series."""
    return {"names": series.names, "units": series.units, "time_unit": series.time_unit, "periods": series.periods}
