"""The verdict: a few plain sentences on what a model can be used for, with the numbers they rest on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..._core.format import after_number, listed, plus_minus, short
from ...diagnose import Finding
from ...diagnose.findings.finding import Level, Quantity
from . import notes
from . import thresholds as t
from .circulation import check_circulation

if TYPE_CHECKING:
    from ..validation import Validation

GOOD, CARE, POOR = range(3)
WORDS = ("Good", "Usable with care", "Not to be trusted")
OVERALL: tuple[Literal["good", "usable", "poor"], ...] = ("good", "usable", "poor")
_LEVELS: tuple[Level, ...] = ("ok", "warning", "stop")

_HORIZON_RULES = {
    "limit": ", and its limit at the shortest times was used",
    "finite": "; it is an effective value, taken where its rise with the horizon ends or the response changes sign",
}


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """What a model can be used for.

    Parameters
    ----------
    level : {"good", "usable", "poor"}
        The overall level.
    headline : str
        One sentence: the level, and why.
    findings : tuple of Finding
        What is known about steady state, time scales, score and mobility, and what else is worth knowing.
    """

    level: Literal["good", "usable", "poor"]
    headline: str
    findings: tuple[Finding, ...]

    @property
    def sentences(self) -> list[str]:
        """The headline, then one entry for each finding."""
        told = (f"{f.name[:1].upper()}{f.name[1:]}: {f.meaning} {f.advice}".strip() for f in self.findings)
        return [self.headline, *told]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return f"Verdict({self.level!r}, {len(self.findings)} findings: {self.headline})"


@dataclass(frozen=True, eq=False)
class _Aspect:
    """One aspect of the model: its level, the reason in half a sentence, the full sentence, and the metrics behind it.

    It is undecided if the difference is large but so are the sampling errors.
    """

    name: str
    level: int
    reason: str
    sentence: str
    metrics: tuple[str, ...] = ()
    undecided: bool = False
    advice: str = ""

    def finding(self, metrics: Mapping[str, float]) -> Finding:
        numbers = {name: Quantity(metrics[name], metrics[f"{name}_se"]) for name in self.metrics}
        return Finding(self.name, _LEVELS[self.level], self.sentence, self.advice, numbers=numbers)


def judge(validation: "Validation") -> Verdict:
    """Judge steady state, time scales, score, mobility and increments, and collect what else is worth knowing."""
    told = [found for note in notes.NOTES if (found := note(validation))]
    names = {found.name for found in told}
    times = _time_scales(validation, "state-dependent steps" in names)
    aspects = (_steady_state(validation), times, _score(validation), _mobility(validation), *_increments(validation))
    level = POOR if "forced" in names else _overall_level(aspects)
    judged = (a.finding(validation.metrics) for a in aspects)
    rest = (_circulation(validation), notes.data_used(validation), *_hints(validation, aspects[0].level, times.level))
    findings = (*judged, *told, *(found for found in rest if found))
    return Verdict(OVERALL[level], _headline(aspects, level, "forced" in names), findings)


def _headline(aspects: tuple[_Aspect, ...], level: int, forced: bool) -> str:
    steady, times = aspects[:2]
    if forced:
        return (
            f"{WORDS[POOR]}: the fit was forced although the series is not stationary, so the statistics below "
            "describe this record only."
        )
    if level == GOOD:
        return f"Good: {steady.reason}, and {times.reason}."
    blamed = [a.reason for a in aspects if a.level >= level and not a.undecided]
    undecided = [f"the {a.name}" for a in aspects if a.undecided]
    if undecided:
        blamed.insert(0, f"the data are too short to judge {listed(undecided)}")
    praise = [f"{steady.reason}, but"] if steady.level == GOOD else []
    return f"{WORDS[level]}: {' '.join([*praise, '; '.join(blamed)])}."


def _overall_level(aspects: tuple[_Aspect, ...]) -> int:
    """Return the worst level; wrong time scales alone leave a model that is still right about the steady state."""
    steady, times, *rest = aspects
    if steady.undecided and times.undecided:
        return POOR
    return max(min(times.level, CARE), steady.level, *(a.level for a in rest))


def metric_level(name: str, validation: "Validation") -> int:
    """Return the level of one metric on its own."""
    return _level(validation.metrics[name], _allowed(validation, name), t.LEVELS[name])


def _steady_state(validation: "Validation") -> _Aspect:
    metrics, view, outside = validation.metrics, validation.view, validation.comparison.outside
    density = view.density_metric
    judged = (density, "covariance_error", *(["pdf_kl_original"] if "pdf_kl_original" in metrics else []))
    parts = [metric_level(name, validation) for name in judged]
    # Each end of each variable is one in so many independent samples, twice over: a perfect model may reach that.
    times = view.mean_times(validation.integral_times)
    by_chance = float(t.DETECTION * 2 * np.sum(2 * times) / validation.comparison.duration)
    level = max(*parts, _level(outside, by_chance, t.OUTSIDE))
    share = f"{short(100 * outside)} %" if outside else "none"
    sentence = (
        f"{view.density_words(validation)} differs by a KL divergence of "
        f"{plus_minus(metrics[density], metrics[f'{density}_se'])} nats ({short(metrics[f'{density}_floor'])} between "
        f"two halves of the data), the covariance by {_percent(validation, 'covariance_error')} "
        f"({short(100 * metrics['covariance_error_floor'])} % between halves); {share} of the simulated states lie "
        "beyond the range of the data."
    )
    beyond = f", {short(100 * outside)} % of states beyond the data" if level > max(parts) else ""
    word = ("is reproduced", "is close but not right", "is not reproduced")[level]
    most = "" if density == "pdf_kl_mean" else "at most "
    reason = f"the steady state {word} (KL {most}{short(metrics[density])} nats{beyond})"
    undecided = max(parts) == level == CARE and not any(_detected(validation, name) for name in judged)
    return _Aspect("steady state", level, reason, sentence, judged, undecided)


def _time_scales(validation: "Validation", steps: bool) -> _Aspect:
    metrics, level = validation.metrics, metric_level("acf_rmse", validation)
    detected = _detected(validation, "acf_rmse")
    most, times = validation.view.time_scale_words(validation)
    acf = validation.curves["acf"]
    sentence = (
        f"autocorrelations differ by {plus_minus(metrics['acf_rmse'], metrics['acf_rmse_se'])} rms up to lag "
        f"{acf['lag'][-1]:.3g}{after_number(acf.unit('lag'))}{most}; two halves of the data differ by "
        f"{short(metrics['acf_rmse_floor'])}: "
        f"{'more than sampling errors explain' if detected else 'within sampling errors'}. {times}"
    )
    word = ("are right", "are somewhat off", "are wrong")[level]
    reason = f"the time scales {word} (autocorrelations differ by {short(metrics['acf_rmse'])} rms)"
    if level > GOOD and steps:
        reason += ", and the size of the steps depends on the state, which no constant mobility allows"
    return _Aspect("time scales", level, reason, sentence, ("acf_rmse",), level == CARE and not detected)


def _score(validation: "Validation") -> _Aspect:
    value, error = validation.metrics["stein_error"], validation.metrics["stein_error_se"]
    level, detected = metric_level("stein_error", validation), _detected(validation, "stein_error")
    if detected:
        judgement = ("a fault too small to matter", "the score is somewhat off", "the score is wrong")[level]
    else:
        judgement = "the held-out samples are too few to judge it" if level else "no fault beyond sampling errors"
    sentence = f"Stein's identity holds on held-out samples to {plus_minus(value, error)}: {judgement}."
    reason = f"the score violates Stein's identity by {short(value)}"
    return _Aspect("score", level, reason, sentence, ("stein_error",), level == CARE and not detected)


def _mobility(validation: "Validation") -> _Aspect:
    spread, trend = _relative_error(validation), _horizon_trend(validation)
    evidence = validation.model.mobility.evidence
    lifted, rule = evidence.lifted_by, evidence.horizon.rule if evidence.horizon else ""
    sentence, reasons, level = f"Phi is known to {short(100 * spread)} % (sampling error)", [], GOOD
    metrics = ("mobility_error",) if "mobility_error" in validation.metrics else ()
    if metrics:
        level = metric_level("mobility_error", validation)
        sentence += f" and differs from the exact one by {_percent(validation, 'mobility_error')}"
        reasons += [f"Phi is off by {_percent(validation, 'mobility_error')}"] * (level > GOOD)
    if spread > t.MOBILITY_ERROR[0]:
        reasons.append(f"Phi is known to {short(100 * spread)} % only")
    if trend > t.HORIZON_TREND[0]:
        reasons.append(f"Phi depends on the horizon it is inferred from (it changes by {short(100 * trend)} %)")
        sentence += f"; from the shortest to the longest horizon it changes by {short(100 * trend)} %"
        sentence += _HORIZON_RULES.get(rule, "")
    if evidence.ballistic:
        reasons.append("the series is ballistic at its sampling interval, and Phi an effective value")
        sentence += "" if trend > t.HORIZON_TREND[0] else _HORIZON_RULES["finite"]
        level = max(level, CARE)
    if lifted > 0:
        reasons.append(f"the inferred diffusion was not positive definite (Phi was changed by {short(100 * lifted)} %)")
        sentence += f"; its diffusion was not positive definite, and it was changed by {short(100 * lifted)} %"
    graded = ((spread, t.MOBILITY_ERROR), (trend, t.HORIZON_TREND), (lifted, t.LIFT))
    level = max(level, *(_level(value, 0.0, levels) for value, levels in graded))
    return _Aspect("mobility", level, "; ".join(reasons), f"{sentence}.", metrics)


def _increments(validation: "Validation") -> list[_Aspect]:
    """Judge the mean squared increments; files of earlier versions do not have them."""
    curve, evidence = validation.curves.get("increment"), validation.model.mobility.evidence
    if curve is None or "increment_error" not in validation.metrics:
        return []
    level, detected = metric_level("increment_error", validation), _detected(validation, "increment_error")
    ratio = np.divide(curve.model, curve.data, out=np.ones(curve.data.shape), where=curve.data > 0)
    lag, variable = np.unravel_index(int(np.nanargmax(np.abs(ratio - 1))), ratio.shape)
    over = f"{curve['interval'][lag]:.3g}{after_number(curve.unit('interval'))}"
    worst = f"the mean squared increment of {curve.labels[variable]} over {over}"
    floor = short(100 * validation.metrics["increment_error_floor"])
    sentence = (
        f"{worst} differs most, by {_percent(validation, 'increment_error')}: it is {ratio[lag, variable]:.2f} times "
        f"that of the data; two halves of the data differ by {floor} %: "
        f"{'more than sampling errors explain' if detected else 'within sampling errors'}."
    )
    advice = (
        "The series is smooth at its sampling interval and the paths of a diffusion are not: use them at longer ones."
        if evidence.ballistic and ratio[lag, variable] > 1
        else "Simulate with the default `stepper` and `step` if others were given. Otherwise the noise depends on the "
        "state, each sample has measurement noise, or Phi is off."
    )
    reason = f"the increments are off ({worst} is {ratio[lag, variable]:.2f} times that of the data)"
    return [_Aspect("increments", level, reason, sentence, ("increment_error",), advice=advice if level else "")]


def _circulation(validation: "Validation") -> Finding | None:
    """Say whether Phi has an antisymmetric part beyond its error."""
    model = validation.model
    if model.dimension == 1:
        return None
    found = check_circulation(model, validation.comparison.groups)
    if found is None:
        return Finding("circulation", "ok", _no_circulation(validation))
    phi, error = (
        m[found.row, found.column] for m in (model.mobility.antisymmetric, model.mobility.antisymmetric_error)
    )
    standard = validation.view.standard_mobility(model.mobility.matrix)
    ratio = np.linalg.norm(standard - standard.T) / np.linalg.norm(standard + standard.T)
    entry = f"Phi_A({model.names[found.row]}, {model.names[found.column]}) = {plus_minus(float(phi), float(error))}"
    largest = f"{'The clearest entry, ' if model.dimension > 2 else ''}{entry}{',' if model.dimension > 2 else ''} is "
    largest += f"{short(found.size)} standard errors from zero"
    if found.groups < t.FEW_GROUPS:
        largest += f" (errors known from only {found.groups} independent parts of the record)"
    numbers = {"standard_errors": Quantity(found.size), "limit": Quantity(found.limit), "ratio": Quantity(float(ratio))}
    if not found.significant:
        words = f"not significant. {largest}; {found.limit:.1f} would be needed."
    elif metric_level("stein_error", validation) > GOOD:
        words = f"not established. {largest}, but that error takes the score as exact, which it is not or may not be."
    else:
        words = f"significant. {largest}, and |Phi_A| / |Phi_S| is {ratio:.2f} in standardised units."
    return Finding("circulation", "note", words, numbers=numbers)


def _no_circulation(validation: "Validation") -> str:
    """Say why Phi_A is exactly zero, and how large it would be without the reflections."""
    mobility, symmetry = validation.model.mobility, validation.model.space.symmetry
    if symmetry.without_reflections() is None:
        return f"none: {mobility.method} gives a symmetric Phi."
    before = mobility.evidence.antisymmetry_before_projection
    size = "" if before is None else f"; inferred without them, |Phi_A| / |Phi_S| would be {short(before)}"
    return f"none: the reflections in the symmetry make Phi_A zero{size}."


def _hints(validation: "Validation", steady: int, times: int) -> list[Finding]:
    """Say what a failure most likely means, and what to do about it."""
    hints, mobility = [], validation.model.mobility
    excused = "mobility_error" in validation.metrics and metric_level("mobility_error", validation) > GOOD
    if _detected(validation, "acf_rmse") and steady < POOR and steady <= times and not excused:
        exactly = "" if times > GOOD else " exactly, though the difference is small"
        smooth = ", as smooth motion at the sampling interval has" * mobility.evidence.ballistic
        meaning = (
            f"the stationary density is {('', 'nearly ')[steady]}reproduced but the autocorrelations are not: no "
            f"constant mobility fits these dynamics{exactly}. The mobility depends on the state, or the process has "
            f"memory{smooth}."
        )
        advice = ""
        if mobility.method != "IntegratedResponse":
            advice = (
                f"Or {mobility.method} is biased at this sampling interval: try `mobility=el.IntegratedResponse()`."
            )
        hints.append(Finding("constant mobility", "note", meaning, advice))
    gaussian = validation.model.provenance.get("score", {}).get("kind") == "Gaussian"
    if gaussian and steady > GOOD and _detected(validation, "pdf_kl_max"):
        advice = "Fit again with `score=el.KGMM()` or `score=el.DenoisingScore()`."
        hints.append(Finding("Gaussian score", "note", "it gives a Gaussian steady state only.", advice))
    return hints


def _level(value: float, allowed: float, levels: tuple[float, float]) -> int:
    """Good if small or not detectable; if large but not detectable the data are too short, which asks for care."""
    if value <= levels[0]:
        return GOOD
    if value <= allowed:
        return GOOD if value <= levels[1] else CARE
    return CARE if value <= levels[1] else POOR


def _detected(validation: "Validation", name: str) -> bool:
    return validation.metrics[name] > _allowed(validation, name)


def _allowed(validation: "Validation", name: str) -> float:
    """Return what the metric may reach by sampling errors alone."""
    metrics = validation.metrics
    allowed = metrics.get(f"{name}_floor", 0.0) + t.DETECTION * metrics[f"{name}_se"]
    return allowed + t.DETECTION * t.MOBILITY_GAIN.get(name, 0.0) * _relative_error(validation)


def _relative_error(validation: "Validation") -> float:
    """Return |standard error of Phi| / |Phi| in standardised units, where entries are comparable."""
    standard, mobility = validation.view.standard_mobility, validation.model.mobility
    return float(np.linalg.norm(standard(mobility.standard_error)) / np.linalg.norm(standard(mobility.matrix)))


def _horizon_trend(validation: "Validation") -> float:
    """Return the relative change of Phi(T) from the shortest to the longest horizon; zero when errors explain it."""
    found, standard = validation.model.mobility.evidence.horizon, validation.view.standard_mobility
    if found is None or found.phi is None or found.standard_error is None:
        return 0.0
    phi, error = standard(found.phi), standard(found.standard_error)
    change, noise = np.linalg.norm(phi[-1] - phi[0]), np.linalg.norm(error[[0, -1]])
    return (
        float(change / np.linalg.norm(standard(validation.model.mobility.matrix)))
        if change > t.DETECTION * noise
        else 0.0
    )


def _percent(validation: "Validation", name: str) -> str:
    return f"{plus_minus(100 * validation.metrics[name], 100 * validation.metrics[f'{name}_se'])} %"
