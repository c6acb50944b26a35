"""Joint tests of many differences between two samples: is any of them larger than allowed, are all of them small?

Each side gives its estimates and how much each group of consecutive samples pulls them (influences, the centred
pseudo-values of the jackknife). A difference d with standard error e is tested against an allowed size a by
T = (|d| - a) / e, and the largest T against the largest |t| of differences whose groups have random signs: this keeps
the correlations between the differences, and needs no normal law.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri, stdtr, stdtrit

from .resampling import GROUPS, critical

DRAWS = 4000
POWER = 0.98  # chance with which a difference of the stated detectable size is found
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Grouped:
    """An estimate, and the influence of each group on it."""

    value: Float[np.ndarray, " part"]
    influence: Float[np.ndarray, "group part"]

    @property
    def error(self) -> Float[np.ndarray, " part"]:
        return np.sqrt(np.mean(self.influence**2, axis=0) / (len(self.influence) - 1))


def estimate_in_groups(estimate: Callable[[np.ndarray], np.ndarray], blocks: int = GROUPS) -> Grouped:
    """Estimate from all groups, and without each block of neighbouring groups; `blocks` divides their number."""
    kept = 1.0 - np.repeat(np.eye(blocks), GROUPS // blocks, axis=1)
    others = np.array([np.ravel(estimate(weights)) for weights in kept])
    return Grouped(np.ravel(estimate(np.ones(GROUPS))), (blocks - 1) * (others.mean(axis=0) - others))


@dataclass(frozen=True)
class StudentNull:
    """Law of the largest |t| among differences that are zero: Student's for so many groups, Bonferroni over all parts.

    `chance` is that of reaching a size, `critical` the size that is exceeded with a chance.
    """

    groups: int
    parts: int

    def chance(self, size: float) -> float:
        return float(min(1.0, 2 * self.parts * stdtr(self.groups - 1, -max(size, 0.0))))

    def critical(self, chance: float) -> float:
        return critical(self.groups, self.parts, chance)


@dataclass(frozen=True, eq=False)
class ResampledNull:
    """Largest |t| of differences with random signs of the groups, sorted."""

    maxima: Float[np.ndarray, " draw"]

    @classmethod
    def of(cls, sides: Sequence[np.ndarray], draws: int = DRAWS, seed: int = 0) -> "ResampledNull":
        """Give the groups of each side (group, part) random signs, and divide by the error of what comes out."""
        rng, total, variance = np.random.default_rng(seed), 0.0, 0.0
        for influence in sides:
            groups = len(influence)
            signs = 2.0 * rng.integers(0, 2, (draws, groups)) - 1.0
            mean = signs @ influence / groups
            total, variance = total + mean, variance + (np.mean(influence**2, axis=0) - mean**2) / (groups - 1)
        size = np.abs(total) / np.sqrt(np.maximum(variance, _TINY**2))
        return cls(np.sort(np.max(size, axis=1)))

    def chance(self, size: float) -> float:
        """Return the chance that the largest |t| reaches a size; never below one in the number of draws."""
        reached = len(self.maxima) - np.searchsorted(self.maxima, size)
        return float((reached + 1) / (len(self.maxima) + 1))

    def critical(self, chance: float) -> float:
        return float(np.quantile(self.maxima, 1 - chance))


@dataclass(frozen=True)
class Outcome:
    """Chances of so large a difference if the true ones are small, or no larger than large; whether all are smaller."""

    p_small: float
    p_large: float
    shown: bool


@dataclass(frozen=True, eq=False)
class Differences:
    """Signed differences with their errors, what is small and what is large, and their joint null law.

    `other_error` is the part of the error that another seed of the simulation would draw anew. `cautious` is the error,
    of `groups` groups, with which a difference is shown to be smaller than large.
    """

    gap: np.ndarray
    error: np.ndarray
    other_error: np.ndarray
    small: np.ndarray
    large: np.ndarray
    null: StudentNull | ResampledNull
    groups: int
    cautious: np.ndarray

    def sizes(self, allowed: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """Standard errors by which each |difference| exceeds what is allowed, after it moved by `shift` seed errors."""
        moved = np.maximum(np.abs(self.gap) + shift * self.other_error, 0.0)
        return (moved - allowed) / np.maximum(self.error, _TINY)

    def outcome(self, shift: float = 0.0, chance: float = 0.05) -> Outcome:
        """Test all differences together; that they are smaller than large is shown with error `chance`."""
        finite = np.isfinite(self.large)
        worst = float(self.sizes(self.large, shift)[finite].max()) if finite.any() else -np.inf
        return Outcome(
            self.null.chance(float(self.sizes(self.small, shift).max())),
            self.null.chance(worst),
            bool((self.upper(chance) + shift * self.other_error < self.large).all()),
        )

    def upper(self, chance: float = 0.05) -> np.ndarray:
        """Size that each |difference| exceeds with this chance."""
        return np.abs(self.gap) + stdtrit(self.groups - 1, 1 - chance) * self.cautious

    def detectable(self, chance: float) -> np.ndarray:
        """Size of a difference that a test of this level finds with `POWER`."""
        return self.small + (self.null.critical(chance) + ndtri(POWER)) * self.error


def holm(chances: Sequence[float], level: float) -> list[bool]:
    """Reject hypotheses so that all false rejections together have at most this level (Holm, step down)."""
    order, rejected = np.argsort(chances), [False] * len(chances)
    for rank, place in enumerate(order):
        if chances[place] > level / (len(chances) - rank):
            break
        rejected[place] = True
    return rejected


def shares_below(samples: Float[np.ndarray, "sample var"], levels: Float[np.ndarray, "var level"]) -> np.ndarray:
    """Share of each group of consecutive samples below each level, (group, var, level)."""
    shares = np.empty((GROUPS, *levels.shape))
    for g, part in enumerate(np.array_split(samples, GROUPS)):
        for v, column in enumerate(np.ascontiguousarray(part.T)):
            shares[g, v] = [np.count_nonzero(column < level) / max(len(part), 1) for level in levels[v]]
    return shares
