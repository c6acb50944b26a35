"""What was done and why, in words: forced, transformed, smooth at its interval, or narrower than the noise."""

from typing import TYPE_CHECKING, cast

import numpy as np

from ..._core.format import after_number, count, listed, plus_minus, short
from ...model import LangevinModel
from ..basins import Basins
from ..fields_comparison import FieldsComparison

if TYPE_CHECKING:
    from ..untransformed import OriginalVariables
    from ..validation import Validation

_MOSTLY_OVER = 0.1


def ballistic(model: LangevinModel) -> bool:
    """Whether the mobility is an effective one over a finite horizon, because the motion is smooth at short times."""
    return model.mobility.diagnostics.get("horizon_rule") == "finite"


def regime(validation: "Validation") -> str:
    """That the series is smooth at its sampling interval, what this means, and what was done; else nothing."""
    model, found = validation.model, validation.model.mobility.diagnostics
    if not ballistic(model):
        return ""
    beneath = " beneath its measurement noise" if any(found.get("measurement_noise", ())) else ""
    power = 1 + found.get("quadratic_variation_slope", 1.0)
    return (
        f"Regime: the series is smooth (ballistic) at its sampling interval{beneath}: squared displacements grow as "
        f"h^{power:.2f} with the interval h, where a diffusion has h^1 and smooth motion h^2. Phi(T) then rises from "
        "zero with the horizon T, and there is no Phi(0+): the Phi used is the effective one where the rise ends or "
        f"the response changes sign, {horizon_words(validation)}. An overdamped model cannot follow the curvature of "
        "the autocorrelations at lags shorter than that."
    )


def horizon_words(validation: "Validation") -> str:
    """The horizons at which an effective mobility was taken, of the modes that matter where there are modes."""
    used = _chosen_horizons(validation)
    low, high = (short(float(value)) for value in (used.min(), used.max()))
    span = f"T = {low}" if low == high else f"T = {low} to {high}"
    modes = " for the modes that hold most of the variance" if FieldsComparison.of(validation) and low != high else ""
    longest = validation.model.mobility.diagnostics["horizon"][-1]
    unfinished = used.max() >= longest * (1 - 1e-9)
    which = "the" if low == high else f"{high} is the"
    note = f" ({which} longest horizon tried; the rise had not ended there)" if unfinished else ""
    return f"{span}{after_number(validation.data.time_unit)}{modes}{note}"


def unresolved(validation: "Validation") -> str:
    """In how many modes the data say nothing about the mobility; else nothing."""
    by_mode = validation.model.mobility.diagnostics.get("phi_by_mode")
    if by_mode is None:
        return ""
    lost = int(np.isnan(np.asarray(by_mode, float)).any(axis=1).sum())
    if not lost:
        return ""
    return (
        f"In {lost} of the {len(by_mode)} Fourier modes the data spread less than the noise level: they say nothing "
        "about Phi there, and it was given its typical value."
    )


def denoised(validation: "Validation") -> str:
    """That simulated states were denoised, and why; else nothing."""
    score = validation.model.score
    if score.resolved:
        return ""
    unit = "standard deviations" if score.frame is None else "of the spread in each direction"
    return (
        f"Denoised: the noise of the score ({score.noise_level:g} {unit}) exceeds the spread of the data in some "
        "directions, so every simulated state was replaced by the clean state to be expected from it, with the spread "
        "of clean states, before it was compared."
    )


def settled(validation: "Validation") -> str:
    """That the variances were put right by simulation; else nothing."""
    found = validation.model.score.evidence.settled
    if found is None:
        return ""
    first = np.asarray(found.variance_ratio[0], float)
    worst = first[np.argmax(np.abs(np.log(first)))]
    return (
        f"Settled: a linear term in the score makes the variances of the model those of the data, from "
        f"{count(len(found.variance_ratio), 'simulation')} of the model itself; before, the worst was "
        f"{short(worst)} times that of the data. Agreement of the covariance is therefore no evidence for the model."
    )


def state_dependent(validation: "Validation") -> str:
    """That the size of steps depends on the state as it cannot in the model; smooth motion and rings are left out."""
    noisy = any(validation.model.mobility.diagnostics.get("measurement_noise", ()))
    if validation.steps is None or (ballistic(validation.model) and not noisy) or FieldsComparison.of(validation):
        return ""
    return validation.steps.words()


