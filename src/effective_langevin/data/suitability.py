"""Variables that no Langevin equation describes, found before a fit: few values, atoms, codes, repeated variables."""

from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from .._core import checks
from .._core.format import percent
from .io.codes import describe_codes, find_codes
from .series import TimeSeries

_FEW_VALUES = 15
_ATOM, _ATOM_AT_EDGE = 0.25, 0.1  # share of the samples with one value: anywhere, and at the lowest or highest
_LOOKED_AT = 10_000  # samples from which candidates are chosen
_DIGITS, _MOST_INVOLVED = 5, 8


def find_unsuited(series: TimeSeries) -> list[str]:
    """Return a sentence for each variable that is discrete or censored, or holds codes for missing samples.

    Of a series that is read by blocks, equal stretches are looked at.
    """
    samples = series.excerpt().stacked()
    return [sentence for name, x in zip(series.names, samples.T) if (sentence := _describe_values(name, x))]


def _describe_values(name: str, x: np.ndarray) -> str:
    """Return what is wrong with the values of one variable, or nothing."""
    some = x[:: max(1, len(x) // _LOOKED_AT)]
    values, counts = np.unique(some, return_counts=True)
    if len(values) > _FEW_VALUES and counts.max() < _ATOM_AT_EDGE / 2 * len(some):
        codes = find_codes(x)
        return f"{name} {describe_codes(codes)} Replace them by NaN (--missing)." if codes else ""
    values, counts = np.unique(x, return_counts=True)
    if len(values) == 1:
        return ""  # constant, which is refused elsewhere
    if len(values) <= _FEW_VALUES:
        return f"{name} takes {len(values)} values: a Langevin equation needs a continuous variable."
    shares = counts / len(x)
    atom = int(np.argmax(shares))
    at_edge = max((0, len(values) - 1), key=lambda i: shares[i])
    atom = at_edge if shares[at_edge] > _ATOM_AT_EDGE else atom
    if shares[atom] <= (_ATOM_AT_EDGE if atom == at_edge else _ATOM):
        return ""
    return (
        f"{name} is exactly {values[atom]:g} in {percent(float(shares[atom]))} of the samples: it rests there or is "
        "cut off, and a Langevin equation needs a continuous variable."
    )


def refuse_dependent(series: TimeSeries) -> None:
    """Refuse variables of which one is, to five digits, a sum of multiples of few others; name them."""
    lines = [i for i, period in enumerate(series.periods) if period is None]
    samples = series.stacked_rows()[:: max(1, series.n_samples // (2 * _LOOKED_AT)), lines]
    centred = samples - samples[0]
    centred -= centred.mean(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        std = centred.std(axis=0)
    if not lines or len(samples) < len(lines) or not ((std > 0) & np.isfinite(std)).all():
        return  # a variable that is constant, or out of the range of float64, is refused elsewhere
    names, rows = [series.names[i] for i in lines], centred / std
    pivoted: Any = qr(np.linalg.qr(rows, mode="r"), mode="r", pivoting=True, check_finite=False)
    triangle, order = pivoted
    rank = int((np.abs(np.diag(triangle)) > 10.0**-_DIGITS * np.sqrt(len(rows))).sum())
    for k in range(rank, len(triangle)):
        weights = np.append(solve_triangular(triangle[:rank, :rank], triangle[:rank, k]), -1.0)  # of a sum that is zero
        involved = np.flatnonzero(np.abs(weights) > 10.0**-_DIGITS)
        if len(involved) > _MOST_INVOLVED:
            continue
        error = np.linalg.norm(triangle[rank:, k]) / np.linalg.norm(triangle[:, k])
        columns = np.append(order[:rank], order[k])[involved]
        *others, last = np.argsort(columns)
        factors = (weights[involved] / std[columns]).tolist()
        named = [names[columns[i]] for i in (*others, last)]
        digits = int(-np.log10(max(error, 1e-15)))
        raise checks.dependent(named[-1], named[:-1], [-factors[i] / factors[last] for i in others], digits)
