"""Models that are known exactly."""

import numpy as np

import effective_langevin as el
from effective_langevin.estimate.score import Score, ScoreFit
from effective_langevin.estimate.space import StateSpace


def exact_model(process, scale, members: int = 100) -> el.LangevinModel:
    """A linear process in units of `scale` with its exact score and mobility; all replicas are exact, too."""
    covariance, size = process.covariance, len(scale)
    spread = np.sqrt(np.diagonal(covariance))
    standard = covariance / np.outer(spread, spread)
    units = el.Standardizer(np.zeros(size), spread * scale)
    score = ScoreFit(Score.linear(np.linalg.inv(standard)), 0.0, -np.eye(size), 0.0, standard)
    physical = process.mobility * np.outer(scale, scale)
    mobility = el.Mobility(
        physical,
        np.zeros((size, size)),
        "exact",
        np.repeat(physical[None], 3, 0),
        covariances=np.repeat((covariance * np.outer(scale, scale))[None], 3, 0),
    )
    states = np.random.default_rng(0).multivariate_normal(np.zeros(size), covariance, members) * scale
    names = tuple(f"x{i}" for i in range(size))
    return el.LangevinModel(
        standardizer=units,
        score=score,
        mobility=mobility,
        dt=0.1,
        names=names,
        units=("",) * size,
        time_unit="",
        states=states,
        space=StateSpace((None,) * size),
    )
