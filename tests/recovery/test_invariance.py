"""Order of accuracy of the invariant law and of its autocorrelation, from the steppers' Markov operators."""

import pytest

from benchmarks.invariance import measure, slope

pytestmark = pytest.mark.slow


def test_law_and_autocorrelation_converge_with_order_one_for_euler_and_at_least_two_for_heun():
    steps = {
        "EulerMaruyama": (0.01, 0.005),
        "StochasticHeun": (0.02, 0.014, 0.01),
        "ExponentialEuler": (0.01, 0.005),
    }
    results = measure(steps)
    for name in ("EulerMaruyama", "ExponentialEuler"):
        assert slope(results[name], "variance_error") == pytest.approx(1, abs=0.15)
        assert slope(results[name], "acf_error") == pytest.approx(1, abs=0.2)
    euler, heun = results["EulerMaruyama"], results["StochasticHeun"]
    assert slope(heun, "variance_error") == pytest.approx(2, abs=0.25)
    assert slope(heun, "acf_error") > 1.8
    for kind in ("variance_error", "acf_error"):
        assert abs(heun[kind][-1]) < 0.25 * abs(euler[kind][0])
