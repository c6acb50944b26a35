"""Symmetries that the moments do not contradict: suggestions, to be confirmed by what is known about the system.

A symmetry x -> U x leaves means, C(0), C(h) and the third moments < x_i^2 x_j > as they are. The largest deviation of
these, in jackknife errors, decides; and a symmetry is only suggested if a violation of a tenth would have been seen.
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from ..statistics.resampling import critical, jackknife
from .survey import Survey

_SEEN = 0.1  # a deviation of this size (in standard deviations) must be visible
_SMALLEST_RING = 4
_MOST_EXCHANGED = 6
_MOST_FLIPPED = 4
_COMMON = 0.01  # chance to miss a symmetry that is there


@dataclass(frozen=True)
class Symmetry:
    """A candidate: the largest deviation in errors, what is allowed, and the typical error of the moments compared."""

    name: str
    kind: str
    deviation: float
    allowed: float
    error: float

    @property
    def suggested(self) -> bool:
        """Not contradicted, although a violation of a tenth of a standard deviation would have been."""
        return self.deviation < self.allowed and self.error < _SEEN / 2


@dataclass(frozen=True)
class _Signed:
    """x_i -> sign_i x_(order_i), and what it does to mean, C(0), C(h) and < x_i^2 x_j >, which has the sign of j."""

    order: np.ndarray
    signs: np.ndarray

    def __call__(self, mean, now, later, third) -> tuple[np.ndarray, ...]:
        rows, both = np.ix_(self.order, self.order), np.outer(self.signs, self.signs)
        return self.signs * mean[self.order], both * now[rows], both * later[rows], self.signs * third[rows]


def find_symmetries(survey: Survey) -> tuple[Symmetry, ...]:
    """Test sign, ring and exchange symmetries."""
    size, names = survey.series.dimension, survey.series.names
    same_units, same, plus = len(set(survey.series.units)) == 1, np.arange(size), np.ones(size)
    found = [_tested(survey, "x -> -x", "sign", _Signed(same, -plus), about_mean=True)]
    if 2 <= size <= _MOST_FLIPPED:
        for signs in list(product((1, -1), repeat=size))[1:-1]:
            flipped = " and ".join(n for n, sign in zip(names, signs) if sign < 0)
            flip = _Signed(same, np.array(signs, float))
            found.append(_tested(survey, f"change of sign of {flipped}", "sign", flip, about_mean=True))
    if same_units and size >= _SMALLEST_RING:
        found.append(
            _tested(survey, "rotation of the ring of variables", "translation", _Signed(np.roll(same, 1), plus))
        )
        if found[-1].deviation < found[-1].allowed:
            found.append(_tested(survey, "reversal of the ring", "reflection", _Signed(same[::-1], plus)))
            both = _Signed(same[::-1], -plus)
            found.append(_tested(survey, "reversal of the ring and of the sign", "reflection", both))
    if same_units and 2 <= size <= _MOST_EXCHANGED:
        for i, j in combinations(range(size), 2):
            order = np.where(same == i, j, np.where(same == j, i, same))
            found.append(_tested(survey, f"exchange of {names[i]} and {names[j]}", "exchange", _Signed(order, plus)))
    return tuple(found)


def _tested(survey: Survey, name: str, kind: str, transform: _Signed, about_mean: bool = False) -> Symmetry:
    """Largest deviation between the moments and their images, in errors of the difference."""
    lag = int(survey.lags[np.searchsorted(survey.lags, max(1, 0.5 * survey.times.min() / survey.series.dt))])
    rows = survey.rows(0, lag)

    def difference(weights: np.ndarray) -> np.ndarray:
        moments = _moments(survey, weights, rows, about_mean)
        return np.concatenate([(a - b).ravel() for a, b in zip(moments, transform(*moments))])

    gap, error = jackknife(difference, survey.groups)
    compared = error > 1e-12
    if not compared.any():
        return Symmetry(name, kind, 0.0, 1.0, np.inf)
    allowed = critical(survey.groups, int(compared.sum()), _COMMON)
    return Symmetry(name, kind, float(np.max(np.abs(gap / np.where(compared, error, np.inf)))), allowed, _rms(error))


def _moments(survey: Survey, weights: np.ndarray, rows: np.ndarray, about_mean: bool) -> tuple[np.ndarray, ...]:
    """Mean, C(0), C(h), third moments in a common unit: the root mean square of all standard deviations."""
    counts = weights * survey.counts / np.sum(weights * survey.counts)
    std = survey.units.std / np.sqrt(np.mean(survey.units.std**2))
    centre = survey.units.mean / np.sqrt(np.mean(survey.units.std**2))
    shift = counts @ survey.means
    now, later = survey.moments.mean(weights)[rows]
    third = np.tensordot(counts, survey.cubes, 1)
    # About the mean of this weighting, to first order in how far it is from that of all.
    third = third - np.diag(now)[:, None] * shift - 2 * now * shift[:, None]
    mean = np.zeros_like(shift) if about_mean else centre + std * shift
    scale = np.outer(std, std)
    return mean, scale * now, scale * later, third * (std**2)[:, None] * std


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))
