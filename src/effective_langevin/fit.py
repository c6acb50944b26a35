"""The paper's algorithm in one screen: a series in, a Langevin model out."""

import os
import platform
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from ._core import checkpoints, checks, keys, progress
from ._core.errors import EstimateWarning
from .data import Standardizer, TimeSeries
from .data.preprocess import Chain
from .data.preprocess.base import Transform
from .data.preprocess.chain import as_chain
from .data.preprocess.pointwise import FittedPeriodic
from .estimate.circles import Circles
from .estimate.mobility import IntegratedResponse, estimate_mobility
from .estimate.mobility.base import MobilityStrategy
from .estimate.mobility.cross_check import cross_check
from .estimate.score import KGMM, DenoisingScore, ScoreStrategy, estimate_score
from .estimate.space import StateSpace
from .estimate.symmetry import NoSymmetry, Symmetry, check_symmetry, common_units
from .model import LangevinModel

_KGMM_DIMENSIONS = 6
_LEAST_SAMPLES = 100
_KEPT_STATES = 4096


def fit(
    series: TimeSeries,
    *,
    preprocess: Transform | Sequence[Transform] | None = None,
    score: ScoreStrategy | None = None,
    mobility: MobilityStrategy | None = None,
    symmetry: Symmetry | None = None,
    seed: int = 0,
    show_progress: bool = False,
    checkpoint: str | os.PathLike | None = None,
) -> LangevinModel:
    """Learn the effective Langevin equation dx = Phi s(x) dt + sqrt(2) Sigma dW of a stationary series.

    `preprocess` is a transform of `el.preprocess`, or several in order: the equation is one of the variables that they
    leave, and simulated paths come back in those of the series; angles named by a last `Periodic` stay angles. `score`
    defaults to `KGMM` up to 6 variables, or two angles, and `DenoisingScore` above; `mobility` to `IntegratedResponse`.
    What is not given is chosen from the data; the evidence is in `model.diagnostics`. A `symmetry` of the process, such
    as `Translations()`, is imposed on score and mobility, and tested on the data. `show_progress` draws a bar per
    stage. With a folder `checkpoint`, an interrupted fit continues where it was when called again with the same
    arguments.
    """
    checks.instance_of("series", series, (TimeSeries,), "Wrap your array first: el.TimeSeries(values, dt=...).")
    chain = as_chain(preprocess)
    transform = chain.fit(series) if chain else None
    angles = transform.steps[-1] if transform and isinstance(transform.steps[-1], FittedPeriodic) else None
    series = transform.apply(series) if transform else series
    checks.enough_samples(series.n_samples, _LEAST_SAMPLES, "a fit")
    key = keys.key_from_seed(seed)
    score = score or _default_score(series.dimension, angles.periods if angles else ())
    mobility, symmetry = mobility or IntegratedResponse(), symmetry or NoSymmetry()
    checks.offers("score", score, "learn", "KGMM() or DenoisingScore()")
    checks.offers("mobility", mobility, "infer", "IntegratedResponse()")
    checks.offers("symmetry", symmetry, "blocks", "Translations()")
    provenance = _provenance(series, chain, score, mobility, symmetry, seed)
    space = StateSpace((None,) * series.dimension, symmetry)
    if angles and isinstance(symmetry, NoSymmetry) and all(_knows(s, angles.periods) for s in (score, mobility)):
        space = StateSpace(angles.periods)
        series, symmetry = _on_circles(series, angles)
    symmetry.check(series.dimension)

    standardizer = common_units(Standardizer.from_series(series), symmetry)
    standard = series.map(standardizer.to_standard)
    with (
        progress.shown() if show_progress else nullcontext(),
        checkpoints.kept_in(checkpoint) if checkpoint else nullcontext(),
    ):
        respected = check_symmetry(standard, symmetry)
        score_fit = estimate_score(standard, score, symmetry, key=keys.named(key, "score"))
        with progress.task("Inferring the mobility", 2) as tick:
            phi = estimate_mobility(standard, score_fit, mobility, symmetry, key=keys.named(key, "mobility"))
            tick(1)
            agreement = cross_check(standard, score_fit, phi, symmetry)
            tick(1)
    if agreement.disagreement:
        warnings.warn(agreement.disagreement, EstimateWarning, stacklevel=2)
    phi = replace(phi, evidence=replace(phi.evidence, symmetry=respected, agreement=agreement))

    states = np.random.default_rng(seed).choice(series.stacked(), min(_KEPT_STATES, series.n_samples), replace=False)
    return LangevinModel(
        standardizer=standardizer,
        score=score_fit,
        mobility=phi.to_physical(standardizer),
        dt=series.dt,
        names=series.names,
        units=series.units,
        time_unit=series.time_unit,
        states=states,
        provenance=provenance,
        transform=transform,
        start=min(series.starts),
        space=space,
    )


def _default_score(dimension: int, periods: Sequence[float | None]) -> ScoreStrategy:
    """KGMM in a few dimensions, where it knows angles if there are any; a denoising network otherwise."""
    few = dimension <= _KGMM_DIMENSIONS and (not periods or KGMM().knows_angles(periods))
    return KGMM() if few else DenoisingScore()


def _on_circles(series: TimeSeries, angles: FittedPeriodic) -> tuple[TimeSeries, Circles]:
    """The angles that the series holds cos and sin of, and their group, in standardised units."""
    series = angles.unfolded(angles.invert(series))
    widths = Standardizer.from_series(series).std.tolist()
    return series, Circles(tuple(period and period / width for period, width in zip(angles.periods, widths)))


def _knows(strategy: Any, periods: Sequence[float | None]) -> bool:
    """Whether a strategy can keep such angles as they are."""
    return hasattr(strategy, "knows_angles") and strategy.knows_angles(periods)


def describe(strategy: Any) -> Any:
    """A strategy as plain data: its kind and its settings, and so on for those within it."""
    if isinstance(strategy, list | tuple):
        return [describe(entry) for entry in strategy]
    if not is_dataclass(strategy):
        return strategy
    return {"kind": type(strategy).__name__, **{f.name: describe(getattr(strategy, f.name)) for f in fields(strategy)}}


def _provenance(
    series: TimeSeries,
    chain: Chain | None,
    score: ScoreStrategy,
    mobility: MobilityStrategy,
    symmetry: Symmetry,
    seed: int,
) -> dict[str, Any]:
    return {
        "seed": seed,
        "preprocess": describe(chain.steps) if chain else [],
        "score": describe(score),
        "mobility": describe(mobility),
        "symmetry": describe(symmetry),
        "samples": series.n_samples,
        "segments": len(series.segments),
        "dropped": series.dropped,
        "versions": {
            "effective-langevin": version("effective-langevin"),
            "jax": jax.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
