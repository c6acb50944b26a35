"""Findings on the shape of the distribution: tails, edges, symmetries."""

import numpy as np

from ..._core.format import listed, measured
from ..findings.finding import Finding, Quantity
from ..shape import Shape
from ..survey import Survey
from ..symmetry import Symmetry

_HEAVY_TAIL = 4.0  # exponent below which the fourth moment, hence the error of a variance, is infinite
_NOTABLE_KURTOSIS = 1.0
_SURE = 3.5  # standard errors
_FEW = 1e-3  # of all samples: more are no outliers


def tails(survey: Survey, shape: Shape) -> Finding:
    """Kurtosis and tail exponent."""
    numbers = {
        "excess_kurtosis": Quantity(shape.kurtosis, shape.kurtosis_error),
        "tail_exponent": Quantity(shape.tail, shape.tail_error),
        "outliers": Quantity(shape.outliers),
    }
    names = survey.series.names
    if 0 < shape.outliers.sum() < _FEW * survey.series.n_samples:
        return _outliers(survey, shape, numbers)
    heavy = shape.tail + 2 * shape.tail_error < _HEAVY_TAIL
    if heavy.any():
        worst = int(np.argmin(np.where(heavy, shape.tail, np.inf)))
        meaning = (
            f"Heavy tails in {listed([n for n, h in zip(names, heavy) if h])}: P(|x| > u) falls like u to the power "
            f"-{measured(shape.tail[worst], shape.tail_error[worst])} ({names[worst]}). Moments of fourth order do not "
            "exist, so error bars of variances and correlations are too small."
        )
        advice = "Transform the variable (a logarithm, or its ranks) before fitting, and check for outliers."
        return Finding("tails", "warning", meaning, advice, numbers)
    peaked = (shape.kurtosis > _NOTABLE_KURTOSIS) & (shape.kurtosis > _SURE * shape.kurtosis_error)
    worst = int(np.argmax(np.where(peaked, shape.kurtosis, shape.kurtosis - 1e6)))
    most = f"excess kurtosis {measured(shape.kurtosis[worst], shape.kurtosis_error[worst])} ({names[worst]})"
    if peaked.any():
        meaning = f"Tails heavier than Gaussian: {most}. Moments are finite."
        advice = "Check for outliers. If the tails are real, look at the noise: it may depend on the state."
        return Finding("tails", "note", meaning, advice, numbers)
    return Finding("tails", "ok", f"No heavy tails: {most}.", "", numbers)


def _outliers(survey: Survey, shape: Shape, numbers: dict[str, Quantity]) -> Finding:
    hit = [f"{name} {n}" for name, n in zip(survey.series.names, shape.outliers) if n]
    meaning = f"Outliers: single samples far from all others, {listed(hit)}. They spoil every moment."
    return Finding("tails", "warning", meaning, "Look at them. If they are errors, replace them by NaN.", numbers)


def edges(survey: Survey, shape: Shape) -> Finding:
    """Hard limits of the variables, and angles."""
    names, hard = survey.series.names, shape.hard_edges()
    limits = survey.units.mean + survey.units.std * shape.range
    numbers = {
        "lowest": Quantity(limits[0]),
        "highest": Quantity(limits[1]),
        "crowding_at_lowest": Quantity(shape.crowding[0]),
        "crowding_at_highest": Quantity(shape.crowding[1]),
    }
    angles = [n for n, turn in zip(names, shape.full_turn) if turn]
    if angles:
        turn = "360" if shape.full_turn.max() > 10 else "2 pi"
        looks = "looks like an angle" if len(angles) == 1 else "look like angles"
        meaning = f"{listed(angles)} {looks}: the range is {turn}, with jumps from one end to the other."
        advice = "Use cos and sin as variables instead. A Langevin equation cannot jump."
        return Finding("edges", "warning", meaning, advice, numbers)
    bounded = [
        f"{names[i]} at {measured(limits[side, i])}" for i in range(len(names)) for side in (0, 1) if hard[side, i]
    ]
    if bounded:
        meaning = f"Samples crowd at a hard edge: {listed(bounded)}."
        advice = "The score has a jump there. Transform to an unbounded variable (logarithm, logit), or expect leaks."
        return Finding("edges", "note", meaning, advice, numbers)
    return Finding("edges", "ok", "No hard edges seen.", "", numbers)


def symmetries(found: tuple[Symmetry, ...]) -> Finding:
    """Suggestions only."""
    suggested = [s for s in found if s.suggested]
    open_ = [s for s in found if s.deviation < s.allowed and not s.suggested]
    numbers = {
        s.name: Quantity({"deviation": s.deviation, "allowed": s.allowed, "suggested": s.suggested}, s.error)
        for s in found
    }
    if suggested:
        meaning = f"The moments do not contradict: {listed([s.name for s in suggested])}."
        advice = "Only if you know from elsewhere that the system has it: impose it, and errors shrink."
        return Finding("symmetry", "note", meaning, advice, numbers)
    if open_:
        meaning = f"Too few samples to tell whether there is a symmetry ({listed([s.name for s in open_])})."
        return Finding("symmetry", "ok", meaning, "", numbers)
    return Finding("symmetry", "ok", "No symmetry seen among those tried.", "", numbers)