def on_circles(validation: "Validation") -> str:
    """What was done with angles: what their basins hold, or what cos and sin in their place mean; else nothing."""
    circles, original = validation.model.circles, validation.original
    if circles and original:
        return " ".join(["Angles:", *_basins(validation), *_unresolved_angles(validation)])
    if not any(step["kind"] == "Periodic" for step in validation.model.provenance.get("preprocess", ())):
        return ""
    return (
        "Angles: cos and sin lie on circles, and motion along a circle has noise whose direction turns with the state. "
        "A constant mobility pushes states off the circles, where the data have none; only their angle, with the "
        "transforms undone, is to be compared with the data. With the default score and mobility, and no transform "
        "after it, `Periodic` leads to an equation of the angles themselves, which has none of this."
    )


def forced(validation: "Validation") -> str:
    """That the fit was forced on a series that is not stationary; else nothing."""
    reason = validation.model.provenance.get("forced", "")
    return f"Forced: the series was fitted although the diagnosis spoke against it. {reason}" if reason else ""


def own_variables(validation: "Validation") -> str:
    """That the comparison is one of transformed variables, and how the densities compare in those of the series."""
    original, transform = validation.original, validation.model.transform
    if original is None or transform is None:
        return ""
    if validation.model.circles:
        return _of_angles(validation)
    kinds = ", ".join(step["kind"] for step in validation.model.provenance.get("preprocess", ())) or "a transform"
    worst = original.data.names[int(np.argmax(original.kl_by_variable()))]
    metrics = validation.metrics
    density = plus_minus(metrics["pdf_kl_original"], metrics["pdf_kl_original_se"])
    return (
        f"Variables: the model is one of {listed(validation.model.names)}, made of {listed(transform.names)} by "
        f"{kinds}, and all of this page compares those. With the transforms undone, the density of {worst} is the "
        f"worst reproduced, by a KL divergence of {density} nats ({short(metrics['pdf_kl_original_floor'])} between "
        "two halves of the data)."
    )


def _of_angles(validation: "Validation") -> str:
    """That cos and sin of angles are compared, and how the densities of the angles themselves do."""
    original, metrics = cast("OriginalVariables", validation.original), validation.metrics
    worst = original.data.names[int(np.argmax(original.kl_by_variable()))]
    density = plus_minus(metrics["pdf_kl_original"], metrics["pdf_kl_original_se"])
    return (
        f"Variables: the equation is one of {listed(validation.model.names)}, and its score is periodic in the angles "
        "among them. This page compares their cos and sin, which no border of a period cuts. Of the angles themselves, "
        f"the density of {worst} is the worst reproduced, by a KL divergence of {density} nats "
        f"({short(metrics['pdf_kl_original_floor'])} between two halves of the data)."
    )


def _basins(validation: "Validation") -> list[str]:
    """A sentence on each angle that the series has as well."""
    circles, original = validation.model.circles, cast("OriginalVariables", validation.original)
    assert circles is not None
    sentences = []
    for number, column in enumerate(circles.columns):
        name = circles.names[column]
        if name in original.data.names:
            place = original.data.names.index(name)
            samples = [series.stacked()[:, place] for series in (original.data, original.paths)]
            lowest, unit = float(circles.lowest[number]), circles.units[column]
            sentences.append(f"{Basins.of(*samples, lowest, circles.period, name, unit).words()}.")
    return sentences


def _unresolved_angles(validation: "Validation") -> list[str]:
    """The angles whose motion is mostly over within one sampling interval, of which little is then known."""
    model = validation.model
    left = model.mobility.diagnostics.get("left_after_one_step", ())
    names = [name for name, rest in zip(model.names, left) if rest < _MOSTLY_OVER]
    if not names:
        return []
    interval = f"{model.dt:g}{after_number(model.time_unit)}"
    return [
        f"The motion of {' and '.join(names)} within a basin is mostly over after one sampling interval of {interval}: "
        "its mobility is a lower bound, whatever its standard error."
    ]


def _chosen_horizons(validation: "Validation") -> np.ndarray:
    chosen = np.atleast_1d(validation.model.mobility.diagnostics["chosen_horizon"]).astype(float)
    ring = FieldsComparison.of(validation)
    if ring is None:
        return chosen
    return chosen[sorted({k for c in range(ring.channels) for k in ring.leading(c)})]
