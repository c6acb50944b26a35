"""What was done and why, one finding each: forced, transformed, ballistic, angles, denoised, and how much was compared.

Each function returns None if there is nothing to say.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.format import after_number, count, listed, plus_minus, short
from ...diagnose import Finding
from ...diagnose.finding import Quantity
from ...model import LangevinModel
from ...statistics.resampling import GROUPS, critical
from ..curves import Curve, basin_name

if TYPE_CHECKING:
    from ..validation import Validation

HELD_OUT_CHANCE = 0.01  # of an alarm about held-out forecasts of a right model, at most
_STEP_CHANCE = 0.002  # of state-dependent steps that are not there
_STEP_SIZE = 0.25  # of the mean squared step: smaller differences are not mentioned
_FAST_ANGLE = 0.1  # correlation left after one sampling interval, below which a mobility is a lower bound
_TREND, _TREND_ERRORS = 0.1, 2.0  # change of Phi with the horizon that is mentioned: relative, and in standard errors
_FIFTHS = {
    "value": ("lowest", "second", "middle", "fourth", "highest"),
    "radius": ("innermost", "second", "middle", "fourth", "outermost"),
}


def forced(validation: "Validation") -> Finding | None:
    """The fit was forced on a series that is not stationary."""
    reason = validation.model.provenance.get("forced", "")
    return Finding("forced", "stop", f"the diagnosis advised against this fit. {reason}") if reason else None


def variables(validation: "Validation") -> Finding | None:
    """The comparison is one of transformed variables, or of cos and sin of angles."""
    model, pdf, metrics = validation.model, validation.curves.get("original_pdf"), validation.metrics
    if pdf is None:
        return None
    worst = pdf.labels[int(np.argmax(pdf["kl"]))]
    density = (
        f"the density of {worst} is reproduced worst: KL divergence "
        f"{plus_minus(metrics['pdf_kl_original'], metrics['pdf_kl_original_se'])} nats "
        f"({short(metrics['pdf_kl_original_floor'])} between two halves of the data)."
    )
    if model.space.angles:
        meaning = (
            f"the equation is one of {listed(model.names)}; data and model are compared by cos and sin of the angles, "
            f"which do not jump. Of the angles themselves, {density}"
        )
    else:
        assert model.transform is not None
        steps = getattr(model.transform, "steps", (model.transform,))
        kinds = ", ".join(type(step).__name__.removeprefix("Fitted") for step in steps)
        meaning = (
            f"data and model are compared in {listed(model.names)}, made of {listed(model.transform.names)} by "
            f"{kinds}. With the transforms undone, {density}"
        )
    return Finding("variables", "note", meaning)


def angles(validation: "Validation") -> Finding | None:
    """What the basins of angles hold, or what cos and sin in their place mean."""
    model = validation.model
    if model.space.angles:
        basins = [validation.curves.get(basin_name(name)) for name in model.names]
        meaning = " ".join([*(_basin_words(c) for c in basins if c is not None), *_fast_angles(model)])
        return Finding("angles", "note", meaning) if meaning else None
    if model.transform is None or not model.transform.embeds_angles:
        return None
    meaning = (
        "cos and sin of an angle lie on a circle, and the noise of motion along a circle turns with the state. A "
        "constant mobility pushes states off the circle, so compare the angles only, with the transforms undone."
    )
    advice = (
        "Put `el.preprocess.Periodic` last and keep the default score and mobility: the model is then one of angles."
    )
    return Finding("angles", "note", meaning, advice)


def regime(validation: "Validation") -> Finding | None:
    """The series is smooth at its sampling interval: what this means, and what was done."""
    found = validation.model.mobility.evidence
    if not found.ballistic:
        return None
    beneath = " beneath its measurement noise" if found.noisy else ""
    slope = 1.0 if found.quadratic_variation_slope is None else found.quadratic_variation_slope
    meaning = (
        f"the series is smooth (ballistic) at its sampling interval{beneath}: squared displacements grow as "
        f"h^{1 + slope:.2f} with the interval h, where a diffusion has h^1 and smooth motion h^2. Phi(T) then rises "
        "from zero with the horizon T, and Phi(0+) does not exist. Phi was taken where the rise ends or the response "
        f"changes sign, {horizon_words(validation)}. At shorter lags the model does not hold."
    )
    return Finding("regime", "note", meaning)


def horizon_words(validation: "Validation") -> str:
    """Return the horizons at which an effective mobility was taken; of fields, those of the leading modes."""
    found, modes = validation.model.mobility.evidence.horizon, validation.curves.get("mode_acf")
    if found is None or found.chosen is None or found.rule != "finite":
        return ""
    used = np.atleast_1d(found.chosen)
    used = used if modes is None else used[np.unique(modes["mode"])]
    low, high = (short(float(value)) for value in (used.min(), used.max()))
    span = f"T = {low}" if low == high else f"T = {low} to {high}"
    which = " for the modes that hold most of the variance" if modes is not None and low != high else ""
    unfinished = used.max() >= found.horizons[-1] * (1 - 1e-9)
    longest = "this is" if low == high else f"{high} is"
    note = f" ({longest} the longest horizon tried; the rise had not ended there)" if unfinished else ""
    return f"{span}{after_number(validation.comparison.time_unit)}{which}{note}"


def state_dependence(validation: "Validation") -> Finding | None:
    """The size of steps depends on the state, as it cannot in the model; not asked of smooth motion and fields."""
    evidence, curve = validation.model.mobility.evidence, validation.curves.get("step_size")
    smooth = evidence.ballistic and not evidence.noisy
    return None if curve is None or smooth else step_sizes(curve, validation.model.fields is None)


def step_sizes(curve: Curve, constant: bool = True) -> Finding | None:
    """Describe the profile of step sizes that differs most, if it differs, from that of a constant mobility or not."""
    place = clearest_step(curve)
    if place is None:
        return None
    kind, variable = place
    name, by = curve.labels[variable], str(curve["by"][kind])
    data, error, model = (a[place] for a in (curve.data, curve.data_error, curve.model) if a is not None)
    ends = [int(np.argmax(data)), int(np.argmin(data))]
    high, low = (plus_minus(float(data[b]), float(error[b])) for b in ends)
    where = [f"in the {_FIFTHS[by][b]} fifth of {'the states' if kind else name}" for b in ends]
    in_model = [short(float(model[b])) for b in ends]
    meaning = (
        f"the mean squared step of {name} over {short(float(curve['tau']))}{after_number(curve.unit('tau'))} is {high} "
        f"times its mean {where[0]} and {low} times {where[1]}; in the model {in_model[0]} and {in_model[1]}. "
    )
    if constant:
        meaning += "A constant mobility does not allow this: the noise depends on the state, or the motion over that "
        meaning += "time is more than noise."
        advice = "`el.fit(series, mobility=el.StateDependent())` (`--mobility state-dependent`)."
    else:
        meaning += "The diffusion of the model does not account for this."
        advice = '`el.fit(series, memory="auto")` (`--memory auto`).'
    return Finding("state-dependent steps", "warning", meaning, advice)


def clearest_step(curve: Curve) -> tuple[int, int] | None:
    """Return kind and variable of the profile that differs most, if beyond errors and large enough to mention."""
    if curve.data_error is None or curve.model_error is None:
        return None
    gap, error = curve.data - curve.model, np.hypot(curve.data_error, curve.model_error)
    size = np.abs(gap) / np.maximum(error, 1e-12)
    real = (size > critical(GROUPS, gap.size, _STEP_CHANCE)) & (np.abs(gap) > _STEP_SIZE)
    if not real.any():
        return None
    kind, variable, _ = np.unravel_index(int(np.argmax(np.where(real, np.abs(gap), 0))), gap.shape)
    return int(kind), int(variable)


def unresolved_modes(validation: "Validation") -> Finding | None:
    """The data say nothing about the mobility of some Fourier modes."""
    found = validation.model.mobility.evidence.horizon
    by_mode = found and found.phi_by_mode
    lost = 0 if by_mode is None else int(np.isnan(by_mode).any(axis=1).sum())
    if by_mode is None or not lost:
        return None
    meaning = (
        f"in {lost} of the {len(by_mode)} Fourier modes the data spread less than the smoothing width. They do not "
        "determine Phi there, and it was given its typical value."
    )
    return Finding("unresolved modes", "note", meaning)


def held_out(validation: "Validation") -> Finding | None:
    """How a closure inferred without some stretches forecasts them; of smooth motion a note, never a warning.

    An alarm about a right model has a chance of at most 1 %.
    """
    evidence = validation.model.mobility.evidence
    found = evidence.held_out
    if found is None:
        return None
    words = found.words(validation.comparison.time_unit)
    numbers = {found.kind: Quantity(found.value, found.error)}
    if found.p >= HELD_OUT_CHANCE:
        meaning = f"no difference that matters was detected. Nearest to one: {words}."
        return Finding("held-out forecasts", "ok", meaning, "", numbers, p=found.p)
    smooth = evidence.ballistic or (evidence.closure is not None and evidence.closure.white is False)
    advice = "`el.diagnose(series)`: the process has memory, lag 0 is off (blur, noise), or the record drifts."
    meaning = f"{words} (p = {found.p:.1g})."
    return Finding("held-out forecasts", "note" if smooth else "warning", meaning, advice, numbers, p=found.p)


def support(validation: "Validation") -> Finding | None:
    """Held-out forecasts speak against the fields that were asked for, with a chance of at most 1 % if they are right.

    A fit that chooses its closure has taken the simplest of the good ones.
    """
    found = validation.model.mobility.evidence.choice
    if found is None or not found.asked or not (doubt := found.doubt()):
        return None
    tried = {t.kind: Quantity(t.excess, t.standard_error) for t in found.candidates if np.isfinite(t.excess)}
    return Finding("closure", "warning", doubt, f"`el.fit` with {found.advice()}", tried)


def denoised(validation: "Validation") -> Finding | None:
    """Simulated states were denoised."""
    score = validation.model.score
    if score.resolved:
        return None
    unit = "standard deviations" if score.frame is None else "of the spread in each direction"
    meaning = (
        f"the smoothing width of the score ({score.noise_level:g} {unit}) exceeds the spread of the data in some "
        "directions. Every simulated state was therefore replaced by a draw from the clean states that it can have "
        "come from, before it was compared."
    )
    return Finding("denoised", "note", meaning)


def variance_correction(validation: "Validation") -> Finding | None:
    """The variances of the model were matched to the data by simulation."""
    found = validation.model.score.evidence.settled
    if found is None:
        return None
    first = np.asarray(found.variance_ratio[0], float)
    worst = first[np.argmax(np.abs(np.log(first)))]
    meaning = (
        f"a linear term in the score, tuned in {count(len(found.variance_ratio), 'simulation round')}, matches the "
        f"variances of the model to the data (worst ratio before: {short(worst)}). Agreement of the covariance is "
        "therefore no evidence for the model."
    )
    return Finding("variance correction", "note", meaning)


def mobility(validation: "Validation") -> Finding:
    """How well Phi is known, and what was done to it."""
    evidence, metrics, unit = validation.model.mobility.evidence, validation.metrics, "%"
    parts = [f"Phi is known to {short(100 * relative_error(validation))} {unit} (sampling error)"]
    if "mobility_error" in metrics:
        off = plus_minus(100 * metrics["mobility_error"], 100 * metrics["mobility_error_se"])
        parts.append(f"it differs from the exact one by {off} {unit}")
    if (trend := _horizon_trend(validation)) > _TREND:
        parts.append(f"from the shortest to the longest horizon it changes by {short(100 * trend)} {unit}")
    if evidence.lifted_by > 0:
        parts.append(
            f"its diffusion was not positive definite, and it was changed by {short(100 * evidence.lifted_by)} {unit}"
        )
    return Finding("mobility", "note", f"{'; '.join(parts)}.")


def relative_error(validation: "Validation") -> float:
    """Return |standard error of Phi| / |Phi| in standardised units, where entries are comparable."""
    standard, mobility = validation.view.standard_mobility, validation.model.mobility
    found = np.linalg.norm(standard(mobility.standard_error)) / np.linalg.norm(standard(mobility.matrix))
    return float(np.nan_to_num(found))


def _horizon_trend(validation: "Validation") -> float:
    """Return the relative change of Phi(T) from the shortest to the longest horizon; zero when errors explain it."""
    found, standard = validation.model.mobility.evidence.horizon, validation.view.standard_mobility
    if found is None or found.phi is None or found.standard_error is None:
        return 0.0
    phi, error = standard(found.phi), standard(found.standard_error)
    change, noise = np.linalg.norm(phi[-1] - phi[0]), np.linalg.norm(error[[0, -1]])
    size = float(change / np.linalg.norm(standard(validation.model.mobility.matrix)))
    return size if change > _TREND_ERRORS * noise else 0.0


def moving(validation: "Validation") -> Finding | None:
    """The law of the ensemble had not come to rest."""
    found = validation.comparison.settling
    if found is None or not found.moving:
        return None
    time = f"{found.time:.3g}{after_number(validation.comparison.time_unit)}"
    meaning = (
        f"the simulated ensemble has not reached a steady state after {time}: a probability still changed by "
        f"{short(found.change)} in the last half of that (p = {found.p:.1g})."
    )
    advice = f"`el.validate(model, series, duration={found.time * 10:.3g})` to see more of it."
    return Finding("steady state of the model", "warning", meaning, advice)


def data_used(validation: "Validation") -> Finding:
    """How much was compared with how much, and what was left out."""
    sizes = validation.comparison
    independent = sizes.duration / (2 * max(sizes.integral_times))
    dropped = f"{count(sizes.dropped, 'row')} with missing values dropped" if sizes.dropped else "no row dropped"
    diverged = f"; {count(sizes.diverged, 'more member')} diverged and were left out" if sizes.diverged else ""
    meaning = (
        f"{count(sizes.samples, 'sample')} in {count(sizes.segments, 'segment')}, {dropped}, of which about "
        f"{independent:,.0f} are independent in the slowest variable. The model was simulated for "
        f"{count(sizes.model_samples, 'sample')} in {count(sizes.members, 'member')}{diverged}."
    )
    return Finding("data", "note", meaning)


NOTES = (
    forced,
    moving,
    held_out,
    support,
    state_dependence,
    variables,
    angles,
    regime,
    unresolved_modes,
    denoised,
    variance_correction,
)


def _basin_words(curve: Curve) -> str:
    name, unit = str(curve["angle"]), after_number(curve.unit("centre"))
    centres = [f"around {short(float(centre))}{unit}" for centre in curve["centre"]]
    if len(centres) == 1:
        return f"{name} has one basin, {centres[0]}."

    def share(value: Any, error: Any, basin: int) -> str:
        return plus_minus(100 * float(value[basin]), 100 * float(error[basin]))

    parts = [
        f"{centre} with {share(*curve.sides[0], b)} % of the data and {share(*curve.sides[1], b)} % of the model"
        for b, centre in enumerate(centres)
    ]
    return f"{name} has {len(parts)} basins: {', '.join(parts[:-1])}, and {parts[-1]}."


def _fast_angles(model: LangevinModel) -> list[str]:
    """Name the angles whose motion is mostly over within one sampling interval."""
    left = model.mobility.evidence.left_after_one_step
    names = [] if left is None else [name for name, rest in zip(model.names, left) if rest < _FAST_ANGLE]
    if not names:
        return []
    return [
        f"The motion of {listed(names)} within a basin is mostly over after one sampling interval of "
        f"{model.dt:g}{after_number(model.time_unit)}: its mobility is a lower bound, whatever its standard error."
    ]
