"""Order of accuracy of the invariant law and of its autocorrelation, from the steppers' Markov operators."""

import pytest

from benchmarks.harness import log_slope
from benchmarks.invariance import measure

pytestmark = pytest.mark.slow


def test_law_and_autocorrelation_converge_with_order_one_for_euler_and_two_for_heun():
    steps = {
        "EulerMaruyama": (0.01, 0.005, 0.0025),
        "StochasticHeun": (0.02, 0.014, 0.01),
        "ExponentialEuler": (0.01, 0.005, 0.0025),
    }
    results = measure(steps)
    assert results["EulerMaruyama"]["slope"] == pytest.approx(1, abs=0.15)
    assert results["ExponentialEuler"]["slope"] == pytest.approx(1, abs=0.15)
    assert results["StochasticHeun"]["slope"] == pytest.approx(2, abs=0.25)
    assert abs(results["StochasticHeun"]["variance_error"][-1]) < 0.25 * abs(
        results["EulerMaruyama"]["variance_error"][0]
    )
    for name, order in (("EulerMaruyama", 1), ("ExponentialEuler", 1), ("StochasticHeun", 2)):
        errors = results[name]["acf_error"]
        assert log_slope(steps[name], errors) == pytest.approx(order, abs=0.2 * order), name
        assert errors[-1] < 0.006, name
