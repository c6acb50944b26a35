"""Correlations, responses and their errors: 1e6 x 32, 100 lags."""

import numpy as np
import scipy.signal

from .harness import OURS, Report, attempt, compare

LAGS = 100


def run(quick: bool) -> Report:
    rows, width = (20_000, 4) if quick else (1_000_000, 32)
    rng, values = np.random.default_rng(0), np.empty((rows, width))
    for i in range(width):
        values[:, i] = scipy.signal.lfilter([1.0], [1, -0.95], rng.standard_normal(rows))
    values -= values.mean(axis=0)
    report, sizes = Report(), {"samples": rows, "dimension": width, "lags": LAGS}
    case = f"autocorrelations, {rows} x {width}, {LAGS} lags"
    report.results += autocorrelations(case, values, sizes)
    report.results += matrices(f"correlation matrices, {rows} x {width}, {LAGS} lags", values, sizes)
    report.results += errors(f"matrices in 32 blocks and their errors, {rows} x {width}, 20 lags", values, sizes)
    report.promise_ratio("autocorrelations against statsmodels", case, "statsmodels acf (fft)", 3)
    return report


def autocorrelations(case: str, values: np.ndarray, sizes: dict):
    from effective_langevin.statistics.lags import autocovariances

    answers = {}

    def ours():
        found = autocovariances([values], LAGS)
        answers[OURS] = found / found[0]

    def statsmodels():
        from statsmodels.tsa.stattools import acf

        def run():
            columns = [acf(column, nlags=LAGS, fft=True, adjusted=True) for column in values.T]
            answers["statsmodels acf (fft)"] = np.array(columns).T

        return run

    def numpy_fft():
        size = 1 << int(np.ceil(np.log2(len(values) + LAGS)))
        pairs = len(values) - np.arange(LAGS + 1)
        found = np.empty((LAGS + 1, values.shape[1]))
        for i, column in enumerate(values.T):
            found[:, i] = np.fft.irfft(np.abs(np.fft.rfft(column, size)) ** 2, size)[: LAGS + 1] / pairs
        answers["NumPy FFT"] = found / found[0]

    contenders = {OURS: ours, "statsmodels acf (fft)": attempt(statsmodels), "NumPy FFT": numpy_fft}
    return with_accuracy(compare(case, contenders, sizes=sizes), answers)


def matrices(case: str, values: np.ndarray, sizes: dict):
    """< x(t + lag) x(t)^T >; deeptime does one lag at a time, of which a tenth is timed."""
    from effective_langevin.statistics.lags import lagged_moments

    answers = {}

    def ours():
        answers[OURS] = lagged_moments([values], [values], np.arange(LAGS + 1)).mean()

    def numpy_products():
        parts = [values[lag:].T @ values[: len(values) - lag] / (len(values) - lag) for lag in range(LAGS + 1)]
        answers["NumPy products"] = np.array(parts)

    def deeptime():
        from deeptime.covariance import Covariance

        def run():
            for lag in range(1, LAGS + 1, 10):
                Covariance(lagtime=lag, compute_c0t=True, remove_data_mean=False).fit_fetch(values)

        return run

    name = "deeptime Covariance (every 10th lag only)"
    contenders = {OURS: ours, "NumPy products": numpy_products, name: attempt(deeptime)}
    found = compare(case, contenders, repeats=3, once=(name,), sizes=sizes)
    return with_accuracy(found, answers)


def errors(case: str, values: np.ndarray, sizes: dict):
    """Correlations and responses in blocks, and leave-one-block-out errors of what follows from them."""
    from effective_langevin.statistics.lags import lagged_moments
    from effective_langevin.statistics.resampling import jackknife

    scores = -values.astype(np.float32)

    def ours():
        correlation = lagged_moments([values], [values], np.arange(21), 32)
        response = lagged_moments([values], [scores], np.arange(21), 32)
        return jackknife(lambda w: np.linalg.solve(response.mean(w)[5], correlation.mean(w)[5]), 32)

    return compare(case, {OURS: ours}, repeats=3, sizes=sizes)


def with_accuracy(results, answers: dict[str, np.ndarray]):
    for result in results:
        if result.contender in answers and result.contender != OURS:
            result.accuracy = f"differs from ours by {np.abs(answers[result.contender] - answers[OURS]).max():.1e}"
    return results
