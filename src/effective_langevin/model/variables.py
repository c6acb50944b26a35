"""Whether a series is one of the variables, units and unit of time that a model knows."""

import warnings
from typing import TYPE_CHECKING

from .._core.errors import DataError, EstimateWarning
from .._core.format import listed
from .._core.timeunits import canonical
from ..data import TimeSeries

if TYPE_CHECKING:
    from .langevin import LangevinModel


def match_variables(model: "LangevinModel", series: TimeSeries) -> TimeSeries:
    """Return a series in the model's variables; refuse other names and units of time, warn of other units.

    Names that only number the variables, and units that are not stated, say nothing.
    """
    own = series if model.transform is None else model.transform.apply(series)
    if own.dimension != model.dimension:
        raise DataError(f"The model has {model.dimension} variables, but the series has {own.dimension}.")
    numbered = tuple(f"x{i + 1}" for i in range(model.dimension))
    if own.names != model.names and numbered not in (own.names, model.names):
        raise DataError(
            f"The model describes {listed(model.names)}, but the series has {listed(own.names)}. Give the variables of "
            "the model in its order: `variables=[...]`, or rename them."
        )
    unit, other = (canonical(text) or text for text in (model.time_unit, own.time_unit))
    if unit and other and unit != other:
        raise DataError(
            f"The model counts time in {model.time_unit}, but the series in {own.time_unit}. Read it with "
            f"time_unit={unit!r}."
        )
    for name, unit, other in zip(model.names, model.units, own.units):
        if unit and other and unit != other:
            text = f"{name} is in {unit} in the model, but in {other} in the series: the comparison may mean nothing."
            warnings.warn(text, EstimateWarning, stacklevel=4)
    return model.space.declare(own)
