"""The verdict: a few plain sentences on what the model can be used for, with the numbers they rest on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from .._core.types import Matrix
from . import distances
from .statistics import GROUPS

if TYPE_CHECKING:
    from .comparison import Validation

# Up to the first value of a pair a difference does not matter in practice; beyond the second it spoils the model.
KL_LEVELS = (0.02, 0.1)
COVARIANCE_LEVELS = (0.05, 0.3)
ACF_LEVELS = (0.03, 0.15)
STEIN_LEVELS = (0.05, 0.2)
MOBILITY_LEVELS = (0.05, 0.3)
LIFT_LEVELS = (0.0, 0.1)
HORIZON_LEVELS = (0.1, np.inf)
OUTSIDE_LEVELS = (0.002, 0.05)
# A difference is real when it exceeds the floor by this many standard errors.
DETECTION = 2.0
# Chance of calling a circulation significant that is not there, over all pairs together: three standard errors for one.
FALSE_ALARM = 0.0027
# exp(-k t) moves by at most 1/e times the relative change of k: what the error of Phi can do to an autocorrelation.
CLOCK_GAIN = 1 / np.e

GOOD, CARE, POOR = range(3)
WORDS = ("Good", "Usable with care", "Not to be trusted")


@dataclass(frozen=True)
class Finding:
    """One aspect of the model, judged: its level, the reason in half a sentence, and the full sentence."""

    level: int
    reason: str
    sentence: str


def verdict(validation: "Validation") -> list[str]:
    """The overall verdict with its reason, then one sentence on each aspect of the model."""
    findings = judge(validation)
    rest = [circulation(validation), data_used(validation), *_hints(validation, findings)]
    return [overall(findings), *(f.sentence for f in findings.values()), *(s for s in rest if s)]


def judge(validation: "Validation") -> dict[str, Finding]:
    """What is known about steady state, clock, score and mobility."""
    return {
        "steady state": _steady_state(validation),
        "clock": _clock(validation),
        "score": _score(validation),
        "mobility": _mobility(validation),
    }


def overall(findings: dict[str, Finding]) -> str:
    """One sentence: good, usable with care, or not to be trusted, and why."""
    worst = overall_level(findings)
    if worst == GOOD:
        return f"Good: {findings['steady state'].reason}, and {findings['clock'].reason}."
    blamed = [f.reason for f in findings.values() if f.level >= worst]
    steady = findings["steady state"]
    praise = [f"{steady.reason}, but"] if steady.level == GOOD else []
    return f"{WORDS[worst]}: {' '.join([*praise, '; '.join(blamed)])}."


def overall_level(findings: dict[str, Finding]) -> int:
    """The worst level; a wrong clock alone leaves a model that is still right about the steady state."""
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


def part_error(standard_error: Matrix) -> Matrix:
    """Standard error of (Phi_ij +- Phi_ji) / 2, off the diagonal with the two entries taken as independent."""
    error = 0.5 * np.sqrt(standard_error**2 + standard_error.T**2)
    np.fill_diagonal(error, np.diagonal(standard_error))
    return error


def digits(value: float, error: float | None = None) -> tuple[str, str]:
    """A value and its error, both to the second digit of the error (without an error: three digits)."""
    if error is None or not np.isfinite(error) or error <= 0:
        return (f"{value:#.3g}".rstrip(".") if value else "0"), ""
    exponent = int(np.floor(np.log10(max(abs(value), error))))
    scale, suffix = (1.0, "") if -4 <= exponent < 5 else (10.0**exponent, f"e{exponent:d}")
    decimals = max(0, 1 - int(np.floor(np.log10(error / scale))))
    return f"{value / scale:.{decimals}f}{suffix}", f"{error / scale:.{decimals}f}{suffix}"


def plus_minus(value: float, error: float | None = None) -> str:
    """`value ± error` with the digits that mean something."""
    return " ± ".join(part for part in digits(value, error) if part)


def circulation(validation: "Validation") -> str:
    """Whether Phi has an antisymmetric part beyond its error."""
    model = validation.model
    if model.dimension == 1:
        return ""
    phi, error = model.mobility.antisymmetric, part_error(model.mobility.standard_error)
    rows, columns = np.triu_indices(model.dimension, 1)
    size = np.abs(phi[rows, columns]) / np.maximum(error[rows, columns], np.finfo(float).tiny)
    top, limit = int(np.argmax(size)), norm.isf(FALSE_ALARM / 2 / len(rows))
    i, j = rows[top], columns[top]
    standard = model.units.mobility_to_standard(model.mobility.matrix)
    ratio = np.linalg.norm(standard - standard.T) / np.linalg.norm(standard + standard.T)
    largest = (
        f"{'the clearest entry, ' if len(rows) > 1 else ''}Phi_A({model.names[i]}, {model.names[j]}) = "
        f"{plus_minus(phi[i, j], error[i, j])}, {_short(size[top])} standard errors from zero"
    )
    if size[top] > limit:
        return f"Circulation is significant: {largest}; |Phi_A| / |Phi_S| is {ratio:.2f} in standardised units."
    return f"No significant circulation: {largest}, where {limit:.1f} would be needed."


def data_used(validation: "Validation") -> str:
    """How much was compared with how much, and what was left out."""
    data, paths = validation.data, validation.paths
    slowest = float(validation.integral_times.max())
    dropped = f"; {data.dropped:,} rows with missing values were dropped" if data.dropped else "; no row was dropped"
    return (
        f"The data are {data.n_samples:,} samples in {_count(len(data.segments), 'segment')}, about "
        f"{data.duration / (2 * slowest):,.0f} independent ones of the slowest variable{dropped}. The model was "
        f"simulated for {paths.n_samples:,} samples in {_count(len(paths.segments), 'member')}."
    )


def outside_range(validation: "Validation") -> float:
    """Fraction of the model's samples that lie beyond all data in at least one variable."""
    data, model = validation.data.stacked(), validation.paths.stacked()
    return float(np.mean(((model < data.min(axis=0)) | (model > data.max(axis=0))).any(axis=1)))


