import numpy as np
import pytest
from oracles.processes import autoregressive, ornstein_uhlenbeck, random_walk
from scipy import stats
from scipy.special import ndtri

import effective_langevin as el
from effective_langevin.diagnose.moments import measure_moments
from effective_langevin.diagnose.stationarity import (
    LEVEL_FEATURES,
    MOTION_FEATURES,
    block_features,
    compare_stretches,
)
from effective_langevin.statistics.stationarity_tests import (
    UNIT_ROOT,
    compare_runs,
    dickey_fuller,
    trend_p_values,
    variance_components,
)


def alarm(series):
    found = compare_stretches(measure_moments(series))
    return any((c.p_values < found.chance).any() for c in found.comparisons)


def walks(series):
    return bool((compare_stretches(measure_moments(series)).unit_root > UNIT_ROOT).any())


def test_the_components_of_variance_are_those_of_the_textbook():
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(4), 6)
    values = rng.normal(size=24) + 0.3 * labels
    between, inside, size = variance_components(values, labels)
    assert between / inside == pytest.approx(stats.f_oneway(*(values[labels == k] for k in range(4))).statistic)
    assert size == 6


def test_the_trend_is_tested_as_in_the_textbook():
    rng = np.random.default_rng(1)
    scores = ndtri((rng.permutation(20) + 0.5) / 20)
    labels = np.arange(20)
    expected = stats.linregress(labels, scores).pvalue
    assert trend_p_values(scores[:, None], labels, np.ones(1))[0] == pytest.approx(expected)


def test_p_values_are_uniform_for_exchangeable_blocks_even_with_heavy_tails():
    rng, labels = np.random.default_rng(2), np.arange(48) * 8 // 48
    features = rng.standard_cauchy(size=(48, 4000))
    p = compare_runs(features, labels, np.zeros(4000), ordered=False)
    assert stats.kstest(p, "uniform").pvalue > 0.001


