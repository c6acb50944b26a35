"""Entropy production of a model, with a constant mobility, with fields, and with velocities among its variables."""

from typing import TYPE_CHECKING

import numpy as np

from .._core.types import Samples
from ..estimate.closure.fields import Fields
from . import analysis
from .closure import evaluate_fields

if TYPE_CHECKING:
    from .langevin import LangevinModel


def produce_entropy(model: "LangevinModel", draws: analysis.Draws) -> analysis.EntropyProduction:
    """Return < nu . D^-1 nu > per unit of time, with its error; see `LangevinModel.entropy_production`."""
    closure = model.mobility.evidence.closure
    if closure is not None and closure.white is False:
        return analysis.EntropyProduction.undefined("the series is smooth, so that its noise is not resolved")
    clean = model.standardizer.to_standard(model.states)
    kick = np.random.default_rng(0).normal(size=clean.shape) @ model.score.spread
    states = np.concatenate([clean + kick, clean - kick]) if model.score.noise_level else clean
    if model.fields is None:
        return analysis.entropy_production(draws, states, model.score.function.over(states).astype(float))
    every = [model.fields, *model.fields.drawn()]
    if model.space.rates:
        values = _driven(model, every, states)
    else:
        values = [evaluate_fields(model.score.function, fields, states) for fields in every]
    return analysis.entropy_of_fields(*values[0], values[1:])


def _driven(model: "LangevinModel", every: list[Fields], states: Samples) -> list[tuple[Samples, np.ndarray]]:
    """Return the part of the current of v that does not turn round with time, and D of v.

    It is [nu(x, v) - nu(x, -v) - D s_v(x, v) - D s_v(x, -v)] / 2, zero for a force of x alone beside friction.
    """
    size = model.space.observed
    mirrored = states * np.where(np.arange(states.shape[1]) < size, 1.0, -1.0)
    scores = sum(model.score.function.over(x).astype(float)[:, size:] for x in (states, mirrored))
    found = []
    for fields in every:
        (ahead, diffusion), (back, _) = (evaluate_fields(model.score.function, fields, x) for x in (states, mirrored))
        noise = diffusion[..., size:, size:]
        found.append((0.5 * ((ahead - back)[:, size:] - scores @ noise.T), noise))
    return found
