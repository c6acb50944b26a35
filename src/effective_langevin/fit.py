"""The paper's algorithm in one screen: a series in, a Langevin model out."""

import os
import platform
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from ._core import checkpoints, checks, keys, progress
from ._core.errors import DataError, EstimateWarning
from ._core.matrices import singular_refused
from .choice import CLOSURES, check_support, choose_closure
from .data import Standardizer, TimeSeries
from .data.io import as_series
from .data.preprocess.base import Transform
from .data.preprocess.chain import as_chain, embed_after, transform_series
from .data.preprocess.pointwise import embed_angles
from .data.provenance import describe_data
from .data.suitability import find_unsuited, refuse_dependent
from .diagnose import Diagnosis, diagnose
from .estimate.closure.smoothing import WIDTHS, choose_width
from .estimate.mobility.base import ClosureFit, ClosureStrategy
from .estimate.mobility.cross_check import cross_check
from .estimate.networks import MLP
from .estimate.score import KGMM, DenoisingScore, Gaussian, ScoreFit, ScoreStrategy, estimate_score
from .estimate.space import StateSpace
from .estimate.symmetry import NoSymmetry, Symmetry, check_symmetry
from .execution.blas import one_blas_thread
from .execution.compilation import note_shape, with_room
from .held_out import LEAST_INDEPENDENT, Trials, check_by_forecasts, count_independent
from .memory import Memory, as_memory, check_memory, choose_memory, closure_with, name_memory, remember
from .model import LangevinModel

_KGMM_DIMENSIONS = 6
_LEAST_SAMPLES = 100
_KEPT_STATES = 4096
_STEEP: dict[str, Any] = {"network": MLP((128, 128, 128)), "epochs": 120}  # for the score of a thin set


