"""Units beside names and numbers."""

import pytest

from effective_langevin._core.format import measured, with_unit
from effective_langevin.validate.style import label


@pytest.mark.parametrize(("unit", "axis", "number"), [("K", "x [K]", "2 K"), ("", "x", "2"), ("1", "x", "2")])
def test_a_variable_without_dimension_has_no_unit(unit, axis, number):
    """Files write 1 for the unit of such a variable."""
    assert label("x", unit) == with_unit("x", unit) == axis
    assert measured(2.0, unit=unit) == number
