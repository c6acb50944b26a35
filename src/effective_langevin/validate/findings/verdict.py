"""The verdict: a few plain sentences on what the model can be used for, with the numbers they rest on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from ..._core.format import after_number, count, plus_minus, short
from ...statistics import distances
from ...statistics.densities import SeriesStatistics
from ...statistics.integral_time import error_groups
from ...statistics.resampling import GROUPS
from ..fields_comparison import FieldsComparison
from .notes import (
    ballistic,
    denoised,
    forced,
    on_circles,
    own_variables,
    regime,
    settled,
    state_dependent,
    unresolved,
)

if TYPE_CHECKING:
    from ..validation import Validation

# Up to the first value of a pair a difference does not matter in practice; beyond the second it spoils the model.
KL_LEVELS = (0.02, 0.1)
COVARIANCE_LEVELS = (0.05, 0.3)
ACF_LEVELS = (0.03, 0.1)
STEIN_LEVELS = (0.05, 0.2)
MOBILITY_LEVELS = (0.05, 0.3)
LIFT_LEVELS = (0.0, 0.1)
HORIZON_LEVELS = (0.1, np.inf)
OUTSIDE_LEVELS = (0.002, 0.05)
# A difference is real when it exceeds the floor by this many standard errors.
DETECTION = 2.0
# Chance of calling a circulation significant that is not there, over all pairs together: three standard errors for one.
FALSE_ALARM = 0.0027
# With fewer blocks than this to take errors from, they are uncertain enough to be said so.
_FEW_GROUPS = 10
# exp(-k t) moves by at most 1/e times the relative change of k: what the error of Phi can do to an autocorrelation.
CLOCK_GAIN = 1 / np.e

HORIZON_RULES = {
    "limit": ", and its limit at the shortest times was used",
    "finite": "; it is an effective value, taken where its rise with the horizon ends or the response changes sign",
}

GOOD, CARE, POOR = range(3)
WORDS = ("Good", "Usable with care", "Not to be trusted")


@dataclass(frozen=True)
class Finding:
    """One aspect of the model, judged: its level, the reason in half a sentence, and the full sentence.

    It is undecided when the difference is large but so are the sampling errors.
    """

    level: int
    reason: str
    sentence: str
    undecided: bool = False


def verdict(validation: "Validation") -> list[str]:
    """The overall verdict with its reason, then one sentence on each aspect of the model."""
    findings = judge(validation)
    parts = (forced, own_variables, on_circles, regime, state_dependent, unresolved, denoised, settled)
    done = [part(validation) for part in parts]
    rest = [*done, circulation(validation), data_used(validation), *_hints(validation, findings)]
    return [
        overall(findings, bool(forced(validation))),
        *(f.sentence for f in findings.values()),
        *(s for s in rest if s),
    ]


def judge(validation: "Validation") -> dict[str, Finding]:
    """What is known about steady state, clock, score and mobility."""
    return {
        "steady state": _steady_state(validation),
        "clock": _clock(validation),
        "score": _score(validation),
        "mobility": _mobility(validation),
    }


def overall(findings: dict[str, Finding], unsteady: bool = False) -> str:
    """One sentence: good, usable with care, or not to be trusted, and why."""
    if unsteady:
        return (
            f"{WORDS[POOR]}: the series is not stationary and the fit was forced; a Langevin equation has one steady "
            "state, and this series shows none. What follows describes the record, not a process."
        )
    worst = overall_level(findings)
    if worst == GOOD:
        return f"Good: {findings['steady state'].reason}, and {findings['clock'].reason}."
    blamed = [f.reason for f in findings.values() if f.level >= worst and not f.undecided]
    undecided = [f"the {name}" for name, f in findings.items() if f.undecided]
    if undecided:
        listed = " and ".join(part for part in (", ".join(undecided[:-1]), undecided[-1]) if part)
        blamed.insert(0, f"the data are too short to judge {listed}")
    steady = findings["steady state"]
    praise = [f"{steady.reason}, but"] if steady.level == GOOD else []
    return f"{WORDS[worst]}: {' '.join([*praise, '; '.join(blamed)])}."


def overall_level(findings: dict[str, Finding]) -> int:
    """The worst level; a wrong clock alone leaves a model that is still right about the steady state."""
    if findings["steady state"].undecided and findings["clock"].undecided:
        return POOR
    clock = min(findings["clock"].level, CARE)
    return max([clock, *(f.level for name, f in findings.items() if name != "clock")])


def metric_level(name: str, validation: "Validation") -> int:
    """The level of one metric on its own."""
    levels = {
        "pdf_kl_mean": KL_LEVELS,
        "pdf_kl_max": KL_LEVELS,
        "acf_rmse": ACF_LEVELS,
        "covariance_error": COVARIANCE_LEVELS,
        "stein_error": STEIN_LEVELS,
        "mobility_error": MOBILITY_LEVELS,
        "pdf_kl_original": KL_LEVELS,
    }[name]
    return _level(validation.metrics[name], _allowed(validation, name), levels)


def kl_by_variable(validation: "Validation") -> np.ndarray:
    """KL(data || model) of each variable."""
    everything = np.ones(GROUPS)
    data, model = validation.data_statistics, validation.model_statistics
    return distances.pdf_kl(data.histogram(everything), model.histogram(everything))


def acf_rmse_by_variable(validation: "Validation") -> np.ndarray:
    """Root mean square over lags of the difference of autocorrelations, of each variable."""
    everything = np.ones(GROUPS)
    gap = validation.data_statistics.acf(everything) - validation.model_statistics.acf(everything)
    return np.sqrt(np.mean(gap**2, axis=0))


def worst(errors: np.ndarray, most: int) -> list[int]:
    """The variables with the largest errors, in their own order."""
    return sorted(np.argsort(errors)[::-1][:most].tolist())


def integral_times(statistics: SeriesStatistics) -> np.ndarray:
    """Integral of each autocorrelation up to its first zero, over the lags compared: the same for data and model."""
    return statistics.integral_times()


def circulation(validation: "Validation") -> str:
    """Whether Phi has an antisymmetric part beyond its error."""
    model = validation.model
    if model.dimension == 1:
        return ""
    phi, error = model.mobility.antisymmetric, model.mobility.antisymmetric_error
    if np.abs(phi).max() < 1e-9 * np.abs(model.mobility.matrix).max():
        return _no_circulation(validation)
    rows, columns = np.triu_indices(model.dimension, 1)
    size = np.abs(phi[rows, columns]) / np.maximum(error[rows, columns], np.finfo(float).tiny)
    data = validation.data
    groups = model.mobility.diagnostics.get("blocks") or error_groups(data.segments, data.dt, validation.integral_times)
    top, limit = int(np.argmax(size)), -stdtrit(groups - 1, FALSE_ALARM / 2 / len(rows))
    i, j = rows[top], columns[top]
    standard = model.standardizer.mobility_to_standard(model.mobility.matrix)
    ratio = np.linalg.norm(standard - standard.T) / np.linalg.norm(standard + standard.T)
    largest = (
        f"{'the clearest entry, ' if len(rows) > 1 else ''}Phi_A({model.names[i]}, {model.names[j]}) = "
        f"{plus_minus(float(phi[i, j]), float(error[i, j]))}, {short(size[top])} standard errors from zero"
        + (f" (errors themselves known from {groups} blocks of the record only)" if groups < _FEW_GROUPS else "")
    )
    if size[top] > limit and metric_level("stein_error", validation) > GOOD:
        return (
            f"Circulation is not established: {largest}, but that error takes the score as given, and the score is off "
            "or cannot be judged."
        )
    if size[top] > limit:
        return f"Circulation is significant: {largest}; |Phi_A| / |Phi_S| is {ratio:.2f} in standardised units."
    return f"No significant circulation: {largest}, where {limit:.1f} would be needed."


def _no_circulation(validation: "Validation") -> str:
    """Why Phi_A is exactly zero, and how large it would be without the reflections."""
    model = validation.model
    if model.provenance.get("symmetry", {}).get("kind") != "TranslationsAndReflections":
        return f"No circulation: {model.mobility.method} gives none."
    before = model.mobility.diagnostics.get("antisymmetry_before_projection")
    size = "" if before is None else f"; inferred without them, |Phi_A| / |Phi_S| would be {short(before)}"
    return f"No circulation: the reflections in the symmetry make Phi_A zero{size}."


def data_used(validation: "Validation") -> str:
    """How much was compared with how much, and what was left out."""
    data, paths = validation.data, validation.paths
    slowest = float(validation.integral_times.max())
    dropped = f"; {data.dropped:,} rows with missing values were dropped" if data.dropped else "; no row was dropped"
    return (
        f"The data are {data.n_samples:,} samples in {count(len(data.segments), 'segment')}, about "
        f"{data.duration / (2 * slowest):,.0f} independent ones of the slowest variable{dropped}. The model was "
        f"simulated for {paths.n_samples:,} samples in {count(len(paths.segments), 'member')}"
        + (f"; {count(validation.diverged, 'more member')} diverged and were left out." if validation.diverged else ".")
    )


def outside_range(validation: "Validation") -> float:
    """Fraction of the model's samples that lie beyond all data in at least one variable (on a ring: in any)."""
    data, model = validation.data.stacked(), validation.paths.stacked()
    low, high = data.min(axis=0), data.max(axis=0)
    if ring := FieldsComparison.of(validation):
        low = np.repeat(low.reshape(ring.channels, -1).min(axis=1), ring.points)
        high = np.repeat(high.reshape(ring.channels, -1).max(axis=1), ring.points)
    return float(np.mean(((model < low) | (model > high)).any(axis=1)))


