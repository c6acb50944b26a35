"""Symmetries that the moments do not contradict: suggestions, to be confirmed by what is known about the system.

A symmetry x -> U x leaves means, C(0), C(h) and the third moments < x_i^2 x_j > as they are. The largest deviation of
these, in jackknife errors, decides; and a symmetry is only suggested if a violation of a tenth would have been seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from .._core.format import listed
from ..statistics.lags import LaggedMoments
from ..statistics.resampling import critical, jackknife
from . import thresholds
from .finding import Finding, Quantity
from .moments import SeriesMoments

_SMALLEST_RING = 4
_MOST_EXCHANGED = 6
_MOST_FLIPPED = 4


@dataclass(frozen=True)
class Candidate:
    """A symmetry: the largest deviation in errors, what is allowed, and the typical error of the moments compared."""

    name: str
    deviation: float
    allowed: float
    error: float

    @property
    def possible(self) -> bool:
        return self.deviation < self.allowed

    @property
    def suggested(self) -> bool:
        """Not contradicted, although a violation of a tenth of a standard deviation would have been."""
        return self.possible and self.error < thresholds.VISIBLE / 2


def find_symmetries(moments: SeriesMoments) -> tuple[Candidate, ...]:
    """Test changes of sign, rotations and reversals of the ring of variables, and exchanges of two."""
    size, names = moments.series.dimension, moments.series.names
    same_units, same, plus = len(set(moments.series.units)) == 1, np.arange(size), np.ones(size)
    found = [_test(moments, name, same, signs, about_mean=True) for name, signs in _sign_changes(names)]
    if same_units and size >= _SMALLEST_RING:
        found.append(_test(moments, "rotation of the ring of variables", np.roll(same, 1), plus))
        if found[-1].possible:
            found.append(_test(moments, "reversal of the ring", same[::-1], plus))
            found.append(_test(moments, "reversal of the ring and of the sign", same[::-1], -plus))
    if same_units and 2 <= size <= _MOST_EXCHANGED:
        for i, j in combinations(range(size), 2):
            order = np.where(same == i, j, np.where(same == j, i, same))
            found.append(_test(moments, f"exchange of {names[i]} and {names[j]}", order, plus))
    return tuple(found)


def _sign_changes(names: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """The sign of all variables and, of few, of every subset."""
    yield "x -> -x", -np.ones(len(names))
    if 2 <= len(names) <= _MOST_FLIPPED:
        for signs in list(product((1, -1), repeat=len(names)))[1:-1]:
            flipped = " and ".join(n for n, sign in zip(names, signs) if sign < 0)
            yield f"change of sign of {flipped}", np.array(signs, float)


def _test(
    moments: SeriesMoments, name: str, order: np.ndarray, signs: np.ndarray, about_mean: bool = False
) -> Candidate:
    """Largest deviation of the moments from their images under x_i -> sign_i x_(order_i), in errors of the difference.

    The third moment < x_i^2 x_j > has the sign of j.
    """
    lagged, grid, both = moments.at(np.array([0, moments.fast_lag])), np.ix_(order, order), np.outer(signs, signs)

    def difference(weights: np.ndarray) -> np.ndarray:
        mean, now, later, third = _common_moments(moments, weights, lagged, about_mean)
        gaps = (mean - signs * mean[order], now - both * now[grid], later - both * later[grid])
        return np.concatenate([gap.ravel() for gap in (*gaps, third - signs * third[grid])])

    gap, error = jackknife(difference, moments.groups)
    compared = error > 1e-12
    if not compared.any():
        return Candidate(name, 0.0, 1.0, np.inf)
    allowed = critical(moments.groups, int(compared.sum()), thresholds.MISSED_SYMMETRY)
    largest = float(np.max(np.abs(gap / np.where(compared, error, np.inf))))
    return Candidate(name, largest, allowed, float(np.sqrt(np.mean(error**2))))


def _common_moments(moments: SeriesMoments, weights: np.ndarray, lagged: LaggedMoments, about_mean: bool):
    """Mean, C(0), C(h), third moments in a common unit: the root mean square of all standard deviations."""
    counts = weights * moments.counts / np.sum(weights * moments.counts)
    unit = np.sqrt(np.mean(moments.units.std**2))
    std, centre = moments.units.std / unit, moments.units.mean / unit
    shift = counts @ moments.means
    now, later = lagged.mean(weights)
    third = np.tensordot(counts, moments.cubes, 1)
    # About the mean of this weighting, to first order in how far it is from that of all.
    third = third - np.diag(now)[:, None] * shift - 2 * now * shift[:, None]
    mean = np.zeros_like(shift) if about_mean else centre + std * shift
    scale = np.outer(std, std)
    return mean, scale * now, scale * later, third * (std**2)[:, None] * std


def check_symmetry(moments: SeriesMoments) -> Finding:
    """Suggest symmetries that the moments do not contradict."""
    found = find_symmetries(moments)
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
