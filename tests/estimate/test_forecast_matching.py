"""A positive diffusion beside delays: forecasts of what is observed stay those of the inferred mobility."""

import numpy as np
import pytest
from scipy.linalg import expm, logm, solve_discrete_lyapunov

import effective_langevin as el
from effective_langevin.estimate.mobility.base import lift_eigenvalues
from effective_langevin.estimate.mobility.forecast_matching import _distance, _forecasts, match_forecasts

LEADS = (1, 2, 3, 6, 12)
PAIRS = [(1.6, -0.8), (1.2, -0.3), (1.9, -0.95)]


def companion(first, second):
    """Return the step of (x(t), x(t - 1)) for x(t + 1) = first x(t) + second x(t - 1) + noise, and its covariance."""
    step = np.array([[first, second], [1.0, 0.0]])
    return step, solve_discrete_lyapunov(step, np.diag([1.0, 0.0]))


def simulated(first, second, samples):
    """Return samples of x after its beginning is forgotten."""
    noise, x = np.random.default_rng(0).normal(size=samples + 500), [0.0, 0.0]
    for drawn in noise:
        x.append(first * x[-1] + second * x[-2] + drawn)
    return np.array(x[-samples:])


def exact_variances(first, second):
    """Return the variance of a forecast of x from its past at every lead."""
    step, covariance = companion(first, second)
    powers = [np.linalg.matrix_power(step, lead) for lead in LEADS]
    return np.array([(covariance - power @ covariance @ power.T)[0, 0] for power in powers])


def forecast_variances(model, x):
    """Return the mean variance of forecasts from 40 states of the series, known to half a per cent."""
    past = np.stack([x[start : start + 12, None] for start in range(0, 4000, 100)])
    values = model.forecast(past, LEADS, members=2000, seed=1).values[..., 0]
    return values.var(axis=1, ddof=1).mean(axis=0)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_forecasts_from_a_delay_have_the_exact_variance(first, second):
    """x with one delay is Markov, but no diffusion: raised eigenvalues of D, and few steps, made 16 to 28 % too much.

    Within 3 %: the best diffusion is off by 1 to 2, the steps by 1, and 2000 members of 40 ensembles by 0.5.
    """
    x = simulated(first, second, 100_000)
    model = el.fit(
        el.TimeSeries(x, 1.0), memory="delays:1", score=el.Gaussian(), mobility=el.LogCorrelation(), check="off"
    )
    assert forecast_variances(model, x) / exact_variances(first, second) == pytest.approx(1.0, abs=0.03)
    assert np.linalg.eigvalsh(model.mobility.symmetric).min() > 0


def test_a_delay_that_tells_nothing_new_does_no_harm():
    """Two delays where one tells all: the variance at the first lead was twice as large."""
    x = simulated(1.6, -0.8, 100_000)
    linear = {"score": el.Gaussian(), "mobility": el.IntegratedResponse(), "compare_estimators": False, "check": "off"}
    model = el.fit(el.TimeSeries(x, 1.0), memory="delays:2", **linear)
    assert forecast_variances(model, x) / exact_variances(1.6, -0.8) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_matched_mobility_keeps_the_correlations(first, second):
    """Exact Phi of an AR(2): D has a negative eigenvalue. Correlations of x stay right to 0.01 at all lags."""
    step, covariance = companion(first, second)
    phi = -np.real(logm(step)) @ covariance
    assert np.linalg.eigvalsh(phi + phi.T)[0] < 0
    found = match_forecasts(phi, lift_eigenvalues(phi), covariance, 1.0, 1)
    assert np.linalg.eigvalsh(found + found.T)[0] > 0
    lagged = [(expm(-k * found @ np.linalg.inv(covariance)) @ covariance)[0, 0] for k in range(40)]
    exact = [(np.linalg.matrix_power(step, k) @ covariance)[0, 0] for k in range(40)]
    assert np.array(lagged) / exact[0] == pytest.approx(np.array(exact) / exact[0], abs=0.01)


def test_the_matched_mobility_does_not_depend_on_units():
    step, covariance = companion(1.6, -0.8)
    phi, scale = -np.real(logm(step)) @ covariance, np.diag([3.0, 0.2])
    found = match_forecasts(phi, lift_eigenvalues(phi), covariance, 1.0, 1)
    scaled = scale @ phi @ scale
    other = match_forecasts(scaled / 0.1, lift_eigenvalues(scaled) / 0.1, scale @ covariance @ scale, 0.1, 1)
    means = (
        expm(-found @ np.linalg.inv(covariance))[0],
        (np.linalg.inv(scale) @ expm(-0.1 * other @ np.linalg.inv(scale @ covariance @ scale)) @ scale)[0],
    )
    assert means[1] == pytest.approx(means[0], abs=1e-4)


def test_nothing_is_matched_where_forecasts_have_no_variance():
    """A rate of growth has no forecast within the spread of the data."""
    assert match_forecasts(np.diag([-0.1, 1.0]), np.diag([1e-4, 1.0]), np.eye(2), 1.0, 1) is None


def test_the_slope_of_the_divergence_is_that_of_finite_differences():
    draw = np.random.default_rng(0)
    rates = 0.5 * np.eye(4) + 0.2 * draw.normal(size=(4, 4))
    aims = _forecasts(rates + 0.1 * draw.normal(size=(4, 4)), 2)
    assert len(aims) > 2
    _, slope = _distance(rates, aims)
    for i, j in np.ndindex(4, 4):
        aside = np.zeros((4, 4))
        aside[i, j] = 1e-5
        change = _distance(rates + aside, aims)[0] - _distance(rates - aside, aims)[0]
        assert slope[i, j] == pytest.approx(change / 2e-5, abs=1e-6)
