import numpy as np
import pytest

from effective_langevin.statistics.spectral_lines import (
    background,
    equal_windows,
    fit_power_law,
    half_bin_periodograms,
    line_thresholds,
)


def test_the_half_bins_are_those_of_the_definition():
    x = np.random.default_rng(0).normal(size=40)
    plain, tapered = half_bin_periodograms([x])
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
    law, leverage = fit_power_law(truth * rng.gamma(averaged, 1 / averaged, len(bins)), 100, averaged)
    assert (np.abs(np.log(law / truth)) < 4 * np.sqrt(leverage / averaged)).all()


def test_a_line_hardly_moves_its_neighbourhood():
    rng = np.random.default_rng(1)
    power = rng.exponential(size=100)
    before = fit_power_law(power, 100, 1)[0]
    power[50] = 1e4
    assert np.abs(np.log(fit_power_law(power, 100, 1)[0] / before)).max() < 0.15


def test_the_threshold_is_passed_by_chance_as_often_as_it_says():
    rng, passed = np.random.default_rng(2), 0
    for _ in range(200):
        power = rng.exponential(size=1000)
        level, freedom = background(power, 1)
        passed += (power > level * line_thresholds(1, freedom, 1e-3)).sum()
    assert 0.3 < passed / 200 < 2.5


def test_windows_are_the_longest_that_use_most_of_the_record():
    segments = tuple(np.zeros((n, 1)) for n in (1000, 20, 990, 1005))
    assert [len(w) for w in equal_windows(segments)] == [990] * 3
    assert [len(w) for w in equal_windows((np.zeros((5000, 1)), np.zeros((100, 1))))] == [5000]
