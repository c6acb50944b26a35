"""Measurements behind the numbers in the README. Each module is a script: `python -m benchmarks.NAME`."""
