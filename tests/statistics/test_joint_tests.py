"""Joint tests of many differences: their level, their power, and the family of tests."""

import numpy as np
import pytest
from scipy.stats import t

from effective_langevin.statistics.joint_tests import (
    Differences,
    Grouped,
    ResampledNull,
    StudentNull,
    estimate_in_groups,
    holm,
    shares_below,
)
from effective_langevin.statistics.resampling import GROUPS, jackknife


def test_the_influences_give_the_error_of_the_jackknife():
    values = np.random.default_rng(0).normal(size=(GROUPS, 3))

    def mean_cube(weights):
        return (weights @ values / weights.sum()) ** 3

    found = estimate_in_groups(mean_cube)
    value, error = jackknife(mean_cube, GROUPS)
    np.testing.assert_allclose(found.value, value)
    np.testing.assert_allclose(found.error, error)
    assert estimate_in_groups(mean_cube, blocks=5).influence.shape == (5, 3)


def side(rng, groups, parts):
    """Skewed and strongly correlated parts."""
    x = np.cumsum(rng.standard_exponential((groups, parts)) - 1, axis=1)
    return Grouped(x.mean(axis=0), x - x.mean(axis=0))


@pytest.mark.parametrize("groups", [10, 20])
def test_the_level_holds_for_correlated_and_skewed_differences(groups):
    """400 pairs of samples at the level of 5 %: 20 alarms are expected, 4 standard errors of the count are 17.4."""
    rng, alarms = np.random.default_rng(1), 0
    for seed in range(400):
        one, two = side(rng, groups, 30), side(rng, 20, 30)
        null = ResampledNull.of([one.influence, two.influence], draws=400, seed=seed)
        size = np.max(np.abs(one.value - two.value) / np.hypot(one.error, two.error))
        alarms += null.chance(size) < 0.05
    assert alarms < 20 + 17.4


def test_one_difference_has_the_law_of_student():
    """Random signs of 20 normal groups: quantiles of |t| with 19 degrees of freedom, to 5 %."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(20, 200))
    maxima = [ResampledNull.of([values[:, [k]] - values[:, k].mean()], 500, k).maxima for k in range(200)]
    for chance in (0.5, 0.1, 0.02):
        assert np.quantile(maxima, 1 - chance) == pytest.approx(t.ppf(1 - chance / 2, 19), rel=0.05)


def differences(gap, error, groups=20):
    ones = np.ones(len(gap))
    null = StudentNull(groups, len(gap))
    return Differences(
        np.array(gap), error * ones, 0.5 * error * ones, 0.1 * ones, 0.3 * ones, null, groups, error * ones
    )


def test_small_large_and_unknown_differences_are_told_apart():
    small, middle, large, unknown = (
        differences([d, 0.0], e).outcome() for d, e in ((0.1, 0.01), (0.2, 0.01), (0.5, 0.01), (0.1, 0.3))
    )
    assert (small.p_small, small.shown) == (1.0, True)
    assert middle.p_small < 1e-6
    assert middle.p_large == 1.0
    assert large.p_large < 1e-6
    assert unknown.p_small == 1.0
    assert not unknown.shown


def test_a_difference_of_the_detectable_size_is_found_as_often_as_stated():
    found, rng = differences([0.0], 0.02, groups=1000), np.random.default_rng(3)
    size = found.detectable(0.01)[0]
    hits = [differences([size + 0.02 * z], 0.02, 1000).outcome().p_small < 0.01 for z in rng.normal(size=2000)]
    assert np.mean(hits) == pytest.approx(0.98, abs=4 * np.sqrt(0.98 * 0.02 / 2000))


def test_holm_steps_down():
    assert holm([0.01, 0.2, 0.02, 0.013], 0.05) == [True, False, True, True]
    assert holm([0.013, 0.2, 0.02, 0.013], 0.05) == [False] * 4
    assert holm([], 0.05) == []


def test_shares_below_are_those_of_each_group():
    samples = np.arange(200.0)[:, None]
    shares = shares_below(samples, np.array([[4.5, 100.5]]))
    assert shares.shape == (GROUPS, 1, 2)
    assert shares[0, 0].tolist() == [0.5, 1.0]
    np.testing.assert_allclose(shares.mean(axis=0)[0], [5 / 200, 101 / 200])
