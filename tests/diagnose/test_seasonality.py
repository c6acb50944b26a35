import numpy as np
import pytest
from oracles.processes import autoregressive, ornstein_uhlenbeck, random_walk

import effective_langevin as el
from effective_langevin.diagnose.seasonality import calendar_bins, is_steady, spectral_lines
from effective_langevin.diagnose.spectrum import equal_windows, neighbourhood, periodograms, power_law, thresholds
from effective_langevin.diagnose.survey import survey


def lines(values, **about):
    return spectral_lines(survey(el.TimeSeries(values, 1.0, **about))).lines


def cycle(samples, period):
    return np.sin(2 * np.pi * np.arange(samples) / period)[:, None]


def test_the_half_bins_are_those_of_the_definition():
    x = np.random.default_rng(0).normal(size=40)
    plain, tapered = periodograms([x])
    time, taper = np.arange(40), 0.5 * (1 - np.cos(2 * np.pi * np.arange(40) / 40))
    for k in (3, 10, 17):
        wave = np.exp(-1j * np.pi * k * time / 40)
        assert plain[k] == pytest.approx(abs(wave @ (x - x.mean())) ** 2)
        assert tapered[k] == pytest.approx(abs((taper * wave) @ (x - x.mean())) ** 2)


@pytest.mark.parametrize("averaged", [1, 5])
def test_the_neighbourhood_of_a_power_law_is_that_law(averaged):
    """The mean of exponentials over a few hundred bins: within four errors of the fit, 4 sqrt(leverage / averaged)."""
    rng, bins = np.random.default_rng(0), np.arange(100, 400)
    truth = 7.0 * bins**-2.0
    law, leverage = power_law(truth * rng.gamma(averaged, 1 / averaged, len(bins)), bins, averaged)
    assert (np.abs(np.log(law / truth)) < 4 * np.sqrt(leverage / averaged)).all()


def test_a_line_hardly_moves_its_neighbourhood():
    rng, bins = np.random.default_rng(1), np.arange(100, 200)
    power = rng.exponential(size=100)
    before = power_law(power, bins, 1)[0]
    power[50] = 1e4
    assert np.abs(np.log(power_law(power, bins, 1)[0] / before)).max() < 0.15


def test_the_threshold_is_passed_by_chance_as_often_as_it_says():
    rng, passed = np.random.default_rng(2), 0
    for _ in range(200):
        power = rng.exponential(size=1000)
        level, freedom = neighbourhood(power, 1)
        passed += (power > level * thresholds(1, freedom, 1e-3)).sum()
    assert 0.3 < passed / 200 < 2.5


def test_windows_are_the_longest_that_use_most_of_the_record():
    segments = tuple(np.zeros((n, 1)) for n in (1000, 20, 990, 1005))
    assert [len(w) for w in equal_windows(segments)] == [990] * 3
    assert [len(w) for w in equal_windows((np.zeros((5000, 1)), np.zeros((100, 1))))] == [5000]


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


def test_series_without_a_cycle_have_no_lines():
    """Diffusions, walks, ensembles, resonances: a chance of 0.2 % each."""
    made = [ornstein_uhlenbeck(4000, 10.0, seed=k) for k in range(40)]
    made += [random_walk(2000, seed=k) for k in range(40)]
    made += [ornstein_uhlenbeck(500, 10.0, members=20, seed=k) for k in range(20)]
    made += [el.TimeSeries(np.random.default_rng(k).normal(size=3000), 1.0) for k in range(40)]
    made += [el.TimeSeries(np.exp(autoregressive(4000, 10.0, seed=k)), 1.0) for k in range(20)]
    assert sum(bool(spectral_lines(survey(s)).lines) for s in made) <= 2
