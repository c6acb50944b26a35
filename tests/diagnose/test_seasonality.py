import numpy as np
import pytest
from oracles.processes import autoregressive, ornstein_uhlenbeck, random_walk

import effective_langevin as el
from effective_langevin.diagnose.moments import measure_moments
from effective_langevin.diagnose.seasonality import calendar_bins, find_lines
from effective_langevin.statistics.spectral_lines import is_steady


def lines(values, **about):
    return find_lines(measure_moments(el.TimeSeries(values, 1.0, **about)))[0]


def cycle(samples, period):
    return np.sin(2 * np.pi * np.arange(samples) / period)[:, None]


def test_a_cycle_is_found_with_its_period():
    found = lines(autoregressive(7300, 10.0)[0] + cycle(7300, 365.25))
    assert len(found) == 1
    assert abs(found[0].period - 365.25) < found[0].period_error
    assert found[0].share == pytest.approx(1 / 3, abs=0.08)
    assert found[0].steady
    assert not found[0].of_square


def test_a_cycle_of_the_spread_is_found_in_the_square():
    found = lines(autoregressive(18_000, 10.0)[0] * (1 + 0.5 * cycle(18_000, 365.25)))
    assert [line.of_square for line in found] == [True]
    assert found[0].period == pytest.approx(365.25, abs=5)


def test_the_overtone_in_the_square_of_a_cycle_is_not_reported():
    found = lines(np.random.default_rng(0).normal(size=(4000, 1)) + cycle(4000, 50.0))
    assert [(line.of_square, round(line.period)) for line in found] == [(False, 50)]


def test_a_cycle_is_found_across_gaps():
    values = autoregressive(7300, 10.0)[0] + cycle(7300, 365.25)
    values[::1900] = np.nan
    assert lines(values)[0].period == pytest.approx(365.25, rel=0.1)


def test_the_calendar_lowers_the_threshold_where_the_unit_is_known():
    values = autoregressive(552, 3.0, seed=4)[0] + 0.4 * cycle(552, 12.0)
    assert not lines(values)
    assert lines(values, time_unit="month")[0].period == pytest.approx(12.0, abs=0.2)
    assert calendar_bins(552.0, 552, "month").tolist() == [91, 92, 93]
    assert calendar_bins(48.0, 480, "h").tolist() == []
    assert calendar_bins(480.0, 4800, "h").tolist() == [39, 40, 41]


def test_a_random_amplitude_is_not_steady():
    rng, time = np.random.default_rng(0), np.arange(500)
    wave = np.cos(2 * np.pi * time / 25)
    assert is_steady([3 * wave + 0.1 * rng.normal(size=500) for _ in range(20)], 25.0, 1000.0)
    assert not is_steady([rng.rayleigh() * wave + 0.1 * rng.normal(size=500) for _ in range(20)], 25.0, 1000.0)


@pytest.mark.slow
def test_series_without_a_cycle_have_no_lines():
    """Diffusions, walks, ensembles, resonances: a chance of 0.2 % each."""
    made = [ornstein_uhlenbeck(4000, 10.0, seed=k) for k in range(40)]
    made += [random_walk(2000, seed=k) for k in range(40)]
    made += [ornstein_uhlenbeck(500, 10.0, members=20, seed=k) for k in range(20)]
    made += [el.TimeSeries(np.random.default_rng(k).normal(size=3000), 1.0) for k in range(40)]
    made += [el.TimeSeries(np.exp(autoregressive(4000, 10.0, seed=k)), 1.0) for k in range(20)]
    assert sum(bool(find_lines(measure_moments(s))[0]) for s in made) <= 2


def test_a_cycle_is_found_in_some_of_many_records():
    """600 records, of which 200 are looked at: a line of 4 % of the variance is found, and none where there is none."""
    noise = np.random.default_rng(0).normal(size=(600, 200, 1))
    (found,) = lines(noise + 0.3 * cycle(200, 10.0))
    assert abs(found.period - 10.0) < found.period_error
    assert found.share == pytest.approx(0.043, abs=0.01)
    assert not lines(noise)
