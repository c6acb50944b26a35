"""Statistics on the host of a series of the size of the paper: `python -m benchmarks.paper_size [--before SRC]`.

A smooth Gaussian field with about the spectrum of the Kuramoto-Sivashinsky equation, 1000 records of 1000 samples at 32
points, is diagnosed, and its probabilities are compared as in a validation. Writes the processor seconds of each stage
to `benchmarks/results/paper_size.json`, and with `--before` those of another version of the package, run in turn.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.diagnose.marginals import describe_marginals
from effective_langevin.diagnose.markov import check_time_reversal
from effective_langevin.diagnose.moments import measure_moments
from effective_langevin.diagnose.seasonality import check_seasonality
from effective_langevin.diagnose.stationarity import check_stationarity
from effective_langevin.estimate.networks.forms import convert, freeze
from effective_langevin.execution.flat import FlatUNet
from effective_langevin.validate.findings import aspects

RESULTS = Path(__file__).parent / "results" / "paper_size.json"
RECORDS, SAMPLES, POINTS, SPIN_UP = 1000, 1000, 32, 100
VARIANCES = (0.0, 0.39, 0.44, 2.17, 9.03, 2.12, 0.72, 0.49, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)


def make_field(seed: int = 0) -> el.TimeSeries:
    """Return autoregressive processes of second order, one for each Fourier mode, as a field."""
    rng, (slow, fast) = np.random.default_rng(seed), np.exp([-1 / 4, -1 / 2])
    modes = np.empty((RECORDS, SAMPLES, len(VARIANCES)), np.complex64)
    for k, variance in enumerate(VARIANCES):
        noise = rng.normal(size=(2, RECORDS, SAMPLES + SPIN_UP))
        driven = noise[0] + 1j * noise[1]
        path = np.asarray(lfilter([1], [1, -(slow + fast), slow * fast], driven, axis=1))[:, SPIN_UP:]
        modes[:, :, k] = path / path.std() * np.sqrt(variance)
    return el.TimeSeries(list(np.fft.irfft(modes, POINTS, axis=2, norm="ortho").astype(np.float32)), 1.0)


def measure() -> dict[str, float]:
    """Return the processor seconds of each stage."""
    found: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        started = time.process_time()
        result = jax.block_until_ready(run())
        found[name] = round(time.process_time() - started, 2)
        return result

    series = make_field()
    moments = timed("moments", lambda: measure_moments(series))
    timed("stationarity", lambda: check_stationarity(moments, series))
    timed("seasonality", lambda: check_seasonality(moments))
    timed("marginals", lambda: describe_marginals(moments))
    timed("time reversal", lambda: check_time_reversal(moments))
    timed("probabilities", lambda: aspects._probabilities(series, series, ["u"]))
    network = el.UNet1D(base=32, normalization="batch").build(POINTS, key=jax.random.key(0))
    network = freeze(network, jax.random.normal(jax.random.key(1), (64, POINTS)))
    timed("convert", lambda: convert(FlatUNet, network, POINTS, jax.numpy.bfloat16))
    return found


def main() -> None:
    """Measure this version, and another one if it is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, metavar="SRC", help="the folder `src` of another version")
    parser.add_argument("--only-print", action="store_true")
    given = parser.parse_args()
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    jax.config.update("jax_enable_compilation_cache", False)
    results = {"after": measure()}
    if given.before:
        command = [sys.executable, "-m", "benchmarks.paper_size", "--only-print"]
        paths = {**os.environ, "PYTHONPATH": str(given.before)}
        printed = subprocess.run(command, env=paths, capture_output=True, text=True, check=True).stdout
        results["before"] = json.loads(printed.splitlines()[-1])["after"]
    if not given.only_print:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