def _steady_state(validation: "Validation") -> Finding:
    metrics, outside = validation.metrics, outside_range(validation)
    ring = FieldsComparison.of(validation)
    density = "pdf_kl_mean" if ring else "pdf_kl_max"  # points on a ring are alike: the worst of them is chance
    kl, floor = metrics[density], metrics[f"{density}_floor"]
    judged = [density, "covariance_error", *(["pdf_kl_original"] if validation.original else [])]
    parts = [metric_level(name, validation) for name in judged]
    level = max(*parts, _level(outside, _outside_by_chance(validation), OUTSIDE_LEVELS))
    reason = ("is reproduced", "is close but not right", "is not reproduced")[level]
    detected = any(_detected(validation, name) for name in judged)
    worst = validation.data.names[int(np.argmax(kl_by_variable(validation)))]
    which = f"the density of {worst}" + (" is the worst reproduced: it" if validation.model.dimension > 1 else "")
    if ring:
        which = f"the density at a point (mean over the {len(validation.data.names)} variables)"
    sentence = (
        f"Steady state: {which} differs by a KL divergence of {plus_minus(kl, metrics[f'{density}_se'])} nats "
        f"({short(floor)} between two halves of the data), the covariance by "
        f"{_percent(validation, 'covariance_error')} ({short(100 * metrics['covariance_error_floor'])} % between "
        f"halves); {short(100 * outside) if outside else 'none'}{' %' if outside else ''} of the simulated states lie "
        "beyond the range of the data."
    )
    beyond = f", {short(100 * outside)} % of states beyond the data" if level > max(parts) else ""
    reason = f"the steady state {reason} (KL {'' if ring else 'at most '}{short(kl)} nats{beyond})"
    return Finding(level, reason, sentence, max(parts) == level == CARE and not detected)


