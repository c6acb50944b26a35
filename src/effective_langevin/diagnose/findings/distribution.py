"""Findings on the distribution of the variables: tails, edges, symmetries."""

import numpy as np

from ..._core.format import listed, measured
from ..marginals import Marginals
from ..moments import SeriesMoments
from ..symmetry_search import Candidate
from ..thresholds import THRESHOLDS
from .finding import Finding, Quantity

_TRY_LOG = "Record for longer, or look at the histogram. A positive, skewed variable is better fitted as its logarithm."


def tails(moments: SeriesMoments, found: Marginals) -> Finding:
    """Outliers, tail exponent and kurtosis."""
    names, kurtosis, error = moments.series.names, found.kurtosis, found.kurtosis_error
    numbers = {
        "excess_kurtosis": Quantity(kurtosis, error),
        "tail_exponent": Quantity(found.tail, found.tail_error),
        "outliers": Quantity(found.outliers),
    }
    if 0 < found.outliers.sum() < THRESHOLDS.few_outliers * moments.series.n_samples:
        hit = listed([f"{name} {n}" for name, n in zip(names, found.outliers) if n])
        meaning = f"Outliers: single samples far from all others, {hit}. They distort every moment."
        return Finding("tails", "warning", meaning, "Look at them. If they are errors, replace them by NaN.", numbers)
    heavy = found.tail + 2 * found.tail_error < THRESHOLDS.tail_exponent
    if heavy.any():
        worst = int(np.argmin(np.where(heavy, found.tail, np.inf)))
        meaning = (
            f"Heavy tails in {listed([n for n, h in zip(names, heavy) if h])}: P(|x| > u) falls like u to the power "
            f"-{measured(found.tail[worst], found.tail_error[worst])} ({names[worst]}). Moments of fourth order do not "
            "exist, so error bars of variances and correlations are too small."
        )
        advice = (
            "Check for outliers. Transform the variable before fitting, for example with "
            f'`preprocess=[el.preprocess.Log(["{names[worst]}"])]` if it is positive.'
        )
        return Finding("tails", "warning", meaning, advice, numbers)
    peaked = (kurtosis > THRESHOLDS.kurtosis) & (kurtosis > THRESHOLDS.sure * error)
    worst = int(np.argmax(np.where(peaked, kurtosis, kurtosis - 1e6)))
    most = f"excess kurtosis {measured(kurtosis[worst], error[worst])} ({names[worst]})"
    if peaked.any():
        advice = "Check for outliers. If the tails are real, the noise may depend on the state: see the validation."
        return Finding("tails", "note", f"Tails heavier than Gaussian: {most}. Moments are finite.", advice, numbers)
    if (kurtosis + 2 * error > THRESHOLDS.kurtosis).any():
        advice = "" if (kurtosis < THRESHOLDS.kurtosis).all() else _TRY_LOG
        level = "note" if advice else "ok"
        return Finding("tails", level, f"Cannot tell whether tails are heavier than Gaussian: {most}.", advice, numbers)
    return Finding("tails", "ok", f"No heavy tails: {most}.", "", numbers)


def edges(moments: SeriesMoments, found: Marginals) -> Finding:
    """Hard limits of the variables, and angles."""
    names, hard = moments.series.names, found.hard_edges()
    limits = moments.units.mean + moments.units.std * found.range
    numbers = {
        "lowest": Quantity(limits[0]),
        "highest": Quantity(limits[1]),
        "crowding_at_lowest": Quantity(found.crowding[0]),
        "crowding_at_highest": Quantity(found.crowding[1]),
    }
    angles = [name for name, turn in zip(names, found.full_turn) if turn]
    if angles:
        period, turn = ("360", "360") if found.full_turn.max() > 10 else ("2 pi", "2 * np.pi")
        looks = "looks like an angle" if len(angles) == 1 else "look like angles"
        meaning = f"{listed(angles)} {looks}: the range is {period}, with jumps from one end to the other."
        declared = ", ".join(f'"{name}": {turn}' for name in angles)
        advice = f"Declare it: `el.TimeSeries(..., periods={{{declared}}})`. The fit then treats it as a circle."
        return Finding("edges", "warning", meaning, advice, numbers)
    sides = [(i, side) for i in range(len(names)) for side in (0, 1) if hard[side, i]]
    if sides:
        bounded = listed([f"{names[i]} at {measured(limits[side, i])}" for i, side in sides])
        advice = (
            "The score jumps there. Transform to an unbounded variable, for example with "
            f'`preprocess=[el.preprocess.Log(["{names[sides[0][0]]}"])]` if the edge is at zero, or expect leaks.'
        )
        return Finding("edges", "note", f"Samples crowd at a hard edge: {bounded}.", advice, numbers)
    return Finding("edges", "ok", "No hard edges seen.", "", numbers)


def symmetries(found: tuple[Candidate, ...]) -> Finding:
    """Suggestions only."""
    numbers = {
        s.name: Quantity({"deviation": s.deviation, "allowed": s.allowed, "suggested": s.suggested}, s.error)
        for s in found
    }
    suggested, possible = ([s.name for s in found if getattr(s, kind)] for kind in ("suggested", "possible"))
    if suggested:
        advice = (
            "If you know from elsewhere that the system has this symmetry, impose it, and errors shrink: that of a "
            "ring by `el.fit(..., symmetry=el.Translations())`, another by adding transformed records to the series."
        )
        return Finding("symmetry", "note", f"The moments are consistent with: {listed(suggested)}.", advice, numbers)
    if possible:
        meaning = f"Too few samples to tell whether there is a symmetry ({listed(possible)})."
        return Finding("symmetry", "ok", meaning, "", numbers)
    return Finding("symmetry", "ok", "No symmetry among those tried.", "", numbers)
