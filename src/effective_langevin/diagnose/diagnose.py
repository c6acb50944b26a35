"""`diagnose`: look at a series before fitting it."""

from .._core import checks, keys
from .._core.errors import DataError
from .._core.format import count, listed, measured
from ..data import TimeSeries
from ..statistics.lags import require_lag
from .diagnosis import Diagnosis
from .findings import distribution, memory, sample_size, short_time, stationarity
from .findings.finding import LEVELS
from .marginals import describe_marginals
from .markov import cell_memory, linear_memory
from .moments import FEW_PAIRS, measure_moments
from .regime import decide_regime
from .seasonality import find_lines
from .stationarity import compare_stretches
from .symmetry_search import find_symmetries

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
    findings = [
        short_time.regime(moments, regime),
        stationarity.offer_angles(stationarity.stationarity(moments, compare_stretches(moments)), series),
        sample_size.sample_size(moments),
        short_time.sampling_interval(moments, regime),
        short_time.measurement_noise(moments, regime),
        short_time.motion_blur(moments, regime),
        *([memory.markov(moments, cells, regime)] if cells else []),
        memory.linear_markov(moments, linear, cells),
        stationarity.seasonality(moments, find_lines(moments)),
        memory.time_reversal(moments),
        distribution.tails(moments, marginals),
        distribution.edges(moments, marginals),
        sample_size.redundancy(moments),
        distribution.symmetries(find_symmetries(moments)),
        sample_size.gaps(moments),
    ]
    return Diagnosis(regime.name, tuple(sorted(findings, key=lambda f: -LEVELS.index(f.level))), _description(series))


def _description(series: TimeSeries) -> dict:
    text = (
        f"{series.n_samples} samples of {listed(series.names)} every {measured(series.dt, None, series.time_unit)} "
        f"in {count(len(series.segments), 'segment')}."
    )
    kept = {name: getattr(series, name) for name in ("n_samples", "names", "units", "dt", "time_unit", "dropped")}
    return {"description": text, **kept, "segments": len(series.segments)}
