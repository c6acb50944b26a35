"""The steady state of a model, made to have the covariance of the data by simulating it.

Score matching sees forces. How probable one regime is against another, when few paths lead from the one to the other,
it learns slowly: a force that is right to a per cent may leave the variances wrong by ten. A tilt of the density,
p' ~ p exp(-y^T L y / 2), is a linear term in the score, s' = s - L y. With q the principal components of the data in
units of their spread and L = sum_i lambda_i q_i^2, variances answer as

    d < q_i^2 > / d lambda_j = -Cov(q_i^2, q_j^2) / 2

so that a few rounds of simulation and solution (Newton) make them right. This is the only place where anything is
adjusted to a simulation: `fit` does not call it, and the mobility stays what the data say.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._core.types import Matrix, Vector
from ..estimate.networks import Residual
from ..estimate.score import Score, ScoreFit
from ..estimate.score.evidence import VarianceCorrection

if TYPE_CHECKING:
    from .langevin import LangevinModel

_ALIKE = 1e-6
_FARTHEST = 0.5


def settled(model: "LangevinModel", duration: float, members: int, seed: int, rounds: int) -> "LangevinModel":
    """The model with a tilted score; the first half of every round is for settling and does not count."""
    score, states, history = model.score, None, []
    for turn in range(rounds):
        model = replace(model, score=score)
        paths = model.simulate(
            duration, members=members, seed=seed + turn, initial=states, denoise=False, transformed=True
        )
        late = np.stack([segment[len(segment) // 2 :] for segment in paths.segments])
        tilt, energies = _tilt(score.covariance, model.standardizer.to_standard(late.reshape(-1, model.dimension)))
        history.append(tuple(energies.tolist()))
        score = tilted(score, tilt)
        # `initial` is in the variables of the series; behind a transform every round starts from the data again.
        states = late[:, -1] if model.transform is None else None
    evidence = replace(score.evidence, settled=VarianceCorrection(tuple(history), duration, members))
    return replace(model, score=replace(score, evidence=evidence))


def tilted(score: ScoreFit, tilt: Matrix) -> ScoreFit:
    """The score s(y) - L y, and what Stein's identity makes of it: V - L C."""
    function, scale = score.function, score.scale
    within = scale @ tilt @ scale
    if function.network is None:
        exact = np.asarray(function.precision, float) + np.linalg.solve(np.asarray(function.gain, float), within)
        changed = eqx.tree_at(lambda s: s.precision, function, jnp.asarray(exact, jnp.float32))
    else:
        changed = _with_linear_term(function, -np.linalg.solve(np.asarray(function.gain, float), within))
    return replace(score, function=changed, stein=score.stein - tilt @ score.covariance)


def _with_linear_term(function: Score, matrix: Matrix) -> Score:
    network, term = function.network, jnp.asarray(matrix, jnp.float32)
    if isinstance(network, Residual):
        network = Residual(network.linear + term, network.network)
    else:
        network = Residual(term, network)
    return eqx.tree_at(lambda s: s.network, function, network)


def _tilt(covariance: Matrix, states: np.ndarray) -> tuple[Matrix, Vector]:
    """L that takes the variances of the states to those of the data, to first order; and their ratios before.

    Directions that a symmetry makes alike have equal variances in the data; they are tilted alike.
    """
    variances, directions = np.linalg.eigh(covariance)
    group = np.cumsum(np.diff(variances, prepend=variances[0]) > _ALIKE * variances[-1])
    share = np.eye(group[-1] + 1)[group]
    squares = ((states - states.mean(axis=0)) @ directions) ** 2 / variances
    energies = squares @ (share / share.sum(axis=0))
    answer = 0.5 * np.atleast_2d(np.cov(energies.T)) * share.sum(axis=0)
    ratios = energies.mean(axis=0)
    multipliers = np.clip(np.linalg.solve(answer, ratios - 1), -_FARTHEST, _FARTHEST)
    return directions * (share @ multipliers) / variances @ directions.T, ratios
