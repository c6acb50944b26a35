"""Order of accuracy of the invariant law, from the Markov operator of each stepper (no Monte Carlo)."""

import pytest

from benchmarks.invariance import measure

pytestmark = pytest.mark.slow


def test_the_invariant_law_converges_with_order_one_for_euler_and_two_for_heun():
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
