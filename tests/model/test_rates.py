import numpy as np
import pytest
from oracles.models import exact_model
from scipy.integrate import quad
from scipy.special import erfcx

import effective_langevin as el
from effective_langevin.model.rates import Landscape
from effective_langevin.statistics.passage import passage_times
from effective_langevin.statistics.watershed import find_watersheds


def passage_of_ou(start, target):
    """Mean time of dx = -x dt + sqrt(2) dW from `start` up: sqrt(pi/2) int erfc(-y / sqrt 2) e^{y^2/2} dy."""
    return quad(lambda y: np.sqrt(np.pi / 2) * erfcx(-y / np.sqrt(2)), start, target)[0]


@pytest.fixture(scope="module")
def line():
    return exact_model(el.systems.OrnsteinUhlenbeck([[1.0]]), np.ones(1), members=4000)


def test_passage_times_of_a_linear_process_are_exact(line):
    """On a grid of 801 points, to 1 %; the replicas are exact, so that nothing scatters."""
    found = line.first_passage(lambda x: np.abs(x[:, 0] + 1) < 0.02, lambda x: x[:, 0] > 1.0)
    assert found.value == pytest.approx(passage_of_ou(-1.0, 1.0), rel=0.01)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)


def test_counted_times_are_those_of_the_process(line):
    """The same from a record sampled every 0.01, where few visits are missed: three standard errors and 5 %."""
    paths = line.simulate(200.0, dt=0.01, members=20, seed=1)
    where = (lambda x: np.abs(x[:, 0]) < 0.1, lambda x: x[:, 0] > 1.0)
    found = line.first_passage(*where, series=paths)
    assert abs(found.data_value - found.value) < 3 * found.data_error + 0.05 * found.value
    assert "data" in repr(found)


def test_a_record_misses_visits_between_its_samples_as_often_as_the_sampled_model(line):
    """Sampled every 0.5, the counted time is half as long again; the model seen like that agrees to 4 s.e."""
    paths = line.simulate(500.0, dt=0.5, members=40, seed=2)
    found = line.first_passage(lambda x: np.abs(x[:, 0]) < 0.1, lambda x: x[:, 0] > 1.5, series=paths)
    assert found.data_value > 1.3 * found.value
    assert abs(found.data_value - found.sampled_value) < 4 * found.data_error + 0.01 * found.value
    assert "sampled as the data" in repr(found)


def test_the_sampled_time_goes_to_the_exact_one_and_is_a_step_where_all_is_reached(line):
    """At dt = 1e-4 the two differ by less than 1 %; a set reached at once from everywhere takes one interval."""
    grid = Landscape.of(line)
    x = grid.equation.states[:, 0]
    np.testing.assert_allclose(grid.times_to(x > 1, 1e-4)[x < 0], grid.times_to(x > 1)[x < 0], rtol=0.01)
    nearly_all = np.abs(x + 3) > 0.02  # from the few states elsewhere, each interval leads out of there
    assert grid.times_to(nearly_all, 2.0)[~nearly_all] == pytest.approx(2.0, rel=0.02)


def test_records_that_end_first_count_for_as_long_as_they_last():
    """Exponential times of mean 50 in records of 60: a mean over arrivals alone gives 21."""
    rng = np.random.default_rng(0)
    begun, reached = [], []
    for wait in rng.exponential(50, 4000).astype(int):
        rows = np.arange(60)
        begun.append(rows == 0)
        reached.append(rows == max(wait, 1))
    value, error = passage_times(begun, reached, dt=1.0)
    within = 50 * (1 - np.exp(-60 / 50))  # what is left of the mean of times cut off at 60
    assert abs(value - within) < 4 * error + 0.7
    assert passage_times([np.ones(5, bool)], [np.zeros(5, bool)], 1.0)[0] is np.nan


def test_watersheds_join_peaks_without_a_real_valley():
    x = np.linspace(-4, 4, 161)
    peaks = np.exp(-((x - 2) ** 2) / 0.5) + 0.5 * np.exp(-((x + 2) ** 2) / 0.5) + 0.45 * np.exp(-((x + 1) ** 2) / 0.5)
    labels, places, passes = find_watersheds(peaks)
    assert sorted(np.round(x[places])) == [-2, 2]
    assert (labels[x < -1] == labels[0]).all()
    assert (labels[x > 2] == labels[-1]).all()
    assert passes[0, 1] == pytest.approx(peaks[(x > -1) & (x < 2)].min())
    plane = np.multiply.outer(peaks, peaks)
    assert len(find_watersheds(plane)[1]) == 4