def _clock(validation: "Validation") -> Finding:
    metrics, level = validation.metrics, metric_level("acf_rmse", validation)
    value, detected = metrics["acf_rmse"], _detected(validation, "acf_rmse")
    reason = ("is right", "is somewhat off", "is wrong")[level]
    ring = FieldsComparison.of(validation)
    most, times = ("", ring.clock_words()) if ring else _clock_by_variable(validation)
    reach = f"{validation.data_statistics.tau[-1]:.3g}{after_number(validation.data.time_unit)}"
    sentence = (
        f"Clock: autocorrelations differ by {plus_minus(value, metrics['acf_rmse_se'])} rms up to lag {reach}{most}; "
        f"two halves of the data differ by {short(metrics['acf_rmse_floor'])}: "
        f"{'more than sampling errors explain' if detected else 'within sampling errors'}. {times}"
    )
    reason = f"the clock {reason} (autocorrelations differ by {short(value)} rms)"
    if level > GOOD and state_dependent(validation):
        reason += ", and the size of the steps depends on the state, which a constant mobility cannot hold"
    return Finding(level, reason, sentence, level == CARE and not detected)


def _clock_by_variable(validation: "Validation") -> tuple[str, str]:
    """Which autocorrelation differs most, and which integral time is off most."""
    names, errors = validation.data.names, acf_rmse_by_variable(validation)
    ratio = integral_times(validation.model_statistics) / integral_times(validation.data_statistics)
    worst, off = int(np.argmax(errors)), int(np.argmax(np.abs(np.log(ratio))))
    most = f", most in {names[worst]} ({short(errors[worst])})" if len(names) > 1 else ""
    which = f" that is off most, of {names[off]}," if len(names) > 1 else ""
    return most, f"The integral time{which} is {ratio[off]:.2f} times that of the data."


