"""Patterns of a PCA: one standard deviation of a component changes the variables as the inverse transform says."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.validate.report import FIGURES

LATITUDES, LONGITUDES = (-40.0, 0.0, 40.0), (0.0, 90.0, 180.0, 270.0)


@pytest.fixture(scope="module")
def model():
    """A field on a plane, one on a line, and a variable beside them, made of three processes."""
    made = el.systems.OrnsteinUhlenbeck.rotating(3).simulate(300.0, dt=0.2, seed=1)
    plane = [f"T(lat={a:g}, lon={b:g})" for a in LATITUDES for b in LONGITUDES]
    line = [f"u(lat={a:g})" for a in LATITUDES]
    names, rng = [*plane, *line, "index"], np.random.default_rng(0)
    mixed = made.stacked() @ rng.normal(size=(3, len(names))) + 0.01 * rng.normal(size=(made.n_samples, len(names)))
    units = ["K"] * len(plane) + ["m/s"] * len(line) + [""]
    series = el.TimeSeries(mixed, 0.2, names=names, units=units)
    settings = {"score": el.Gaussian(), "mobility": el.IntegratedResponse(), "check": "off"}
    return el.fit(series, preprocess=el.preprocess.PCA(3), compare_estimators=False, **settings)


def changes(model):
    """What the variables change by when each component grows by its standard deviation, (component, var)."""
    grown = el.TimeSeries(np.concatenate([np.zeros((1, 3)), np.diag(model.standardizer.std)]), 0.2, names=model.names)
    values = model.transform.steps[0].invert(grown).values
    return values[1:] - values[0]


def test_maps_lines_and_bars_show_a_standard_deviation_of_each_component(model):
    axes, exact = el.plots.plot_patterns(model), changes(model)
    assert len(axes) == 9
    maps = np.array([np.asarray(ax.collections[0].get_array()).ravel() for ax in axes[:3]])
    np.testing.assert_allclose(maps, exact[:, :12], rtol=1e-6)
    np.testing.assert_allclose([ax.lines[0].get_ydata() for ax in axes[3:6]], exact[:, 12:15], rtol=1e-6)
    np.testing.assert_allclose([ax.patches[0].get_width() for ax in axes[6:]], exact[:, 15], rtol=1e-6)
    shares = 100 * model.transform.steps[0].explained_variance
    assert [ax.get_title() for ax in axes[:3]] == [f"PC{k + 1}: {share:.1f} %" for k, share in enumerate(shares)]
    assert any(ax.get_ylabel() == "T [K]" for ax in axes[0].figure.axes)


def test_the_report_has_patterns_where_there_are_some(model):
    _, wanted = FIGURES["patterns"]
    plain = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(100.0, dt=0.2, seed=1)
    without = el.fit(plain, score=el.Gaussian(), mobility=el.IntegratedResponse(), check="off")
    shown = [type("Result", (), {"model": one}) for one in (model, without)]
    assert [bool(wanted(result)) for result in shown] == [True, False]
    with pytest.raises(el.ArgumentError, match="no PCA"):
        el.plots.plot_patterns(without)


@pytest.mark.parametrize("name", ["component", "explained_variance"])
def test_any_name_of_a_variable_is_drawn(name):
    made = el.systems.OrnsteinUhlenbeck.rotating(3).simulate(100.0, dt=0.2, seed=1)
    series = el.TimeSeries(made.stacked(), 0.2, names=[name, "b", "c"])
    settings = {"score": el.Gaussian(), "mobility": el.IntegratedResponse(), "check": "off"}
    model = el.fit(series, preprocess=el.preprocess.PCA(2), compare_estimators=False, **settings)
    labels = [tick.get_text() for tick in el.plots.plot_patterns(model)[0].get_yticklabels()]
    assert labels == [name, "b", "c"]
