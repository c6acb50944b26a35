"""Basins and passage times in a validation and its report."""

import numpy as np
import pytest
from oracles.models import exact_model

import effective_langevin as el
from effective_langevin.model.rates import Landscape
from effective_langevin.statistics.passage import passage_times
from effective_langevin.validate.rates import _thinned, find_landscape
from effective_langevin.validate.tables import basins
from effective_langevin.validate.validation import Validation


def test_starts_of_passages_are_thinned_evenly():
    begun = [np.ones(30_000, bool), np.arange(30_000) % 2 == 0]
    found = _thinned(begun)
    assert [int(part.sum()) for part in found] == [10_000, 5_000]
    assert all((part <= before).all() for part, before in zip(found, begun))
    assert _thinned([np.ones(5, bool)])[0].all()


def test_one_basin_is_no_basin():
    line = exact_model(el.systems.OrnsteinUhlenbeck([[1.0]]), np.ones(1), members=500)
    assert find_landscape(line) is None
    assert find_landscape(exact_model(el.systems.OrnsteinUhlenbeck.rotating(3), np.ones(3), members=500)) is None


@pytest.mark.slow
def test_the_report_has_the_rates_of_the_wells(wells_model, wells_series, tmp_path):
    """Times of the equation are those on its grid; times at the interval of the data to 5 %, from a coarser grid.

    Data and a quick fit agree within 20 %; a curve that was saved makes the same table.
    """
    validation = el.validate(wells_model, wells_series, seed=1, members=16, duration=20.0)
    curve, share = validation.curves["passage_time"], validation.curves["basin_share"]
    grid = Landscape.of(wells_model)
    begin, end = grid.core(0), grid.core(2)
    weights = np.where(begin, grid.density, 0.0) / grid.density[begin].sum()
    assert curve["equation"][0, 2] == pytest.approx(weights @ grid.times_to(end), rel=1e-6)
    assert curve.model[0, 2] == pytest.approx(weights @ grid.times_to(end, wells_series.dt), rel=0.05)
    rows = [grid.locate(s.astype(float)) for s in wells_series.segments]
    counted, _ = passage_times([begin[r] for r in rows], [end[r] for r in rows], wells_series.dt)
    assert curve.data[0, 2] == pytest.approx(counted, rel=0.05)
    others = grid.core(1) | end | grid.core(3)
    assert curve["equation"][0, 0] == pytest.approx(weights @ grid.times_to(others), rel=1e-6)
    np.testing.assert_allclose(curve.model, curve.data, rtol=0.2)
    assert share.data.sum() == pytest.approx(1.0)
    first, second = basins(validation)
    assert [row[0] for row in first.rows] == ["0", "1", "2", "3"]
    assert len(second.rows) == 16
    assert second.rows[0][0] == "0 → any other"
    assert "difference in s.e." in second.beneath
    validation.save(tmp_path / "curves.nc")
    assert basins(Validation.load(tmp_path / "curves.nc", wells_model))[1].rows == second.rows
