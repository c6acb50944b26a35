"""Inputs that ought to be answered or refused, for `benchmarks.robustness` and `tests/robustness`."""