def test_ties_are_no_trend():
    p = compare_runs(np.zeros((48, 1, 1)), np.arange(48) * 8 // 48, np.zeros(1), ordered=True)
    assert p[0, 0] > 0.01


def test_the_features_of_a_block_are_what_they_say():
    x = np.random.default_rng(3).normal(size=(400, 2)) * [1.0, 3.0] + [2.0, -1.0]
    names = (*LEVEL_FEATURES, *MOTION_FEATURES)
    parts = [block_features([x[:150], x[150:]], 2, some) for some in (LEVEL_FEATURES, MOTION_FEATURES)]
    found = dict(zip(names, [*parts[0], *parts[1]], strict=True))
    np.testing.assert_allclose(found["mean"], x.mean(axis=0))
    np.testing.assert_allclose(np.exp(found["log_spread"]), x.std(axis=0))
    y, z = x[:150] - x.mean(axis=0), x[150:] - x.mean(axis=0)
    products = ((y[2:] * y[:-2]).sum(axis=0) + (z[2:] * z[:-2]).sum(axis=0)) / 396
    np.testing.assert_allclose(found["autocorrelation"], products / x.var(axis=0))
    steps = np.square(np.diff(y, axis=0)).sum(axis=0) + np.square(np.diff(z, axis=0)).sum(axis=0)
    np.testing.assert_allclose(np.exp(found["log_motion"]) ** 2, steps / 398)


@pytest.mark.slow
def test_stationary_records_raise_few_alarms():
    """0.2 % by design, over four features; at most 2 of 100."""
    assert sum(alarm(ornstein_uhlenbeck(3000, 10.0, seed=seed)) for seed in range(100)) <= 2


@pytest.mark.slow
@pytest.mark.parametrize(("share", "least", "most"), [(1.0, 0.9, 1.0), (0.5, 0.0, 0.5)])
def test_a_trend_of_the_stated_size_is_detected(share, least, most):
    """With a chance of 98 %, stated before the trend is added; half of it is three standard errors, mostly missed."""
    found = []
    for seed in range(40):
        series = ornstein_uhlenbeck(6000, 10.0, seed=seed)
        stated = compare_stretches(measure_moments(series)).detectable_trend()[0]
        trend = share * stated * series.stacked().std() * np.linspace(-0.5, 0.5, series.n_samples)
        found.append(alarm(series.map(lambda x, trend=trend: x + trend[:, None])))
    assert least <= np.mean(found) <= most


@pytest.mark.slow
def test_stationary_ensembles_of_short_records_raise_few_alarms():
    assert sum(alarm(ornstein_uhlenbeck(100, 10.0, members=40, seed=seed)) for seed in range(40)) <= 1


def test_fragments_are_no_change():
    """One long record and many of three samples: what depends on the length of the pieces must not count."""
    fragments = [autoregressive(3, 5.0, seed=seed)[0] for seed in range(1, 800)]
    assert not alarm(el.TimeSeries([autoregressive(6000, 5.0)[0], *fragments], 1.0))


def test_skewed_multiplicative_noise_raises_few_alarms():
    series = (el.TimeSeries(np.exp(autoregressive(5000, 10.0, seed=seed)), 1.0) for seed in range(60))
    assert sum(alarm(s) for s in series) <= 1


def test_a_long_memory_that_the_record_covers_is_no_random_walk():
    assert sum(walks(ornstein_uhlenbeck(1000, 10.0, seed=seed)) for seed in range(60)) == 0


def test_a_random_walk_is_told_whatever_its_length():
    for samples in (300, 3000):
        assert sum(walks(random_walk(samples, seed=seed)) for seed in range(40)) >= 39


def test_the_dickey_fuller_statistic_has_its_tabulated_percentiles():
    """-3.43, -2.86 and -2.57 at 1, 5 and 10 %; the lower tail of 3000 walks is known to 10 % or so."""
    rng = np.random.default_rng(0)
    found = [dickey_fuller(np.cumsum(rng.normal(size=400))) for _ in range(3000)]
    np.testing.assert_allclose(np.quantile(found, [0.01, 0.05, 0.1]), [-3.43, -2.86, -2.57], atol=0.15)


TIME = np.linspace(-1, 1, 4000)[:, None]
CHANGES = {
    "trend": autoregressive(4000, 10.0)[0] + 0.9 * TIME,
    "jump of the mean": autoregressive(4000, 10.0)[0] + 1.0 * (TIME > 0.4),
    "growing spread": autoregressive(4000, 10.0)[0] * (1 + 0.4 * TIME),
    "faster clock": np.concatenate([autoregressive(2000, 10.0)[0], autoregressive(2000, 5.0, seed=1)[0]]),
    "records that differ": autoregressive(1000, 10.0, members=20)
    + np.linspace(-1, 1, 20)[[*range(0, 20, 2), *range(1, 20, 2)], None, None],
    "transient": autoregressive(400, 10.0, members=40) + 2 * np.exp(-np.arange(400) / 40)[:, None],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(change):
    assert alarm(el.TimeSeries(CHANGES[change], 1.0))


def test_a_transient_is_seen_since_the_start_and_records_that_differ_between_records():
    for change, grouping in (("transient", "since the start"), ("records that differ", "between records")):
        found = compare_stretches(measure_moments(el.TimeSeries(CHANGES[change], 1.0)))
        least = {c.grouping: c.p_values.min() for c in found.comparisons if c.names[0] == "mean"}
        assert min(least, key=lambda g: least[g]) == grouping


def test_the_drift_is_the_standard_deviation_of_the_level():
    """Two levels one unit apart, half of the time each: 0.5 of the standard deviation before standardisation."""
    values = autoregressive(40_000, 5.0)[0] + np.where(np.arange(40_000) < 20_000, 0.5, -0.5)[:, None]
    found = compare_stretches(measure_moments(el.TimeSeries(values, 1.0)))
    drift = next(c for c in found.comparisons if c.names[0] == "mean").drifts[0, 0]
    # Over 8 runs the estimate of the variance has 7 degrees of freedom: 0.5 sqrt(8 / 7).
    assert drift * values.std() == pytest.approx(0.5 * np.sqrt(8 / 7), rel=0.1)
