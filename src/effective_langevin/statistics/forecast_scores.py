"""Proper scores of ensemble forecasts, and starts from which to forecast. A member that is NaN does not count."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int


def energy_scores(
    ensemble: Float[np.ndarray, "member start var"], observed: Float[np.ndarray, "start var"]
) -> Float[np.ndarray, " start"]:
    """Return E|X - y| - E|X - X'| / 2 of every forecast, without bias for any number of members; less is better.

    In one variable it is the continuous ranked probability score.
    """
    members = len(ensemble)
    away = np.linalg.norm(ensemble - observed, axis=-1).mean(axis=0)
    apart = sum(np.linalg.norm(ensemble[k:] - ensemble[: members - k], axis=-1).sum(axis=0) for k in range(1, members))
    return away - apart / (members * (members - 1))


def ranked_scores(errors: Float[np.ndarray, "member ..."]) -> np.ndarray:
    """Return the continuous ranked probability score of members less the outcome, without bias for any number of them.

    E|X - X'| follows from the sorted members: the k-th of m counts 2k - m - 1 times. One member has no spread.
    """
    ordered = np.sort(errors, axis=0)
    members = np.isfinite(errors).sum(axis=0)
    place = np.arange(1, len(errors) + 1).reshape(-1, *[1] * (errors.ndim - 1))
    apart = np.nansum((2 * place - members - 1) * ordered, axis=0) / np.maximum(members * (members - 1), 1)
    return np.nanmean(np.abs(errors), axis=0) - apart


def squared_errors_of_mean(errors: Float[np.ndarray, "member ..."]) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared error of the mean of infinitely many members, expected from those there are; their variance.

    The mean of m members scatters by their variance over m, which is taken off.
    """
    members = np.isfinite(errors).sum(axis=0)
    mean = np.nanmean(errors, axis=0)
    variance = np.nansum((errors - mean) ** 2, axis=0) / np.maximum(members - 1, 1)
    return mean**2 - variance / members, variance


def member_quantiles(values: Float[np.ndarray, "member ..."], levels: Sequence[float]) -> np.ndarray:
    """Return quantiles (level, ...) of members, at place p (m + 1) in their order.

    An outcome like any member lies below with chance p, for any number of members that reaches as far.
    """
    ordered, members = np.sort(values, axis=0), np.isfinite(values).sum(axis=0)
    place = np.clip(np.multiply.outer(levels, members + 1) - 1, 0, members - 1)
    below = np.floor(place).astype(int)
    low, high = (np.take_along_axis(ordered, at, axis=0) for at in (below, np.minimum(below + 1, members - 1)))
    return low + (place - below) * (high - low)


def ranks_of_outcome(errors: Float[np.ndarray, "member ..."]) -> np.ndarray:
    """Return the share of members below the outcome, (k + 1/2) / (m + 1): even between 0 and 1 for a right forecast."""
    return ((errors < 0).sum(axis=0) + 0.5) / (np.isfinite(errors).sum(axis=0) + 1)


def choose_starts(lengths: Sequence[int], longest: int, most: int) -> Int[np.ndarray, " start"]:
    """Return at most so many rows of stacked segments, spread evenly, with `longest` more rows in their segment."""
    begin = np.cumsum(lengths) - lengths
    allowed = np.concatenate([np.arange(b, b + max(0, n - longest)) for b, n in zip(begin, lengths)])
    return allowed[np.linspace(0, len(allowed) - 1, min(most, len(allowed))).astype(int)]
