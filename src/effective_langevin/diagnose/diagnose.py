"""`diagnose`: look at a series before fitting it."""

from .._core import checks, keys
from .._core.errors import DataError
from .._core.format import count, listed, measured
from ..data import TimeSeries
from ..statistics.lags import require_lag
from .finding import LEVELS, Diagnosis
from .marginals import check_edges, check_tails, describe_marginals
from .markov import cell_memory, check_linear_markov, check_markov, check_time_reversal, linear_memory
from .moments import FEW_PAIRS, measure_moments
from .regime import (
    check_measurement_noise,
    check_motion_blur,
    check_sampling_interval,
    decide_regime,
    describe_regime,
)
from .sample_size import check_gaps, check_redundancy, check_sample_size
from .seasonality import check_seasonality
from .stationarity import check_stationarity
from .symmetry_search import check_symmetry

_LEAST_SAMPLES = 64
_LEAST_RECORD = 16


def diagnose(series: TimeSeries, *, seed: int = 0) -> Diagnosis:
    """Say what kind of series this is, and what stands between it and a Langevin equation.

    Examines sample size, motion over short times, memory, stationarity, cycles, the distribution of each variable and
    symmetries. Nothing is changed or fitted.

    Parameters
    ----------
    series : TimeSeries
        At least 64 samples, 16 of them without a gap.
    seed : int, default 0
        Seed of the partition that the test of memory uses.

    Returns
    -------
    Diagnosis
        The regime and the findings, the most serious first.

    Examples
    --------
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=2000))
    >>> diagnosis = el.diagnose(el.TimeSeries(walk, dt=0.1))
    >>> diagnosis.level
    'stop'
    >>> diagnosis.findings[0].name
    'stationarity'
    """
    checks.instance_of("series", series, (TimeSeries,), "Wrap your array: TimeSeries(values, dt=0.1).")
    key = keys.key_from_seed(seed)
    checks.enough_samples(series.n_samples, _LEAST_SAMPLES, "a diagnosis")
    longest = max(len(s) for s in series.segments)
    require_lag(series.segments, 4, FEW_PAIRS)
    if longest < _LEAST_RECORD:
        raise DataError(
            f"The longest gap-free stretch of the series has {longest} samples; a diagnosis needs one of at least "
            f"{_LEAST_RECORD}. Fill short gaps, or use longer records."
        )
    moments = measure_moments(series)
    linear, cells = linear_memory(moments), cell_memory(moments, key=key)
    regime, marginals = decide_regime(moments, linear, cells), describe_marginals(moments)
    motion = {"noisy": bool(regime.noisy.any()), "smooth": regime.name in ("ballistic", "mixed")}
    findings = [
        describe_regime(moments, regime),
        check_stationarity(moments, series),
        check_sample_size(moments),
        check_sampling_interval(moments, regime),
        check_measurement_noise(moments, regime),
        check_motion_blur(moments, regime),
        *([check_markov(moments, cells, **motion)] if cells else []),
        check_linear_markov(moments, linear, cells),
        check_seasonality(moments),
        check_time_reversal(moments),
        check_tails(moments, marginals),
        check_edges(moments, marginals),
        check_redundancy(moments),
        check_symmetry(moments),
        check_gaps(moments),
    ]
    text = (
        f"{series.n_samples} samples of {listed(series.names)} every {measured(series.dt, None, series.time_unit)} "
        f"in {count(len(series.segments), 'segment')}."
    )
    kept = {name: getattr(series, name) for name in ("n_samples", "names", "units", "dt", "time_unit", "dropped")}
    described = {"description": text, **kept, "segments": len(series.segments)}
    return Diagnosis(regime.name, tuple(sorted(findings, key=lambda f: -LEVELS.index(f.level))), described)
