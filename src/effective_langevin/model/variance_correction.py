"""Match the variances of a model's steady state to those of the data, by simulating it.

Score matching constrains gradients of ln p; the relative weights of weakly connected regions converge slowly: a force
that is right to a per cent may leave the variances wrong by ten. A tilt of the density, p' ~ p exp(-y^T L y / 2), is a
linear term in the score, s' = s - L y. With q the principal components of the data in units of their spread and
L = sum_i lambda_i q_i^2, variances answer as

    d < q_i^2 > / d lambda_j = -Cov(q_i^2, q_j^2) / 2

so that a few rounds of simulation and solution (Newton) correct them. This is the only place where anything is
adjusted to a simulation: `fit` does not call it, and the mobility stays what the data say.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._core import checks
from .._core.deprecation import keywords_once_positional
from .._core.errors import ArgumentError
from .._core.types import Matrix, Vector
from ..estimate.score import ScoreFit
from ..estimate.score.evidence import VarianceCorrection

if TYPE_CHECKING:
    from .langevin import LangevinModel

_ALIKE = 1e-6
_FARTHEST = 0.5


@keywords_once_positional("members", "seed", "rounds")
def match_variances(
    model: "LangevinModel", duration: float | None = None, *, members: int = 1024, seed: int = 0, rounds: int = 4
) -> "LangevinModel":
    """Add a linear term to the score that gives the steady state of a model the variances of the data.

    For a model whose validation shows wrong variances though the score is good: where regimes follow each other
    slowly, the data determine their weights better than score matching finds them. The mobility is not touched.

    Parameters
    ----------
    model : LangevinModel
        Without angles, whose variances mean nothing on a circle.
    duration : float, optional
        Time simulated in each round, of which the second half counts; default: 20 times the longest integral time of
        the data.
    members : int, default 1024
        Number of paths simulated.
    seed : int, default 0
        Seed of the first round.
    rounds : int, default 4
        Number of simulations.

    Returns
    -------
    LangevinModel
        The model with the corrected score, the variances before each round in its evidence.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(100.0, dt=0.1, seed=1)
    >>> model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation())
    >>> corrected = el.match_variances(model, 10.0, members=50, rounds=1)
    >>> len(corrected.score.evidence.settled.variance_ratio)
    1
    """
    if model.space.angles:
        raise ArgumentError("Variances of angles cannot be matched: they mean nothing on a circle.")
    known = model.mobility.evidence.integral_times
    longest = 100 * model.dt if known is None else float(known.max())
    duration = checks.optional_positive_number("duration", duration) or 20 * max(longest, model.dt)
    members, rounds = (checks.integer_at_least(n, v, 1) for n, v in (("members", members), ("rounds", rounds)))
    score, states, history = model.score, None, []
    for turn in range(rounds):
        model = replace(model, score=score)
        run = {"members": members, "seed": seed + turn, "initial": states}
        paths = model.simulate(duration, **run, denoise=False, transformed=True)
        late = np.stack([segment[len(segment) // 2 :] for segment in paths.segments])
        tilt, energies = _tilt(score.covariance, model.standardizer.to_standard(late.reshape(-1, model.dimension)))
        history.append(tuple(energies.tolist()))
        score = tilted(score, tilt)
        # `initial` is in the variables of the series; behind a transform every round starts from the data again.
        states = late[:, -1] if model.transform is None else None
    evidence = replace(score.evidence, settled=VarianceCorrection(tuple(history), duration, members))
    return replace(model, score=replace(score, evidence=evidence))


def tilted(score: ScoreFit, tilt: Matrix) -> ScoreFit:
    """Return the score s(y) - L y, and what Stein's identity makes of it: V - L C."""
    function, scale = score.function, score.scale
    within = scale @ tilt @ scale
    term = np.linalg.solve(np.asarray(function.gain, float), within)
    if function.network is None:
        exact = np.asarray(function.precision, float) + term
        changed = eqx.tree_at(lambda s: s.precision, function, jnp.asarray(exact, jnp.float32))
    else:
        changed = function.with_linear(-term)
    return replace(score, function=changed, stein=score.stein - tilt @ score.covariance)


def _tilt(covariance: Matrix, states: np.ndarray) -> tuple[Matrix, Vector]:
    """Return L that takes the variances of the states to those of the data, to first order; and their ratios before.

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
