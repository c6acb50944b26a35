import numpy as np
import pytest
from oracles.processes import autoregressive

import effective_langevin as el
from effective_langevin.statistics.time_reversal import compare_with_reverse

LAGS = np.array([1, 2, 4, 8])


def standardised(x):
    return [(x - x.mean(axis=0)) / x.std(axis=0)]


def sawtooth(samples, seed=0):
    """Rises by steps and falls at once, at random times; its autocorrelation is even, as any."""
    rng = np.random.default_rng(seed)
    falls = rng.random(samples) < 0.05
    since = np.arange(samples) - np.maximum.accumulate(np.where(falls, np.arange(samples), 0))
    return (since + rng.normal(size=samples))[:, None]


def test_a_sawtooth_is_told_from_its_reverse_and_which_way_it_goes():
    found, reverse = (compare_with_reverse(standardised(sawtooth(20_000)[::step]), LAGS, 20) for step in (1, -1))
    assert found.irreversible
    assert found.clearest[0] == "third"
    values = (test.differences["third"].value for test in (found, reverse))
    np.testing.assert_allclose(next(values), -next(values), atol=1e-12)


def test_third_moments_are_those_of_a_plain_loop():
    x = np.random.default_rng(0).gamma(2.0, size=(500, 2))
    (z,) = standardised(x)
    found, squares = compare_with_reverse([z], LAGS, 5), z**2 - np.mean(z**2, axis=0)
    for k, lag in enumerate(LAGS):
        exact = (squares[lag:].T @ z[:-lag] - squares[:-lag].T @ z[lag:]) / (len(z) - lag)
        np.testing.assert_allclose(found.differences["third"].value[k], exact, atol=1e-12)


def test_a_rotation_shows_in_second_moments():
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(1000.0, dt=0.1, seed=1)
    found = compare_with_reverse(standardised(series.stacked()), LAGS, 20)
    assert found.irreversible
    assert found.differs("second")


def counter_rotating(samples, seed=0):
    """Turns one way at radius 1 and a quarter as fast the other way at radius 2: no net area is swept."""
    rng = np.random.default_rng(seed)
    outside = np.cumsum(rng.random(samples) < 0.01) % 2
    angle = np.cumsum(np.where(outside, -0.0125, 0.05) + 0.1 * rng.normal(size=samples))
    return (1 + outside)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), angle


def test_turns_show_a_circulation_that_sweeps_no_area():
    x, angle = counter_rotating(20_000)
    found = compare_with_reverse(standardised(x), LAGS, 20)
    assert found.clearest[0] == "turns"
    assert not found.differs("second")
    turns = found.differences["turns"]
    # Standardising leaves the circles nearly round; no step is near half a turn.
    exact = (angle[1:] - angle[:-1]).mean() / (2 * np.pi)
    assert turns.value[0, 0, 1] == pytest.approx(exact, abs=2 * turns.error[0, 0, 1])
    np.testing.assert_allclose(turns.value, -np.swapaxes(turns.value, 1, 2))
    finding = el.diagnose(el.TimeSeries(x, 1.0)).finding("time reversal")
    assert finding.level == "note"
    assert "turns around the mean" in finding.meaning


def test_the_turns_of_a_driven_ring_are_its_flux():
    ring = el.systems.DrivenRing()
    (x,) = ring.simulate(500.0, dt=0.1, seed=5, step=0.02).segments
    turns = compare_with_reverse(standardised(np.concatenate([np.cos(x), np.sin(x)], axis=1)), LAGS, 20)
    value, error = (v[0, 0, 1] for v in (turns.differences["turns"].value, turns.differences["turns"].error))
    assert value > 6 * error
    assert abs(value - 0.1 * ring.flux) < 3 * error


@pytest.mark.parametrize("transform", [lambda x: x, np.exp, lambda x: x**3], ids=["gaussian", "skewed", "tails"])
def test_reversible_series_raise_few_alarms(transform):
    """At a level of 0.002 one alarm in 60 series has a chance of 0.11, two of 0.007; alike for 30 pairs."""
    paths = transform(autoregressive(3000, 10.0, members=60, seed=3)[..., 0].T)
    alarms = [compare_with_reverse(standardised(x[:, None]), LAGS, 16).irreversible for x in paths.T]
    assert sum(alarms) <= 1
    pairs = [np.stack(pair, axis=1) for pair in zip(paths.T[::2], paths.T[1::2])]
    assert sum(compare_with_reverse(standardised(x), LAGS, 16).irreversible for x in pairs) <= 1


def test_the_diagnosis_names_a_sawtooth_and_says_cannot_tell_of_a_reversible_series():
    finding = el.diagnose(el.TimeSeries(sawtooth(20_000), 1.0)).finding("time reversal")
    assert finding.level == "note"
    assert "slow rises and fast falls" in finding.meaning
    plain = el.diagnose(el.TimeSeries(autoregressive(5000, 10.0)[0], 1.0)).finding("time reversal")
    assert plain.level == "ok"
    assert plain.meaning.startswith("Cannot tell the series from its reverse")
