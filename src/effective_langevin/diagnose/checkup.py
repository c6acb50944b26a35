"""`diagnose`: look at a series before fitting it."""

from typing import Any

import jax
import numpy as np

from .._core import checks, keys
from .._core.errors import DataError
from .._core.format import count, listed, measured
from ..data import TimeSeries
from .findings.finding import LEVELS, Finding
from .markov import cell_memory, linear_memory
from .records import Diagnosis
from .regime import decide_regime
from .seasonality import Seasonality, spectral_lines
from .shape import describe_shape
from .short_time import Variation, nugget, quadratic_variation
from .stationarity import Stationarity, compare_stretches
from .survey import Survey, survey
from .symmetry import find_symmetries
from .words import drift, form, memory, motion, sample

_LEAST_SAMPLES = 64
_LEAST_RECORD = 16
_MOST_SHOWN = 6


def diagnose(series: TimeSeries, *, seed: int = 0) -> Diagnosis:
    """Say what kind of series this is, and what stands between it and a Langevin equation.

    Looks at the sample size, the motion over short times, memory, stationarity, cycles, the shape of the distribution
    and symmetries. Nothing is changed or fitted. `seed` only enters the partition for the test of memory.
    """
    checks.instance_of("series", series, (TimeSeries,), "Wrap your array: TimeSeries(values, dt=0.1).")
    key = keys.key_from_seed(seed)
    checks.enough_samples(series.n_samples, _LEAST_SAMPLES, "a diagnosis")
    longest = max(len(s) for s in series.segments)
    if longest < _LEAST_RECORD:
        raise DataError(
            f"The longest gap-free stretch of the series has {longest} samples; a diagnosis needs one of at least "
            f"{_LEAST_RECORD}. Fill short gaps, or use longer records."
        )
    return _diagnosed(survey(series), series, key=key)


def _diagnosed(found: Survey, series: TimeSeries, *, key: jax.Array) -> Diagnosis:
    """All checks in the order in which one would make them, then the findings with the most serious first."""
    variation, missing = quadratic_variation(found), nugget(found)
    linear, cells = linear_memory(found), cell_memory(found, key=key)
    regime = decide_regime(found, variation, missing, linear, cells)
    steadiness, cycles = compare_stretches(found), spectral_lines(found)
    shape = describe_shape(found)
    findings = [
        motion.regime(found, regime, variation),
        drift.stationarity(found, steadiness),
        sample.sample_size(found),
        motion.sampling_interval(found, regime),
        motion.measurement_noise(found, regime, missing),
        *([memory.partition_test(found, cells, regime.noisy, regime.name in ("ballistic", "mixed"))] if cells else []),
        memory.linear_test(found, linear, cells),
        drift.seasonality(found, cycles),
        form.tails(found, shape),
        form.edges(found, shape),
        sample.redundancy(found),
        form.symmetries(find_symmetries(found)),
        sample.gaps(found),
    ]
    return Diagnosis(
        regime.name, _serious_first(findings), _description(series), _curves(found, variation, steadiness, cycles)
    )


def _serious_first(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: -LEVELS.index(f.level)))


def _description(series: TimeSeries) -> dict[str, Any]:
    text = (
        f"{series.n_samples} samples of {listed(series.names)} every {measured(series.dt, None, series.time_unit)} "
        f"in {count(len(series.segments), 'segment')}."
    )
    return {
        "description": text,
        "n_samples": series.n_samples,
        "names": series.names,
        "units": series.units,
        "dt": series.dt,
        "time_unit": series.time_unit,
        "segments": len(series.segments),
        "dropped": series.dropped,
    }


def _shown(found: Survey, cycles: Seasonality) -> np.ndarray:
    """At most six variables to draw: those with the strongest cycles, the slowest, the fastest."""
    order, half = np.argsort(-found.times).tolist(), _MOST_SHOWN // 2
    wanted = [line.variable for line in cycles.lines[:2]] + [v for pair in zip(order, order[::-1]) for v in pair]
    return np.sort(list(dict.fromkeys(wanted if len(order) > _MOST_SHOWN else order))[: 2 * half])


def _curves(found: Survey, variation: Variation, steadiness: Stationarity, cycles: Seasonality) -> dict[str, Any]:
    """What there is to draw, of a few variables."""
    dt, shown = found.series.dt, _shown(found, cycles)
    acf, error = found.jackknifed_acf(lambda acf: acf[:, shown])
    along = next((c for c in steadiness.comparisons if c.grouping == "along the record" and c.names[0] == "mean"), None)
    blocks = None
    if along is not None:
        blocks = {
            "duration": found.series.duration,
            "mean": along.features[:, 0, shown],
            "spread": np.exp(along.features[:, 1, shown]),
            "run": along.labels,
        }
    return {
        "variables": shown,
        "variation": {"tau": variation.lags * dt, "ratio": variation.ratio, "error": variation.ratio_error},
        "acf": {"tau": found.lags * dt, "value": acf, "error": error, "times": found.times[shown]},
        "blocks": blocks,
        "spectra": [
            {"variable": s.variable, "frequency": s.frequency, "power": s.power, "neighbourhood": s.neighbourhood}
            for s in cycles.spectra
            if s.variable in shown
        ],
        "lines": [{"variable": q.variable, "period": q.period, "of_square": q.of_square} for q in cycles.lines],
    }