def test_a_peak_that_no_sample_visits_is_no_basin():
    x = np.linspace(-4, 4, 161)
    peaks = np.exp(-((x - 2) ** 2) / 0.5) + 0.5 * np.exp(-((x + 2) ** 2) / 0.5) + 0.02 * np.exp(-(x**2) / 0.1)
    assert len(find_watersheds(peaks)[1]) == 3
    labels, places, passes = find_watersheds(peaks, visited=np.flatnonzero(np.abs(x) > 1))
    assert sorted(np.round(x[places])) == [-2, 2]
    assert len(np.unique(labels)) == 2
    assert passes[0, 1] == pytest.approx(min(peaks[(x > -2) & (x < 0)].min(), peaks[(x > 0) & (x < 2)].min()), rel=1e-6)
    assert len(find_watersheds(peaks, visited=np.flatnonzero(x > 1))[1]) == 1


def test_times_that_rounding_decides_are_not_given():
    """From one well to another over 5 kT; over 60 kT it takes longer than float64 can solve for."""
    x = np.linspace(-2, 2, 401)
    for barrier, known in ((5.0, True), (60.0, False)):
        drift = -4 * barrier * x * (x**2 - 1)
        times = Landscape(el.systems.FokkerPlanck((x,), drift[:, None], np.ones((401, 1, 1)))).times_to(x > 0.9)
        assert np.isfinite(times[x < 0.9]).all() == known
        assert (times[x > 0.9] == 0).all()


def test_more_than_two_variables_take_functions_of_states():
    model = exact_model(el.systems.OrnsteinUhlenbeck.rotating(3), np.ones(3), members=500)
    with pytest.raises(el.ArgumentError, match="Basins are found in one or two variables"):
        model.basins()
    with pytest.raises(el.ArgumentError, match="Argument `to` must be a function"):
        model.first_passage(lambda x: x[:, 0] > 1, 0)


def test_the_steady_state_of_the_wells_has_four_basins(wells):
    """Bottoms near (-1.05, -1.22), (-1.05, 1.14), (0.92, -1.22) and (0.92, 1.14), to a cell of the grid."""
    plain = el.systems.FokkerPlanck.from_system(wells, [(-3.2, 2.6), (-3.4, 3.0)], points=101)
    labels, peaks, _ = find_watersheds(np.maximum(plain.density, 0).reshape(101, 101))
    centres = np.array(sorted(plain.states[peaks].tolist()))
    assert np.abs(centres - [[-1.05, -1.22], [-1.05, 1.14], [0.92, -1.22], [0.92, 1.14]]).max() < 0.07
    assert np.bincount(labels.ravel(), plain.density).min() > 0.03


@pytest.mark.slow
def test_the_basins_of_the_wells_and_their_passage_times(wells, wells_series, wells_model):
    """Four wells; shares of the basins against the data, a quick fit: 15 %."""
    basins = wells_model.basins()
    assert len(basins.shares) == 4
    counted = np.bincount(basins.assign(wells_series.stacked()), minlength=4) / wells_series.n_samples
    np.testing.assert_allclose(basins.shares, counted, atol=0.05)
    # A pass between two basins has at most 0.75 of the density of the lower peak.
    assert (basins.barriers[np.isfinite(basins.barriers) & (basins.barriers != 0)] >= -np.log(0.75)).all()
    assert (np.diff(basins.shares) <= 0).all()
    assert "dwell" in basins.summary()


@pytest.mark.slow
def test_passage_times_between_four_wells_are_exact_within_five_per_cent(wells):
    """The learned model against the generator of the system itself, between the same cores, for every pair."""
    series = wells.simulate(duration=2000.0, dt=0.05, members=15, seed=1)
    model = el.fit(series, score=el.KGMM(noise_level=0.05), mobility=el.IntegratedResponse(), seed=0)
    basins = model.basins()
    grid = basins.grid
    drift, diffusion = wells.drift(grid.equation.states), wells.diffusion(grid.equation.states)
    true = Landscape(el.systems.FokkerPlanck(grid.equation.axes, np.asarray(drift), np.asarray(diffusion)))
    ratios = np.ones((4, 4))
    for j in range(4):
        times = true.times_to(grid.core(j))
        for i in set(range(4)) - {j}:
            weights = np.where(grid.core(i), true.density, 0.0)
            exact = weights @ times / weights.sum()
            ratios[i, j] = model.first_passage(i, j).value / exact
    assert np.abs(ratios - 1).max() < 0.05, ratios
    # Counted in the data, samples 0.05 apart, a time is longer; the model sampled like that agrees to 3 s.e. and 3 %.
    found = model.first_passage(0, 2, series=series)
    assert found.data_value > found.value + 5 * found.data_error
    assert abs(found.sampled_value - found.data_value) < 3 * found.data_error + 0.03 * found.data_value
