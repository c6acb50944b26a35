"""Measurements behind the numbers in the README.

`python -m benchmarks` compares speed and memory with other packages and writes `benchmarks/results/cpu.json` (or
`gpu.json`) with a table beside it; `python -m benchmarks.NAME` for NAME = sampling_interval, invariance, readme_figures
measures accuracy and draws figures; `python -m benchmarks robustness` counts what becomes of hostile inputs.
"""
