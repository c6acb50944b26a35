"""Proper scores of ensemble forecasts."""

import numpy as np
from jaxtyping import Float


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
