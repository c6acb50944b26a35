"""Steps that depend on the state: found where they do, by how much they should, and not where they do not."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.statistics.conditional_means import BINS
from effective_langevin.validate.findings.notes import clearest_step, step_sizes
from effective_langevin.validate.variables_view import step_curve

CIR = el.systems.CoxIngersollRoss()


def standardised(series):
    return series.map(el.Standardizer.from_series(series).to_standard)


@pytest.fixture(scope="module")
def cir():
    return CIR.simulate(400.0, dt=0.05, members=10, seed=1)


def test_the_steps_of_a_square_root_process_grow_with_the_state(cir):
    """M = gamma x, so q(b) = < x | b > / < x > as tau -> 0. At tau = dt, half a tenth of the relaxation time, the drift
    pulls the ends in by a few per cent; 4 standard errors and 6 %."""
    sizes = step_curve(standardised(cir), standardised(cir), 0.05)
    x = cir.stacked()[:, 0]
    bins = np.searchsorted(np.quantile(x, np.linspace(0, 1, BINS + 1)[1:-1]), x)
    expected = np.array([x[bins == b].mean() for b in range(BINS)]) / x.mean()
    assert expected[-1] / expected[0] > 3
    assert (np.abs(sizes.data[0, 0] - expected) < 4 * sizes.data_error[0, 0] + 0.06).all()


@pytest.mark.slow
def test_a_constant_mobility_is_told_that_it_cannot_hold_them(cir):
    model = el.fit(cir, preprocess=None, score=el.Gaussian())
    result = el.validate(model, cir, seed=2)
    assert "State-dependent steps: the mean squared step of x over" in result.summary()
    assert "in the highest fifth of x" in result.summary()


@pytest.mark.parametrize("seed", range(4))
def test_constant_noise_raises_no_alarm(seed):
    """Two series of one rotating process stand for data and model."""
    system = el.systems.OrnsteinUhlenbeck.rotating(2)
    one, other = (standardised(system.simulate(400.0, dt=0.1, members=4, seed=s)) for s in (seed, 100 + seed))
    sizes = step_curve(one, other, 0.6)
    assert clearest_step(sizes) is None
    assert step_sizes(sizes) is None


def test_noise_that_grows_outwards_is_found_by_the_radius():
    """Four times the noise outside the unit circle: each variable on its own shows less of it than the radius does."""
    rng = np.random.default_rng(0)
    rough, even = np.zeros((2, 40, 1000, 2))
    for t in range(1, 1000):
        outside = (rough[:, t - 1] ** 2).sum(axis=1, keepdims=True) > 1
        rough[:, t] = 0.9 * rough[:, t - 1] + 0.3 * np.where(outside, 2.0, 1.0) * rng.normal(size=(40, 2))
        even[:, t] = 0.9 * even[:, t - 1] + 0.3 * rng.normal(size=(40, 2))
    one, other = (standardised(el.TimeSeries(p[:, 200:], 1.0, names=["u", "v"])) for p in (rough, even))
    curve = step_curve(one, other, 1.0)
    assert "times in the innermost fifth of the states" in step_sizes(curve).meaning
    assert "A constant mobility does not allow this" in step_sizes(curve).meaning
    told = step_sizes(curve, constant=False)
    assert "constant" not in told.meaning
    assert "state-dependent" not in told.advice
