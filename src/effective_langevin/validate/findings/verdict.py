"""The verdict in three lines: what a model can be used for and why, what could have been detected, what to do next.

Every rule that can turn it is a test with a stated level. Each aspect is tested against what is small (5 % over all
aspects, Holm) and against what is large (1 %); that it is smaller than large is shown at 5 %. The tests of the
diagnosis and of state-dependent steps have their own levels of 0.2 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ..._core.format import listed, plus_minus, short
from ...diagnose import Finding
from ...diagnose.finding import Level, Quantity
from ...statistics.joint_tests import holm
from ...statistics.resampling import FALSE_ALARM
from . import aspects, notes
from .aspects import POOR_CHANCE, USABLE_CHANCE, Aspect, size_words
from .describe_model import check_circulation

if TYPE_CHECKING:
    from ..validation import Validation

VerdictLevel = Literal["good", "usable", "undecided", "poor"]  # the later ones outweigh the earlier ones
ORDER: tuple[VerdictLevel, ...] = get_args(VerdictLevel)
WORDS = {"good": "Good", "usable": "Usable with care", "undecided": "Undecided", "poor": "Not to be trusted"}
FINDING_LEVEL: dict[VerdictLevel, Level] = {"good": "ok", "usable": "warning", "undecided": "note", "poor": "stop"}
_FROM_FINDING: dict[Level, VerdictLevel] = {"ok": "good", "note": "good", "warning": "usable", "stop": "poor"}
_CARRIED = ("stationarity", "seasonality", "measurement noise", "motion blur")  # blur, though a fit can allow for it
_FEW_GROUPS = 10
_MOSTLY, _LONGER = 0.4, 4.0  # share of the squared error that is the simulation's; how much longer one would be
_MATCHED = " The variances were matched by simulation: their agreement is no evidence for the model."
_LARGEST = {"probability": 1.0, "correlation": 2.0, "correlation time": np.log(100.0)}  # differences that can be
_SEEN = 3.0  # standard errors from which a difference is mentioned though it does not matter


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """What a model can be used for.

    Parameters
    ----------
    level : {"good", "usable", "undecided", "poor"}
        The overall level; "undecided" where the data are too short to tell.
    headline : str
        The level, and the difference that decides.
    detectable : str
        How large a difference would have been detected.
    next_step : str
        What to do next, as a call.
    findings : tuple of Finding
        One for each test, with its `statistic` and `p`, and what else is worth knowing.
    border : bool, default False
        Whether another seed of the simulation may change the level.
    """

    level: VerdictLevel
    headline: str
    detectable: str
    next_step: str
    findings: tuple[Finding, ...]
    border: bool = False

    @property
    def sentences(self) -> list[str]:
        """Headline, detectable size and next step."""
        return [self.headline, self.detectable, f"Next: {self.next_step}"]

    def details(self) -> list[str]:
        """Return one line for each finding."""
        return [f"{f.name[:1].upper()}{f.name[1:]}: {f.meaning} {f.advice}".strip() for f in self.findings]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return f"Verdict({self.level!r}, {len(self.findings)} findings{', at the border' * self.border})"


def all_tests(validation: "Validation") -> list[Aspect]:
    """Return the outcomes of all tests on which the verdict rests."""
    error = notes.relative_error(validation)
    return [*validation.tests, *aspects.of_curves(validation, error), aspects.score(validation.model)]


def judge(validation: "Validation") -> Verdict:
    """Judge all aspects together, and collect what else is worth knowing."""
    tests = all_tests(validation)
    told = [found for note in notes.NOTES if (found := note(validation))]
    known = validation.diagnosis.findings if validation.diagnosis else ()
    known = [replace(f, level="warning") if (f.name, f.level) == ("motion blur", "note") else f for f in known]
    carried = [f for f in (*(f for f in known if f.name in _CARRIED), *told) if f.level in ("warning", "stop")]
    carried.sort(key=lambda finding: finding.name != "forced")
    fewer, found, more = (_Judgement(tests, _levels(tests, shift), carried) for shift in range(3))
    level = found.level if validation.tests else "undecided"
    others = {other.level for other in (fewer, more)} - {level} if validation.tests else set()
    edge = f' At the border: another seed may say "{WORDS[max(others, key=ORDER.index)]}".' if others else ""
    findings = [_finding(test, judged, validation) for test, judged in zip(tests, found.levels)]
    turns = _circulation(validation, tests[-1].p > USABLE_CHANCE)
    findings += [*carried, *(f for f in told if f not in carried), *([turns] if turns else [])]
    findings += [notes.mobility(validation), notes.data_used(validation)]
    reason = found.reason() if validation.tests else "the tests were not run. Validate again."
    return Verdict(
        level,
        f"{WORDS[level]}: {reason}{edge}",
        _detectable(tests, stated_trend(validation)) + _MATCHED * (validation.model.score.evidence.settled is not None),
        _next_step(validation, found),
        tuple(findings),
        bool(others),
    )


@dataclass(frozen=True, eq=False)
class _Judgement:
    """Tests with their levels, and findings that were carried over from the diagnosis and the notes."""

    tests: Sequence[Aspect]
    levels: Sequence[VerdictLevel]
    carried: Sequence[Finding]

    @property
    def level(self) -> VerdictLevel:
        """The level that outweighs all others; in a record that drifts, errors are large for that reason."""
        levels: list[VerdictLevel] = [*self.levels, *map(_level_of, self.carried)]
        drifts = any(f.name == "stationarity" and _level_of(f) != "undecided" for f in self.carried)
        kept: list[VerdictLevel] = [level for level in levels if not drifts or level != "undecided"]
        return max(kept, key=ORDER.index)

    def deciding(self) -> Finding | Aspect:
        """Return what made the level: a finding that was carried over, or the test with the smallest chance."""
        for finding in self.carried:
            if _level_of(finding) == self.level:
                return finding
        tests = [test for test, found in zip(self.tests, self.levels) if found == self.level]
        return min(tests, key=lambda test: test.outcomes[1].p_large if self.level == "poor" else test.p)

    def reason(self) -> str:
        """Name what decides, with its size and its chance."""
        found = self.deciding()
        if isinstance(found, Finding):
            first, _, _ = found.meaning.partition(". ")
            return f"{first[:1].lower()}{first[1:].rstrip('.')} ({found.name})."
        if self.level == "good":
            number = len(self.tests)
            return f"no difference that matters was detected in {number} tests. Nearest to a limit: {found.words()}."
        if self.level == "undecided":
            short_of = listed([f"the {t.name}" for t, level in zip(self.tests, self.levels) if level == "undecided"])
            seen = [t.name for t, level in zip(self.tests, self.levels) if level == "usable"]
            seen += [f.name for f in self.carried]
            detected = f" Detected all the same: {listed(seen)}." if seen else ""
            return f"the data are too short to judge {short_of}; {found.words()}.{detected}"
        chance = found.outcomes[1].p_large if self.level == "poor" else found.p
        return f"{found.words()} ({found.name}, {_chance(chance)})."


def _levels(tests: Sequence[Aspect], shift: int) -> list[VerdictLevel]:
    """Return the level of each aspect; the score is fatal only where another test sees a difference, too."""
    outcomes = [test.outcomes[shift] for test in tests]
    large = holm([o.p_large for o in outcomes], POOR_CHANCE)
    off = holm([o.p_small for o in outcomes], USABLE_CHANCE)
    witnessed = any(found for test, found in zip(tests, off) if test.name != "score")
    levels: list[VerdictLevel] = []
    for test, outcome, is_large, is_off in zip(tests, outcomes, large, off):
        poor = is_large and (test.name != "score" or witnessed)
        levels.append("poor" if poor else "usable" if is_off else "good" if outcome.shown else "undecided")
    return levels


def _level_of(finding: Finding) -> VerdictLevel:
    """Return the level that a finding asks for; a short record that could be a random walk leaves it undecided."""
    chance = finding.numbers.get("corrected_p")
    if finding.name == "stationarity" and (chance is None or chance.value > FALSE_ALARM):
        return "undecided"
    return _FROM_FINDING[finding.level]


def _finding(test: Aspect, level: VerdictLevel, validation: "Validation") -> Finding:
    small, large = (size_words(test.kind, limit) for limit in test.limits)
    outcome, words = test.outcomes[1], test.words()
    seen = "a difference, but not" if abs(test.gap) > _SEEN * test.error else "no difference detected"
    meaning = {
        "good": f"{seen} beyond {small}. Nearest to it: {words}.",
        "usable": f"{words}; beyond {small} with {_chance(outcome.p_small)}.",
        "undecided": f"{words}; the data are too short to tell whether this is below {large}.",
        "poor": f"{words}; beyond {large} with {_chance(outcome.p_large)}.",
    }[level]
    advice = "" if level == "good" else _advice(validation, test.name)
    numbers = {"difference": Quantity(test.gap, test.error)}
    numbers |= {f"detectable {kind}": Quantity(size) for kind, size in test.detectable.items()}
    statistic = (abs(test.gap) - test.limits[0]) / max(test.error, 1e-12)
    return Finding(test.name, FINDING_LEVEL[level], meaning, advice, numbers, statistic, test.p)


def _detectable(tests: Sequence[Aspect], trend: float | None) -> str:
    """Say how large a difference would have been detected, in what people look at first."""
    if not tests:
        return "Detectable: nothing was tested."
    found = {
        kind: size for test in tests for kind, size in test.detectable.items() if size < _LARGEST.get(kind, np.inf)
    }
    shown = [kind for kind in ("probability", "covariance", "correlation time", "correlation") if kind in found]
    sizes = listed([f"{size_words(kind, found[kind])} in a {kind}" for kind in shown], 4)
    if not shown:
        return "Detectable: no difference of any size: the record is too short."
    drift = f"; a trend of a mean by {short(trend)} standard deviations" if trend is not None else ""
    return f"Detectable: a difference of {sizes}{drift}."


def stated_trend(validation: "Validation") -> float | None:
    """Return the trend of a mean, in standard deviations of the series, that the diagnosis would have found."""
    findings = validation.diagnosis.findings if validation.diagnosis else ()
    sizes = [f.numbers["detectable_trend"].value for f in findings if "detectable_trend" in f.numbers]
    return float(np.max(sizes[0])) if sizes else None


def _next_step(validation: "Validation", found: _Judgement) -> str:
    if not validation.tests:
        return "`el.validate(model, series)`."
    if found.level == "good":
        return "`el.predict_held_out(series)`, a stricter test."
    deciding = found.deciding()
    if isinstance(deciding, Finding):
        return deciding.advice or "`el.diagnose(series)`."
    if found.level == "undecided":
        return _more_of(validation, deciding)
    return _advice(validation, deciding.name)


def _more_of(validation: "Validation", test: Aspect) -> str:
    """Ask for a longer simulation where its error counts most, otherwise for the record that would decide."""
    sizes, large = validation.comparison, test.limits[1]
    if test.seed_error**2 > _MOSTLY * test.error**2:
        longer = _LONGER * sizes.model_samples / max(sizes.members, 1) * sizes.dt
        return f"`el.validate(model, series, duration={longer:.3g})`, a longer simulation."
    room = max(large - abs(test.gap), 0.2 * large)
    times = max(2, int(np.ceil(1.5 * (1.73 * test.error / room) ** 2)))
    return f"a record about {times} times as long, then `el.fit(series)` again."


def _advice(validation: "Validation", name: str) -> str:
    """Return one call that is likely to help."""
    model = validation.model
    gaussian = model.provenance.get("score", {}).get("kind") == "Gaussian" or model.score.gaussian_used
    constant = model.fields is None
    if name in ("steady state", "original variables", "score"):
        return (
            "`el.fit(series, score=el.KGMM())` (`--score kgmm`): a Gaussian score has a Gaussian steady state only."
            if gaussian
            else "`el.fit(series, score=el.DenoisingScore())` (`--score denoising`), or more samples."
        )
    if name == "increments" and model.mobility.evidence.ballistic:
        if not (model.space.hidden or model.space.angles or model.space.channels):
            return '`el.fit(series, memory="auto")` (`--memory auto`): the series is smooth, a diffusion is not.'
        return "use paths at longer intervals, `model.simulate(..., dt=...)`: the series is smooth, a diffusion is not."
    if constant:
        return "`el.fit(series, mobility=el.StateDependent())` (`--mobility state-dependent`)."
    if model.space.hidden:
        return "more samples, or a finer sampling: this memory does not tell all of the hidden variables."
    return '`el.fit(series, memory="auto")` (`--memory auto`): the process has memory.'


def _chance(p: float) -> str:
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


def _circulation(validation: "Validation", score_holds: bool) -> Finding | None:
    """Say whether Phi has an antisymmetric part beyond its error."""
    model = validation.model
    if model.space.observed == 1:
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
    if found.groups < _FEW_GROUPS:
        largest += f" (errors known from only {found.groups} independent parts of the record)"
    numbers = {"standard_errors": Quantity(found.size), "limit": Quantity(found.limit), "ratio": Quantity(float(ratio))}
    if not found.significant:
        words = f"not significant. {largest}; {found.limit:.1f} would be needed."
    elif not score_holds:
        words = f"not established. {largest}, but that error takes the score as exact, which it is not."
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
