"""Units beside names and numbers."""

import numpy as np
import pytest

from effective_langevin._core.format import measured, plus_minus, with_unit
from effective_langevin.validate.model_plots import _apart
from effective_langevin.validate.style import label


@pytest.mark.parametrize(("unit", "axis", "number"), [("K", "x [K]", "2 K"), ("", "x", "2"), ("1", "x", "2")])
def test_a_variable_without_dimension_has_no_unit(unit, axis, number):
    """Files write 1 for the unit of such a variable."""
    assert label("x", unit) == with_unit("x", unit) == axis
    assert measured(2.0, unit=unit) == number


def test_a_remark_in_a_unit_has_no_room_beside_an_axis():
    assert label("O1", "uV (raw, offset ~4000)") == "O1 [uV]"


def test_an_error_that_is_rounding_is_not_written():
    assert plus_minus(12.0319596318927, 6.7e-12) == "12.0"
    assert plus_minus(12.03, 0.02) == "12.030 ± 0.020"


def test_names_of_curves_that_end_close_together_stand_apart():
    np.testing.assert_allclose(_apart(np.array([1.0, 0.0, 0.01]), 0.1), [1.0, 0.0, 0.1])
