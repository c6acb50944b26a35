"""Records of a few samples: a right answer, or one sentence; never a lag without pairs."""

import jax
import numpy as np
import pytest
from oracles.processes import autoregressive

import effective_langevin as el
from effective_langevin.estimate.mobility import estimate_mobility
from effective_langevin.estimate.score import estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry

STRATEGIES = (el.IntegratedResponse(), el.LogCorrelation(), el.QuadraticVariation(), el.CorrelationFit())
PHI = np.array([[1.0, 0.5], [-0.5, 1.0]])


@pytest.fixture(scope="module")
def samples():
    """A process whose Phi is `PHI`, at two sampling intervals."""
    process = el.systems.OrnsteinUhlenbeck(PHI)  # of covariance one
    return {dt: process.simulate(dt * 12_000, dt=dt, seed=2).stacked() for dt in (0.02, 0.1)}


def mobility_of(series, strategy):
    units, key = el.Standardizer.from_series(series), jax.random.key(0)
    standard = series.map(units.to_standard)
    space = StateSpace.of(standard, NoSymmetry())
    score = estimate_score(standard, el.Gaussian(), space, key=key)
    return estimate_mobility(standard, score, strategy, space, key=key).to_physical(units)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("dt", [pytest.param(0.02, marks=pytest.mark.slow), 0.1])
@pytest.mark.parametrize("length", [1, 2, 4, 8, 12])
def test_short_records_give_the_right_mobility_or_a_clear_refusal(samples, length, dt, strategy):
    x = samples[dt]
    series = el.TimeSeries(list(x[: len(x) // length * length].reshape(-1, length, 2)), dt)
    needed = {el.IntegratedResponse: 4, el.LogCorrelation: 3, el.QuadraticVariation: 2, el.CorrelationFit: 14}
    if length < needed[type(strategy)]:
        with pytest.raises(el.DataError, match="gap-free stretches of the series are too short"):
            mobility_of(series, strategy)
        return
    found = mobility_of(series, strategy)
    assert found.evidence.lifted_by == 0
    # Five standard errors: 120 entries are compared, and errors from 32 blocks are themselves known to 13 %.
    limit = 5 * found.standard_error + found.discretisation_error
    assert (np.abs(found.matrix - PHI) < limit).all()
    assert found.standard_error.max() < 0.2


def test_a_fit_refuses_records_without_pairs_before_it_learns_anything():
    series = el.TimeSeries(list(np.random.default_rng(0).normal(size=(300, 1, 2))), 0.1)
    with pytest.raises(el.DataError, match="lie 3 sampling intervals apart"):
        el.fit(series)


def test_a_gap_after_every_second_sample_leaves_pairs_for_quadratic_variation(samples):
    x = samples[0.1].copy()
    x[2::3] = np.nan
    found = mobility_of(el.TimeSeries(x, 0.1), el.QuadraticVariation())
    low, high = found.interval(0.999)
    assert ((low < PHI) & (high > PHI)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::effective_langevin.EstimateWarning")
def test_intervals_from_few_blocks_hold_the_truth():
    """Ten independent samples, 4 blocks: 95 % intervals, of which 150 hold at least 89 % (3.4 standard errors).

    Where the 4 blocks also rate the combinations of horizons, the one taken scatters too little by chance: 85 % held.
    """
    held = []
    for seed in range(150):
        x = autoregressive(100, 5.0, seed=seed)[0]
        low, high = mobility_of(el.TimeSeries(x, 0.2), el.IntegratedResponse()).interval()
        held.append(low[0, 0] <= 1.0 <= high[0, 0])
    assert np.mean(held) >= 0.89