def fit(
    series: TimeSeries | Any,
    *,
    preprocess: Transform | Sequence[Transform] | None = None,
    score: ScoreStrategy | None = None,
    mobility: ClosureStrategy | None = None,
    symmetry: Symmetry | None = None,
    memory: Memory | str | None = None,
    check: str = "warn",
    check_held_out: bool = False,
    compare_estimators: bool = True,
    seed: int = 0,
    show_progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> LangevinModel:
    """Learn the effective Langevin equation of a stationary series.

    dx = [nu(x) + D(x) s(x) + div D(x)] dt + sqrt(2 D(x)) dW with the score s; with a constant mobility Phi, the drift
    is Phi s(x) and D = sym(Phi). Whatever is not given is chosen from the data; the evidence is in
    `model.score.evidence` and `model.mobility.evidence`, and `model.diagnosis` says what the series is like.

    Parameters
    ----------
    series : TimeSeries, or labelled data with a time coordinate
        Samples of a stationary process. Variables with a period (`TimeSeries(periods=...)`) are angles. A DataFrame of
        pandas or polars, a DataArray or a Dataset is read as by `el.read`.
    preprocess : transform of `el.preprocess`, or a sequence of them, optional
        The model is fitted in the transformed variables; simulated paths are mapped back to the original ones.
    score : score strategy, optional
        Default: `KGMM()` up to 6 variables (or two angles), `DenoisingScore()` above.
    mobility : mobility strategy, optional
        Default: chosen from forecasts of held-out stretches, between a constant one, `IntegratedResponse()`, and a
        `StateDependent()` one with a current, a diffusion that depends on the state, or both. The evidence is in
        `model.mobility.evidence.choice`.
    symmetry : Translations or TranslationsAndReflections, optional
        A symmetry of the process. It is imposed on score and mobility, and tested on the data.
    memory : Velocity, Delays or str, optional
        Hidden variables from the past: `el.Velocity()` or "velocity" for motion with inertia, `el.Velocity(2)` or
        "velocity:2" for smooth motion that needs accelerations, `el.Delays(n, lag)` or "delays:N:LAG" for other
        hidden variables, "auto" to choose by forecasts of the observed variables on held-out stretches
        (`model.mobility.evidence.memory`). Default: none. Simulations, forecasts and validations speak of the observed
        variables.
    check : {"warn", "error", "off"}, default "warn"
        What to do with a series that is not stationary, or with variables that take few values, rest at one value or
        hold codes for missing samples: warn, refuse, or do not diagnose it.
    check_held_out : bool, default False
        Infer the mobility again without a fifth of the series, ten stretches, and forecast those. The result is
        `model.mobility.evidence.held_out`, and the verdict of `el.validate` includes it; None where the record is too
        short, or lag 0 in doubt. The command line always does it.
    compare_estimators : bool, default True
        Compare the estimators of a constant mobility at dt, 2 dt and 4 dt, and warn if they disagree: about half of the
        time of a small fit with a constant mobility. The result is `model.mobility.evidence.agreement`. For fields that
        were asked for and found from correlations, compare their forecasts of held-out stretches with those of simpler
        closures, and warn if they are worse. The result is `model.mobility.evidence.choice`.
    seed : int, default 0
        Same seed, same bits on the same device.
    show_progress : bool, default False
        Show a progress bar for each stage.
    checkpoint : path, optional
        A folder. An interrupted fit continues from there when it is called again with the same arguments.

    Returns
    -------
    LangevinModel

    Raises
    ------
    DataError
        If the series is too short, if a variable is constant or repeats others, or, with `check="error"`, if the series
        is not stationary or a variable not continuous.

    Examples
    --------
    >>> import effective_langevin as el
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, seed=1)
    >>> model = el.fit(series, score=el.Gaussian())
    >>> model.mobility.matrix.shape
    (2, 2)
    """
    series = as_series(series)
    checks.one_of("check", check, ("warn", "error", "off"))
    asked, observed = as_memory(memory), series
    key, origin, chain = keys.key_from_seed(seed), describe_data(series), as_chain(preprocess)
    transform, series = transform_series(series, chain)
    checks.enough_samples(series.n_samples, _LEAST_SAMPLES, "a fit")
    if symmetry is None:
        with one_blas_thread:
            refuse_dependent(series)
    diagnosis, forced = _diagnose(series, check)
    symmetry = symmetry or NoSymmetry()
    checks.offers("symmetry", symmetry, "blocks", "Translations()")
    space = StateSpace.of(series, symmetry)
    check_memory(asked, series, space, mobility)
    trial = partial(fit, preprocess=preprocess, score=score, check="off", compare_estimators=False, seed=seed)
    own, remembered = choose_memory(asked, observed, series, diagnosis, mobility, trial)
    transform, series, space = remember(own, transform, series, space)
    score, mobility = score or _default_score(series, space), closure_with(own, mobility)
    if not _support(score, mobility, series, space):
        transform, series = embed_after(transform, series)
        space = StateSpace.of(series, symmetry)

    series = space.unfold(series)
    note_shape("fit", with_room(series.n_samples), series.dimension)
    standardizer = space.units_of(series)
    standard, standard_space = series.map(standardizer.to_standard), space.in_units_of(standardizer.std)
    model_of = partial(_model_of, standardizer=standardizer, space=space, **_labels_of(series, seed))
    with (
        progress.shown() if show_progress else nullcontext(),
        checkpoints.kept_in(checkpoint) if checkpoint else nullcontext(),
        one_blas_thread,
        singular_refused(forced or _tails_of(diagnosis)),
    ):
        checked = check_held_out, compare_estimators
        learned, closure, mobility = _learn(standard, score, mobility, standard_space, key, model_of, *checked)
    closure = closure.with_evidence(memory=remembered)
    strategies: dict[str, Any] = {"preprocess": chain.steps if chain else [], "score": score, "mobility": mobility}
    strategies |= {"memory": name_memory(own)} if own or remembered else {}
    provenance = _provenance(series, forced, seed, origin, **strategies, symmetry=symmetry)
    return model_of(learned, closure, provenance=provenance, transform=transform, diagnosis=diagnosis)


def _learn(
    series: TimeSeries,
    score: ScoreStrategy,
    mobility: ClosureStrategy | None,
    space: StateSpace,
    key: jax.Array,
    model_of: Callable[..., LangevinModel],
    with_check: bool,
    with_agreement: bool,
) -> tuple[ScoreFit, ClosureFit, ClosureStrategy]:
    """Estimate the score of a standardised series, then what closes the equation, in the way asked for or chosen."""
    respected = check_symmetry(series, space.symmetry)
    together = (mobility or CLOSURES["both"]).learns_beside(score, series, space)
    spread = space.blur_series(series)
    learned = estimate_score(spread, score, space, key=keys.named(key, "score"), velocities=together)
    choice, key = None, keys.named(key, "mobility")
    trials = Trials(series.excerpt(), learned, space, partial(model_of, learned), key)
    with progress.task("Inferring the mobility", 4) as tick:
        if mobility is None:
            mobility, choice = choose_closure(trials)
        tick(1)
        closure = mobility.close(series, learned, space, key=key)
        tick(1)
        agreement = None
        if with_agreement and not closure.fields:
            agreement = cross_check(series, learned, closure.mobility, space)
        elif with_agreement and choice is None:
            choice = check_support(trials, mobility, closure)
        tick(1)
        checked = check_by_forecasts(trials, mobility) if with_check else None
        tick(1)
    if agreement and agreement.disagreement:
        warnings.warn(agreement.disagreement, EstimateWarning, stacklevel=3)
    if choice and (doubt := choice.doubt()):
        warnings.warn(f"{doubt} Use {choice.advice()}", EstimateWarning, stacklevel=3)
    found = {"symmetry": respected, "agreement": agreement, "choice": choice, "held_out": checked}
    return learned, closure.with_evidence(**found), mobility


def _model_of(learned: ScoreFit, closure: ClosureFit, *, standardizer: Standardizer, **labels: Any) -> LangevinModel:
    """Return the model with a score and a closure, in the units of the data."""
    phi = closure.mobility.to_physical(standardizer)
    return LangevinModel(standardizer=standardizer, score=learned, mobility=phi, fields=closure.fields, **labels)


def _support(score: ScoreStrategy, mobility: ClosureStrategy | None, series: TimeSeries, space: StateSpace) -> bool:
    """Tell whether both strategies take the variables as they are: angles as angles. Refuse what is no strategy."""
    checks.offers("score", score, "supports", "KGMM() or DenoisingScore()")
    if mobility is not None:
        checks.offers("mobility", mobility, "supports", "IntegratedResponse()")
    wanted = mobility or CLOSURES["constant"]
    wanted.check(series)
    return score.supports(space) and wanted.supports(space)


def _labels_of(series: TimeSeries, seed: int) -> dict[str, Any]:
    """Return what a model keeps of its series, and states of the data from which simulations start."""
    kept = {name: getattr(series, name) for name in ("dt", "names", "units", "time_unit", "calendar")}
    rows = np.random.default_rng(seed).choice(series.n_samples, min(_KEPT_STATES, series.n_samples), replace=False)
    return {**kept, "start": min(series.starts), "states": series.stacked_rows()[rows]}


def _default_score(series: TimeSeries, space: StateSpace) -> ScoreStrategy:
    """KGMM in a few dimensions, where it supports the angles if there are any; a denoising network otherwise.

    With delays, or several derivatives, the network learns the current, too: it stays small beside the thin set of the
    states. Its width is not one that tells it from noise in a short record: that has a Gaussian score. Where the set
    asks for a narrow width, the score is as steep as one over its square: it takes one more layer, and twice as long.
    """
    if space.hidden and not space.rates:
        centre = series.excerpt().stacked().mean(axis=0)
        enough = count_independent(series.excerpt().map(lambda x: x - centre)) >= LEAST_INDEPENDENT
        if not enough:
            return Gaussian()
        width = choose_width(series)
        return DenoisingScore(noise_level=width, **(_STEEP if width < WIDTHS[0] else {}))
    return KGMM() if space.dimension <= _KGMM_DIMENSIONS and KGMM().supports(space) else DenoisingScore()


def _diagnose(series: TimeSeries, check: str) -> tuple[Diagnosis | None, str]:
    """Diagnose the series that is fitted; warn of one that no Langevin equation describes, or refuse it.

    Returns the diagnosis and the reasons against the fit.
    """
    if check == "off":
        return None, ""
    reasons, advice, diagnosis = find_unsuited(series), "", None
    if not (reasons and check == "error"):
        with (
            one_blas_thread,
            suppress(DataError),
        ):  # too short or too fragmented for a diagnosis: the fit says what it needs
            diagnosis = diagnose(embed_angles(series))
    if diagnosis and (finding := diagnosis.finding("stationarity")).level == "stop":
        reasons, advice = [*reasons, finding.meaning], finding.advice
    if reasons:
        words = " ".join([*reasons, advice]).rstrip()
        if check == "error":
            raise DataError(f'{words} Pass check="warn" (--force on the command line) to fit it all the same.')
        warnings.warn(words, EstimateWarning, stacklevel=3)
    return diagnosis, " ".join(reasons)


def _tails_of(diagnosis: Diagnosis | None) -> str:
    """Return what the diagnosis says against the tails of the series, if anything."""
    finding = diagnosis.finding("tails") if diagnosis else None
    return f"{finding.meaning} {finding.advice}" if finding and finding.level == "warning" else ""


def describe(strategy: Any) -> Any:
    """Return a strategy as plain data: its kind and its settings, and so on for those within it."""
    if isinstance(strategy, list | tuple):
        return [describe(entry) for entry in strategy]
    if not is_dataclass(strategy):
        return strategy
    return {"kind": type(strategy).__name__, **{f.name: describe(getattr(strategy, f.name)) for f in fields(strategy)}}


def _provenance(
    series: TimeSeries, forced: str, seed: int, origin: dict[str, Any], **strategies: Any
) -> dict[str, Any]:
    """Return what the model comes from; `forced` says what spoke against the fit."""
    return {
        "seed": seed,
        **{name: describe(strategy) for name, strategy in strategies.items()},
        "samples": series.n_samples,
        "segments": len(series.segments),
        "dropped": series.dropped,
        **origin,
        **({"forced": forced} if forced else {}),
        "versions": {
            "effective-langevin": version("effective-langevin"),
            "jax": jax.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
