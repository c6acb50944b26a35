import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.validate.diagnosis_plots import plot_diagnosis


def test_the_figure_of_a_diagnosis_shows_what_was_found(tmp_path, linear_series):
    diagnosis = el.diagnose(linear_series)
    axes = plot_diagnosis(diagnosis)
    assert len(axes) == 6
    axes[0].figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 20_000
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), diagnosis.curves["variation"]["ratio"])
    assert "[d]" in axes[1].get_xlabel()
    words = [t.get_text() for t in axes[5].texts]
    assert all(f.name in words for f in diagnosis.findings)


def test_a_cycle_is_marked_with_its_period():
    rng = np.random.default_rng(0)
    values = rng.normal(size=4000) + np.sin(2 * np.pi * np.arange(4000) / 50)
    axes = plot_diagnosis(el.diagnose(el.TimeSeries(values, 1.0, time_unit="s")))
    assert [t.get_text() for t in axes[2].texts] == ["50 s"]


@pytest.mark.parametrize("members", [1, 20])
def test_short_records_get_a_figure_that_says_so(members):
    values = np.cumsum(np.random.default_rng(0).normal(size=(members, 100, 7)), axis=1)
    axes = plot_diagnosis(el.diagnose(el.TimeSeries(values, 1.0)))
    assert "too short" in " ".join(t.get_text() for ax in axes for t in ax.texts)
    axes[0].figure.canvas.draw()