def _steady_state(validation: "Validation") -> Finding:
    metrics, outside = validation.metrics, outside_range(validation)
    kl, floor = metrics["pdf_kl_max"], metrics["pdf_kl_max_floor"]
    parts = [metric_level(name, validation) for name in ("pdf_kl_max", "covariance_error")]
    level = max(*parts, _level(outside, 0.0, OUTSIDE_LEVELS))
    reason = ("is reproduced", "is close but not right", "is not reproduced")[level]
    worst = validation.data.names[int(np.argmax(kl_by_variable(validation)))]
    which = f"the density of {worst}" + (" is the worst reproduced: it" if validation.model.dimension > 1 else "")
    sentence = (
        f"Steady state: {which} differs by a KL divergence of {plus_minus(kl, metrics['pdf_kl_max_se'])} nats "
        f"({_short(floor)} between two halves of the data), the covariance by "
        f"{_percent(validation, 'covariance_error')} ({_short(100 * metrics['covariance_error_floor'])} % between "
        f"halves); {_short(100 * outside) if outside else 'none'}{' %' if outside else ''} of the simulated states lie "
        "beyond the range of the data."
    )
    beyond = f", {_short(100 * outside)} % of states beyond the data" if outside > OUTSIDE_LEVELS[0] else ""
    return Finding(level, f"the steady state {reason} (KL at most {_short(kl)} nats{beyond})", sentence)


def _clock(validation: "Validation") -> Finding:
    metrics, level = validation.metrics, metric_level("acf_rmse", validation)
    value, floor = metrics["acf_rmse"], metrics["acf_rmse_floor"]
    errors = acf_rmse_by_variable(validation)
    worst = int(np.argmax(errors))
    detected = value > _allowed(validation, "acf_rmse")
    reason = ("is right", "is somewhat off", "is wrong")[level]
    judgement = "more than sampling errors explain" if detected else "within sampling errors"
    name = validation.data.names[worst]
    most = f", most in {name} ({_short(errors[worst])})" if validation.model.dimension > 1 else ""
    sentence = (
        f"Clock: autocorrelations differ by {plus_minus(value, metrics['acf_rmse_se'])} rms up to lag "
        f"{validation.data_statistics.tau[-1]:.3g}{_unit(validation.data.time_unit)}{most}; two halves of the data "
        f"differ by {_short(floor)}: {judgement}."
    )
    return Finding(level, f"the clock {reason} (autocorrelations differ by {_short(value)} rms)", sentence)


def _score(validation: "Validation") -> Finding:
    value, error = validation.metrics["stein_error"], validation.metrics["stein_error_se"]
    level = metric_level("stein_error", validation)
    if value <= DETECTION * error:
        judgement = "no fault beyond sampling errors"
    else:
        judgement = ("a fault too small to matter", "the score is somewhat off", "the score is wrong")[level]
    sentence = f"Score: Stein's identity holds on held-out samples to {plus_minus(value, error)}: {judgement}."
    return Finding(level, f"the score violates Stein's identity by {_short(value)}", sentence)


