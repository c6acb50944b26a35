"""Full disks, closed streams, missing homes, signals and two processes at once."""

import os

import pytest

from benchmarks.hostile.surroundings import surroundings
from benchmarks.robustness import try_case


@pytest.mark.slow
@pytest.mark.skipif("LONG_TESTS" not in os.environ, reason="takes ten minutes and more; LONG_TESTS=1 runs it")
def test_a_run_is_right_or_refused_whatever_surrounds_it(tmp_path):
    found, tried = [], 0
    for case in surroundings(tmp_path, 0):
        outcome, said = try_case(case)
        tried += 1
        if outcome not in ("right", "refused"):
            found.append(f"{case.name}: {outcome}: {said}")
    assert found == []
    assert tried >= 40