def _score(validation: "Validation") -> Finding:
    value, error = validation.metrics["stein_error"], validation.metrics["stein_error_se"]
    level = metric_level("stein_error", validation)
    detected, judgement = _detected(validation, "stein_error"), "no fault beyond sampling errors"
    if level > GOOD:
        judgement = "the held-out samples are too few to judge it"
    if detected:
        judgement = ("a fault too small to matter", "the score is somewhat off", "the score is wrong")[level]
    sentence = f"Score: Stein's identity holds on held-out samples to {plus_minus(value, error)}: {judgement}."
    reason = f"the score violates Stein's identity by {short(value)}"
    return Finding(level, reason, sentence, level == CARE and not detected)


def _mobility(validation: "Validation") -> Finding:
    spread, trend = _relative_error(validation), _horizon_trend(validation)
    lifted = validation.model.mobility.diagnostics.get("lifted_by", 0.0)
    sentence, reasons = f"Mobility: Phi is known to {short(100 * spread)} % (sampling error)", []
    level = 0
    if "mobility_error" in validation.metrics:
        level = metric_level("mobility_error", validation)
        sentence += f" and differs from the exact one by {_percent(validation, 'mobility_error')}"
        reasons += [f"Phi is off by {_percent(validation, 'mobility_error')}"] * (level > GOOD)
    if spread > MOBILITY_LEVELS[0]:
        reasons.append(f"Phi is known to {short(100 * spread)} % only")
    if trend > HORIZON_LEVELS[0]:
        reasons.append(f"Phi depends on the horizon it is inferred from (it moves by {short(100 * trend)} %)")
        sentence += f"; from the shortest to the longest horizon it moves by {short(100 * trend)} %"
        sentence += HORIZON_RULES.get(validation.model.mobility.diagnostics.get("horizon_rule", ""), "")
    if ballistic(validation.model):
        reasons.append("the series is ballistic at its sampling interval, and Phi an effective value")
        sentence += HORIZON_RULES["finite"]
        level = max(level, CARE)
    if lifted > 0:
        reasons.append(f"the inferred diffusion was not positive definite (Phi was moved by {short(100 * lifted)} %)")
        sentence += f"; its diffusion was not positive definite, and it was moved by {short(100 * lifted)} %"
    graded = ((spread, MOBILITY_LEVELS), (trend, HORIZON_LEVELS), (lifted, LIFT_LEVELS))
    level = max(level, *(_level(value, 0.0, levels) for value, levels in graded))
    return Finding(level, "; ".join(reasons), f"{sentence}.")


