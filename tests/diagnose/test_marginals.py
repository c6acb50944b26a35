import numpy as np
import pytest
from oracles.processes import ornstein_uhlenbeck

import effective_langevin as el
from effective_langevin.diagnose.marginals import describe_marginals, tail_exponent
from effective_langevin.diagnose.moments import measure_moments
from effective_langevin.diagnose.symmetry_search import find_symmetries

RNG = np.random.default_rng


def marginals(values):
    return describe_marginals(measure_moments(el.TimeSeries(values, 1.0)))


def suggested(series):
    return {s.name for s in find_symmetries(measure_moments(series)) if s.suggested}


@pytest.mark.parametrize("exponent", [1.5, 3.0])
def test_the_tail_exponent_of_a_pareto_law(exponent):
    found, error = tail_exponent(RNG(0).pareto(exponent, 50_000) + 1, 1.0)
    assert abs(found - exponent) < 4 * error
    assert error == pytest.approx(exponent / np.sqrt(500), rel=0.2)


def test_correlated_samples_count_less():
    sizes = RNG(0).pareto(2.0, 10_000) + 1
    assert tail_exponent(sizes, 0.25)[1] == pytest.approx(2 * tail_exponent(sizes, 1.0)[1])


def test_tied_samples_have_no_tail():
    assert tail_exponent(np.ones(1000), 1.0) == (np.inf, np.inf)
    assert tail_exponent(np.append(np.zeros(1000), 5.0), 1.0)[0] == np.inf


def test_kurtosis_with_its_error():
    found = marginals(np.column_stack([RNG(0).normal(size=40_000), RNG(1).laplace(size=40_000)]))
    assert (np.abs(found.kurtosis - [0, 3]) < 4 * found.kurtosis_error).all()
    assert (found.kurtosis_error < [0.05, 0.4]).all()


def test_a_sample_that_stands_alone_is_an_outlier_and_an_excursion_is_not():
    values = ornstein_uhlenbeck(20_000, 5.0).segments[0].copy()
    assert marginals(values).outliers.tolist() == [0]
    values[[777, 9000]] = [[200.0], [-300.0]]
    assert marginals(values).outliers.tolist() == [2]
    values[1000:1040] += 100 * np.sin(np.linspace(0, np.pi, 40))[:, None]
    assert marginals(values).outliers.tolist() == [2]
    assert "outliers" in el.diagnose(el.TimeSeries(values, 1.0)).finding("tails").meaning.lower()


def test_a_hard_edge_is_seen_on_its_side_only():
    found = marginals(np.column_stack([RNG(0).exponential(size=20_000), RNG(1).normal(size=20_000)]))
    assert found.hard_edges().tolist() == [[True, False], [False, False]]


def test_an_excursion_of_a_slow_record_is_no_edge():
    """A smooth record of 30 integral times stays at its turning points for longer than the share that is crowded."""
    kernel = np.exp(-0.5 * np.linspace(-4, 4, 801) ** 2)
    smooth = np.convolve(RNG(0).normal(size=5800), kernel, "valid")
    low, high = smooth.min(), smooth.max()
    assert (smooth > high - 0.01 * (high - low)).mean() > 0.002
    assert not marginals(smooth).hard_edges().any()


@pytest.mark.parametrize("turn", [2 * np.pi, 360.0])
def test_an_angle_is_told_by_its_range_and_its_jumps(turn):
    phase = np.cumsum(RNG(0).normal(size=20_000) * 0.1) / (2 * np.pi) * turn
    assert marginals((phase + turn / 2) % turn - turn / 2).full_turn[0] == turn
    assert marginals(0.8 * (phase % turn)).full_turn[0] == 0
    assert marginals(turn / 2 * np.sin(phase / turn)).full_turn[0] == 0


def test_a_skewed_variable_has_no_sign_symmetry_and_a_gaussian_one_has():
    assert suggested(ornstein_uhlenbeck(40_000, 5.0)) == {"x -> -x"}
    skewed = ornstein_uhlenbeck(40_000, 5.0).map(lambda x: x + 0.3 * x**2)
    assert suggested(skewed) == set()


def test_the_symmetry_of_lorenz_63():
    series = el.systems.StochasticLorenz63().simulate(duration=200.0, dt=0.05, members=10, seed=0)
    assert suggested(series) == {"change of sign of x and y"}


def test_exchange_asks_for_equal_means_spreads_and_correlations():
    pair = np.concatenate([ornstein_uhlenbeck(40_000, 5.0, seed=k).segments[0] for k in (0, 1)], axis=1)
    name = "exchange of x1 and x2"
    assert name in suggested(el.TimeSeries(pair, 1.0))
    assert name not in suggested(el.TimeSeries(pair * [1, 1.3], 1.0))
    assert name not in suggested(el.TimeSeries(pair + np.array([0, 0.5]), 1.0))
    assert name not in suggested(el.TimeSeries(pair, 1.0, units=["m", "s"]))
    # Leads and lags break it although all simultaneous moments are those of equals.
    chased = np.column_stack([pair[3:, 0], pair[:-3, 0]]) + 0.5 * pair[3:, ::-1] * [0, 1]
    assert name not in suggested(el.TimeSeries(chased, 1.0))


def test_a_ring_that_drifts_to_one_side_may_be_rotated_but_not_reversed():
    size = 8
    matrix = 2 * np.eye(size) - 0.7 * np.roll(np.eye(size), 1, axis=0) - 0.3 * np.roll(np.eye(size), -1, axis=0)
    series = el.systems.OrnsteinUhlenbeck(matrix).simulate(duration=300.0, dt=0.1, members=20, seed=0, step=0.05)
    assert suggested(series) == {"x -> -x", "rotation of the ring of variables"}
    uneven = series.map(lambda x: x * np.linspace(1, 1.2, size))
    assert suggested(uneven) == {"x -> -x"}
    even = el.systems.OrnsteinUhlenbeck(0.5 * (matrix + matrix.T))
    series = even.simulate(duration=300.0, dt=0.1, members=20, seed=0, step=0.05)
    assert "reversal of the ring" in suggested(series)


def test_few_samples_suggest_nothing():
    assert suggested(ornstein_uhlenbeck(300, 5.0)) == set()
