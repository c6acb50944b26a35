"""A model is compared only with a series of its own variables."""

import pytest

import effective_langevin as el


def relabelled(series, values=None, **labels):
    given = {"names": series.names, "units": series.units, "time_unit": series.time_unit, **labels}
    return el.TimeSeries(series.values if values is None else values, series.dt, **given)


def test_other_names_are_refused(linear_model, linear_series):
    swapped = relabelled(linear_series, linear_series.values[..., ::-1], names=("h", "T"), units=("m", "K"))
    for other in (swapped, relabelled(linear_series, names=("p", "q"))):
        with pytest.raises(el.DataError, match="The model describes T and h, but the series has"):
            linear_model.to_model_variables(other)


def test_names_that_only_number_the_variables_say_nothing(linear_model, linear_series):
    plain = relabelled(linear_series, names=None, units=None, time_unit="")
    assert linear_model.to_model_variables(plain).dimension == 2


def test_another_unit_of_time_is_refused(linear_model, linear_series):
    with pytest.raises(el.DataError, match=r"counts time in d, but the series in hour.*time_unit='day'"):
        linear_model.to_model_variables(relabelled(linear_series, time_unit="hour"))
    assert linear_model.to_model_variables(relabelled(linear_series, time_unit="days")).dimension == 2


def test_other_units_are_a_warning(linear_model, linear_series):
    with pytest.warns(el.EstimateWarning, match="T is in K in the model, but in cK in the series"):
        linear_model.to_model_variables(relabelled(linear_series, units=("cK", "m")))