def _hints(validation: "Validation", findings: dict[str, Finding]) -> list[str]:
    """What a failure most likely means, and what to do about it."""
    hints, mobility = [], validation.model.mobility
    steady, clock = findings["steady state"].level, findings["clock"].level
    excused = "mobility_error" in validation.metrics and metric_level("mobility_error", validation) > GOOD
    if _detected(validation, "acf_rmse") and steady < POOR and steady <= clock and not excused:
        exactly = "" if clock > GOOD else " exactly, though the difference is small"
        smooth = " (a ballistic series has: smooth motion goes on, or swings back)" * ballistic(validation.model)
        hint = (
            f"With the steady state {('right', 'nearly right')[steady]} and the clock off, a constant mobility cannot "
            f"hold this dynamics{exactly}: the mobility depends on the state, or the dynamics has memory{smooth}."
        )
        if mobility.method != "IntegratedResponse":
            hint += f" Or {mobility.method} is biased at this sampling interval: try IntegratedResponse."
        hints.append(hint)
    gaussian = validation.model.provenance.get("score", {}).get("kind") == "Gaussian"
    if gaussian and steady > GOOD and _detected(validation, "pdf_kl_max"):
        hints.append("A Gaussian score holds a Gaussian steady state only: refit with KGMM or DenoisingScore.")
    return hints


def _level(value: float, allowed: float, levels: tuple[float, float]) -> int:
    """Good when small or not detectable; when large but not detectable the data are too short, which asks for care."""
    if value <= levels[0]:
        return GOOD
    if value <= allowed:
        return GOOD if value <= levels[1] else CARE
    return CARE if value <= levels[1] else POOR


def _detected(validation: "Validation", name: str) -> bool:
    return validation.metrics[name] > _allowed(validation, name)


def _allowed(validation: "Validation", name: str) -> float:
    """What the metric may reach by sampling errors alone."""
    metrics = validation.metrics
    allowed = metrics.get(f"{name}_floor", 0.0) + DETECTION * metrics[f"{name}_se"]
    return allowed + DETECTION * CLOCK_GAIN * _relative_error(validation) * (name == "acf_rmse")


def _relative_error(validation: "Validation") -> float:
    """|standard error of Phi| / |Phi| in standardised units, where entries are comparable."""
    units, mobility = validation.model.standardizer, validation.model.mobility
    error, phi = (units.mobility_to_standard(m) for m in (mobility.standard_error, mobility.matrix))
    return float(np.linalg.norm(error) / np.linalg.norm(phi))


def _horizon_trend(validation: "Validation") -> float:
    """Relative change of Phi(T) from the shortest to the longest horizon; zero when errors explain it."""
    found, units = validation.model.mobility.diagnostics, validation.model.standardizer
    if "sampling_error_by_horizon" not in found:
        return 0.0
    curves = (np.asarray(found[key]) for key in ("phi_by_horizon", "sampling_error_by_horizon"))
    phi, error = (units.mobility_to_standard(curve) for curve in curves)
    change, noise = np.linalg.norm(phi[-1] - phi[0]), np.linalg.norm(error[[0, -1]])
    size = np.linalg.norm(units.mobility_to_standard(validation.model.mobility.matrix))
    return float(change / size) if change > DETECTION * noise else 0.0


def _outside_by_chance(validation: "Validation") -> float:
    """What a perfect model may reach: each end of each variable is one in so many independent samples, twice over."""
    times = validation.integral_times
    if ring := FieldsComparison.of(validation):
        times = times.reshape(ring.channels, -1).mean(axis=1)
    return float(DETECTION * 2 * np.sum(2 * times) / validation.data.duration)


def _percent(validation: "Validation", name: str) -> str:
    return f"{plus_minus(100 * validation.metrics[name], 100 * validation.metrics[f'{name}_se'])} %"