def _mobility(validation: "Validation") -> Finding:
    spread, trend = _relative_error(validation), _horizon_trend(validation)
    lifted = validation.model.mobility.diagnostics.get("lifted_by", 0.0)
    sentence, reasons = f"Mobility: Phi is known to {_short(100 * spread)} % (sampling error)", []
    if "mobility_error" in validation.metrics:
        sentence += f" and differs from the exact one by {_percent(validation, 'mobility_error')}"
    if spread > MOBILITY_LEVELS[0]:
        reasons.append(f"Phi is known to {_short(100 * spread)} % only")
    if trend > HORIZON_LEVELS[0]:
        reasons.append(f"Phi depends on the horizon it is inferred from (it moves by {_short(100 * trend)} %)")
        sentence += f"; from the shortest to the longest horizon it moves by {_short(100 * trend)} %"
    if lifted > 0:
        reasons.append(f"the inferred diffusion was not positive definite (Phi was moved by {_short(100 * lifted)} %)")
        sentence += f"; its diffusion was not positive definite, and it was moved by {_short(100 * lifted)} %"
    graded = ((spread, MOBILITY_LEVELS), (trend, HORIZON_LEVELS), (lifted, LIFT_LEVELS))
    return Finding(max(_level(value, 0.0, levels) for value, levels in graded), "; ".join(reasons), f"{sentence}.")


def _hints(validation: "Validation", findings: dict[str, Finding]) -> list[str]:
    """What a failure most likely means, and what to do about it."""
    hints, kind = [], validation.model.provenance.get("score", {}).get("kind")
    steady, detected = findings["steady state"].level, validation.metrics["acf_rmse"] > _allowed(validation, "acf_rmse")
    if detected and steady < POOR and steady <= findings["clock"].level:
        exactly = "" if findings["clock"].level > GOOD else " exactly, though the difference is small"
        hints.append(
            f"With the steady state {('right', 'nearly right')[steady]} and the clock off, a constant mobility cannot "
            f"hold this dynamics{exactly}: the mobility depends on the state, or the dynamics has memory."
        )
        if validation.model.mobility.method != "IntegratedResponse":
            hints[-1] += (
                f" Or {validation.model.mobility.method} is biased at this sampling interval: "
                "refit with IntegratedResponse to tell."
            )
    if steady > GOOD and kind == "Gaussian":
        hints.append("A Gaussian score holds a Gaussian steady state only: refit with KGMM or DenoisingScore.")
    return hints


def _level(value: float, allowed: float, levels: tuple[float, float]) -> int:
    """Good when small or not detectable; when large but not detectable the data are too short, which asks for care."""
    if value <= levels[0]:
        return GOOD
    if value <= allowed:
        return GOOD if value <= levels[1] else CARE
    return CARE if value <= levels[1] else POOR


def _allowed(validation: "Validation", name: str) -> float:
    """What the metric may reach by sampling errors alone."""
    metrics = validation.metrics
    allowed = metrics.get(f"{name}_floor", 0.0) + DETECTION * metrics[f"{name}_se"]
    return allowed + DETECTION * CLOCK_GAIN * _relative_error(validation) * (name == "acf_rmse")


def _relative_error(validation: "Validation") -> float:
    """|standard error of Phi| / |Phi| in standardised units, where entries are comparable."""
    units, mobility = validation.model.units, validation.model.mobility
    error, phi = (units.mobility_to_standard(m) for m in (mobility.standard_error, mobility.matrix))
    return float(np.linalg.norm(error) / np.linalg.norm(phi))


def _horizon_trend(validation: "Validation") -> float:
    """Relative change of Phi(T) from the shortest to the longest horizon; zero when errors explain it."""
    found, units = validation.model.mobility.diagnostics, validation.model.units
    if "phi_by_horizon" not in found:
        return 0.0
    phi, error = (np.asarray(found[key]) for key in ("phi_by_horizon", "sampling_error_by_horizon"))
    change, noise = np.linalg.norm(phi[-1] - phi[0]), np.linalg.norm(error[[0, -1]])
    size = np.linalg.norm(units.mobility_to_standard(validation.model.mobility.matrix))
    return float(change / size) if change > DETECTION * noise else 0.0


def _percent(validation: "Validation", name: str) -> str:
    return f"{plus_minus(100 * validation.metrics[name], 100 * validation.metrics[f'{name}_se'])} %"


def _short(number: float) -> str:
    """Two significant digits, all digits of larger numbers."""
    return f"{number:.0f}" if abs(number) >= 10 else f"{number:#.2g}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
